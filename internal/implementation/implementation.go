// Package implementation holds the differences between MPI implementations: the environment from which a launcher learns
// the hosts and how to start ranks there. One implementation per file; to add one, add a file and a line in For.
package implementation

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// Flavor is an MPI implementation.
type Flavor interface {
	// Hostfile lists hosts and their slots as this implementation reads them, in the given order.
	Hostfile(hosts []mpi.Host) string
	// LauncherEnv tells the launcher where the hostfile is and how to start ranks.
	LauncherEnv(job mpi.Job) []corev1.EnvVar
	// TagFlags are the flags of mpirun by which each line of output starts with the rank that printed it.
	TagFlags() []string
	// WorkDirFlag is the flag of mpirun that sets the working folder of ranks.
	WorkDirFlag() string
	// Symptoms are the texts by which logs of this implementation, and of programs in it, show what is wrong. An
	// earlier one outranks a later one.
	Symptoms() []Symptom
}

// For returns the flavor of an implementation; anything unknown is taken for Open MPI, the default.
func For(implementation mpi.Implementation) Flavor {
	switch implementation {
	case mpi.IntelMPI:
		return intelMPI{}
	case mpi.MPICH:
		return mpich{}
	default:
		return openMPI{}
	}
}

// connectionAttempts lets ssh wait for a worker whose sshd comes up a little later; mpi-operator's value.
const connectionAttempts = "-o ConnectionAttempts=10"

func slots(job mpi.Job) string { return itoa(job.SlotsPerWorker) }

func itoa(n int32) string { return strconv.Itoa(int(n)) }
