package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/phrase"
)

// errorLine is a form in which a runtime reports the error that ends a program.
type errorLine struct {
	// text is part of every such line. It is searched before the pattern, which is slow.
	text string
	// pattern matches the line without its tag. Group error is the message, and rank the rank that reports it.
	pattern *regexp.Regexp
	// next takes the message from the next line that is not empty.
	next bool
	// stack, if set, matches the lines of the error's stack that follow. The last one that has a text is the cause, and is added.
	stack *regexp.Regexp
	// find looks for the form in a whole log instead. The others are not set.
	find func(lines []string, skip func(message string) bool) *spoken
}

// errorLines are the forms of runtimes, the most specific first. Generic ones are last.
var errorLines = []errorLine{
	// Python: the last line of a traceback (Lib/traceback.py).
	{text: "", pattern: regexp.MustCompile(`^(?P<error>(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)|Exception)(?:: .*)?)$`)},
	{find: afterTraceback},
	// Open MPI: ompi/errhandler/errhandler_predefined.c.
	{text: "*** MPI_ERR_", pattern: regexp.MustCompile(`\*\*\* (?P<error>MPI_ERR_\w+(?:: .*)?)$`)},
	// MPICH and Intel MPI: src/mpi/errhan/errutil.c.
	{text: "Fatal error in ", pattern: regexp.MustCompile(`(?:\(rank (?P<rank>\d+) in comm \d+\): )?Fatal error in (?P<error>\w+: .*?)(?:, error stack:)?$`), stack: stackLine},
	// MPI, of calls before MPI_Init and after MPI_Finalize.
	{text: "MPI_", pattern: regexp.MustCompile(`\*\*\* (?P<error>(?:The \w+\(\)|An MPI) function was called (?:before|after) MPI_\w+ was invoked)`)},
	{text: "Attempting to use an MPI routine", pattern: regexp.MustCompile(`(?P<error>Attempting to use an MPI routine .+)$`)},
	// LAMMPS: src/error.cpp.
	{text: "ERROR", pattern: regexp.MustCompile(`^ERROR(?: on proc (?P<rank>\d+))?: (?P<error>.+)$`)},
	// GROMACS: src/gromacs/utility/fatalerror.cpp.
	{text: "rror", pattern: regexp.MustCompile(`^(?:Fatal error|Error in user input|Inconsistency in user input|File input/output error|Software inconsistency error):$`), next: true},
	// Fortran: libgfortran and Intel's runtime.
	{text: "Fortran runtime error", pattern: regexp.MustCompile(`(?P<error>Fortran runtime error: .+)$`)},
	{text: "forrtl: ", pattern: regexp.MustCompile(`(?P<error>forrtl: (?:severe|error) .+)$`)},
	// C++ and glibc.
	{text: "what():", pattern: regexp.MustCompile(`^\s*what\(\): +(?P<error>.+)$`)},
	{text: "terminate called after throwing", pattern: regexp.MustCompile(`(?P<error>terminate called after throwing .+)$`)},
	{text: "Assertion ", pattern: regexp.MustCompile("(?P<error>\\S+: .*Assertion [`'].*' failed\\.?)$")},
	{text: "*** ", pattern: regexp.MustCompile(`\*\*\* (?P<error>(?:stack smashing|buffer overflow) detected) \*\*\*`)},
	{text: "(): ", pattern: regexp.MustCompile(`(?P<error>\b(?:malloc|free|realloc|munmap_chunk|calloc)\(\): .+)$`)},
	{text: "double free or corruption", pattern: regexp.MustCompile(`(?P<error>double free or corruption.*)$`)},
	{text: "corrupted", pattern: regexp.MustCompile(`^(?P<error>corrupted (?:size|double-linked|unsorted).*)$`)},
	{text: "' not found (required by ", pattern: regexp.MustCompile("(?P<error>\\S+: version [`']\\S+' not found \\(required by .+\\))$")},
	{text: "symbol lookup error", pattern: regexp.MustCompile(`(?P<error>\S+: symbol lookup error: .+)$`)},
	// MPI's launchers, of their own command.
	{text: "unknown option", pattern: regexp.MustCompile(`^(?:\S*/)?[\w.]+: Error: (?P<error>unknown option .+)$`)},
	{text: "unrecognized argument", pattern: regexp.MustCompile(`^\[mpiexec@\S+\] .*(?P<error>unrecognized argument .+)$`)},
	// NCCL: src/debug.cc.
	{text: "NCCL WARN ", pattern: regexp.MustCompile(`NCCL WARN (?P<error>.*(?i:error|fail|refused|timed out|abort).*)$`)},
	// Python, of its script.
	{text: ": can't open file '", pattern: regexp.MustCompile(`^\S*python[\d.]*: (?P<error>can't open file '.+)$`)},
	// Downloads.
	{text: "curl: (", pattern: regexp.MustCompile(`^(?P<error>curl: \(\d+\) .+)$`)},
	{text: "wget: ", pattern: regexp.MustCompile(`^(?P<error>wget: (?:can't connect|download timed out|unable to resolve|bad address|server returned error).*)$`)},
	// Files.
	{text: "No such file or directory", pattern: regexp.MustCompile(`^(?P<error>.*\S: No such file or directory.*)$`)},
	{text: "ermission denied", pattern: regexp.MustCompile(`^(?P<error>.*\S: [Pp]ermission denied)$`)},
	{text: "No space left on device", pattern: regexp.MustCompile(`^(?P<error>.*No space left on device.*)$`)},
	// Shells, of what cannot be executed.
	{text: "xec", pattern: regexp.MustCompile(`(?P<error>\S+: (?:cannot execute binary file: )?Exec format error.*)$`)},
	{text: "cannot execute", pattern: regexp.MustCompile(`(?P<error>\S+: cannot execute.*)$`)},
	{text: "syntax error near", pattern: regexp.MustCompile(`(?P<error>syntax error near .*)$`)},
	{text: "unbound variable", pattern: regexp.MustCompile(`(?P<error>\w+: unbound variable)$`)},
	// dash, and busybox (src/expand.c).
	{text: "parameter not set", pattern: regexp.MustCompile(`^\S+: (?:line )?\d+: (?P<error>\w+: parameter not set)$`)},
	// What most programs write.
	{text: "", pattern: regexp.MustCompile(`^(?i:fatal error|fatal|error)\b(?: in [^:]+)?: ?(?P<error>\S.*)$`)},
	{text: ": error: ", pattern: regexp.MustCompile(`^(?P<error>[\w./-]+: error: .+)$`)},
	// Shells, of a script, which mostly continues after an error.
	{text: "sh: ", pattern: regexp.MustCompile(`^(?:/\S*/)?(?:ba|da|k|z)?sh: (?:-c: )?(?:line )?\d+: (?P<error>.+)$`)},
}

