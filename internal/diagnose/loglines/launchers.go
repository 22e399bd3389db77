package loglines

import (
	"regexp"
)

// LauncherText returns the text of MPI's launcher about a failure; nil if there is none. Hydra does not know why a rank ended: its
// errors after that are consequences.
func LauncherText(lines []string, rankEnded bool) *ErrorLine {
	found := helpText(lines)
	if found == nil && !rankEnded {
		return hydraText(lines)
	}
	return found
}

// hydraLine is an error of Hydra, the launcher of MPICH and Intel MPI, of which its callers follow (HYDU_error_printf).
var hydraLine = regexp.MustCompile(`^\[(?:mpiexec|proxy:\S+|bstrap:\S+)@[^\]]+\] (?:\w+ \([^)]*:\d+\): |Error: )?(\S.*)$`)

// hydraText returns the first error of Hydra that is more than a consequence; nil if there is none.
func hydraText(lines []string) *ErrorLine {
	for _, line := range lines {
		if text := hydraLine.FindStringSubmatch(line); text != nil && !hydraConsequence.MatchString(text[1]) {
			return &ErrorLine{Line: line, Message: text[1]}
		}
	}
	return nil
}

// hydraConsequence are errors of Hydra that follow from the end of a process, and what is no error.
var hydraConsequence = regexp.MustCompile(`callback returned error|assert \(!closed\) failed|[Ss]ending |Press Ctrl-C|Timeout set to|Launch arguments|error waiting for completion|process manager|forcing cleanup|unable to write data to proxy|unable to send signal|(?:write|read|connect|accept) error`)
