package mpi

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var (
	// batchFlag is a flag of Hydra (src/pm/hydra/mpiexec/utils.c) or Open MPI's component for launches (plm) with a batch system.
	batchFlag = regexp.MustCompile(`(?:^|\s)(-{1,2}(?:bootstrap|launcher|rmk|(?:mca|prtemca)\s+plm)[\s=]+(` + batchSystems + `))(?:\s|$)`)
	batchName = regexp.MustCompile(`^(?:` + batchSystems + `)$`)
)

const batchSystems = `slurm|srun|lsf|blaunch|sge|qrsh|pbs|pbspro|tm|ll|llspawn|alps|cobalt|jmi|pdsh|persist`

// batchVariables are the variables of MPICH, Intel MPI and Open MPI for the same.
var batchVariables = []string{"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_RMK", "OMPI_MCA_plm", "PRTE_MCA_plm"}

// BatchLauncher returns the setting of a launcher's command or variables by which MPI starts its processes through a batch system, and
// that system, such as "-bootstrap slurm" and "slurm"; "" for both if there is none.
func BatchLauncher(words []string, env []corev1.EnvVar) (setting, system string) {
	if found := batchFlag.FindStringSubmatch(strings.Join(words, " ")); found != nil {
		return found[1], found[2]
	}
	for _, v := range env {
		for _, name := range batchVariables {
			if v.Name == name && batchName.MatchString(v.Value) {
				return v.Name + "=" + v.Value, v.Value
			}
		}
	}
	return "", ""
}
