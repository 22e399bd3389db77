package agentapi

import (
	"slices"
	"strings"
)

// LauncherOption is what is known of an option of MPI's launchers: of Open MPI (mpirun(1), prterun(1)) or Hydra (mpiexec -help).
type LauncherOption struct {
	// Values is how many words after it are its own.
	Values int
	// Binds is set if it decides whether ranks are bound to cores, or to which, and Reduces if the launcher may use fewer slots than there are because
	// of it, unless a number of ranks is given.
	Binds, Reduces bool
	// Sets is set if its values are a variable of the ranks: NAME=VALUE, or NAME and VALUE if it has two.
	Sets bool
}

// launcherOptions are options of MPI's launchers, without the dashes.
var launcherOptions = optionTable()

func optionTable() map[string]LauncherOption {
	table := map[string]LauncherOption{}
	add := func(option LauncherOption, names string) {
		for name := range strings.FieldsSeq(names) {
			table[name] = option
		}
	}
	add(LauncherOption{Values: 2}, "mca gmca prtemca gprtemca pmixmca gpmixmca omca")
	add(LauncherOption{Values: 2, Sets: true}, "genv env")
	add(LauncherOption{Values: 1, Sets: true}, "x")
	add(LauncherOption{Values: 1}, "n np c rank-by wdir wd timeout output-filename output display genvlist envlist iface launcher launcher-exec bootstrap bootstrap-exec launch-agent")
	add(LauncherOption{Values: 1, Binds: true}, "bind-to binding rf cpu-set cpu-list cpus-per-proc cpus-per-rank slot-list rankfile")
	add(LauncherOption{Values: 1, Reduces: true}, "map-by ppr npernode N npersocket ppn perhost host hosts H hostfile machinefile f")
	add(LauncherOption{Reduces: true}, "pernode")
	add(LauncherOption{}, `allow-run-as-root oversubscribe nooversubscribe use-hwthread-cpus tag-output timestamp-output bynode byslot nolocal enable-recovery report-bindings
		display-map display-allocation merge-stderr-to-stdout v verbose q quiet l prepend-rank rr genvall genvnone envall envnone print-rank-map info bind-to-none bind-to-core`)
	return table
}

// OptionOf returns what is known of an option of MPI's launchers by its name, with or without dashes.
func OptionOf(name string) (option LauncherOption, known bool) {
	option, known = launcherOptions[strings.TrimLeft(name, "-")]
	return option, known
}

// VariableOptions returns the options that set a variable of the ranks, in the order of their names.
func VariableOptions() (names []string) {
	for name, option := range launcherOptions {
		if option.Sets {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ValuesOf returns how many of the words after an option, of which next is the first, are its values; of an unknown option at most one. A
// variable of Hydra may be one word (-genv NAME=VALUE).
func ValuesOf(option, next string) (values int, known bool) {
	name := strings.TrimLeft(option, "-")
	if name, _, joined := strings.Cut(name, "="); joined {
		_, known = OptionOf(name)
		return 0, known
	}
	of, known := OptionOf(name)
	switch {
	case !known:
		return 1, false
	case of.Sets && strings.Contains(next, "="):
		return 1, true
	}
	return of.Values, true
}
