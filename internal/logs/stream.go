package logs

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/phrase"
)

// Stream masks the lines of one log while they come. It is for one goroutine.
type Stream struct {
	masker Masker
	key    keyBlock
	code   codeContext
	// doubtful is how many more lines may belong to a key whose beginning was not read; hidden is set after one that does.
	doubtful int
	hidden   bool
}

// Stream returns a Stream for a log that is read from its first line on, or from somewhere in it: there a private key may
// have begun before, so that the first lines are hidden that look like one.
func (m Masker) Stream(whole bool) *Stream {
	s := &Stream{masker: m}
	if !whole {
		s.doubtful = longestKey
	}
	return s
}

// Line masks the next line.
func (s *Stream) Line(line string) string {
	if s.doubtful > 0 {
		s.doubtful--
		line = joinParts(line)
		switch {
		case strings.Contains(line, "PRIVATE KEY"):
			// The keys of other ranks may have begun before, too.
			s.hidden = false
		case fullKeyLine.MatchString(line) && !hexOnly.MatchString(line), s.hidden && keyLine.MatchString(line):
			s.hidden = true
			return Masked
		default:
			s.hidden = false
		}
	}
	line = joinParts(line)
	return s.key.add(nil, line, s.masker.inContext(&s.code, line))[0]
}

// LineWithin returns the next line as CleanWithin does, with secrets masked, also the one in which it is cut. What replaces a secret may be
// longer.
func (s *Stream) LineWithin(line string, most int) string {
	return phrase.Cut(s.Line(CleanWithin(line, most+CutMargin)), most)
}

var (
	// fullKeyLine is a line within a key (RFC 7468: 64 characters; OpenSSH: 70), with or without what MPI puts before.
	fullKeyLine = regexp.MustCompile(`^\s*(?:\[[^\]]*\](?:<\w+>)?:?\s*)?[A-Za-z0-9+/]{60,80}={0,2}\s*$`)
	// hexOnly is a digest, as programs print them.
	hexOnly = regexp.MustCompile(`^\s*(?:[0-9a-f]+|[0-9A-F]+)\s*$`)
)
