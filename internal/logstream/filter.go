package logstream

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Filter selects lines. The zero value selects all, except those of the agent.
type Filter struct {
	// Ranks are those whose lines are wanted; empty: all lines, of ranks or not.
	Ranks Set
	// Launcher selects the launcher's log, Workers the lines of these workers or their ranks. Without either, all lines are
	// selected.
	Launcher bool
	Workers  Set
	// Level is the lowest level to select; LevelNone selects all lines. With a level, lines without one are left out.
	Level logs.Level
	// Grep must match the text; nil matches all.
	Grep *regexp.Regexp
	// Until leaves out lines after a time; zero leaves out none.
	Until time.Time
	// Agent includes the lines of the agent, which are left out up to level info otherwise.
	Agent bool
}

// reads reports whether any line of a pod can be selected.
func (f Filter) reads(at Place) bool {
	if !f.Launcher && len(f.Workers) == 0 {
		return true
	}
	if at.Role == mpi.RoleLauncher {
		// The launcher's log contains the output of ranks.
		return true
	}
	return at.Role == mpi.RoleWorker && f.Workers.Has(at.Index)
}

// wants reports whether a line is wanted; from is the pod in whose log it stands.
func (f Filter) wants(from Place, line Line) bool {
	switch {
	case len(f.Ranks) > 0 && (line.Rank == NoRank || !f.Ranks.Has(line.Rank)), line.Level < f.Level, !f.wantsOf(from, line.Place):
		return false
	case !f.Agent && isAgentInfo(line.Text), !f.Until.IsZero() && line.Time.After(f.Until):
		return false
	}
	return f.Grep == nil || f.Grep.MatchString(line.Text)
}

// isAgentInfo reports whether a line is one of the agent that is not a warning or an error.
func isAgentInfo(text string) bool {
	return strings.HasPrefix(text, `{"time":"`) && strings.Contains(text, `"logger":"`+agentapi.Logger+`"`) && logs.LevelOf(text) <= logs.LevelInfo
}

// wantsOf reports whether what is said at a place is wanted, in the log of the pod at another.
func (f Filter) wantsOf(from, at Place) bool {
	if !f.Launcher && len(f.Workers) == 0 {
		return true
	}
	return f.Launcher && from.Role == mpi.RoleLauncher || at.Role == mpi.RoleWorker && f.Workers.Has(at.Index)
}

// Set is a set of numbers from 0, as ranges.
type Set []Range

// Range is numbers from First to Last.
type Range struct{ First, Last int }

// Has reports whether a number is in the set.
func (s Set) Has(number int) bool {
	return slices.ContainsFunc(s, func(r Range) bool { return number >= r.First && number <= r.Last })
}

// ParseSet reads numbers and ranges with commas, such as 0,4-7.
func ParseSet(text string) (Set, error) {
	var set Set
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		to, alsoErr := strconv.ParseUint(last, 10, 31)
		if err != nil || alsoErr != nil || from > to {
			return nil, fmt.Errorf("%q is not a number or a range; use numbers from 0, such as 0,4-7", part)
		}
		set = append(set, Range{First: int(from), Last: int(to)})
	}
	return set, nil
}