// tagged matches the tag before a line that names the rank of its writer: mpirun --tag-output of Open MPI ("[1,3]<stderr>:"),
// mpiexec -prepend-rank of Hydra ("[3] "), and PyTorch ("[rank3]: ").
var tagged = regexp.MustCompile(`^\[(?:\d+,|rank ?)?(\d+)\](?:<\w+>)?:? ?`)

// otherTag matches other tags, such as time and host.
var otherTag = regexp.MustCompile(`^\[[^\]]*\](?:<\w+>)?:?\s*`)

// reporter is where Open MPI names the process that reported the error before.
var reporter = regexp.MustCompile(`reported by process \[\d+,(\d+)\]`)

// launcherWords begin lines of MPI's launchers and of the agent about the program. They are not the program's own words.
var launcherWords = regexp.MustCompile(`^(?:mpi-agent:|mpirun|mpiexec|prterun|prted|orted|ORTE|PRTE|Open RTE|\[mpiexec@|\[proxy:)|^\s*Process name:|errors? (?:was|were) suppressed|/help-\S+\.txt: No such file|(?:orted|prted|hydra_\w+): `)

// usage is what launchers write about their own options.
var usage = regexp.MustCompile(`unknown option|unrecognized argument`)

// spoken is an error line of a program.
type spoken struct {
	// line is the line of the log, and message its error.
	line, message string
	// rank is the rank that wrote it, or "".
	rank string
}

// firstError returns the first error line of the most specific form in a log, or nil.
// What a rank reports because another one has ended is returned only if there is nothing else.
func firstError(lines []string) *spoken {
	if found := firstErrorBut(lines, aftermath.MatchString); found != nil {
		return found
	}
	return firstErrorBut(lines, func(string) bool { return false })
}

// aftermath is what a rank reports after another one has ended: the errors of Horovod, NCCL, Gloo, PyTorch's store, and of MPICH over UCX.
var aftermath = regexp.MustCompile(`Horovod has been shut down|HorovodInternalError: (?:ncclRemoteError|.*gloo/)|ncclRemoteError|gloo/\S+:?\d*\]? ?(?:Connection closed by peer|Read error|Write error|.*Connection reset by peer)|Failed to recv, got 0 bytes|Broken pipe$|UCX netmod.*(?:Connection reset|Endpoint timeout)`)

