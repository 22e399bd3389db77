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

var (
	// bindingFlags matches flags of an MPI's launcher that assign cores to ranks, in one command of a shell, which may have several lines.
	bindingFlags = regexp.MustCompile(`\b(?:mpirun|mpiexec|orterun|prterun|prun)\b(?:[^\n;&|]|\\\n)*?\s(?:-rf|--?(?:cpu-set|cpu-list|cpus-per-proc|cpus-per-rank|slot-list|rankfile))\b`)
	// bindingValues matches values of such flags, also where a program puts a command together.
	bindingValues = regexp.MustCompile(`(?i):pe=(?:[^1]|1\d)|:ordered\b|\bpe-list=|\brankfile:file=`)
	// comments matches those of shells and Python.
	comments = regexp.MustCompile(`(?m)(?:^|\s)#.*$`)
)

// WithoutBinding returns the environment in which MPI leaves ranks unbound by default, or env itself if something asks for binding, so
// that MPI's own default holds: a variable, one of Open MPI's parameters in files, or one of the texts, which are the command and its
// scripts. A flag such as --bind-to overrides the default in any case.
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
	if slices.ContainsFunc(texts, func(text string) bool {
		text = comments.ReplaceAllString(text, "")
		return bindingFlags.MatchString(text) || bindingValues.MatchString(text) || agentapi.NamesBinding(text)
	}) {
		return env
	}
	for _, set := range unbound {
		if environ.Get(env, set[0]) == "" {
			env = environ.Set(env, set[0], set[1])
		}
	}
	return env
}
