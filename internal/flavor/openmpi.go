package flavor

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

// openMPI is Open MPI 4 (ORTE) and 5 (PRRTE). Which of the two an image holds is not known beforehand, so
// both are told: each ignores the other's variables. Open MPI 5 without its own hostfile variable runs every
// rank on the launcher and calls that a success.
type openMPI struct{}

func (openMPI) Hostfile(hosts []mpi.Host) string {
	var b strings.Builder
	for _, host := range hosts {
		b.WriteString(host.Name + " slots=" + itoa(host.Slots) + "\n")
	}
	return b.String()
}

func (openMPI) LauncherEnv(job mpi.Job) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "true"},
		{Name: "OMPI_MCA_orte_default_hostfile", Value: mpi.HostfilePath},
		{Name: "OMPI_MCA_orte_set_default_slots", Value: slots(job)},
		{Name: "PRTE_MCA_prte_keep_fqdn_hostnames", Value: "true"},
		{Name: "PRTE_MCA_prte_default_hostfile", Value: mpi.HostfilePath},
	}
	if !job.UsesAgent() {
		return append(
			env,
			corev1.EnvVar{Name: "OMPI_MCA_plm_rsh_args", Value: connectionAttempts},
			corev1.EnvVar{Name: "PRTE_MCA_plm_ssh_args", Value: connectionAttempts},
		)
	}
	return append(
		env,
		corev1.EnvVar{Name: "OMPI_MCA_plm_rsh_agent", Value: launch.Shim},
		corev1.EnvVar{Name: "PRTE_MCA_plm_ssh_agent", Value: launch.Shim},
		// The daemons stay attached to the session that started them: when that ends, for whatever reason, the agent
		// knows whose processes are left behind.
		corev1.EnvVar{Name: "OMPI_MCA_orte_leave_session_attached", Value: "true"},
		corev1.EnvVar{Name: "PRTE_MCA_prte_leave_session_attached", Value: "true"},
		// In a container root is nobody whom mpirun has to protect from himself.
		corev1.EnvVar{Name: "OMPI_ALLOW_RUN_AS_ROOT", Value: "1"},
		corev1.EnvVar{Name: "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
		corev1.EnvVar{Name: "PRTE_ALLOW_RUN_AS_ROOT", Value: "1"},
		corev1.EnvVar{Name: "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
	)
}
