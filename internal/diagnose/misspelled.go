package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// definition is where a command defines variables: NAME=VALUE, also after -x, and Hydra's -genv NAME VALUE.
var definition = regexp.MustCompile(`(?:^|[\s;&|("'])([A-Za-z_]\w*)=|\s-g?env\s+([A-Za-z_]\w*)\s`)

// misspelledVariable returns the remedies for a variable that is not set, if its name is close to one that the job's MPI or the job itself sets,
// and adds figures for that; nil if it is not.
func (p *input) misspelledVariable(figures map[string]string) []v1alpha1.Remedy {
	name := figures["variable"]
	if name == "" {
		return nil
	}
	of := p.Job.Implementation
	if of == "" {
		of = mpi.OpenMPI
	}
	if figures["meant"] = implementation.MeantVariable(name, of); figures["meant"] != "" {
		figures["setBy"] = implementation.NameOf(of)
		return codes.MisspelledOfMPI
	}
	if figures["meant"] = phrase.Misspelled(name, p.ownVariables()); figures["meant"] != "" && !p.hasUnknownVariables() {
		return codes.MisspelledVariable
	}
	return nil
}

// readOfVariable is how a program reads an environment variable, and moduleOfOS the file of Python's module in which os.environ raises.
var (
	readOfVariable = regexp.MustCompile(`\b(?:environ|getenv|ENV)\b`)
	moduleOfOS     = regexp.MustCompile(`^<frozen os>$|/os\.py$`)
)

// unsetVariable returns the remedies for a variable that a program lacks, by which pod templates set it, and adds figures for that; nil if it is
// unknown whether one does.
func (p *input) unsetVariable(figures map[string]string) []v1alpha1.Remedy {
	name := figures["variable"]
	inLauncher, inWorkers := facts.SetsVariable(p.Template(mpi.RoleLauncher), name), facts.SetsVariable(p.Template(mpi.RoleWorker), name)
	role := p.programRole(figures)
	switch {
	case p.Job.Workers.Count > 0 && inLauncher && !inWorkers:
		return codes.VariableOnlyInLauncher
	case role == mpi.RoleLauncher && inWorkers && !inLauncher:
		return codes.VariableOnlyInWorkers
	}
	if known := p.misspelledVariable(figures); known != nil {
		return known
	}
	main := first(p.Template(role).Containers)
	if name == "" || inLauncher || inWorkers || len(main) == 0 || p.hasUnknownVariables() {
		return nil
	}
	if slices.Contains(p.ownVariables(), name) {
		if p.Job.Implementation != mpi.OpenMPI || role == mpi.RoleLauncher {
			return nil
		}
		return codes.VariableOfCommand
	}
	figures["assign"] = "Set " + name
	if !isEnvironmentVariable(figures) {
		figures["assign"] = fmt.Sprintf("If %s is an environment variable, set it", name)
	}
	if names := namesOf(main[0].Env); len(names) > 0 {
		figures["others"] = fmt.Sprintf(", and that of the %s sets only %s", role, strings.Join(names, ", "))
	}
	return codes.UnsetVariable
}

// hasUnknownVariables reports whether objects that envFrom or data connections name, of which the keys are unknown, set variables in a pod template.
func (p *input) hasUnknownVariables() bool {
	return len(p.Job.Connections) > 0 || slices.ContainsFunc([]mpi.Role{mpi.RoleLauncher, mpi.RoleWorker}, func(role mpi.Role) bool {
		return slices.ContainsFunc(first(p.Template(role).Containers), func(main corev1.Container) bool { return len(main.EnvFrom) > 0 })
	})
}

// isEnvironmentVariable reports whether an error about a name is certainly one about a variable: by its words, or because os.environ raised it.
func isEnvironmentVariable(figures map[string]string) bool {
	text := cmp.Or(figures["wholeError"], causeText(figures))
	if _, isCertain := codes.FindUnsetVariable(text); isCertain {
		return true
	}
	return strings.Contains(text, "KeyError") && (readOfVariable.MatchString(figures["ownSource"]) || moduleOfOS.MatchString(figures["raisedIn"]))
}

// namesOf returns the names of the first variables of a container, without those that the operator sets.
func namesOf(env []corev1.EnvVar) (names []string) {
	const most = 6
	for _, variable := range env {
		if !operatorVariable.MatchString(variable.Name) && !ofOperator.MatchString(variable.Value) {
			names = append(names, variable.Name)
		}
	}
	if len(names) > most {
		return append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return names
}

// operatorVariable is a variable of MPI or of the agent in pod templates.
var operatorVariable = regexp.MustCompile(`^(?:OMPI|PRTE|PMIX|I_MPI|HYDRA|MPI_AGENT|K_MPI|MPIJOB)_`)

// ownVariables returns the names of the variables that the pod templates and the launcher's command set.
func (p *input) ownVariables() (names []string) {
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, main := range first(p.Template(role).Containers) {
			for _, variable := range main.Env {
				names = append(names, variable.Name)
			}
		}
	}
	for _, found := range definition.FindAllStringSubmatch(p.LauncherCommand(), -1) {
		names = append(names, found[1]+found[2])
	}
	return names
}

// meantOption returns the option of a program to which the first one that it does not know is close; "" if none is.
func meantOption(pattern *regexp.Regexp, text string, options []string) string {
	figures := map[string]string{}
	addNamed(pattern, text, figures)
	name, _, _ := strings.Cut(strings.Split(figures["option"]+" ", " ")[0], "=")
	return phrase.Misspelled(name, options)
}

// misspelledOption returns the remedies for an option that a program does not know and that is close to one that it has, with the command that has this
// one; nil if there is none.
func (p *input) misspelledOption(figures map[string]string) []v1alpha1.Remedy {
	name, _, _ := strings.Cut(strings.Split(figures["option"]+" ", " ")[0], "=")
	if figures["meant"] == "" || name == "" || name == figures["meant"] {
		return nil
	}
	figures["option"] = name
	if command := p.commandWithOnce(`([\s\x00])`+regexp.QuoteMeta(name)+`($|[\s\x00=])`, "${1}"+figures["meant"]+"${2}"); command != "" {
		figures["newCommand"] = command
	}
	return codes.MisspelledOption
}
