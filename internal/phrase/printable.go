package phrase

import (
	"strings"
	"unicode"
)

// Printable returns a text as UTF-8, without characters that move a terminal's cursor, set its colors or change its
// direction: texts of pods are shown there. Line ends and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r <= '~', r == '\n', r == '\t':
			return r // most are, and the tables are slow
		case unicode.In(r, unicode.Cc, unicode.Bidi_Control):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// OneLine returns a text in printable form, on one line, without space around it.
func OneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, Printable(text)))
}

// Limit returns a text in printable form, with at most a number of bytes. It reads only the beginning of a long text.
func Limit(text string, maxBytes int) string {
	return Cut(Printable(text[:min(len(text), 4*maxBytes)]), maxBytes)
}
