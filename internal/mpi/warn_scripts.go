package mpi

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// takesWords are the builtins of shells that take the words after them as their own, and run none of these.
var takesWords = []string{"set", "export", "readonly", "cd", "ulimit", "umask"}

// FoldedScript returns the builtin of a shell that takes a launcher of MPI as one of its words, by the words of a command that calls the shell
// with -c: in "set -e mpirun train", which YAML makes of two lines under >, nothing is started. It is "" if there is none.
func FoldedScript(words []string) (builtin string) {
	parsed := scriptOf(words)
	if parsed == nil {
		return ""
	}
	return parsed.foldedBuiltin()
}

// foldedBuiltin is FoldedScript for a script.
func (s *shellScript) foldedBuiltin() (builtin string) {
	syntax.Walk(s.file, func(node syntax.Node) bool {
		words := builtinCall(node)
		if builtin == "" && len(words) > 1 && slices.Contains(takesWords, words[0]) && slices.ContainsFunc(words[1:], isLauncher) && !setsArguments(words) {
			builtin = words[0]
		}
		return builtin == ""
	})
	return builtin
}

// builtinCall returns the words of a command that may be a builtin; "" for each that is quoted, an assignment, or to be completed by the shell.
func builtinCall(node syntax.Node) (words []string) {
	switch command := node.(type) {
	case *syntax.CallExpr:
		for _, word := range command.Args {
			words = append(words, word.Lit())
		}
	case *syntax.DeclClause:
		words = append(words, command.Variant.Value)
		for _, argument := range command.Args {
			switch {
			case argument.Naked && argument.Name != nil:
				words = append(words, argument.Name.Value)
			case argument.Naked && argument.Value != nil:
				words = append(words, argument.Value.Lit())
			}
		}
	}
	return words
}

// setsArguments reports whether the words of a command set arguments for a later command.
func setsArguments(words []string) bool {
	return words[0] == "set" && (!strings.HasPrefix(words[1], "-") && !strings.HasPrefix(words[1], "+") || slices.Contains(words, "--"))
}

var (
	// copiedDash is an argument that begins with a dash that is no hyphen, as word processors and web pages write options: Unicode's dashes and
	// the minus sign.
	copiedDash = regexp.MustCompile(`^[\x{2010}-\x{2015}\x{2212}\x{FE58}\x{FE63}\x{FF0D}]+-?[A-Za-z]`)
	// copiedQuote is an argument that begins with a typographic quotation mark.
	copiedQuote = regexp.MustCompile(`^[\x{2018}-\x{201F}\x{00AB}\x{2039}]\S*$`)
)

// CopiedWord returns the first argument in the words of a command, or in the commands of its script that start ranks, that begins with a
// typographic dash or quotation mark, for which programs and shells do not know a meaning; "" if there is none.
func CopiedWord(words []string) string {
	return copiedIn(words, scriptOf(words))
}

// copiedIn is CopiedWord for the words of a command and its script, if it has one that can be read.
func copiedIn(words []string, script *shellScript) string {
	if _, is := ScriptOf(words); is {
		words = nil
	}
	if script != nil {
		for _, one := range script.launches {
			for _, word := range one.args {
				words = append(words, word.Lit())
			}
		}
	}
	for _, word := range words {
		if IsCopied(word) {
			return word
		}
	}
	return ""
}

// IsCopied reports whether a word begins with a typographic dash before a letter, or with a typographic quotation mark.
func IsCopied(word string) bool { return copiedDash.MatchString(word) || copiedQuote.MatchString(word) }

// PipesRanks reports whether the script in the words of a command has MPI's launcher write into a pipe, so that the exit code of MPI is lost.
func PipesRanks(words []string) bool {
	parsed := scriptOf(words)
	return parsed != nil && parsed.losesExitCode()
}

// BreaksPipe returns the program by which the script in the words of a command ends MPI's launcher early: it reads some of what that prints,
// and then closes the pipe. It is "" if there is none.
func BreaksPipe(words []string) (program string) {
	if parsed := scriptOf(words); parsed != nil {
		program = parsed.breakingReader()
	}
	return program
}

// scriptOf returns the script that the words of a command have a shell run; nil if there is none, or if it cannot be read.
func scriptOf(words []string) *shellScript {
	script, is := ScriptOf(words)
	if !is {
		return nil
	}
	return parseScript(script)
}

// startsRanks reports whether the words of a command call a launcher of MPI, also by a program such as time.
func startsRanks(words []string) bool {
	return isLauncher(words[0]) || slices.Contains(wrappers, path.Base(words[0])) && slices.ContainsFunc(words[1:], isLauncher)
}
