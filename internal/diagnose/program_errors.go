package diagnose

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/phrase"
)

// words adds the program's own error line to the figures of a finding, with the rank that wrote it if no other is known,
// and mpirun's exit code. It returns the line as evidence.
func (p *input) words(figures map[string]string) []string {
	var evidence []string
	first, _ := p.FirstRank()
	for _, pod := range p.Pods {
		if code := printedCode(pod); code != "" && figures["codeText"] == "" {
			figures["codeText"] = " with exit code " + code
		}
		if evidence != nil {
			continue
		}
		if found := ownError(pod, failedRank(figures, first), first); found != nil {
			evidence = p.addError(pod, found, figures)
		}
	}
	if launcher := p.Launcher(); evidence == nil && launcher != nil {
		if found := loglines.LauncherText(launcher.Log.Lines, first != nil); found != nil {
			figures["errorText"], figures["said"] = ": "+quotedText(found.Message), facts.Sentence(quotedText(found.Message))
			evidence = []string{facts.LogLine(*launcher, found.Line)}
		} else if own, _ := loglines.OfRank(launcher.Log.Lines, failedRank(figures, first)); len(own) > 0 {
			figures["placeText"] = lastLineText("its last line is", own)
		}
	}
	return evidence
}

// failedRank returns the rank that failed first, by the figures of a finding or as an agent observed it; "" if none is known.
func failedRank(figures map[string]string, first *agentapi.RankEnd) string {
	if figures["rank"] == "" && first != nil && failedItself(*first) {
		return strconv.Itoa(int(first.Rank))
	}
	return figures["rank"]
}

// addError adds the error of a program in a pod's log to the figures of a finding. It returns its lines as evidence.
func (p *input) addError(pod facts.Pod, found *loglines.ErrorLine, figures map[string]string) []string {
	cause := explaining(found)
	figures["errorText"], figures["wholeError"], figures["causeText"] = ": "+quotedText(found.Message), cause.Message, ": "+quotedText(cause.Message)
	figures["raisedIn"] = loglines.LastCall(pod.Log.Lines, cause.Line)
	_, causeFrame := loglines.RaisedAt(pod.Log.Lines, cause.Line)
	inline := agentapi.WithoutComment(p.inlineSource(causeFrame))
	ownSource := withoutComments(loglines.OwnSource(pod.Log.Lines, cause.Line))
	if inline != "" {
		ownSource = append(ownSource, inline)
	}
	figures["ownSource"] = strings.Join(ownSource, "\n")
	var aside []string
	switch {
	case found.Rank == "" || found.Rank == figures["rank"]:
	case figures["rank"] == "":
		figures["rank"], figures["rankText"] = found.Rank, " in rank "+found.Rank
	default:
		// The one that failed first has printed no error of its own.
		aside = append(aside, "printed by rank "+found.Rank+onHost(found)+", not by rank "+figures["rank"])
	}
	if figures["call"] = calledFunction(cause); found.Call != "" {
		aside = append([]string{"in " + found.Call}, aside...)
	}
	evidence := []string{facts.LogLine(pod, found.Line)}
	place, frame := loglines.RaisedAt(pod.Log.Lines, found.Line)
	if place != "" {
		evidence = append(evidence, facts.LogLine(pod, frame))
	}
	if source := loglines.OwnSource(pod.Log.Lines, found.Line); len(source) > 0 {
		evidence = append(evidence, facts.LogLine(pod, source[0]))
	} else if inline != "" {
		evidence = append(evidence, "The command has in this line: "+quotedText(inline))
	}
	if found.First != nil {
		evidence = append(evidence, facts.LogLine(pod, found.First.Line))
	}
	evidence = append(evidence, p.addContext(pod, found, figures)...)
	place = quotedText(cmp.Or(place, loglines.ScriptPlace(found.Line), loglines.FortranPlace(pod.Log.Lines, found.Line)))
	aside = slices.DeleteFunc(append(aside, place, raisedAfter(found)), func(part string) bool { return part == "" })
	figures["placeText"] = asAside(strings.Join(aside, "; "))
	return evidence
}

// withoutComments returns lines of a program without the comments at their ends, which may name other calls.
func withoutComments(lines []string) (code []string) {
	for _, line := range lines {
		code = append(code, agentapi.WithoutComment(line))
	}
	return code
}

// onHost names the host that printed an error, if that is known.
func onHost(found *loglines.ErrorLine) string {
	if found.Host == "" {
		return ""
	}
	return " on " + quotedText(found.Host)
}

