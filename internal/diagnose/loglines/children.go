package loglines

import (
	"regexp"
	"slices"
	"strings"
)

// ChildFailed returns the exception with which a process has ended that a program of Python had started by multiprocessing, and the name of this
// process, such as "Process-1"; nil if the log shows none. The program goes on without it.
func ChildFailed(lines []string) (found *ErrorLine, name string) {
	// near is how many lines are between the name and the traceback at most: processes print both by two calls, and several at once.
	const near = 3
	lines = withoutMargins(lines)
	for i, line := range lines {
		tag := RankTag.FindString(line)
		text, _ := textOf(line, tag)
		begins := childBegins.FindStringSubmatch(text)
		if begins == nil {
			continue
		}
		for at := i + 1; at < min(len(lines), i+1+near); at++ {
			title, same := textOf(lines[at], tag)
			if !same || title != tracebackBegins {
				continue
			}
			end := exceptionAfter(lines, at)
			if end < 0 || !slices.ContainsFunc(lines[at:end], runsChild.MatchString) {
				break
			}
			return endOfChain(lines, end, exceptionAt(lines, end), func(string) bool { return false }), strings.TrimSpace(begins[1])
		}
	}
	return nil, ""
}

var (
	// childBegins is what Python prints before the traceback of such a process, and runsChild is the call in it that runs its code
	// (BaseProcess._bootstrap in Lib/multiprocessing/process.py).
	childBegins = regexp.MustCompile(`^Process ([^:]{1,60}):$`)
	runsChild   = regexp.MustCompile(`File "[^"]*/multiprocessing/process\.py", line \d+, in _bootstrap$`)
)
