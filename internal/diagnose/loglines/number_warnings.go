package loglines

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// numberWarning is a warning of NumPy about numbers, as Python prints it: the file, the line and what it is about (Lib/warnings.py,
// numpy/_core/src/umath/extobj.c).
var numberWarning = regexp.MustCompile(`^(\S+):(\d+): RuntimeWarning: ((?:overflow|divide by zero|invalid value) encountered in \S.*|Mean of empty slice\.?|Degrees of freedom <= 0 for slice\.?)$`)

// NumberWarning returns the last warning of NumPy about numbers that the rank of an error printed before it, and where in the program, such as
// "train.py, line 12"; nil if there is none.
func NumberWarning(lines []string, failure *ErrorLine) (warning *ErrorLine, place string) {
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \r") == failure.Line })
	rank := rankOf(failure.Line)
	for _, line := range slices.Backward(lines[:max(at, 0)]) {
		if warning, place = readNumberWarning(line); warning != nil && warning.Rank == rank {
			return warning, place
		}
	}
	return nil, ""
}

// FirstInvalidOperation returns the first warning of NumPy about an operation whose result is not a number or infinite, and where in the program; nil
// if there is none.
func FirstInvalidOperation(lines []string) (warning *ErrorLine, place string) {
	for _, line := range lines {
		if warning, place = readNumberWarning(line); warning != nil && strings.Contains(warning.Message, " encountered in ") {
			return warning, place
		}
	}
	return nil, ""
}

// readNumberWarning reads a line with a warning of NumPy about numbers, and where in the program; nil if it is none.
func readNumberWarning(line string) (warning *ErrorLine, place string) {
	text, _ := textOf(line, RankTag.FindString(line))
	found := numberWarning.FindStringSubmatch(text)
	if found == nil {
		return nil, ""
	}
	file := path.Base(found[1])
	if found[1] == agentapi.InlineFile {
		file = "the program of python -c"
	}
	return &ErrorLine{Line: strings.TrimRight(line, " \r"), Message: found[3], Rank: rankOf(line)}, file + ", line " + found[2]
}
