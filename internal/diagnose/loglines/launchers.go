package loglines

import (
	"regexp"
	"slices"
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
var hydraConsequence = regexp.MustCompile(`callback returned error|assert \(!closed\) failed|[Ss]ending |Press Ctrl-C|Timeout set to|Launch arguments|error waiting for completion|process manager|forcing cleanup|unable to write data to proxy|unable to send signal|(?:write|read|connect|accept) error|[Dd]ownstream from host|other downstreams`)

var (
	// timeLimit is what launchers print when their time limit is over: Hydra (mpiexec/pmiserv_cb.c), and Open MPI (help-orterun.txt,
	// help-prun.txt), which prints the limit on a line below.
	timeLimit = regexp.MustCompile(`^\[mpiexec@[^\]]+\] APPLICATION TIMED OUT(?:, TIMEOUT = (\d+s))?|^The user-provided time limit for job execution has been reached`)
	timeout   = regexp.MustCompile(`^\s*(?:MPIEXEC_TIMEOUT|Timeout):\s+(\d+ seconds)`)
)

// TimeLimit returns the line in which MPI's launcher reports that its time limit is over, and the limit if it names one; "" if there is none.
func TimeLimit(lines []string) (line, limit string) {
	for i, line := range lines {
		found := timeLimit.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		limit := found[1]
		for _, next := range lines[i+1 : min(len(lines), i+4)] {
			if named := timeout.FindStringSubmatch(next); named != nil && limit == "" {
				limit = named[1]
			}
		}
		return line, limit
	}
	return "", ""
}

// refusesRecursion is what Open MPI's launcher prints when a rank starts it (orterun.c, prun.c).
var refusesRecursion = regexp.MustCompile(`^\w+ does not support recursive calls`)

// RefusesRecursion reports whether Open MPI's launcher refused to start because a rank called it.
func RefusesRecursion(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return refusesRecursion.MatchString(line[len(RankTag.FindString(line)):]) })
}
