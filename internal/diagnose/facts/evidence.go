package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/phrase"
)

// LogLine is a line of a pod's log as evidence.
func LogLine(p Pod, line string) string {
	name := p.Name
	if tag := loglines.RankTag.FindStringSubmatch(line); tag != nil {
		name, line = name+", rank "+tag[1], line[len(tag[0]):]
	}
	return fmt.Sprintf("Log of %s: %s", name, strings.TrimSpace(line))
}

// LastLines are the last few lines of a pod's log that say something: those of the program, where MPI's own follow them.
func LastLines(p Pod) []string { return lastOf(p, loglines.ProgramLines(p.Log.Lines)) }

// LastLinesOf are LastLines of a rank, if lines are tagged with their rank, and else of the pod. The rank may be "".
func LastLinesOf(p Pod, rank string) []string {
	if own, _ := loglines.OfRank(p.Log.Lines, rank); len(own) > 0 {
		return lastOf(p, own)
	}
	return LastLines(p)
}

// lastOf are the last few lines of a pod that say something.
func lastOf(p Pod, printed []string) []string {
	const most = 3
	var lines []string
	for _, line := range slices.Backward(printed) {
		if text := line[len(loglines.RankTag.FindString(line)):]; strings.ContainsFunc(text, unicode.IsLetter) && len(lines) < most {
			lines = append(lines, LogLine(p, line))
		}
	}
	slices.Reverse(lines)
	return lines
}

// TimeText returns a time as text in UTC. It shows no age, so that a finding stays the same.
func TimeText(at time.Time) string { return at.UTC().Format("15:04:05 on 2 January 2006") + " UTC" }

// Sentence returns a message of Kubernetes as a sentence.
func Sentence(text string) string {
	return cmp.Or(phrase.Sentence(text), "Kubernetes gives no reason.")
}
