package mpirun

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agentapi"
)

// The variables by which MPI binds ranks by default, in the environment of its launcher, or does not. MPICH's launcher needs none, and each
// MPI ignores the variables of the others.
const (
	openMPI4 = "OMPI_MCA_hwloc_base_binding_policy"
	openMPI5 = "PRTE_MCA_hwloc_default_binding_policy"
	intelMPI = "I_MPI_PIN"
)

var (
	// bindingFlags matches flags of an MPI's launcher that assign cores to ranks, in one command of a shell, which may have several lines.
	bindingFlags = regexp.MustCompile(`\b(?:mpirun|mpiexec|orterun|prterun|prun)\b(?:[^\n;&|]|\\\n)*?\s(-rf|--?(?:cpu-set|cpu-list|cpus-per-proc|cpus-per-rank|slot-list|rankfile))\b`)
	// bindingValues matches values of such flags, also where a program puts a command together.
	bindingValues = regexp.MustCompile(`(?i)[\w-]*(?::pe=(?:[^1]|1\d)[^\s'"]*|:ordered\b)|\bpe-list=|\brankfile:file=`)
	// comments matches those of shells and Python.
	comments = regexp.MustCompile(`(?m)(?:^|\s)#.*$`)
)

// UserBinding returns what decides whether ranks are bound: a variable, one of Open MPI's parameters in files, or one of the texts, which are the
// command and its scripts; "" if nothing does. asks is set if it asks for binding, so that MPI's own default has to hold. A flag such as
// --bind-to overrides every default, and does not count.
func UserBinding(env []string, parameters map[string]string, texts ...string) (by string, asks bool) {
	settings := slices.Clone(env)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		settings = append(settings, name+"="+parameters[name])
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if agentapi.AsksForBinding(name, value) {
			return setting, true
		}
		if by == "" && agentapi.DecidesBinding(name, value) {
			by = setting
		}
	}
	for _, text := range texts {
		if found := bindingIn(comments.ReplaceAllString(text, "")); found != "" {
			return found, true
		}
	}
	return by, false
}

// bindingIn returns what in a text asks for binding; "" if nothing does.
func bindingIn(text string) string {
	if flag := bindingFlags.FindStringSubmatch(text); flag != nil {
		return flag[1]
	}
	if value := bindingValues.FindString(text); value != "" {
		return value
	}
	return agentapi.BindingName(text)
}

// WithoutBinding returns the environment of a launcher in which MPI leaves ranks unbound unless a flag binds them. Variables that are set
// stay as they are.
func WithoutBinding(env []string) []string {
	return withDefaults(env, openMPI4, "none", openMPI5, "none", intelMPI, "0")
}

// WithBinding returns the environment of a launcher in which MPI binds each rank to a core, unless a flag or a worker prevents it
// (UnboundHere). Ranks that have no core of their own share one; what cannot be bound runs unbound. Open MPI 5 is left out if its PRRTE does
// not let workers decide. Intel MPI binds by itself, and MPICH where the worker has it do so (BoundHere).
func WithBinding(env []string, prrte bool) []string {
	policy := "none"
	if prrte {
		policy = "core:overload-allowed:if-supported"
	}
	return withDefaults(env, openMPI4, "core:overload-allowed,if-supported", openMPI5, policy)
}

// UnboundHere returns the environment of a worker whose MPI daemons bind no ranks, whatever default the launcher has. Open MPI's daemons
// then lack the component that binds processes (orte/mca/rtc/hwloc and src/mca/rtc/hwloc of PRRTE 3); a variable in the environment of Intel
// MPI's reaches its ranks.
func UnboundHere(env []string) []string {
	return withDefaults(env, "OMPI_MCA_rtc", "^hwloc", "PRTE_MCA_rtc", "^hwloc", intelMPI, "0")
}

// BoundHere returns the environment of a worker whose MPI daemons bind each rank to a core: those of MPICH read it from a variable
// (src/pm/hydra, topo.c). The others follow their launcher (WithBinding).
func BoundHere(env []string) []string { return withDefaults(env, "HYDRA_BINDING", "core") }

// withDefaults sets the variables that are not set or empty, given as names and values.
func withDefaults(env []string, variables ...string) []string {
	for pair := range slices.Chunk(variables, 2) {
		if environ.Get(env, pair[0]) == "" {
			env = environ.Set(env, pair[0], pair[1])
		}
	}
	return env
}