// firstErrorBut is firstError without messages that are skipped.
func firstErrorBut(lines []string, skip func(message string) bool) *spoken {
	for _, form := range errorLines {
		if form.find != nil {
			if found := form.find(lines, skip); found != nil {
				return found
			}
			continue
		}
		for i, line := range lines {
			if found := form.match(lines, i, line); found != nil && !skip(found.message) {
				return found
			}
		}
	}
	return nil
}

// afterTraceback returns the exception of Python's first traceback, whatever its name: the first line after it that is not indented
// and has the same tag. Exceptions that are skipped do not count. Nil if there is none.
func afterTraceback(lines []string, skip func(message string) bool) *spoken {
	const following = 200
	tag, begun := "", -1
	for i, line := range lines {
		line = strings.TrimRight(line, " \r")
		own := tagged.FindString(line)
		text := line[len(own):]
		switch {
		case begun < 0:
			if text == "Traceback (most recent call last):" {
				tag, begun = own, i
			}
		case i-begun > following:
			return nil
		case own == tag && exceptionLine.MatchString(text) && skip(text):
			begun = -1
		case own == tag && exceptionLine.MatchString(text):
			found := &spoken{line: line, message: text}
			if rank := tagged.FindStringSubmatch(line); rank != nil {
				found.rank = rank[1]
			}
			return found
		}
	}
	return nil
}

// exceptionLine is the name of an exception, and its text (Lib/traceback.py).
var exceptionLine = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:: .*)?$`)

func (e errorLine) match(lines []string, i int, line string) *spoken {
	if !strings.Contains(line, e.text) {
		return nil
	}
	line = strings.TrimRight(line, " \r")
	found := spoken{line: line}
	text := line
	if tag := tagged.FindStringSubmatch(text); tag != nil {
		found.rank, text = tag[1], text[len(tag[0]):]
	} else if launcherWords.MatchString(text) && !usage.MatchString(text) {
		return nil
	}
	groups := e.pattern.FindStringSubmatch(text)
	if groups == nil {
		if text = otherTag.ReplaceAllString(text, ""); text == line || launcherWords.MatchString(text) {
			return nil
		}
		if groups = e.pattern.FindStringSubmatch(text); groups == nil {
			return nil
		}
	}
	for i, name := range e.pattern.SubexpNames() {
		switch {
		case name == "error":
			found.message = groups[i]
		case name == "rank" && groups[i] != "":
			found.rank = groups[i]
		}
	}
	if e.next {
		found.message = nextLine(lines[i+1:])
	}
	if e.stack != nil {
		if cause := lastOf(lines[i+1:], e.stack); cause != "" {
			found.message += ": " + cause
		}
	}
	if found.message == "" {
		return nil
	}
	if found.rank == "" {
		found.rank = reportedBy(lines[max(0, i-4):i])
	}
	return &found
}

// stackLine is a line of the error stack of MPICH and Intel MPI.
var stackLine = regexp.MustCompile(`^(?:\[\d+\] )?\w+\(\d+\)\.*: ?(.*?)\s*$`)

// lastOf returns the text of the last of the lines at the beginning that match a pattern and have a text; "" if none has.
func lastOf(lines []string, pattern *regexp.Regexp) string {
	text := ""
	for _, line := range lines {
		found := pattern.FindStringSubmatch(line)
		if found == nil {
			break
		}
		text = cmp.Or(found[1], text)
	}
	return text
}

// nextLine returns the first line that is not empty.
func nextLine(lines []string) string {
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// reportedBy returns the rank that Open MPI names before an error, or "".
func reportedBy(lines []string) string {
	for _, line := range lines {
		if found := reporter.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

// words adds the program's own error line to the figures of a finding, with the rank that wrote it if no other is known,
// and mpirun's exit code. It returns the line as evidence.
func (p *input) words(figures map[string]string) []string {
	var evidence []string
	first, _ := p.firstRank()
	for _, pod := range p.pods {
		for _, line := range pod.log.Lines {
			if code := mpirunCode.FindStringSubmatch(line); code != nil && figures["codeText"] == "" {
				figures["codeText"] = " with exit code " + code[1]
			}
		}
		if evidence != nil {
			continue
		}
		found := firstError(pod.log.Lines)
		if found == nil || first != nil && aftermath.MatchString(found.message) {
			continue
		}
		figures["errorText"] = ": " + quotedText(found.message)
		if figures["rank"] == "" && found.rank != "" {
			figures["rank"], figures["rankText"] = found.rank, fmt.Sprintf(" in rank %s", found.rank)
		}
		evidence = []string{quoted(pod, found.line)}
	}
	if launcher := p.launcher(); evidence == nil && launcher != nil {
		if found := launcherText(launcher.log.Lines, first != nil); found != nil {
			figures["errorText"] = ": " + quotedText(found.message)
			evidence = []string{quoted(*launcher, found.line)}
		}
	}
	return evidence
}

// launcherText returns the text of MPI's launcher about a failure; nil if there is none. Hydra does not know why a rank ended: its
// errors after that are consequences.
func launcherText(lines []string, rankEnded bool) *spoken {
	found := helpText(lines)
	if found == nil && !rankEnded {
		return hydraText(lines)
	}
	return found
}

// quotedText returns a message as a part of a sentence.
func quotedText(message string) string {
	const most = 200
	text := phrase.Cut(phrase.OneLine(message), most)
	for _, end := range []string{", error stack:", ":", "."} {
		text = strings.TrimSuffix(text, end)
	}
	return text
}

var (
	// ruler is the line before and after a message of Open MPI (opal/util/show_help.c). Version 5 may print a space before it.
	ruler = regexp.MustCompile(`^ ?-{60,}\s*$`)
	// summary is how its messages begin that only sum up how ranks ended, or after which it continues.
	summary = regexp.MustCompile(`(?i)^(?:Primary job|\S+ detected that one or more|\S+ noticed that|MPI_ABORT was invoked|WARNING|An MPI communication peer process|A deprecated |The following command line option|An invalid value was supplied|\S+ A high-performance Open MPI|Open MPI's OFI driver|Sorry!.*/help-pcompress|A process has executed an operation involving)`)
)

