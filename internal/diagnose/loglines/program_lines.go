package loglines

import (
	"regexp"
	"slices"
)

// reportsEnd is where MPI's launchers, or MPI in a rank that called MPI_Abort, begin to report how ranks have ended.
var reportsEnd = regexp.MustCompile(`^\s*(?:Primary job +terminated|(?:mpirun|mpiexec|orterun|prterun) (?:detected|noticed) that|=\s+BAD TERMINATION|MPI_ABORT was invoked on rank)|application called MPI_Abort\(`)

// ProgramLines returns the lines that a program printed, without what MPI's launchers and the agent print, and what follows their report of
// the end of ranks. If nothing is left, it returns all lines.
func ProgramLines(lines []string) []string {
	end := slices.IndexFunc(lines, reportsEnd.MatchString)
	if end < 0 {
		end = len(lines)
	}
	own := slices.DeleteFunc(slices.Clone(lines[:end]), func(line string) bool {
		return LauncherWords.MatchString(line) || hydraLine.MatchString(line) || internalError.MatchString(line)
	})
	if !slices.ContainsFunc(own, hasText) {
		return lines
	}
	return own
}

// hasText reports whether a line is more than blanks and a line across the page.
func hasText(line string) bool { return line != "" && !endOfMessage.MatchString(line) }

// OfRank returns the lines with the tag of a rank, and whether some are of its standard error, as tags of Open MPI show.
func OfRank(lines []string, rank string) (own []string, fromStderr bool) {
	for _, line := range lines {
		if tag := RankTag.FindStringSubmatch(line); tag != nil && tag[1] == rank {
			own = append(own, line)
			fromStderr = fromStderr || stderrTag.MatchString(tag[0])
		}
	}
	return own, fromStderr
}

var stderrTag = regexp.MustCompile(`<stderr>`)
