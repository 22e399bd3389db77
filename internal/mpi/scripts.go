package mpi

import (
	"path"
	"slices"
	"strings"
)

var (
	shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh"}
	// fileOptions are those long options of bash that have a value.
	fileOptions = []string{"--rcfile", "--init-file"}
)

// Script is a script that the words of a command have a shell run.
type Script struct {
	Text string
	// Args are the words after it.
	Args []string
	// EndsOnError is set if the shell has an option to end at the first error, and FailsInPipes if a pipe fails with any of its commands.
	EndsOnError, FailsInPipes bool
}

// ScriptOf returns the script that a shell is to run, such as that of [bash, -euo, pipefail, -c, SCRIPT]. is is false if the words are not those of a
// shell with one.
func ScriptOf(words []string) (script Script, is bool) {
	if len(words) == 0 || !isShell(words[0]) {
		return Script{}, false
	}
	rest := words[1:]
	for len(rest) > 0 && isShellOption(rest[0]) {
		var on []string
		on, rest = takeShellOption(rest)
		is = is || slices.Contains(on, "c")
		script.EndsOnError = script.EndsOnError || slices.Contains(on, "e") || slices.Contains(on, "errexit")
		script.FailsInPipes = script.FailsInPipes || slices.Contains(on, "pipefail")
	}
	if len(rest) > 0 && (rest[0] == "--" || rest[0] == "-") {
		rest = rest[1:]
	}
	if !is || len(rest) == 0 {
		return Script{}, false
	}
	script.Text, script.Args = rest[0], rest[1:]
	return script, true
}

func isShellOption(word string) bool {
	return len(word) > 1 && (word[0] == '-' || word[0] == '+') && word != "--"
}

// takeShellOption returns what the option at the beginning of a shell's words turns on, by letters and names, and the words after it and its values.
func takeShellOption(words []string) (on, rest []string) {
	word, rest := words[0], words[1:]
	if strings.HasPrefix(word, "--") {
		if slices.Contains(fileOptions, word) {
			rest = rest[min(1, len(rest)):]
		}
		return nil, rest
	}
	names := min(strings.Count(strings.ToLower(word), "o"), len(rest))
	if word[0] == '-' {
		on = append(strings.Split(word[1:], ""), rest[:names]...)
	}
	return on, rest[names:]
}

func isShell(word string) bool { return slices.Contains(shells, path.Base(word)) }
