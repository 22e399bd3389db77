package loglines

import (
	"fmt"
	"regexp"
	"strings"
)

// withoutMargins returns lines in which tracebacks of Python look as the interpreter writes them, after the tag of their rank: without what
// loggers and launchers write before each line, the lines next to groups of exceptions, and the boxes of rich. No line is added or left out.
func withoutMargins(lines []string) []string {
	var plain []string
	for i, line := range lines {
		if !strings.Contains(line, tracebackTitle) || beginsTraceback(line) {
			continue
		}
		if plain == nil {
			plain = append(plain, lines...)
		}
		tag := RankTag.FindString(line)
		switch text, _ := textOf(line, tag); {
		case strings.HasPrefix(text, "╭"):
			unpackBox(plain[i:], tag)
		case strings.HasSuffix(text, tracebackBegins):
			if margin, known := marginOf(lines[i+1:], tag); known {
				plain[i] = tag + tracebackBegins
				removeMargin(plain[i+1:], tag, margin)
			}
		}
	}
	if plain == nil {
		return lines
	}
	return plain
}

// marginOf returns what is written before the first call of the traceback of which lines are the rest; known is false if none follows.
func marginOf(lines []string, tag string) (margin string, known bool) {
	const near = 5
	for _, line := range lines[:min(near, len(lines))] {
		text, same := textOf(line, tag)
		if found := callWithMargin.FindStringSubmatch(text); same && found != nil {
			return found[1], true
		}
	}
	return "", false
}

// callWithMargin is a call in a traceback with what is written before it.
var callWithMargin = regexp.MustCompile(`^(.*?)(?: {2}|> )File "[^"]+", line \d+`)

// removeMargin removes a margin from the lines of a traceback, and from those that follow it directly. Its digits may differ, as in times.
func removeMargin(lines []string, tag, margin string) {
	if margin == "" {
		return
	}
	ended := false
	for i, line := range lines[:min(mostLines, len(lines))] {
		text, same := textOf(line, tag)
		if !same {
			continue
		}
		switch {
		case len(text) >= len(margin) && withoutDigits(text[:len(margin)]) == withoutDigits(margin):
			text = text[len(margin):]
		case withoutDigits(text) == withoutDigits(strings.TrimRight(margin, " ")):
			text = ""
		case ended:
			return
		default:
			continue
		}
		lines[i] = tag + text
		ended = ended || exceptionLine.MatchString(text)
	}
}

// withoutDigits returns text with 0 in place of each digit.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, text)
}

var (
	// boxedCall is a call in a traceback of rich, and boxedSource the line of its source code that was running (rich/traceback.py).
	boxedCall   = regexp.MustCompile(`^(\S+):(\d+) in (\S+)$`)
	boxedSource = regexp.MustCompile(`^❱ +\d+ [ │]*(\S.*)$`)
)

// unpackBox writes a traceback of rich, with which lines begin, as the interpreter writes it.
func unpackBox(lines []string, tag string) {
	lines[0] = tag + tracebackBegins
	call := -1
	for i := 1; i < min(mostLines, len(lines)); i++ {
		text, same := textOf(lines[i], tag)
		if !same {
			continue
		}
		if !strings.HasPrefix(text, "│") {
			lines[i] = tag
			return
		}
		text = strings.Trim(text, "│ ")
		lines[i] = tag
		if found := boxedCall.FindStringSubmatch(text); found != nil {
			lines[i], call = fmt.Sprintf(`%s  File "%s", line %s, in %s`, tag, found[1], found[2], found[3]), i
		} else if found := boxedSource.FindStringSubmatch(text); found != nil && call >= 0 {
			lines[call+1] = tag + "    " + found[1]
		}
	}
}
