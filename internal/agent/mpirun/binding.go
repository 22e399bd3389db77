package mpirun

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agentapi"
)

// unbound are the variables by which Open MPI 4, Open MPI 5 and Intel MPI leave ranks unbound unless the command binds them. MPICH does
// not bind, and each ignores the variables of the others.
var unbound = [][2]string{
	{"OMPI_MCA_hwloc_base_binding_policy", "none"},
	{"PRTE_MCA_hwloc_default_binding_policy", "none"},
	{"I_MPI_PIN", "0"},
}

// bindingFlags matches flags of Open MPI's mpirun that assign cores to ranks. After rm, -rf is another flag.
var bindingFlags = regexp.MustCompile(`(?i)(?:^|\s)--?(?:cpu-set|cpu-list|cpus-per-proc|cpus-per-rank|slot-list|rankfile)\b|:pe=(?:[^1]|1\d)|:ordered\b|\bpe-list=|\brankfile:file=|[^m\s]\s+-rf\s`)

// WithoutBinding returns the environment in which MPI leaves ranks unbound by default, or env itself if something asks for binding, so
// that MPI's own default holds: a variable, one of Open MPI's parameters in files, or one of the texts, which are the words of the command
// and its scripts. A flag such as --bind-to overrides the default in any case.
func WithoutBinding(env []string, parameters map[string]string, texts ...string) []string {
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); agentapi.AsksForBinding(name, value) {
			return env
		}
	}
	for name, value := range parameters {
		if agentapi.AsksForBinding(name, value) {
			return env
		}
	}
	if slices.ContainsFunc(texts, func(text string) bool { return bindingFlags.MatchString(text) || agentapi.NamesBinding(text) }) {
		return env
	}
	for _, set := range unbound {
		if environ.Get(env, set[0]) == "" {
			env = environ.Set(env, set[0], set[1])
		}
	}
	return env
}
