package mpi

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// takesWords are the builtins of shells that take the words after them as their own, and run none of these.
var takesWords = []string{"set", "export", "readonly", "cd", "ulimit", "umask"}

// commandEnds is what ends a command in a script.
var commandEnds = regexp.MustCompile(`[\n;&|]+`)

// FoldedScript returns the builtin of a shell that takes a launcher of MPI as one of its words, by the words of a command that calls the shell
// with -c: in "set -e mpirun train", which YAML makes of two lines under >, nothing is started. It is "" if there is none.
func FoldedScript(words []string) (builtin string) {
	script, is := ScriptOf(words)
	if !is {
		return ""
	}
	for _, command := range commandsOf(script.Text) {
		words := strings.Fields(command)
		if len(words) < 2 || !slices.Contains(takesWords, words[0]) || strings.Contains(command, "$(") {
			continue
		}
		if words[0] == "set" && (!strings.ContainsAny(words[1][:1], "-+") || slices.Contains(words, "--")) {
			// It sets arguments for a later command.
			continue
		}
		if slices.ContainsFunc(words[1:], func(word string) bool {
			return !strings.Contains(word, "=") && slices.Contains(Launchers, path.Base(word))
		}) {
			return words[0]
		}
	}
	return ""
}

// commandsOf returns the commands of a script, without what is quoted.
func commandsOf(script string) []string {
	return commandEnds.Split(quotes.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), ""), -1)
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
	if script, is := ScriptOf(words); is {
		words = nil
		for _, command := range commandsOf(script.Text) {
			if startsMPI.MatchString(command + " ") {
				words = append(words, strings.Fields(command)...)
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

// BreaksPipe returns the program by which a script ends MPI's launcher early: it reads some lines of what that prints, and then closes the
// pipe. It is "" if there is none.
func BreaksPipe(command string) (program string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(command, "\\\n", " "), "\n") {
		at := startsMPI.FindStringIndex(line)
		if at == nil {
			continue
		}
		if found := closesPipe.FindStringSubmatch(quotes.ReplaceAllString(line[at[0]:], "")); found != nil {
			return strings.Join(strings.Fields(found[1]), " ")
		}
	}
	return ""
}

// closesPipe matches a pipe into a program that ends before its input does.
var closesPipe = regexp.MustCompile(`[^|]\|&?\s*(head|grep\s+(?:-\w+\s+)*-\w*[qm])`)

// wrappers are programs that run the command in their arguments, as it is.
var wrappers = []string{"time", "env", "stdbuf", "nice", "ionice", "nohup", "timeout", "setsid", "numactl", "taskset", "tini", "dumb-init"}

// startsRanks reports whether the words of a command call a launcher of MPI, also by a program such as time.
func startsRanks(words []string) bool {
	isLauncher := func(word string) bool { return slices.Contains(Launchers, path.Base(word)) }
	return isLauncher(words[0]) || slices.Contains(wrappers, path.Base(words[0])) && slices.ContainsFunc(words[1:], isLauncher)
}

var (
	quotesAndComments = regexp.MustCompile(`'[^']*'|"[^"]*"|(?m:(^|\s)#.*$)`)
	// commandEnd is what ends a list of commands in a pipe.
	commandEnd = regexp.MustCompile(`\n|;|&&|\|\||[^&<>]&(?:[^&>]|$)`)
	// inBackground is the end of a command that runs in the background.
	inBackground = regexp.MustCompile(`^[^&]&[^&]?$`)
	// awaits is what waits for commands in the background, or for a time.
	awaits = regexp.MustCompile(`(?:^|[\s;&|(])(?:wait|fg|while|until|sleep|tail)(?:\s|;|$)|\$!`)
)

// IsAwaited reports whether a script waits for the launcher of MPI that it calls, or may do so: it is not in the background, or something
// after it waits or calls MPI, too.
func IsAwaited(script string) bool {
	// Quotes within comments, and comments within quotes, are removed together.
	text := quotesAndComments.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), "$1")
	started := startsMPI.FindAllStringIndex(text, -1)
	if len(started) == 0 {
		return true
	}
	// The commands before the last one may be for its time only.
	rest := text[started[len(started)-1][1]:]
	end := commandEnd.FindStringIndex(rest)
	return end == nil || !inBackground.MatchString(rest[end[0]:end[1]]) || awaits.MatchString(rest[end[1]-1:])
}