// calledFunction returns the function of MPI whose call failed, as Open MPI names it before an error, or MPICH in it; "" if that is unknown.
func calledFunction(found *loglines.ErrorLine) string {
	if found.Call != "" {
		return found.Call
	}
	if name := callOfMPI.FindStringSubmatch(found.Message); name != nil && !strings.HasPrefix(name[1], "ERR_") {
		return "MPI_" + name[1] + name[2]
	}
	return ""
}

// callOfMPI is how messages of MPICH and Open MPI name the function that a program called.
var callOfMPI = regexp.MustCompile(`\b(?:P?MPI|internal)_(\w+): |\bMPI_(\w+)\(\) function was called`)

// explaining returns the exception of a chain of which the remedies are known: the last one, or else the first.
func explaining(found *loglines.ErrorLine) *loglines.ErrorLine {
	// The text of an assertion is of no kind.
	if kind := codes.OwnErrorOf(found.Message); found.First != nil && (kind == nil || kind.Name == "check") && codes.OwnErrorOf(found.First.Message) != nil {
		return found.First
	}
	return found
}

// raisedAfter names the exception for which, or while handling which, an exception was raised; "" if there is none, or its own message contains
// that.
func raisedAfter(found *loglines.ErrorLine) string {
	if found.First == nil {
		return ""
	}
	if _, text, _ := strings.Cut(found.First.Message, ": "); text != "" && strings.Contains(found.Message, text) {
		return ""
	}
	return "after " + quotedText(found.First.Message)
}

// failedItself reports whether a rank ended with an error, and no signal that something else sent ended it.
func failedItself(end agentapi.RankEnd) bool {
	return end.ExitCode > 0 && end.Signal != 9 && end.Signal != 15
}

// firstFailedItself reports whether an agent observed which rank failed first, and that it failed by itself.
func (p *input) firstFailedItself() bool {
	first, _ := p.FirstRank()
	return first != nil && !first.OOM && failedItself(*first)
}

// lastLineText returns the last line with words, as the end of a sentence about it; "" if there is none.
func lastLineText(what string, lines []string) string {
	for _, line := range slices.Backward(lines) {
		if text := strings.TrimSpace(line[len(loglines.RankTag.FindString(line)):]); strings.ContainsFunc(text, unicode.IsLetter) {
			return "; " + what + ": " + quotedText(text)
		}
	}
	return ""
}

// ownError returns the error line of a program in a pod's log, given the rank that failed, or "", and the first that an agent saw fail; nil if there
// is none. If lines are tagged with their rank, it is that of this rank, and that of another one only if this rank has printed nothing to its standard
// error, or that another one has ended.
func ownError(pod facts.Pod, rank string, first *agentapi.RankEnd) *loglines.ErrorLine {
	own, fromStderr := loglines.OfRank(pod.Log.Lines, rank)
	if found := errorIn(own, first); found != nil {
		return found
	}
	if fromStderr && loglines.FirstError(own) == nil {
		return nil
	}
	return errorIn(pod.Log.Lines, first)
}

// errorIn returns the error line of a program in lines, as ownError.
func errorIn(lines []string, first *agentapi.RankEnd) *loglines.ErrorLine {
	found := loglines.FirstError(lines)
	if found != nil && first != nil && endedByItself(*first) && notFoundAt(found.Line) != "" {
		// The script that started the rank wrote it, and continued.
		found = nil
	}
	if found == nil && first != nil && first.ExitCode > 0 {
		found = loglines.OwnMessage(lines, first.Program)
	}
	if found == nil || first != nil && loglines.Aftermath.MatchString(found.Message) {
		return nil
	}
	return found
}

// printedCode returns the first exit code that mpirun prints in a log, or "".
func printedCode(pod facts.Pod) string {
	for _, line := range pod.Log.Lines {
		if code := loglines.ExitCode.FindStringSubmatch(line); code != nil {
			return code[1]
		}
	}
	return ""
}

// mountOfMaps is the folder into which the kubelet writes the files of a ConfigMap or Secret.
var mountOfMaps = regexp.MustCompile(`/\.\.\d{4}_\d\d_\d\d_[\d_.]+/`)

// quotedText returns a message as a part of a sentence.
func quotedText(message string) string {
	const most = 200
	text := phrase.Cut(phrase.OneLine(mountOfMaps.ReplaceAllString(message, "/")), most)
	for _, end := range []string{", error stack:", ":", "."} {
		text = strings.TrimSuffix(text, end)
	}
	return text
}
