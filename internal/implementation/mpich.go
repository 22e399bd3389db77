package implementation

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// mpich is MPICH, whose launcher is Hydra (its doc/wiki/how_to/Using_the_Hydra_Process_Manager.md names the
// variables). mpi-operator misspells HYDRA_LAUNCHER_EXTRA_ARGS, which Hydra then does not read.
type mpich struct{}

func (mpich) Hostfile(hosts []mpi.Host) string { return hydraHostfile(hosts) }

// TagFlags is Hydra's flag.
func (mpich) TagFlags() []string { return []string{"-prepend-rank"} }

// WorkDirFlag is Hydra's flag.
func (mpich) WorkDirFlag() string { return "-wdir" }

func (mpich) LauncherEnv(job mpi.Job) []corev1.EnvVar {
	if job.UsesAgent() {
		return []corev1.EnvVar{
			{Name: "HYDRA_HOST_FILE", Value: mpi.HostfilePath},
			{Name: "HYDRA_LAUNCHER", Value: "ssh"},
			{Name: "HYDRA_LAUNCHER_EXEC", Value: agentapi.Shim},
		}
	}
	return []corev1.EnvVar{
		{Name: "HYDRA_HOST_FILE", Value: mpi.HostfilePath},
		{Name: "HYDRA_LAUNCHER_EXTRA_ARGS", Value: connectionAttempts},
	}
}
