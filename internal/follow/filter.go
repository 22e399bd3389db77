package follow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Filter says which lines are wanted. The zero value wants all.
type Filter struct {
	// Ranks are those whose lines are wanted; empty: all lines, of ranks or not.
	Ranks Set
	// Launcher wants what stands in the launcher's log, Workers what is of these workers or their ranks. Without either
	// all is wanted.
	Launcher bool
	Workers  Set
	// Level is the lowest that is wanted; LevelNone wants all. Lines that tell of no level are then left out.
	Level logs.Level
	// Grep must match the text; nil matches all.
	Grep *regexp.Regexp
}

// reads tells whether anything that a pod says can be wanted.
func (f Filter) reads(at Place) bool {
	if !f.Launcher && len(f.Workers) == 0 {
		return true
	}
	if at.Role == mpi.RoleLauncher {
		// Ranks speak through it.
		return true
	}
	return at.Role == mpi.RoleWorker && f.Workers.Has(at.Index)
}

// wants tells whether a line is wanted; from is the pod in whose log it stands.
func (f Filter) wants(from Place, line Line) bool {
	switch {
	case len(f.Ranks) > 0 && (line.Rank == NoRank || !f.Ranks.Has(line.Rank)), line.Level < f.Level, !f.wantsOf(from, line.Place):
		return false
	}
	return f.Grep == nil || f.Grep.MatchString(line.Text)
}

// wantsOf tells whether what is said at a place is wanted, in the log of the pod at another.
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

// Has tells whether a number is in the set.
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
			return nil, fmt.Errorf("%q is no number and no range: write numbers from 0, such as 0,4-7", part)
		}
		set = append(set, Range{First: int(from), Last: int(to)})
	}
	return set, nil
}
