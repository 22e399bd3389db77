package logs

import (
	"regexp"
	"strings"
)

// keyBlock follows lines and hides private keys, which reach over many of them (RFC 7468, RFC 4880). Lines of other
// ranks may come between those of a key, also those of other keys.
type keyBlock struct {
	// open is how many keys have begun and not ended, and left how many more lines may belong to them; 0 outside of a key.
	open, left int
}

// longestKey is more lines than any key has that is in use: RSA with 16,384 bits has 200.
const longestKey = 400

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	// keyLine is a line of a key, with what MPI's launchers put before a rank's lines or without.
	keyLine = regexp.MustCompile(`^\s*(?:\[[^\]]*\](?:<\w+>)?:?\s*)?(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Version|Comment): .*)\s*$`)
	// keyPart is a part of a key within a line, as a logger or a program's text has it.
	keyPart = regexp.MustCompile(`(?:[A-Za-z0-9+/]{32,}={0,2}|[A-Za-z0-9+/]{2,}={1,2}(?P<after>["'\\\s]|$))`)
)

// add appends a line, whose parts are joined (joinParts), to those before, with all that belongs to a key hidden, and the rest as another
// function masks it. If a key ends whose beginning is missing, as in the tail of a log, the lines before its end are hidden, too.
func (k *keyBlock) add(before []string, line string, mask func(string) string) []string {
	if k.left == 0 && !strings.Contains(line, "PRIVATE KEY") {
		return append(before, mask(line))
	}
	var masked strings.Builder
	for line != "" {
		begin, end := keyBegin.FindStringIndex(line), keyEnd.FindStringIndex(line)
		switch {
		case k.left == 0 && end != nil && (begin == nil || end[0] < begin[0]):
			hideKeyBefore(before)
			masked.WriteString(hideKey(mask(line[:end[0]])) + Masked)
			line = line[end[1]:]
		case k.left == 0 && begin != nil:
			masked.WriteString(mask(line[:begin[0]]) + Masked)
			line, k.open, k.left = line[begin[1]:], 1, longestKey
		case k.left == 0:
			masked.WriteString(mask(line))
			line = ""
		default:
			line = k.skip(&masked, line, begin, end, mask)
		}
	}
	return append(before, masked.String())
}

// skip adds what comes in a line before the next begin or end of a key, within one, with all that belongs to a key hidden. It returns the rest.
func (k *keyBlock) skip(masked *strings.Builder, line string, begin, end []int, mask func(string) string) string {
	text, rest, after := line, "", ""
	switch {
	case begin != nil && (end == nil || begin[0] < end[0]):
		// The key of another rank, or the one before has no end.
		text, rest, after = line[:begin[0]], line[begin[1]:], Masked
		k.open, k.left = k.open+1, longestKey
	case end != nil:
		text, rest = line[:end[0]], line[end[1]:]
		if k.open--; k.open == 0 {
			k.left = 0
		}
	default:
		k.left--
	}
	if masked.Len() == 0 {
		masked.WriteString(hideKey(mask(text)) + after)
	}
	return rest
}

// hideKey hides what of a line may belong to a key.
func hideKey(line string) string {
	if keyLine.MatchString(line) {
		return Masked
	}
	return keyPart.ReplaceAllString(line, Masked+"${after}")
}

// hideKeyBefore hides the lines of a key that ends after them. Of what is between them only that is hidden which looks
// like nothing else: one line that does not ends the key, unless more of it comes before.
func hideKeyBefore(lines []string) {
	const others = 16
	for i, strange := len(lines)-1, 0; i >= 0 && i >= len(lines)-longestKey && strange < others; i-- {
		hidden := keyPart.ReplaceAllString(lines[i], Masked+"${after}")
		if i == len(lines)-1 {
			// The last line of a key is short.
			hidden = hideKey(lines[i])
		}
		if hidden == lines[i] && lines[i] != Masked {
			strange++
		}
		lines[i] = hidden
	}
}
