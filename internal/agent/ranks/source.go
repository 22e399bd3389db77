package ranks

import (
	"bufio"
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// sourceTime is how long reading a line of source code may take: its file may be on a server that does not answer.
	sourceTime = time.Second
	// mostSource is the size of a file that is read for that, and mostLine that of the line that is shown.
	mostSource, mostLine = 4 << 20, 100
)

// sources reads lines of source code for the stacks of ranks. Once a file is not read in time, it reads no more.
type sources struct {
	read func(pid int, file string, line int) string
	// reading holds the read that runs, one at a time: of a server that does not answer, the kernel may never return.
	reading chan struct{}
	isLate  bool
}

// addTo adds the text of the line at which a thread of a process is in the program's own files.
func (s *sources) addTo(pid int, thread *agentapi.ThreadStack) {
	for i := range thread.Frames {
		f := &thread.Frames[i]
		if f.Line == 0 || agentapi.IsLibraryFile(f.File) {
			continue
		}
		f.Source = s.line(pid, f.File, int(f.Line))
		return
	}
}

// line returns a line of a process's code; "" if it cannot be read, or not in time.
func (s *sources) line(pid int, file string, line int) string {
	if s.isLate {
		return ""
	}
	select {
	case s.reading <- struct{}{}:
	default:
		s.isLate = true
		return ""
	}
	found := make(chan string, 1)
	go func() {
		text := s.read(pid, file, line)
		<-s.reading
		found <- text
	}()
	select {
	case text := <-found:
		return text
	case <-time.After(sourceTime):
		s.isLate = true
		return ""
	}
}

// shorten returns a line without its indentation and control characters, and at most mostLine characters of it.
func shorten(line string) string {
	text := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)))
	if len(text) > mostLine {
		return string(text[:mostLine-1]) + "…"
	}
	return string(text)
}

// inlineFlag is Python's flag -c, also after others, whose argument is the program "<string>".
var inlineFlag = regexp.MustCompile(`^-[A-Za-z]*c$`)

// sourceLine returns a line of a process's Python code as one line of text; "" if it cannot be read.
func sourceLine(pid int, file string, line int) string {
	var text []byte
	if file == agentapi.InlineFile {
		text = inlineProgram(pid)
	} else {
		text = fileOf(pid, file)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, mostSource)
	var before []string
	for i := 1; lines.Scan(); i++ {
		if i == line {
			line := agentapi.WithoutComment(lines.Text())
			text := strings.TrimSpace(loopOf(before[max(0, len(before)-longestLoop):], line) + " " + shorten(line))
			return text + valuesIn(before, text)
		}
		if before = append(before, lines.Text()); len(before) > mostBefore {
			before = before[1:]
		}
	}
	return ""
}

// mostBefore is how many lines before one are searched for the values of variables, and longestLoop those before a pause for the loop that repeats it.
const mostBefore, longestLoop = 200, 60

var (
	// pause is a line that only sleeps. What the program waits for is in the loop around it.
	pause = regexp.MustCompile(`^\s*(?:await )?(?:\w+\.)?sleep\(`)
	// endless is the begin of a loop that an if within it ends.
	endless = regexp.MustCompile(`^while (?:True|1)\s*:`)
	// loop begins a loop, and function what is not searched beyond.
	loop     = regexp.MustCompile(`^(?:async )?(?:while|for)\b`)
	function = regexp.MustCompile(`^(?:async )?(?:def|class)\b`)
)

// loopOf returns the first line of the loop around a line that only sleeps, such as "while not ready():", with the first condition in it if it does not end
// by itself; "" for other lines, and outside of loops. The lines before it are given.
func loopOf(before []string, line string) string {
	if !pause.MatchString(line) {
		return ""
	}
	indent, condition := indentOf(line), ""
	for _, outer := range slices.Backward(before) {
		outer = agentapi.WithoutComment(outer)
		text := strings.TrimSpace(outer)
		if strings.HasPrefix(text, "if ") {
			condition = " " + shorten(text)
		}
		if text == "" || strings.HasPrefix(text, "#") || indentOf(outer) >= indent {
			continue
		}
		indent = indentOf(outer)
		switch {
		case endless.MatchString(text):
			return shorten(text) + condition
		case loop.MatchString(text):
			return shorten(text)
		case function.MatchString(text):
			return ""
		}
	}
	return ""
}

// indentOf returns the number of blanks and tabs with which a line begins.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// inlineText returns the program that is an argument of a process as one line of bounded length; "" if there is none.
func inlineText(pid int) string {
	const most = 400
	var parts []string
	for line := range strings.Lines(string(inlineProgram(pid))) {
		if line = shorten(line); line != "" {
			parts = append(parts, line)
		}
	}
	text := []rune(strings.Join(parts, "; "))
	return string(text[:min(len(text), most)])
}

// inlineProgram returns the program that is an argument of a process; nil if there is none.
func inlineProgram(pid int) []byte {
	args := process.Arguments(pid)
	for i, arg := range args[:len(args)-1] {
		if i > 0 && inlineFlag.MatchString(arg) {
			return []byte(args[i+1])
		}
	}
	return nil
}

// fileOf returns a regular file as a process has it; nil if it cannot be read.
func fileOf(pid int, name string) []byte {
	base := "root"
	if !filepath.IsAbs(name) {
		base = "cwd"
	}
	file, err := files.Open(filepath.Join(process.File(pid, base), name))
	if err != nil {
		return nil
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, mostSource))
	return text
}
