package mpi

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
)

// placingVariables begin the names of variables by which MPI places ranks otherwise than by filling the slots of one host after the other.
var placingVariables = []string{"OMPI_MCA_rmaps", "PRTE_MCA_rmaps", "I_MPI_PERHOST", "I_MPI_PPN", "MPIEXEC_PERHOST", "OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}

// HostsWithRanks returns how many ranks the command of the launcher starts, and how many of the job's hosts their slots fill, from the first on. It
// returns false if the command has not one call of MPI's launchers with a number of ranks, or may place the ranks in another way.
func (j Job) HostsWithRanks(command string, env []corev1.EnvVar) (ranks, hosts int, known bool) {
	calls := callsOfLaunchers(command)
	setsPlacement := slices.ContainsFunc(placingVariables, func(name string) bool { return strings.Contains(command, name) })
	if len(calls) != 1 || len(calls[0].program) == 0 || j.SlotsPerWorker < 1 || slices.Contains(calls[0].program, ":") || setsPlacement || slices.ContainsFunc(env, placesRanks) {
		return 0, 0, false
	}
	words := calls[0].options
	for i, word := range words {
		name := strings.TrimLeft(word, "-")
		if name == word {
			continue
		}
		name, value, joined := strings.Cut(name, "=")
		if of, isKnown := agentapi.OptionOf(name); !isKnown || of.Reduces || slices.Contains([]string{"rf", "rankfile", "bynode", "rr", "nolocal", "rank-by"}, name) {
			return 0, 0, false
		}
		if !slices.Contains([]string{"n", "np", "c"}, name) {
			continue
		}
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		var err error
		if ranks, err = strconv.Atoi(value); err != nil || ranks < 1 {
			return 0, 0, false
		}
	}
	if ranks == 0 || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "rmaps") }) {
		return 0, 0, false
	}
	slots := int(j.SlotsPerWorker)
	return ranks, min((ranks+slots-1)/slots, int(j.hostCount())), true
}

func placesRanks(v corev1.EnvVar) bool {
	return slices.ContainsFunc(placingVariables, func(name string) bool { return strings.HasPrefix(v.Name, name) })
}
