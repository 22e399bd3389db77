package diagnose

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
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
