package loglines

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// AfterTraceback returns the exception of Python's first traceback, whatever its name: the first line after it that is not indented
// and has the same tag, or the one that its chain ends with. Exceptions that are skipped do not count, nor those that the program handled. Nil if
// there is none.
func AfterTraceback(lines []string, skip func(message string) bool) *ErrorLine {
	lines = withoutMargins(lines)
	for i, line := range lines {
		if !beginsTraceback(line) {
			continue
		}
		at := exceptionAfter(lines, i)
		if at < 0 {
			continue
		}
		if found := exceptionAt(lines, at); !skip(found.Message) && !isHandled(lines, at, skip) {
			return endOfChain(lines, at, found, skip)
		}
	}
	return nil
}

// beginsTraceback reports whether a line begins a traceback.
func beginsTraceback(line string) bool {
	text, _ := textOf(line, "")
	return isTitle(text)
}

// isTitle reports whether a text without its tag is the title of a traceback. That of another process or thread is the original one.
func isTitle(text string) bool { return text == tracebackBegins || text == "Original "+tracebackBegins }

// mostLines is the number of lines that a traceback has at most.
const mostLines = 200

// exceptionAfter returns the index of the exception with which the traceback that begins at an index ends; -1 if the log does not show it.
func exceptionAfter(lines []string, begin int) int {
	tag := RankTag.FindString(lines[begin])
	for i := begin + 1; i < min(len(lines), begin+1+mostLines); i++ {
		if text, same := textOf(lines[i], tag); same && exceptionLine.MatchString(text) {
			return i
		}
	}
	return -1
}

// textOf returns the text of a line without its tag, and whether the tag is the given one.
func textOf(line, tag string) (text string, same bool) {
	own := RankTag.FindString(line)
	return strings.TrimRight(line[len(own):], " \r"), own == tag
}

// exceptionAt returns the exception in a line, with the text that follows it.
func exceptionAt(lines []string, at int) *ErrorLine {
	found := &ErrorLine{Line: strings.TrimRight(lines[at], " \r"), Rank: rankOf(lines[at])}
	tag := RankTag.FindString(found.Line)
	found.Message = found.Line[len(tag):]
	found.Message += exceptionGoesOn(lines, at, tag, found.Message)
	return found
}

// exceptionGoesOn returns the text with which the message of an exception goes on in the next lines, after a blank, if its first line ends with
// a colon or names what is not valid; "" if it does not.
func exceptionGoesOn(lines []string, at int, tag, message string) string {
	const most = 3
	text, between, next := "", " ", lines[at+1:]
	if known := knownEnd(message, ofTag(next, tag)); known != "" {
		return known
	}
	if indented := continued(message, next); indented != "" {
		return indented
	}
	wanted := 1
	if notValid.MatchString(message) {
		wanted, between = 2, ": "
	} else if !withoutSections.MatchString(message) && !strings.HasSuffix(message, ":") || !isIndented(lines, at-1, tag) {
		return ""
	}
	for _, line := range next[:min(most, len(next))] {
		own, same := textOf(line, tag)
		if own = strings.TrimSpace(own); !same || own == "" && text == "" {
			continue
		}
		if own == "" || endOfMessage.MatchString(own) || isTitle(own) || joinsChain.MatchString(own) || LauncherWords.MatchString(own) {
			break
		}
		if text += between + own; wanted == 1 {
			break
		}
		wanted--
	}
	return text
}

// isIndented reports whether a line has a tag and is indented, as those of a traceback are.
func isIndented(lines []string, at int, tag string) bool {
	if at < 0 {
		return false
	}
	text, same := textOf(lines[at], tag)
	return same && strings.HasPrefix(text, " ")
}

// ofTag returns the texts of the next lines with a tag.
func ofTag(lines []string, tag string) (texts []string) {
	const most = 12
	for _, line := range lines[:min(most, len(lines))] {
		if text, same := textOf(line, tag); same {
			texts = append(texts, text)
		}
	}
	return texts
}

var (
	// yamlError is an error of PyYAML and ruamel.yaml, yamlMark the line after each part of its message with the place in the file (yaml/error.py), and
	// yamlExcerpt a line of the file.
	yamlError   = regexp.MustCompile(`^(?:ruamel\.)?yaml\.\w+\.\w+Error: `)
	yamlMark    = regexp.MustCompile(`^ +in "[^"]*", line \d+, column \d+:?$`)
	yamlExcerpt = regexp.MustCompile(`^ {4}`)
	// withoutSections is an error of configparser, before the line that names the file.
	withoutSections = regexp.MustCompile(`MissingSectionHeaderError: File contains no section headers\.$`)
)

