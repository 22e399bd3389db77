package diagnose

import (
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
	// find looks for the form in a whole log instead. The others are not set.
	find func(lines []string) *spoken
}

// errorLines are the forms of runtimes, the most specific first. Generic ones are last.
var errorLines = []errorLine{
	// Python: the last line of a traceback (Lib/traceback.py).
	{text: "", pattern: regexp.MustCompile(`^(?P<error>(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)|Exception)(?:: .*)?)$`)},
	{find: afterTraceback},
	// Open MPI: ompi/errhandler/errhandler_predefined.c.
	{text: "*** MPI_ERR_", pattern: regexp.MustCompile(`\*\*\* (?P<error>MPI_ERR_\w+(?:: .*)?)$`)},
	// MPICH and Intel MPI: src/mpi/errhan/errutil.c.
	{text: "Fatal error in ", pattern: regexp.MustCompile(`(?:\(rank (?P<rank>\d+) in comm \d+\): )?Fatal error in (?P<error>\w+: .*?)(?:, error stack:)?$`)},
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
	{text: "unknown option", pattern: regexp.MustCompile(`^\w+: Error: (?P<error>unknown option .+)$`)},
	{text: "unrecognized argument", pattern: regexp.MustCompile(`^\[mpiexec@\S+\] .*(?P<error>unrecognized argument .+)$`)},
	// NCCL: src/debug.cc.
	{text: "NCCL WARN ", pattern: regexp.MustCompile(`NCCL WARN (?P<error>.*(?i:error|fail|refused|timed out|abort).*)$`)},
	// Python, of its script.
	{text: ": can't open file '", pattern: regexp.MustCompile(`^\S*python[\d.]*: (?P<error>can't open file '.+)$`)},
	// Files.
	{text: "No such file or directory", pattern: regexp.MustCompile(`^(?P<error>.*\S: No such file or directory.*)$`)},
	{text: "ermission denied", pattern: regexp.MustCompile(`^(?P<error>.*\S: [Pp]ermission denied)$`)},
	{text: "No space left on device", pattern: regexp.MustCompile(`^(?P<error>.*No space left on device.*)$`)},
	// Shells, of what cannot be executed.
	{text: "xec", pattern: regexp.MustCompile(`(?P<error>\S+: (?:cannot execute binary file: )?Exec format error.*)$`)},
	{text: "cannot execute", pattern: regexp.MustCompile(`(?P<error>\S+: cannot execute.*)$`)},
	{text: "syntax error near", pattern: regexp.MustCompile(`(?P<error>syntax error near .*)$`)},
	{text: "unbound variable", pattern: regexp.MustCompile(`(?P<error>\w+: unbound variable)$`)},
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
var launcherWords = regexp.MustCompile(`^(?:mpi-agent:|mpirun|mpiexec|prterun|prted|orted|ORTE|PRTE|Open RTE|\[mpiexec@|\[proxy:)|^\s*Process name:|errors? (?:was|were) suppressed|(?:orted|prted|hydra_\w+): `)

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
func firstError(lines []string) *spoken {
	for _, form := range errorLines {
		if form.find != nil {
			if found := form.find(lines); found != nil {
				return found
			}
			continue
		}
		for i, line := range lines {
			if found := form.match(lines, i, line); found != nil {
				return found
			}
		}
	}
	return nil
}

// afterTraceback returns the exception of Python's first traceback, whatever its name: the first line after it that is not indented
// and has the same tag. Nil if there is none.
func afterTraceback(lines []string) *spoken {
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
	if found.message == "" {
		return nil
	}
	if found.rank == "" {
		found.rank = reportedBy(lines[max(0, i-4):i])
	}
	return &found
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
	const most = 200
	var evidence []string
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
		if found == nil {
			continue
		}
		figures["errorText"] = ": " + strings.TrimSuffix(phrase.Cut(phrase.OneLine(found.message), most), ".")
		if figures["rank"] == "" && found.rank != "" {
			figures["rank"], figures["rankText"] = found.rank, fmt.Sprintf(" in rank %s", found.rank)
		}
		evidence = []string{quoted(pod, found.line)}
	}
	if launcher := p.launcher(); evidence == nil && launcher != nil {
		if text := helpText(launcher.log.Lines); text != "" {
			figures["errorText"] = ": " + strings.TrimSuffix(phrase.Cut(phrase.OneLine(text), most), ".")
			evidence = []string{quoted(*launcher, text)}
		}
	}
	return evidence
}

var (
	// ruler is the line before and after a message of Open MPI (opal/util/show_help.c).
	ruler = regexp.MustCompile(`^-{60,}\s*$`)
	// summary is how its messages begin that only sum up how ranks ended.
	summary = regexp.MustCompile(`^(?:Primary job|\S+ detected that one or more|\S+ noticed that|MPI_ABORT was invoked|WARNING)`)
)

// helpText returns the first paragraph of Open MPI's first message that is more than a summary of how ranks ended; "" if there is
// none. Its meaning is unknown; it is quoted.
func helpText(lines []string) string {
	for i := 0; i < len(lines); i++ {
		if !ruler.MatchString(lines[i]) {
			continue
		}
		end := i + 1
		for end < len(lines) && !ruler.MatchString(lines[end]) {
			end++
		}
		var words []string
		for _, line := range lines[i+1 : end] {
			if line = strings.TrimSpace(line); line == "" && len(words) > 0 {
				break
			} else if line != "" {
				words = append(words, line)
			}
		}
		if text := strings.Join(words, " "); text != "" && end < len(lines) && !summary.MatchString(text) {
			return text
		}
		i = end
	}
	return ""
}
