// Package loglines reads what programs and MPI's launchers print: errors, tracebacks, tags of ranks, messages of Open MPI and Hydra.
// It uses nothing of a job but its lines.
package loglines

import (
	"regexp"
	"strings"
)

// ErrorLine is an error line of a program.
type ErrorLine struct {
	// Line is the line of the log, and Message its error.
	Line, Message string
	// Rank is the rank that wrote it, or "".
	Rank string
	// Call is the function of MPI in which it occurred, and Host the host that reported it, as Open MPI prints both; "" if it does not.
	Call, Host string
	// First is the exception of Python for which, or while handling which, this one was raised, the first of several; nil if there is none.
	First *ErrorLine
}

// RankTag matches the tag before a line that names the rank of its writer: mpirun --tag-output of Open MPI ("[1,3]<stderr>:", and of
// some versions "[prterun-pi-launcher-11@1,3]<stderr>: "), mpiexec -prepend-rank of Hydra ("[3] "), and PyTorch ("[rank3]: ").
var RankTag = regexp.MustCompile(`^\[(?:(?:[\w.-]+@)?\d+,|rank ?)?(\d+)\](?:<\w+>)?:? ?`)

// otherTag matches other tags, such as time and host.
var otherTag = regexp.MustCompile(`^\[[^\]]*\](?:<\w+>)?:?\s*`)

// OneLine writes text with one space between its words.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
