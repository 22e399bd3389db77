package logs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"opendatahub.io/mpijob/internal/phrase"
)

// MaxLine is how many bytes of a line are kept.
const MaxLine = 1000

// CutMargin is how many bytes after the cut of a line are masked with what comes before it: of a secret that begins before the cut, they
// contain as much as it takes to recognize it.
const CutMargin = 512

// Tail returns a number of lines from the end of a log, or fewer. Each is printable text of at most MaxLine bytes. The log
// may contain anything: binary data, a terminal's colours and progress bars, lines without an end. The cost is proportional
// to the log's length; read no more than is needed.
func Tail(log []byte, most int) []string { return tailWithin(log, most, MaxLine) }

// Tail is Tail with secrets masked, also those in which a line is cut.
func (m Masker) Tail(log []byte, most int) []string {
	lines := m.Lines(tailWithin(log, most, MaxLine+CutMargin))
	for i, line := range lines {
		lines[i] = phrase.Cut(line, MaxLine)
	}
	return lines
}

func tailWithin(log []byte, most, size int) []string {
	text := strings.TrimRight(string(log), "\r\n")
	if text == "" || most <= 0 {
		return nil
	}
	// Cutting from the end leaves the lines before it alone, however many they are.
	start, left := len(text), most
	for start >= 0 && left > 0 {
		start = strings.LastIndexByte(text[:start], '\n')
		left--
	}
	var lines []string
	for line := range strings.SplitSeq(text[start+1:], "\n") {
		lines = append(lines, CleanWithin(line, size))
	}
	return lines
}

// Clean is a line as it would be read on a terminal, without colours: of what a carriage return has written over only
// the last is left. What is no text becomes "?". A longer one than MaxLine is cut.
func Clean(line string) string { return CleanWithin(line, MaxLine) }

// CleanWithin is Clean for lines of another length, in bytes.
func CleanWithin(line string, most int) string {
	line = strings.TrimRight(line, "\r\n")
	if len(line) <= most && isPlain(line) {
		return strings.TrimRight(line, " ")
	}
	// More than this cannot matter: a colour takes a few bytes.
	enough := 8 * most
	if at := strings.LastIndexByte(line, '\r'); at >= 0 {
		line = line[at+1:]
	}
	if len(line) > enough {
		line = line[:enough]
	}
	var clean strings.Builder
	for i := 0; i < len(line); {
		if n := escape(line[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			clean.WriteByte('?')
		case r == '\t':
			clean.WriteByte(' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r):
			// What is not seen could hide a secret's name from being known.
		default:
			clean.WriteRune(r)
		}
		i += size
	}
	return phrase.Cut(strings.TrimRight(clean.String(), " "), most)
}

// isPlain reports whether a text is of printable ASCII alone, as most lines are.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// escape is the length of the terminal's control sequence that a text begins with (ECMA-48), 0 if it begins with none.
func escape(text string) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[':
		return 2 + parameters(text[2:])
	case ']', 'P', '_', '^':
		return 2 + untilTerminated(text[2:])
	}
	return 2
}

// parameters is the length of what follows a control sequence's beginning: parameters, and one byte that ends it.
func parameters(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return i
		}
	}
	return len(text)
}

// untilTerminated is the length of a text up to the end of a string for the terminal, such as a link.
func untilTerminated(text string) int {
	for i := range len(text) {
		switch {
		case text[i] == 0x07:
			return i + 1
		case text[i] == 0x1b && strings.HasPrefix(text[i+1:], `\`):
			return i + 2
		}
	}
	return len(text)
}
