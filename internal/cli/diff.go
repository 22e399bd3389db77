package cli

import "strings"

// colourDiff colours a unified diff if the stream is a terminal.
func (f *Factory) colourDiff(diff string, stream any) string {
	lines := strings.SplitAfter(diff, "\n")
	for i, line := range lines {
		body, end := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			body = paintOn(stream, green, body)
		case strings.HasPrefix(line, "-"):
			body = paintOn(stream, red, body)
		case strings.HasPrefix(line, "@@"):
			body = paintOn(stream, cyan, body)
		}
		if lines[i] = body; end {
			lines[i] += "\n"
		}
	}
	return strings.Join(lines, "")
}
