package loglines

import (
	"regexp"
	"slices"
	"strings"
)

// Aside is an exception that has ended a part of a program of Python, which went on without it.
type Aside struct {
	*ErrorLine
	// Part is what has ended, and Name its name, such as "checkpoint-writer" of a thread.
	Part Part
	Name string
	// Times is how often the log shows the same exception of such a part, at the same place.
	Times int
}

// Part is a part of a program that can end by an exception while the rest goes on.
type Part int

const (
	// Thread is a thread that is not the main one (threading.excepthook).
	Thread Part = iota
	// Task is a task, future or callback of asyncio of which nothing asked for the result (BaseEventLoop.default_exception_handler).
	Task
	// Process is a process that was started by multiprocessing.
	Process
)

var (
	// threadBegins is the first line about an exception in a thread, and threadFunction that of one without a name (Modules/_threadmodule.c). Java's has
	// the name in quotation marks, and the exception in the same line.
	threadBegins   = regexp.MustCompile(`^Exception in thread ([^"].*):$`)
	threadFunction = regexp.MustCompile(`^(?:Exception ignored in|Unhandled exception in) thread started by:? <(?:function|bound method) (\S+) (?:at|of) `)
	// taskBegins is the first line about a task or callback of asyncio, after what a logger may write, and taskFinished the task in the line after that.
	taskBegins   = regexp.MustCompile(`(?:^|[ :\]])(?:(?:Task|Future|_GatheringFuture) exception was never retrieved|Exception in callback (\S+?)\(.*)$`)
	taskFinished = regexp.MustCompile(`^(?:future: <Task finished (?:name='[^']*' )?coro=<([^(>\s]+)\(\)|handle: <)`)
	// atShutdown is the end of the name of a thread that was still there when Python ended.
	atShutdown = regexp.MustCompile(` \(most likely raised during interpreter shutdown\)$`)
)

// Asides returns the exceptions that have ended parts of programs, each one once, in the order of the log. Only those count that were raised in the
// program's own files, or while these called a library: libraries have threads of their own.
func Asides(lines []string) (found []Aside) {
	lines = withoutMargins(lines)
	// Tracebacks of several ranks that are printed at the same time can be within each other: the first exception ends the first of them.
	type open struct {
		part Part
		name string
	}
	begun := map[string][]open{}
	for i, line := range lines {
		tag := RankTag.FindString(line)
		text, _ := textOf(line, tag)
		if part, name, is := asideBegins(lines, i, tag, text); is {
			begun[tag] = append(begun[tag], open{part, name})
			continue
		}
		if len(begun[tag]) == 0 || !endsTraceback(lines, i, tag, text) {
			continue
		}
		first := begun[tag][0]
		begun[tag] = begun[tag][1:]
		if nextInChain(lines, i) >= 0 {
			begun[tag] = append([]open{first}, begun[tag]...)
			continue
		}
		aside := Aside{ErrorLine: exceptionAt(lines, i), Part: first.part, Name: first.name, Times: 1}
		if place, _ := RaisedAt(lines, aside.Line); place == "" || atShutdown.MatchString(first.name) {
			continue
		}
		at := slices.IndexFunc(found, func(a Aside) bool {
			return a.Part == aside.Part && a.Name == aside.Name && a.Message == aside.Message
		})
		if at >= 0 {
			if found[at].Times++; found[at].Rank != aside.Rank {
				found[at].Rank = ""
			}
			continue
		}
		found = append(found, aside)
	}
	return found
}

// asideBegins reports whether a line is the first one about an exception that ended a part of a program, and which part.
func asideBegins(lines []string, at int, tag, text string) (part Part, name string, is bool) {
	if !strings.Contains(text, "xception ") && !strings.HasPrefix(text, "Process ") {
		return 0, "", false
	}
	if thread := threadBegins.FindStringSubmatch(text); thread != nil {
		return Thread, thread[1], true
	}
	if function := threadFunction.FindStringSubmatch(text); function != nil {
		return Thread, function[1], true
	}
	if task := taskBegins.FindStringSubmatch(text); task != nil {
		name = task[1]
		if next := nextText(lines, at, tag); name == "" {
			if finished := taskFinished.FindStringSubmatch(next); finished != nil {
				name = finished[1]
			}
		}
		return Task, name, true
	}
	if process := childBegins.FindStringSubmatch(text); process != nil && isTitle(nextText(lines, at, tag)) {
		return Process, strings.TrimSpace(process[1]), true
	}
	return 0, "", false
}

// nextText returns the next line with a tag after an index, without the tag; "" if it is not close.
func nextText(lines []string, at int, tag string) string {
	const near = 4
	for _, line := range lines[at+1 : min(len(lines), at+1+near)] {
		if text, same := textOf(line, tag); same && text != "" {
			return text
		}
	}
	return ""
}

// endsTraceback reports whether a line is the exception with which a traceback ends: it has the name of one, or it follows the line of a call.
func endsTraceback(lines []string, at int, tag, text string) bool {
	if !exceptionLine.MatchString(text) || isTitle(text) || figure.MatchString(text) {
		return false
	}
	return IsException(text) || isIndented(lines, at-1, tag) && !isIndented(lines, min(at+1, len(lines)-1), tag)
}
