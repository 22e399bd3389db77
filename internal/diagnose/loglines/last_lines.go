package loglines

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// EndsWithTraceback returns the exception whose traceback is the last that programs wrote to a log; nil if something else follows it, or if
// Python writes such tracebacks although the program goes on or has ended well: of what it ignores, of a thread, and at its exit.
func EndsWithTraceback(lines []string) *ErrorLine {
	lines = withoutLauncher(withoutHarmless(lines))
	for i, line := range slices.Backward(lines) {
		text, _ := textOf(line, "")
		if text == "" {
			continue
		}
		if !exceptionLine.MatchString(text) || figure.MatchString(text) {
			return nil
		}
		begins := tracebackOf(lines, i)
		if begins < 0 || begins > 0 && goesOn.MatchString(lines[begins-1][len(RankTag.FindString(lines[begins-1])):]) {
			return nil
		}
		return &ErrorLine{Line: strings.TrimRight(line, " \r"), Message: text, Rank: rankOf(line)}
	}
	return nil
}

// tracebackOf returns the index of the line with which the traceback begins that ends at a line; -1 if there is none: all lines between have
// the same tag, and are indented as those of a traceback are, or are the same exception of another rank.
func tracebackOf(lines []string, end int) int {
	tag := RankTag.FindString(lines[end])
	exception := strings.TrimRight(lines[end], " \r")[len(tag):]
	for i := end - 1; i >= 0; i-- {
		text, same := strings.CutPrefix(strings.TrimRight(lines[i], " \r"), tag)
		switch {
		case !same:
		case text == tracebackBegins:
			return i
		case text != exception && !strings.HasPrefix(text, "  "):
			return -1
		}
	}
	return -1
}

// goesOn matches the lines before tracebacks of Python after which a program goes on or has ended: Python/errors.c, Modules/atexitmodule.c and
// Lib/threading.py.
var goesOn = regexp.MustCompile(`^(?:Exception ignored in|Exception in thread |Error in atexit|--- Logging error ---)`)

var (
	// abortedWith is what MPI prints of a rank that called MPI_Abort, with its error code: MPICH and Intel MPI. Open MPI writes the code into a
	// line after abortedIn.
	abortedWith = regexp.MustCompile(`application called MPI_Abort\([^,)]*, (-?\d+)\) - process (\d+)`)
	abortedIn   = regexp.MustCompile(`^MPI_ABORT was invoked on rank (\d+)`)
	errorCode   = regexp.MustCompile(`(?i)^\s*(?:with )?errorcode:? (-?\d+)`)
)

// AbortWithZero returns the rank that has called MPI_Abort with error code 0, and the line about it; "" if none has.
func AbortWithZero(lines []string) (rank, line string) {
	for i, line := range lines {
		line = strings.TrimRight(line, " \r")
		if found := abortedWith.FindStringSubmatch(line); found != nil && found[1] == "0" {
			return found[2], line
		}
		if found := abortedIn.FindStringSubmatch(line); found != nil && errorCodeAfter(lines, i) == "0" {
			return found[1], line
		}
	}
	return "", ""
}

// abortedMore is where Open MPI reports that further ranks have called MPI_Abort.
var abortedMore = regexp.MustCompile(`more process(?:es)? (?:has|have)? ?sent help message help-mpi-api\.txt / mpi-abort`)

// Aborted reports whether MPI reports that a rank has called MPI_Abort. Open MPI names only the first one of several: another one has done so if it
// ended with the error code of MPI_Abort. exit is the exit code of the rank, or none for one that is unknown or of a signal.
func Aborted(lines []string, rank string, exit *int32) bool {
	code := ""
	for i, line := range lines {
		if by := abortedWith.FindStringSubmatch(line); by != nil && by[2] == rank {
			return true
		}
		if found := abortedIn.FindStringSubmatch(line); found != nil {
			if found[1] == rank {
				return true
			}
			code = errorCodeAfter(lines, i)
		}
		if abortedMore.MatchString(line) && exit != nil {
			given, err := strconv.Atoi(code)
			// An exit code has eight bits.
			return err == nil && int32(given&0xff) == *exit //nolint:gosec // it is below 256
		}
	}
	return false
}

// errorCodeAfter returns the error code in the lines after one of abortedIn; "" if there is none.
func errorCodeAfter(lines []string, at int) string {
	for _, next := range lines[at+1 : min(len(lines), at+4)] {
		if code := errorCode.FindStringSubmatch(next); code != nil {
			return code[1]
		}
	}
	return ""
}

// PipeClosed returns the line in which Open MPI reports that the program that read its output has closed the pipe
// (orte/tools/orterun and prte's signal traps); "" if there is none.
func PipeClosed(lines []string) string {
	for _, line := range lines {
		if strings.Contains(line, "SIGPIPE detected on fd ") {
			return strings.TrimRight(line, " \r")
		}
	}
	return ""
}
