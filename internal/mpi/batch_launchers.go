package mpi

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var (
	// batchFlag is a flag of Hydra (src/pm/hydra/mpiexec/utils.c) or Open MPI's component for launches (plm) with a batch system.
	batchFlag = regexp.MustCompile(`(?:^|\s)(-{1,2}(?:bootstrap|launcher|rmk|(?:mca|prtemca)\s+plm)[\s=]+(` + batchSystems + `))(?:\s|$)`)
	batchName = regexp.MustCompile(`^(?:` + batchSystems + `)$`)
	// endOfCommand ends a command in a script.
	endOfCommand = regexp.MustCompile(`[;&|\n]`)
)

// batchSystems are without those that may be in an image and reach the workers by ssh, such as pdsh.
const batchSystems = `slurm|srun|lsf|blaunch|sge|qrsh|pbs|pbspro|tm|ll|llspawn|alps|cobalt|jmi`

// batchVariables are the variables of MPICH, Intel MPI and Open MPI for the same.
var batchVariables = []string{"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_RMK", "OMPI_MCA_plm", "PRTE_MCA_plm"}

// BatchLauncher returns the setting of a launcher's command or variables by which MPI starts its processes through a batch system, and
// that system, such as "-bootstrap slurm" and "slurm"; "" for both if there is none. Options of other programs, such as deepspeed, are
// their own matter.
func BatchLauncher(words []string, env []corev1.EnvVar) (setting, system string) {
	for _, options := range OptionsOfLaunchers(strings.Join(words, " ")) {
		if found := batchFlag.FindStringSubmatch(options); found != nil {
			return found[1], found[2]
		}
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

// OptionsOfLaunchers returns the options of each call of MPI's launchers in a command or script: the words up to the program, as far as that
// is known without the list of all options.
func OptionsOfLaunchers(command string) (all []string) {
	for _, call := range callsOfLaunchers(command) {
		all = append(all, strings.Join(call.options, " "))
	}
	return all
}

// ProgramsOfLaunchers returns the words of the program of each call of MPI's launchers in a command or script, as OptionsOfLaunchers finds
// them.
func ProgramsOfLaunchers(command string) (all [][]string) {
	for _, call := range callsOfLaunchers(command) {
		all = append(all, call.program)
	}
	return all
}

// launcherCall is a call of one of MPI's launchers.
type launcherCall struct{ options, program []string }

func callsOfLaunchers(command string) (all []launcherCall) {
	command = strings.ReplaceAll(command, "\\\n", " ")
	for _, at := range startsMPI.FindAllStringIndex(command, -1) {
		text := command[at[1]:]
		if end := endOfCommand.FindStringIndex(text); end != nil {
			text = text[:end[0]]
		}
		call := launcherCall{options: strings.Fields(text)}
		values := 0
		for i, word := range call.options {
			if name := strings.TrimLeft(word, "-"); name != word {
				values = valuesOf(name)
			} else if values--; values < 0 {
				call.options, call.program = call.options[:i], call.options[i:]
				break
			}
		}
		all = append(all, call)
	}
	return all
}

// valuesOf returns how many words may follow an option of MPI's launchers as its values.
func valuesOf(option string) int {
	switch {
	case slices.Contains(optionsOfTwo, option):
		return 2
	case strings.Contains(option, "="), slices.Contains(optionsOfNone, option):
		return 0
	}
	return 1
}

// optionsOfTwo are options with a name and a value, and optionsOfNone those without a value: of Open MPI (mpirun(1), prterun(1)) and Hydra
// (mpiexec -help).
var (
	optionsOfTwo  = []string{"mca", "gmca", "prtemca", "gprtemca", "pmixmca", "gpmixmca", "omca", "genv", "env"}
	optionsOfNone = []string{
		"allow-run-as-root", "oversubscribe", "nooversubscribe", "use-hwthread-cpus", "tag-output", "timestamp-output", "bynode", "byslot", "nolocal", "enable-recovery", "pernode",
		"report-bindings", "display-map", "display-allocation", "merge-stderr-to-stdout", "v", "verbose", "q", "quiet", "l", "prepend-rank", "rr", "genvall", "genvnone", "envall", "envnone",
		"print-rank-map", "info", "bind-to-none", "bind-to-core",
	}
)
