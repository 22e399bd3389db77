package mpi

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
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

// ValueTaken is the last option of a call of MPI's launchers with its values, and the word after them, which the launcher takes as the program
// although it may be a value.
type ValueTaken struct {
	// Option is with its values, such as "-x LEARNING_RATE", and Meant with the word, such as "-x LEARNING_RATE=0.1"; "" if that is unknown.
	Option, Program, Meant string
	// Known is set if the option is known to take these values and no more.
	Known bool
}

// ValuesTaken returns that of each call of a launcher in a command or script that has an option with values before its program.
func ValuesTaken(command string) (all []ValueTaken) {
	for _, call := range callsOfLaunchers(command) {
		if taken := call.valueTaken(); taken != nil {
			all = append(all, *taken)
		}
	}
	return all
}

// valueTaken returns that of a call; nil if it has no option with values before its program.
func (call launcherCall) valueTaken() *ValueTaken {
	at := len(call.options) - 1
	for at >= 0 && !strings.HasPrefix(call.options[at], "-") {
		at--
	}
	if at < 0 || len(call.program) == 0 {
		return nil
	}
	name, _, joined := strings.Cut(strings.TrimLeft(call.options[at], "-"), "=")
	values := call.options[at+1:]
	taken := &ValueTaken{Option: strings.Join(call.options[at:], " "), Program: call.program[0]}
	expected, known := agentapi.ValuesOf(call.options[at], after(call.options, at))
	taken.Known = joined && len(values) == 0 || known && len(values) > 0 && len(values) == expected
	if name == "x" && len(values) == 1 && !strings.Contains(values[0], "=") {
		taken.Meant = call.options[at] + " " + values[0] + "=" + taken.Program
	}
	return taken
}

// after returns the word after one, by its index; "" if there is none.
func after(words []string, at int) string {
	return strings.Join(words[min(at+1, len(words)):min(at+2, len(words))], "")
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
		all = append(all, callWith(strings.Fields(text)))
	}
	return all
}

// callWith returns the call of a launcher with these words.
func callWith(words []string) launcherCall {
	values := 0
	for i, word := range words {
		if strings.HasPrefix(word, "-") {
			values, _ = agentapi.ValuesOf(word, after(words, i))
		} else if values--; values < 0 {
			return launcherCall{options: words[:i], program: words[i:]}
		}
	}
	return launcherCall{options: words}
}
