package implementation

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// openMPI is Open MPI 4 (ORTE) and 5 (PRRTE). It is unknown beforehand which of the two an image holds, so
// the variables of both are set: each ignores the other's. Open MPI 5 without its own hostfile variable runs every
// rank on the launcher and calls that a success.
type openMPI struct{}

func (openMPI) Hostfile(hosts []mpi.Host) string { return openMPIHostfile(hosts) }

// TagFlags is a flag of Open MPI 4 that version 5, which has --output tag, still understands.
func (openMPI) TagFlags() []string { return []string{"--tag-output"} }

// WorkDirFlag is the flag of versions 4 and 5.
func (openMPI) WorkDirFlag() string { return "--wdir" }

// maxNodePrefix is ORTE_MAX_NODE_PREFIX of Open MPI 4, without the byte that ends the text.
const maxNodePrefix = 49

// attachedHosts is more hosts than any job has. While daemons stay attached, Open MPI starts them on at most so many hosts, 128 by default,
// and gives up if there are more (deadlock-params in its help-plm-rsh.txt and PRRTE's help-plm-ssh.txt).
const attachedHosts = "100000"

func (openMPI) LauncherEnv(job mpi.Job) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "true"},
		{Name: "OMPI_MCA_orte_default_hostfile", Value: mpi.HostfilePath},
		{Name: "OMPI_MCA_orte_set_default_slots", Value: slots(job)},
		{Name: "PRTE_MCA_prte_keep_fqdn_hostnames", Value: "true"},
		{Name: "PRTE_MCA_prte_default_hostfile", Value: mpi.HostfilePath},
	}
	env = append(env, unbound(
		job,
		corev1.EnvVar{Name: "OMPI_MCA_hwloc_base_binding_policy", Value: "none"},
		corev1.EnvVar{Name: "PRTE_MCA_hwloc_default_binding_policy", Value: "none"},
	)...)
	if job.SharesCores() {
		// Ranks that wait give their core to others, in Open MPI 4 and 5.
		env = append(env, corev1.EnvVar{Name: "OMPI_MCA_mpi_yield_when_idle", Value: "1"})
	}
	if len(job.WorkerName(0))-1 > maxNodePrefix {
		// Open MPI 4 copies the letters before a host's number into a buffer of this size, unchecked
		// (orte/mca/regx/fwd/regx_fwd.c). This component lists the hosts instead.
		env = append(env, corev1.EnvVar{Name: "OMPI_MCA_regx", Value: "naive"})
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
		corev1.EnvVar{Name: "OMPI_MCA_plm_rsh_agent", Value: agentapi.Shim},
		corev1.EnvVar{Name: "PRTE_MCA_plm_ssh_agent", Value: agentapi.Shim},
		// The daemons stay attached to the session that started them: when it ends, for whatever reason, the agent finds
		// the processes that are left.
		corev1.EnvVar{Name: "OMPI_MCA_orte_leave_session_attached", Value: "true"},
		corev1.EnvVar{Name: "PRTE_MCA_prte_leave_session_attached", Value: "true"},
		corev1.EnvVar{Name: "OMPI_MCA_plm_rsh_num_concurrent", Value: attachedHosts},
		corev1.EnvVar{Name: "PRTE_MCA_plm_ssh_num_concurrent", Value: attachedHosts},
		// A container confines root, so mpirun need not refuse to run as root.
		corev1.EnvVar{Name: "OMPI_ALLOW_RUN_AS_ROOT", Value: "1"},
		corev1.EnvVar{Name: "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
		corev1.EnvVar{Name: "PRTE_ALLOW_RUN_AS_ROOT", Value: "1"},
		corev1.EnvVar{Name: "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
	)
}