// knownEnd returns the text with which messages go on that have a form of their own, after a blank: the places of YAML, and the cause in the error stack
// of MPICH; "" for others.
func knownEnd(message string, next []string) (text string) {
	switch {
	case strings.HasSuffix(message, "error stack:"):
		if cause := lastOf(next, stackLine); cause != "" {
			return " " + cause
		}
	case yamlError.MatchString(message):
		for i, line := range next {
			isMark := yamlMark.MatchString(line)
			if yamlExcerpt.MatchString(line) && !isMark {
				continue
			}
			if !isMark && (i+1 >= len(next) || !yamlMark.MatchString(next[i+1])) {
				break
			}
			text += " " + strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
	}
	return text
}

// notValid is what pydantic reports, before the field and its error (pydantic-core/src/errors/validation_exception.rs).
var notValid = regexp.MustCompile(`ValidationError: \d+ validation errors? for \S+$`)

// joinsChain is what Python writes between the exceptions of a chain (Lib/traceback.py), and PyTorch before that of another process.
var joinsChain = regexp.MustCompile(`^(?:The above exception was the direct cause of the following exception:|During handling of the above exception, another exception occurred:|-- Process \d+ terminated with the following error:)$`)

// nextInChain returns the index of the exception that follows the one at an index in its chain; -1 if that is the last one.
func nextInChain(lines []string, at int) int {
	const message, between = 60, 5
	tag := RankTag.FindString(lines[at])
	joined := -1
	for i := at + 1; i < min(len(lines), at+1+message); i++ {
		text, same := textOf(lines[i], tag)
		switch {
		case !same:
		case joinsChain.MatchString(text):
			joined = i
		case isTitle(text):
			if joined >= 0 && i-joined <= between || text != tracebackBegins {
				return exceptionAfter(lines, i)
			}
			return -1
		}
	}
	return -1
}

// endOfChain returns the last exception of a chain that is not skipped, given one of it: the one that ended the program, which mostly says more
// than those that it was raised for. If it only repeats the first one, that is returned, which shows where it was raised.
func endOfChain(lines []string, at int, first *ErrorLine, skip func(message string) bool) *ErrorLine {
	last := first
	for at = nextInChain(lines, at); at >= 0; at = nextInChain(lines, at) {
		if found := exceptionAt(lines, at); !skip(found.Message) && found.Message != first.Message {
			found.First, last = first, found
		}
	}
	return last
}

// beginOfChain returns the index of the line with which the traceback of an exception begins, or else that of the chain that it is a part of; -1
// if it has none.
func beginOfChain(lines []string, at int) int {
	const between = 4
	tag := RankTag.FindString(lines[at])
	begin := -1
	for i := at - 1; i >= max(0, at-mostLines); i-- {
		text, same := textOf(lines[i], tag)
		switch {
		case !same:
		case isTitle(text):
			begin = i
			if slices.ContainsFunc(lines[max(0, i-between):i], func(line string) bool {
				before, same := textOf(line, tag)
				return same && joinsChain.MatchString(before)
			}) {
				at = i
				continue
			}
			return begin
		}
	}
	return begin
}

var (
	// logRecord is a line that a logger writes before the traceback of an exception: a name of a level, or the begin of a line of glog.
	logRecord = regexp.MustCompile(`\b(?:WARN|WARNING|ERROR|EXCEPTION|CRITICAL)\b|^[WEF]\d{4} \d\d:`)
	// notOfMain is the line before the traceback of an exception that does not end the program, and is no reason to go on, either.
	notOfMain = regexp.MustCompile(`^(?:Exception in thread |Exception ignored |Error in atexit)`)
)

// isHandled reports whether the program went on after the exception at an index, until another one that is not skipped ended it: between
// the two it printed more than the rest of a message, and the first one was logged, or lines have the tag of a rank.
func isHandled(lines []string, at int, skip func(message string) bool) bool {
	const nearby = 3
	tag := RankTag.FindString(lines[at])
	begin := beginOfChain(lines, at)
	if begin < 0 {
		return false
	}
	if before := textBefore(lines, begin, tag); notOfMain.MatchString(before) || tag == "" && !logRecord.MatchString(before) {
		return false
	}
	rank := rankOf(lines[at])
	others := 0
	for i := at + 1; i < len(lines); i++ {
		text, _ := textOf(lines[i], tag)
		switch {
		case rankOf(lines[i]) != rank, text == "", strings.HasPrefix(text, " "), joinsChain.MatchString(text):
		case reportsEnd.MatchString(text):
			return false
		case isTitle(text):
			next := exceptionAfter(lines, i)
			if next < 0 {
				return false
			}
			if others > nearby && !notOfMain.MatchString(textBefore(lines, i, RankTag.FindString(lines[i]))) && !skip(exceptionAt(lines, next).Message) {
				return true
			}
			i = next
		default:
			others++
		}
	}
	return false
}

// ignoredBegins is the first line about an exception that Python cannot pass on and ignores, such as one of a destructor (PyErr_FormatUnraisable). That of
// a thread ends it.
var ignoredBegins = regexp.MustCompile(`^Exception ignored (?:in|on|while|from)\b`)

// withoutIgnored returns lines in which those about exceptions that Python ignores are empty, and those about exceptions in threads of libraries and at
// its end; nil if there are none.
func withoutIgnored(lines []string) (rest []string) {
	for i, line := range lines {
		if !strings.Contains(line, "Exception ") {
			continue
		}
		tag := RankTag.FindString(line)
		end := endOfIgnored(lines, i, tag)
		if end >= 0 && rest == nil {
			rest = slices.Clone(lines)
		}
		for at := i; at <= end; at++ {
			if _, same := textOf(lines[at], tag); same {
				rest[at] = tag
			}
		}
	}
	return rest
}

// endOfIgnored returns the index of the exception about which the text begins at an index, if it is ignored; -1 otherwise.
func endOfIgnored(lines []string, at int, tag string) int {
	text, _ := textOf(lines[at], tag)
	thread := threadBegins.FindStringSubmatch(text)
	if thread == nil && (!ignoredBegins.MatchString(text) || threadFunction.MatchString(text)) || !isTitle(nextText(lines, at, tag)) {
		return -1
	}
	title := at + 1
	for ; title < len(lines); title++ {
		if own, same := textOf(lines[title], tag); same && isTitle(own) {
			break
		}
	}
	end := exceptionAfter(lines, title)
	if thread != nil && end >= 0 && !atShutdown.MatchString(thread[1]) && hasOwnFrame(lines[title:end], tag) {
		return -1
	}
	return end
}

// hasOwnFrame reports whether lines of a traceback have a call in a file of the program.
func hasOwnFrame(lines []string, tag string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		text, same := textOf(line, tag)
		found := frameLine.FindStringSubmatch(text)
		return same && found != nil && !agentapi.IsLibraryFile(found[1])
	})
}

