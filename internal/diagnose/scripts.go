package diagnose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

var (
	// silentSearch matches a line with nothing but a command that ends with 1, and reports no error, if it finds nothing or a difference (POSIX), or
	// nothing but an assignment of its output.
	silentSearch = regexp.MustCompile("^(?:" + search + "|\\w+=(?:\\$\\(" + search + "\\)|\"\\$\\(" + search + "\\)\"))$")
	// errExit matches how a script turns on or off that the shell ends at the first error.
	errExit = regexp.MustCompile(`(?:^|;)\s*set\s+([-+])(?:\w*e\w*|\w*o\s+errexit)(?:[\s;]|$)`)
	// openEnd matches the end of a line whose command goes on in the next line, or is a condition there.
	openEnd = regexp.MustCompile(`(?:\\|\||&&|\(|\{|^(?:if|elif|while|until|!))$`)
)

// search is such a command without operators of the shell.
const search = "([efz]?grep|diff|cmp)\\s+[^\\s|;&#()`][^|;&#()`]*"

// afterRanks returns the definition for a command that failed with 1 after MPI had succeeded: if it is a script with set -e in which one line
// after the last mpirun can fail in silence, with figures for that line.
func (p *input) afterRanks(launcher facts.Pod, figures map[string]string) codes.Entry {
	line := p.silentLine()
	if line == nil || launcher.ExitCode() == nil || *launcher.ExitCode() != 1 || loglines.FirstError(launcher.Log.Lines) != nil || loglines.LastTraced(launcher.Log.Lines) != "" {
		return codes.EndedAfterRanks
	}
	const most = 200
	text := phrase.Cut(phrase.OneLine(p.mask(line.text)), most)
	figures["line"], figures["script"], figures["program"], figures["reason"] = strconv.Itoa(line.number), text, line.program, "it finds nothing"
	if line.program == "diff" || line.program == "cmp" {
		figures["reason"] = "the files differ"
	}
	entry := codes.ScriptStopped
	if text != line.text {
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[0].Action = ""
	}
	return entry
}

// scriptLine is a line of a script with a number from 1, and the program that it calls.
type scriptLine struct {
	text, program string
	number        int
}

// silentLine returns the only line of the launcher's script after its last mpirun that ends with 1 if it finds nothing, where set -e ends the
// script; nil if there is none, or several.
func (p *input) silentLine() *scriptLine {
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		if script, is := mpi.ScriptOf(slices.Concat(main.Command, main.Args)); is {
			return silentLineOf(script.Text, script.EndsOnError)
		}
	}
	return nil
}

var (
	// setters are the builtins of shells that set the variables in their words, besides an assignment.
	setters = `for|select|read|mapfile|readarray|getopts|printf\s+-v`
	// assigned is how a script gives a variable NAME a value: NAME=1, NAME+=1, NAME[0]=1, ${NAME:=1}, ((NAME = 1)), or by one of the setters. That it
	// is exported gives it none.
	assigned = `\bNAME(?:\[[^\]\n]*\])?[:+]?=|\(\([^;\n]*\bNAME\s*[-+*/%]?=[^=]|\b(?:` + setters + `)\b[^;\n]*\bNAME\b`
)

// isAssigned reports whether a script gives a variable a value.
func isAssigned(name, script string) bool {
	return regexp.MustCompile(strings.ReplaceAll(assigned, "NAME", name)).MatchString(script)
}

// silentLineOf is silentLine for a script. It returns nil for a script with functions or documents, whose lines may not run. The lines of a text in
// quotation marks, such as a program of python3 -c, are none of the script.
func silentLineOf(script string, endsOnError bool) (found *scriptLine) {
	before, mark := "", byte(0)
	for i, text := range strings.Split(script, "\n") {
		inText := mark != 0
		var code string
		code, mark = unquoted(text, mark)
		if strings.Contains(code, "<<") || strings.Contains(code, "()") {
			return nil
		}
		text = strings.TrimSpace(text)
		inText = inText || mark != 0
		if set := errExit.FindStringSubmatch(text); set != nil && !inText {
			endsOnError = set[1] == "-"
		}
		match := silentSearch.FindStringSubmatch(text)
		switch {
		case startsRanks.MatchString(text):
			found = nil
		case match == nil || inText || !endsOnError || openEnd.MatchString(before) || openEnd.MatchString(text):
		case found != nil:
			return nil
		default:
			found = &scriptLine{text: text, program: strings.Join(match[1:], ""), number: i + 1}
		}
		before = text
	}
	if mark != 0 {
		return nil
	}
	return found
}

// unquoted returns a line of a shell script without comments and texts in single quotation marks, in which nothing has a meaning for the shell. mark
// is the quotation mark of the text in which the line begins, and end that in which it ends; 0 stands for none.
func unquoted(line string, mark byte) (code string, end byte) {
	var kept strings.Builder
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case mark == '\'':
			if c == mark {
				mark = 0
			}
			continue
		case c == '\\':
			i++
			continue
		case mark == 0 && c == '#' && (i == 0 || strings.IndexByte(" \t;", line[i-1]) >= 0):
			return kept.String(), mark
		case c == mark:
			mark = 0
		case mark == 0 && (c == '\'' || c == '"'):
			mark = c
			continue
		}
		kept.WriteByte(c)
	}
	return kept.String(), mark
}
