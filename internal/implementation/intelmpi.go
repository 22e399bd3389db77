package implementation

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// intelMPI is Intel MPI, whose launcher is a Hydra of its own
// (Intel MPI Library Developer Reference, "Hydra Environment Variables").
type intelMPI struct{}

func (intelMPI) Hostfile(hosts []mpi.Host) string { return hydraHostfile(hosts) }

// TagFlags is Hydra's flag.
func (intelMPI) TagFlags() []string { return []string{"-prepend-rank"} }

// WorkDirFlag is Hydra's flag.
func (intelMPI) WorkDirFlag() string { return "-wdir" }

func (intelMPI) LauncherEnv(job mpi.Job) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "I_MPI_HYDRA_HOST_FILE", Value: mpi.HostfilePath},
		{Name: "I_MPI_PERHOST", Value: slots(job)},
	}
	env = append(env, unbound(job, corev1.EnvVar{Name: "I_MPI_PIN", Value: "0"})...)
	if job.SharesCores() {
		// Ranks that wait call sched_yield.
		env = append(env, corev1.EnvVar{Name: "I_MPI_THREAD_YIELD", Value: "2"})
	}
	if !job.UsesAgent() {
		return append(env, corev1.EnvVar{Name: "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", Value: connectionAttempts})
	}
	return append(
		env,
		corev1.EnvVar{Name: "I_MPI_HYDRA_BOOTSTRAP", Value: "ssh"},
		corev1.EnvVar{Name: "I_MPI_HYDRA_BOOTSTRAP_EXEC", Value: agentapi.Shim},
	)
}
