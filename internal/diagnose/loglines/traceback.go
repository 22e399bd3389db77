package loglines

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// AfterTraceback returns the exception of Python's first traceback, whatever its name: the first line after it that is not indented
// and has the same tag. Exceptions that are skipped do not count. Nil if there is none.
func AfterTraceback(lines []string, skip func(message string) bool) *ErrorLine {
	const following = 200
	tag, begun := "", -1
	for i, line := range lines {
		line = strings.TrimRight(line, " \r")
		own := RankTag.FindString(line)
		text := line[len(own):]
		switch {
		case begun < 0:
			if text == tracebackBegins {
				tag, begun = own, i
			}
		case i-begun > following:
			return nil
		case own == tag && exceptionLine.MatchString(text) && skip(text):
			begun = -1
		case own == tag && exceptionLine.MatchString(text):
			found := &ErrorLine{Line: line, Message: text}
			if rank := RankTag.FindStringSubmatch(line); rank != nil {
				found.Rank = rank[1]
			}
			return found
		}
	}
	return nil
}

// exceptionLine is the name of an exception, and its text (Lib/traceback.py).
var exceptionLine = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:: .*)?$`)

// RaisedAt returns where in the program's own files Python raised the exception that a line of a log ends with, and the line of the
// traceback about it. A place is "train.py, line 12" or "the program of python -c, line 3". Both are "" if the log does not show it: the
// exception was raised in the interpreter's own start, or the traceback is cut.
func RaisedAt(lines []string, exception string) (place, line string) {
	own := ownFrames(lines, exception)
	switch {
	case len(own) == 0:
		return "", ""
	case own[0].file == agentapi.InlineFile:
		// The log does not show which one it is, if there are several.
		return "the program of python -c, line " + own[0].line, own[0].text
	}
	return path.Base(own[0].file) + ", line " + own[0].line, own[0].text
}

// frame is a call in a traceback of Python.
type frame struct {
	file, line string
	// text is the line of the log, and source the one of the program, "" if it is not shown.
	text, source string
}

// LastCall returns the file of the call in which Python raised the exception that a line of a log ends with, in the program or a library;
// "" if the log does not show it.
func LastCall(lines []string, exception string) (file string) {
	for _, f := range frames(lines, exception) {
		return f.file
	}
	return ""
}

// ownFrames returns the calls in the program's own files of the traceback that ends with an exception, the last call first.
func ownFrames(lines []string, exception string) []frame {
	return slices.DeleteFunc(frames(lines, exception), func(f frame) bool { return agentapi.IsLibraryFile(f.file) })
}

// frames returns the calls of the traceback that ends with an exception, the last call first.
func frames(lines []string, exception string) (frames []frame) {
	// following is the number of lines that a traceback has at most.
	const following = 200
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \r") == exception })
	tag := RankTag.FindString(exception)
	source := ""
	for i := at - 1; i >= max(0, at-following); i-- {
		text, same := strings.CutPrefix(strings.TrimRight(lines[i], " \r"), tag)
		if !same {
			continue
		}
		if text == tracebackBegins {
			if i > 0 && frameLine.MatchString(strings.TrimRight(strings.TrimPrefix(lines[i-1], tag), " \r")) {
				// Another rank has begun its own within this one: no traceback ends with a call.
				continue
			}
			break
		}
		found := frameLine.FindStringSubmatch(text)
		if found == nil {
			source = text
			continue
		}
		frames = append(frames, frame{file: found[1], line: found[2], text: strings.TrimSpace(text), source: strings.TrimSpace(source)})
		source = ""
	}
	return frames
}

// OwnSource returns the lines of the program's own files in the traceback that ends with an exception, the last call first.
func OwnSource(lines []string, exception string) (source []string) {
	for _, f := range ownFrames(lines, exception) {
		if f.source != "" {
			source = append(source, f.source)
		}
	}
	return source
}

// frameLine is a call in a traceback of Python (Lib/traceback.py).
var frameLine = regexp.MustCompile(`^ {2}File "([^"]+)", line (\d+)(?:, in (.+))?$`)

const tracebackBegins = "Traceback (most recent call last):"