// message is a message of Open MPI.
type message struct {
	// whole is all of it and first its first paragraph, each as one line.
	whole, first string
}

// messagesIn returns the text between each two rulers. Any ruler can begin or end a message, because the beginning of a log can be missing.
func messagesIn(lines []string) []message {
	var found []message
	begun := -1
	for i, line := range lines {
		if !ruler.MatchString(line) {
			continue
		}
		if begun >= 0 && i > begun+1 {
			found = append(found, newMessage(lines[begun+1:i]))
		}
		begun = i
	}
	return found
}

func newMessage(lines []string) message {
	const most = 4000
	whole := strings.Join(lines, "\n")
	whole = strings.TrimSpace(whole[:min(len(whole), most)])
	first, _, _ := strings.Cut(whole, "\n\n")
	return message{whole: oneLine(whole), first: oneLine(first)}
}

// oneLine writes text with one space between its words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// helpText returns the first paragraph of Open MPI's first message that is more than a summary of how ranks ended, with the topic of
// its help if the log names that; nil if there is none. Its meaning is unknown; it is quoted.
func helpText(lines []string) *spoken {
	for i := 0; i < len(lines); i++ {
		if !ruler.MatchString(lines[i]) {
			continue
		}
		end := i + 1
		for end < len(lines) && !ruler.MatchString(lines[end]) {
			end++
		}
		if m := newMessage(lines[i+1 : end]); m.first != "" && end < len(lines) && !summary.MatchString(m.first) {
			text := m.first + topicIn(lines[end:])
			return &spoken{line: text, message: text}
		}
		i = end
	}
	return nil
}

// helpTopic is where mpirun names the topic of a message that more ranks have sent (orte/util/show_help.c).
var helpTopic = regexp.MustCompile(`more process(?:es)? (?:has|have)? ?sent help message (\S+ / .+?)\s*$`)

// topicIn returns the topic that is named in the lines up to the next message, in parentheses; "" if none is.
func topicIn(lines []string) string {
	for _, line := range lines[1:] {
		if ruler.MatchString(line) {
			break
		}
		if topic := helpTopic.FindStringSubmatch(line); topic != nil {
			return " (" + topic[1] + ")"
		}
	}
	return ""
}

// hydraLine is an error of Hydra, the launcher of MPICH and Intel MPI, of which its callers follow (HYDU_error_printf).
var hydraLine = regexp.MustCompile(`^\[(?:mpiexec|proxy:\S+|bstrap:\S+)@[^\]]+\] (?:\w+ \([^)]*:\d+\): |Error: )?(\S.*)$`)

// hydraText returns the first error of Hydra that is more than a consequence; nil if there is none.
func hydraText(lines []string) *spoken {
	for _, line := range lines {
		if text := hydraLine.FindStringSubmatch(line); text != nil && !hydraConsequence.MatchString(text[1]) {
			return &spoken{line: line, message: text[1]}
		}
	}
	return nil
}

// hydraConsequence are errors of Hydra that follow from the end of a process, and what is no error.
var hydraConsequence = regexp.MustCompile(`callback returned error|assert \(!closed\) failed|[Ss]ending |Press Ctrl-C|Timeout set to|Launch arguments|error waiting for completion|process manager|forcing cleanup|unable to write data to proxy|unable to send signal|(?:write|read|connect|accept) error`)
