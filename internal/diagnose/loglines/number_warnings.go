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
		tag := RankTag.FindString(line)
		text, _ := textOf(line, tag)
		found := numberWarning.FindStringSubmatch(text)
		if found == nil || rankOf(line) != rank {
			continue
		}
		file := path.Base(found[1])
		if found[1] == agentapi.InlineFile {
			file = "the program of python -c"
		}
		return &ErrorLine{Line: strings.TrimRight(line, " \r"), Message: found[3], Rank: rank}, file + ", line " + found[2]
	}
	return nil, ""
}
