package mpi

import (
	"strings"
	"unicode"
)

// Printable is a text as UTF-8, without what moves a terminal's cursor, sets its colours or turns its direction: what
// pods and others say may be shown there. Ends of lines and tabs stay.
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
