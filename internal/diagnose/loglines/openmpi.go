package loglines

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// ruler is the line before and after a message of Open MPI (opal/util/show_help.c), of 74 or 76 dashes: those of programs are mostly of another
	// length. Version 5 may print a space before it.
	ruler = regexp.MustCompile(`^ ?-{74}(?:--)?\s*$`)
	// summary is how its messages begin that only sum up how ranks ended, or after which it continues.
	summary = regexp.MustCompile(`(?i)^(?:Primary job|\S+ detected that one or more|\S+ noticed that|MPI_ABORT was invoked|\S+ has exited due to process rank \d+ with PID \d+ on node \S+ calling "abort"|WARNING|An MPI communication peer process|A deprecated |The following command line option|An invalid value was supplied|\S+ A high-performance Open MPI|Open MPI's OFI driver|Sorry!.*/help-pcompress|A process has executed an operation involving)|` + harmless)
)

// harmless is how messages of Open MPI begin about hardware that a pod does not have (help-mpi-common-cuda.txt, help-mpi-btl-openib.txt).
// Rank programs continue without it.
const harmless = `^(?:The library attempted to open the following supporting CUDA|By default, for Open MPI 4\.0 and later, infiniband ports)`

var beginsHarmless = regexp.MustCompile(harmless)

// withoutHarmless returns lines without these messages and their rulers.
func withoutHarmless(lines []string) []string {
	if !slices.ContainsFunc(lines, beginsHarmless.MatchString) {
		return lines
	}
	var kept []string
	for i := 0; i < len(lines); i++ {
		end := -1
		if beginsHarmless.MatchString(lines[i]) {
			end = slices.IndexFunc(lines[i:], ruler.MatchString)
		}
		if end < 0 {
			kept = append(kept, lines[i])
			continue
		}
		if last := len(kept) - 1; last >= 0 && ruler.MatchString(kept[last]) {
			kept = kept[:last]
		}
		i += end
	}
	return kept
}

// Message is a message of Open MPI.
type Message struct {
	// whole is all of it and first its first paragraph, each as one line.
	Whole, First string
}

// Messages returns the text between each two rulers. Any ruler can begin or end a message, because the beginning of a log can be missing.
func Messages(lines []string) []Message {
	var found []Message
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

// internalError is where an error occurred in the code of Open MPI or PRRTE (PRTE_ERROR_LOG), which can be within a message.
var internalError = regexp.MustCompile(`^\[[^\]\s]+:\d+\] (?:PRTE ERROR:|\[\[.*ORTE_ERROR_LOG:)`)

func newMessage(lines []string) Message {
	const most = 4000
	lines = slices.DeleteFunc(slices.Clone(lines), internalError.MatchString)
	whole := strings.Join(lines, "\n")
	whole = strings.TrimSpace(whole[:min(len(whole), most)])
	first, _, _ := strings.Cut(whole, "\n\n")
	return Message{Whole: OneLine(whole), First: OneLine(first)}
}

// helpText returns the first paragraph of Open MPI's first message that is more than a summary of how ranks ended, with the topic of
// its help if the log names that; nil if there is none. Its meaning is unknown; it is quoted.
func helpText(lines []string) *ErrorLine {
	for i := 0; i < len(lines); i++ {
		if !ruler.MatchString(lines[i]) {
			continue
		}
		end := i + 1
		for end < len(lines) && !ruler.MatchString(lines[end]) {
			end++
		}
		if m := newMessage(lines[i+1 : end]); m.First != "" && end < len(lines) && !summary.MatchString(m.First) {
			text := withResult(m) + topicIn(lines[end:])
			return &ErrorLine{Line: text, Message: text}
		}
		i = end
	}
	return nil
}

// result is where Open MPI names the part of its own that failed, and the result of that (help-mpi-runtime.txt, help-orte-runtime.txt).
var result = regexp.MustCompile(`developer\): (.{1,100}?) --> Returned (?:value )?"?([^"(]+)"? \(-?\d+\) instead`)

// withResult returns the first paragraph of a message; of one that names a part of Open MPI that failed, its beginning and the result.
func withResult(m Message) string {
	found := result.FindStringSubmatch(m.Whole)
	if found == nil {
		return m.First
	}
	begin, _, _ := strings.Cut(m.First, ";")
	return begin + ": " + found[1] + ": " + strings.TrimSpace(found[2])
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

// ExitCode is where Open MPI says how the first process ended.
var ExitCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)

// Banner matches the first line of what MPI launchers print when a rank has ended: Open MPI, then MPICH and Intel MPI.
var Banner = regexp.MustCompile(`^\s*(-{20,}|={20,}|Primary job +terminated|(mpirun|prterun) detected|=\s+BAD TERMINATION)`)

// Abort is what MPI prints of a rank that called MPI_Abort. It then kills the others.
var Abort = regexp.MustCompile(`application called MPI_Abort\(.*\) - process \d+|MPI_ABORT was invoked on rank \d+`)
