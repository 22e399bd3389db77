package diagnose

import (
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

// definedIn is where a command defines variables: NAME=VALUE, also after -x, and Hydra's -genv NAME VALUE.
var definedIn = regexp.MustCompile(`(?:^|[\s;&|("'])([A-Za-z_]\w*)=|\s-g?env\s+([A-Za-z_]\w*)\s`)

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
	if figures["meant"] = phrase.Misspelled(name, p.ownVariables()); figures["meant"] != "" {
		return codes.MisspelledVariable
	}
	return nil
}

// readsVariable is how a program reads an environment variable, ofOS the module of Python in which os.environ raises, and shellVariable how shells
// report one that is not set.
var (
	readsVariable = regexp.MustCompile(`\b(?:environ|getenv|ENV)\b`)
	ofOS          = regexp.MustCompile(`^<frozen os>$|/os\.py$`)
	shellVariable = regexp.MustCompile(`unbound variable|parameter (?:null or )?not set|(?i:environment variable|env var)|\b(?:is|was) not set`)
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
	// Objects that envFrom and data connections name may set it. Their keys are unknown.
	if name == "" || inLauncher || inWorkers || len(main) == 0 || len(main[0].EnvFrom) > 0 || len(p.Job.Connections) > 0 {
		return nil
	}
	if slices.Contains(p.ownVariables(), name) {
		if p.Job.Implementation != mpi.OpenMPI || role == mpi.RoleLauncher {
			return nil
		}
		return codes.VariableOfCommand
	}
	figures["assign"] = "Set " + name
	if text := causeText(figures); !shellVariable.MatchString(text) && !readsVariable.MatchString(figures["ownSource"]) && !ofOS.MatchString(figures["raisedIn"]) {
		figures["assign"] = fmt.Sprintf("If %s is an environment variable, set it", name)
	}
	if names := namesOf(main[0].Env); len(names) > 0 {
		figures["others"] = fmt.Sprintf(", and that of the %s sets only %s", role, strings.Join(names, ", "))
	}
	return codes.UnsetVariable
}

// namesOf returns the names of the first variables of a container, without those that the operator sets.
func namesOf(env []corev1.EnvVar) (names []string) {
	const most = 6
	for _, variable := range env {
		if !setByOperator.MatchString(variable.Name) && !ofOperator.MatchString(variable.Value) {
			names = append(names, variable.Name)
		}
	}
	if len(names) > most {
		return append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return names
}

// setByOperator are variables of MPI and the agent in pod templates.
var setByOperator = regexp.MustCompile(`^(?:OMPI|PRTE|PMIX|I_MPI|HYDRA|MPI_AGENT|K_MPI|MPIJOB)_`)

// ownVariables returns the names of the variables that the pod templates and the launcher's command set.
func (p *input) ownVariables() (names []string) {
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, main := range first(p.Template(role).Containers) {
			for _, variable := range main.Env {
				names = append(names, variable.Name)
			}
		}
	}
	for _, found := range definedIn.FindAllStringSubmatch(p.LauncherCommand(), -1) {
		names = append(names, found[1]+found[2])
	}
	return names
}
