package agentapi

import "strings"

// WithoutComment returns a line of Python code without the comment at its end. A # in a text begins none; a text that goes on in the next line has no end, and
// the line is returned as it is.
func WithoutComment(line string) string {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}
