package jobs

import (
	"errors"
	"path"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// SplitCommand splits a command line as a shell does: at spaces, except in quotes and after a backslash.
func SplitCommand(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	started, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			started, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			started, quote = true, r
		case strings.ContainsRune(" \t\n", r):
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("has an open quote or a backslash at the end")
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}

// ParseCommand returns the command of a container for a command line. A line that needs a shell is run by sh -c.
func ParseCommand(text string) ([]string, error) {
	if strings.ContainsAny(text, "|&;<>()$`*?~\n") {
		return []string{"sh", "-c", text}, nil
	}
	return SplitCommand(text)
}

// launchers are programs that start ranks. A command that contains one is not wrapped in mpirun.
var launchers = append(slices.Clone(mpi.Launchers), "deepspeed")

// StartsRanks reports whether a command starts ranks itself, also in a shell script.
func StartsRanks(command []string) bool {
	for _, word := range command {
		for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) }) {
			if slices.Contains(launchers, path.Base(part)) {
				return true
			}
		}
	}
	return false
}
