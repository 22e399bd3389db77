package loglines

import (
	"regexp"
	"strings"
)

var (
	// torchrunSummary begins what torchrun reports of the process that failed first (torch/distributed/elastic/multiprocessing/errors/__init__.py).
	torchrunSummary = regexp.MustCompile(`^Root Cause \(first observed failure\):$`)
	// torchrunField is a field of that.
	torchrunField = regexp.MustCompile(`^\s*(rank|exitcode|traceback)\s*: (-?\w.*?)(?: \((?:local_rank|pid): \d+\))?$`)
)

// torchrunError returns how the first process that torchrun saw fail has ended; nil if the log does not show that. The rank is that of torchrun.
func torchrunError(lines []string, skip func(message string) bool) *ErrorLine {
	const fields = 8
	for i, line := range lines {
		text := line[len(RankTag.FindString(line)):]
		if !torchrunSummary.MatchString(strings.TrimSpace(text)) {
			continue
		}
		found, values := &ErrorLine{}, map[string]string{}
		for _, next := range lines[i+1 : min(len(lines), i+1+fields)] {
			next = strings.TrimRight(next, " \r")
			if field := torchrunField.FindStringSubmatch(next[len(RankTag.FindString(next)):]); field != nil {
				if values[field[1]] = field[2]; field[1] == "exitcode" {
					found.Line = next
				}
			}
		}
		if values["exitcode"] == "" {
			continue
		}
		found.Message = "a process of torchrun ended with exit code " + values["exitcode"]
		if rank := values["rank"]; rank != "" {
			found.Message = "rank " + rank + " of torchrun ended with exit code " + values["exitcode"]
		}
		if text := values["traceback"]; strings.HasPrefix(text, "Signal ") {
			found.Message += ": " + text
		}
		if !skip(found.Message) {
			return found
		}
	}
	return nil
}
