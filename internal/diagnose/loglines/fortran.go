package loglines

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// fortranPlace is where libgfortran names the statement of an error, before the error (libgfortran/runtime/error.c).
var fortranPlace = regexp.MustCompile(`^At line (\d+) of file (\S+)`)

// FortranPlace returns the line of source code of an error of libgfortran, by its line in a log, such as "heat.f90, line 12"; "" if the line
// is none, or the log does not show it.
func FortranPlace(lines []string, line string) string {
	at := slices.IndexFunc(lines, func(other string) bool { return strings.TrimRight(other, " \r") == line })
	tag := RankTag.FindString(line)
	if at < 0 {
		return ""
	}
	if found := fortranPlace.FindStringSubmatch(textBefore(lines, at, tag)); found != nil {
		return path.Base(found[2]) + ", line " + found[1]
	}
	return ""
}
