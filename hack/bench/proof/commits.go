package proof

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// Problem is a version in the records that cannot be measured again.
type Problem struct{ Record, Version, Reason string }

// String returns the problem as a sentence.
func (p Problem) String() string { return fmt.Sprintf("%s: %s %s", p.Record, p.Version, p.Reason) }

// Unrepeatable returns the versions of this repository in the records that cannot be checked out: those with changes that were not committed,
// and those of which isInHistory says that the history has no such commit.
func Unrepeatable(records Records, isInHistory func(commit string) bool) []Problem {
	var problems []Problem
	check := func(record, version string) {
		switch commit := CommitOf(version); {
		case strings.HasSuffix(version, "-dirty"):
			problems = append(problems, Problem{record, version, "has changes that were not committed"})
		case commit == "":
			problems = append(problems, Problem{record, version, "names no commit"})
		case !isInHistory(commit):
			problems = append(problems, Problem{record, version, "is not in the history"})
		}
	}
	for _, suite := range slices.Sorted(maps.Keys(records.Reports)) {
		checkReport(records.Reports[suite], check)
	}
	if len(records.Lists.Cases) > 0 {
		check(listsFile, records.Lists.Version)
	}
	if version := records.Programs.Version; version != "" {
		check(programsFile, version)
	}
	for _, run := range records.Programs.Runs {
		if run.Version != "" || records.Programs.Version == "" {
			check(programsFile, run.Version)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(problems)
}

// checkReport checks our version and that of an earlier commit; others are not of this repository.
func checkReport(r report.Report, check func(record, version string)) {
	check(r.Suite+".json", r.Version[ours])
	if before, is := r.Version["before"]; is {
		check(r.Suite+".json", before)
	}
}

// described matches what git describe prints: a commit, a tag, or a tag with the number of commits since then and the commit.
var described = regexp.MustCompile(`^(?:v[0-9].*-[0-9]+-g([0-9a-f]{4,40})|([0-9a-f]{4,40})|(v[0-9][^-]*(?:-(?:alpha|beta|rc)[^-]*)?))$`)

// CommitOf returns the commit or tag of a version; "" if it names none.
func CommitOf(version string) string {
	match := described.FindStringSubmatch(strings.TrimSuffix(version, "-dirty"))
	if match == nil {
		return ""
	}
	return match[1] + match[2] + match[3]
}
