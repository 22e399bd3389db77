package jobs

import (
	"errors"
	"path"
	"regexp"
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

// assignment begins a command line that sets a variable.
var assignment = regexp.MustCompile(`^\s*[A-Za-z_]\w*=`)

// ParseCommand returns the command of a container for a command line. A line that needs a shell is run by sh -c.
func ParseCommand(text string) ([]string, error) {
	if strings.ContainsAny(text, "|&;<>()$`*?~\n") || assignment.MatchString(text) {
		return []string{"sh", "-c", text}, nil
	}
	return SplitCommand(text)
}

// deepspeed is a launcher whose name is also a value of options.
const deepspeed = "deepspeed"

// launchers are programs that start ranks. A command that contains one is not wrapped in mpirun.
var launchers = append(slices.Clone(mpi.Launchers), deepspeed)

var (
	// shells are programs that read a script in the argument after scriptOption.
	shells       = []string{"ash", "bash", "dash", "ksh", "sh", "zsh"}
	scriptOption = regexp.MustCompile(`^-[A-Za-z]*c$`)
	longOption   = regexp.MustCompile(`^--[a-z]`)
)

// StartsRanks reports whether a command starts ranks itself, also in a shell script. Of other programs, only whole words count: the
// source of a Python program may have any words.
func StartsRanks(command []string) bool {
	if startsRanks(command) {
		return true
	}
	for i := 2; i < len(command); i++ {
		if !scriptOption.MatchString(command[i-1]) || !slices.ContainsFunc(command[:i-1], isShell) {
			continue
		}
		for call := range strings.FieldsFuncSeq(command[i], func(r rune) bool { return strings.ContainsRune("\n;&|()", r) }) {
			if startsRanks(strings.Fields(call)) {
				return true
			}
		}
	}
	return false
}

func isShell(word string) bool { return slices.Contains(shells, path.Base(word)) }

// startsRanks reports whether one of these words is a launcher. deepspeed may be a value, as in --strategy deepspeed.
func startsRanks(words []string) bool {
	for i, word := range words {
		isValue := i > 0 && longOption.MatchString(words[i-1])
		if name := path.Base(word); slices.Contains(launchers, name) && (name != deepspeed || !isValue) {
			return true
		}
	}
	return false
}
