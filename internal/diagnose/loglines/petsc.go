package loglines

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	// petscLine is a line of an error of PETSc, with its rank and text (src/sys/error/errtrace.c and signal.c).
	petscLine = regexp.MustCompile(`^(?:\[(\d+)\])?PETSC ERROR: (\S.*)$`)
	// petscAdvice begins the lines of an error that are not its cause: rulers, advice, the stack and the configuration.
	petscAdvice = regexp.MustCompile(`^(?:-|#|See |Try |WARNING|or |to get |Petsc |Configure )`)
	// petscEnded is what PETSc reports if another rank had failed.
	petscEnded = regexp.MustCompile(`^Caught signal number 15 `)
)

// petscError returns the first error of PETSc in a log: its kind, and its text on the next line if there is one. It returns nil if there is
// none.
func petscError(lines []string, skip func(message string) bool) *ErrorLine {
	for i, line := range lines {
		rank, text := petscText(line)
		if text == "" || petscAdvice.MatchString(text) || petscEnded.MatchString(text) || skip(text) {
			continue
		}
		if i+1 < len(lines) {
			if _, next := petscText(lines[i+1]); next != "" && !petscAdvice.MatchString(next) {
				text += ": " + next
			}
		}
		return &ErrorLine{Line: line, Message: text, Rank: rank}
	}
	return nil
}

// petscText returns the rank and the text of a line of PETSc; an empty text of another line.
func petscText(line string) (rank, text string) {
	if !strings.Contains(line, "PETSC ERROR: ") {
		return "", ""
	}
	if tag := RankTag.FindStringSubmatch(line); tag != nil {
		rank, line = tag[1], line[len(tag[0]):]
	}
	found := petscLine.FindStringSubmatch(strings.TrimRight(line, " \r"))
	if found == nil {
		return "", ""
	}
	return cmp.Or(rank, found[1]), found[2]
}