// BindingFlag returns the flag by which the arguments of an MPI launcher decide whether ranks are bound, with its value, such as "--bind-to
// core", or the variable or parameter; "" if none does.
func BindingFlag(args []string) string {
	for i, arg := range args {
		flag, value, hasValue := strings.Cut(arg, "=")
		if !hasValue && i+1 < len(args) {
			value = args[i+1]
		}
		name := strings.TrimLeft(flag, "-")
		option, _ := agentapi.OptionOf(name)
		isMapping := name == "map-by" && agentapi.AsksForBinding("rmaps_base_mapping_policy", value)
		switch {
		case !hasValue && args[max(0, i-1)] == "-x":
			// It passes on the variable of the environment.
			if agentapi.DecidesBinding(flag, "1") {
				return flag
			}
		case !strings.HasPrefix(arg, "-"):
			if agentapi.DecidesBinding(flag, value) {
				return flag + "=" + value
			}
		case strings.HasPrefix(name, "bind-to-"):
			return arg
		case isMapping, option.Binds:
			return flag + " " + value
		}
	}
	return ""
}

// OptionsOf returns the options that the arguments of an MPI launcher have for each program, which are separated by ":". A program is the
// first word that can be executed, and its arguments are left out.
func OptionsOf(args []string, canBeExecuted func(name string) bool) (programs [][]string) {
	for len(args) > 0 {
		end := slices.Index(args, ":")
		if end < 0 {
			end = len(args)
		}
		options := args[:end]
		for i, arg := range options {
			if arg != "" && !strings.HasPrefix(arg, "-") && !isValue(options, i) && canBeExecuted(arg) {
				options = options[:i]
				break
			}
		}
		programs, args = append(programs, options), args[min(end+1, len(args)):]
	}
	return programs
}

// starters are programs by which an MPI launcher starts its daemons, and these. No job runs them as ranks.
var starters = []string{"ssh", "rsh", "orted"}

// isValue reports whether an argument of an MPI launcher, by its index, belongs to an option that is known, or is no program of a job.
func isValue(args []string, i int) bool {
	before := func(n int) bool {
		if i < n || !strings.HasPrefix(args[i-n], "-") {
			return false
		}
		values, known := agentapi.ValuesOf(args[i-n], args[i-n+1])
		return known && values >= n
	}
	return before(1) || before(2) || slices.Contains(starters, path.Base(args[i]))
}

// FillsCores reports whether each rank that an MPI launcher starts can have a core of its own and needs no other: it starts as many ranks as
// there are slots, and they have one thread each by OMP_NUM_THREADS. programs are the launcher's options (OptionsOf), and env is
// its environment; the hosts have as many cores as slots. It may report false for a launcher that does: then the ranks are not bound.
func FillsCores(programs [][]string, env []string, slots int) bool {
	counts, reduces := 0, false
	for _, options := range programs {
		count, isReduced, ok := ranksOf(options)
		if !ok || count == 0 && len(programs) > 1 {
			return false
		}
		counts, reduces = counts+count, reduces || isReduced
	}
	if threads := environ.Get(env, "OMP_NUM_THREADS"); threads != "" && threads != "1" {
		return false
	}
	return counts == slots || counts == 0 && !reduces
}

// ranksOf returns how many ranks the options of a program ask for, 0 without a number, and whether they may leave slots unused. ok is false
// if the number is none, or if the ranks have several threads.
func ranksOf(options []string) (count int, reduces, ok bool) {
	for i, option := range options {
		name, value, hasValue := strings.Cut(option, "=")
		if !hasValue && i+1 < len(options) {
			value = options[i+1]
		}
		isFlag, flag := strings.HasPrefix(name, "-"), strings.TrimLeft(name, "-")
		known, _ := agentapi.OptionOf(flag)
		switch {
		case !isFlag && name == "OMP_NUM_THREADS":
			// -x NAME passes on the variable of the environment.
			if previous := strings.TrimLeft(options[max(0, i-1)], "-"); (hasValue || previous != "x") && value != "1" {
				return 0, false, false
			}
		case isFlag && slices.Contains([]string{"n", "np", "c"}, flag):
			number, err := strconv.Atoi(value)
			if err != nil {
				return 0, false, false
			}
			count = number
		case isFlag && known.Reduces:
			reduces = true
		}
	}
	return count, reduces, true
}