// rankOf returns the rank in the tag of a line; "" if it has none.
func rankOf(line string) string {
	if tag := RankTag.FindStringSubmatch(line); tag != nil {
		return tag[1]
	}
	return ""
}

// textBefore returns the last line with a tag before an index, without the tag; "" if there is none close to it.
func textBefore(lines []string, at int, tag string) string {
	const near = 10
	for i := at - 1; i >= max(0, at-near); i-- {
		if text, same := textOf(lines[i], tag); same && text != "" {
			return text
		}
	}
	return ""
}

// exceptionLine is the name of an exception, and its text (Lib/traceback.py).
var exceptionLine = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.(?:[A-Za-z_]\w*|<locals>))*(?::(?: .*)?)?$`)

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

// frames returns the calls of the traceback that ends with an exception, the last call first. An error of another form ends no traceback.
func frames(lines []string, exception string) (frames []frame) {
	tag := RankTag.FindString(exception)
	if !exceptionLine.MatchString(exception[len(tag):]) {
		return nil
	}
	lines = withoutMargins(lines)
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \r") == exception })
	source := ""
	for i := at - 1; i >= max(0, at-mostLines); i-- {
		text, same := strings.CutPrefix(strings.TrimRight(lines[i], " \r"), tag)
		if !same {
			continue
		}
		if isTitle(text) {
			if isOpen(lines, i, tag) {
				// Another rank has begun its own within this one: no traceback ends with a call or its source.
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

// isOpen reports whether a traceback has begun before an index and has not ended there: all lines since its title are calls and their source.
func isOpen(lines []string, at int, tag string) bool {
	for i := at - 1; i >= max(0, at-mostLines); i-- {
		text, same := textOf(lines[i], tag)
		switch {
		case same && isTitle(text):
			return i < at-1
		case same && !strings.HasPrefix(text, " "):
			return false
		}
	}
	return false
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

// frameLine is a call in a traceback of Python (Lib/traceback.py). Loguru marks the one in which it caught the exception.
var frameLine = regexp.MustCompile(`^(?: {2}|> )File "([^"]+)", line (\d+)(?:, in (.+))?$`)

const (
	tracebackTitle  = "Traceback (most recent call last)"
	tracebackBegins = tracebackTitle + ":"
)

// ThreadFailed reports whether the error of a log (FirstError) is the exception of a thread that Python did not start the program with: the
// program continues without it (threading.excepthook).
func ThreadFailed(lines []string) bool {
	found := FirstError(lines)
	if found == nil {
		return false
	}
	inThread := false
	for _, line := range lines {
		text, _ := textOf(line, "")
		switch {
		case threadBegins.MatchString(text):
			inThread = true
		case inThread && strings.TrimRight(line, " \r") == found.Line:
			return true
		case inThread && exceptionLine.MatchString(text) && strings.Contains(text, ": "):
			inThread = false
		}
	}
	return false
}
