package cli

import (
	"path"
	"slices"
	"strings"
)

// splitWords splits a command as a shell does: at blanks, but for those in quotes or behind a backslash.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case strings.ContainsRune(" \t\n", r):
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, usagef("--command: a quote or backslash at the end of %q is left open", text)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// shellWords is a command line as a container's command. What only a shell understands is given to one.
func shellWords(text string) ([]string, error) {
	if strings.ContainsAny(text, "|&;<>()$`*?~\n") {
		return []string{"sh", "-c", text}, nil
	}
	return splitWords(text)
}

// launchers start ranks by themselves: a command that has one is run as it is.
var launchers = []string{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "deepspeed"}

// startsRanks tells whether a command has a launcher of ranks in it, be it in a shell's script.
func startsRanks(command []string) bool {
	for _, word := range command {
		for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) }) {
			if slices.Contains(launchers, path.Base(part)) {
				return true
			}
		}
	}
	return false
}
