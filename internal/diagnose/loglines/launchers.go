package loglines

import (
	"regexp"
)

// LauncherText returns the text of MPI, or its launcher, about a failure; nil if there is none. Hydra does not know why a rank ended: its
// errors after that are consequences.
func LauncherText(lines []string, rankEnded bool) *ErrorLine {
	if found := helpText(lines); found != nil {
		return found
	}
	if found := transportText(lines); found != nil || rankEnded {
		return found
	}
	return hydraText(lines)
}

// transportError is what Open MPI and UCX report of a process whose memory they may not read (btl_vader_get.c, smsc_cma_module.c, cma_ep.c).
var transportError = regexp.MustCompile(`\b(Read -1, expected \d+, errno = 1)$|UCX  ERROR (process_vm_\w+\(.*Operation not permitted)`)

// transportText returns the first such line; nil if there is none.
func transportText(lines []string) *ErrorLine {
	for _, line := range lines {
		if found := transportError.FindStringSubmatch(line); found != nil {
			return &ErrorLine{Line: line, Message: found[1] + found[2]}
		}
	}
	return nil
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
