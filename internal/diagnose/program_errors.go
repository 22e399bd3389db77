package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
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
		found := ownError(pod, first)
		if found == nil {
			continue
		}
		figures["errorText"], figures["wholeError"] = ": "+quotedText(found.Message), found.Message
		if figures["rank"] == "" && found.Rank != "" {
			figures["rank"], figures["rankText"] = found.Rank, fmt.Sprintf(" in rank %s", found.Rank)
		}
		evidence = []string{facts.LogLine(pod, found.Line)}
		figures["raisedIn"] = loglines.LastCall(pod.Log.Lines, found.Line)
		if place, frame := loglines.RaisedAt(pod.Log.Lines, found.Line); place != "" {
			figures["placeText"] = " (" + quotedText(place) + ")"
			evidence = append(evidence, facts.LogLine(pod, frame))
			figures["ownSource"] = strings.Join(loglines.OwnSource(pod.Log.Lines, found.Line), "\n")
		} else if place := loglines.ScriptPlace(found.Line); place != "" {
			figures["placeText"] = " (" + quotedText(place) + ")"
		}
	}
	if launcher := p.Launcher(); evidence == nil && launcher != nil {
		if found := loglines.LauncherText(launcher.Log.Lines, first != nil); found != nil {
			figures["errorText"], figures["said"] = ": "+quotedText(found.Message), facts.Sentence(quotedText(found.Message))
			evidence = []string{facts.LogLine(*launcher, found.Line)}
		}
	}
	return evidence
}

// ownError returns the error line of a program in a pod's log, given the rank that failed first, if one is known; nil if there is none.
func ownError(pod facts.Pod, first *agentapi.RankEnd) *loglines.ErrorLine {
	found := loglines.FirstError(pod.Log.Lines)
	if found != nil && first != nil && endedByItself(*first) && shellNotFound.MatchString(found.Line) {
		// The script that started the rank wrote it, and continued.
		found = nil
	}
	if found == nil && first != nil && first.ExitCode > 0 {
		found = loglines.OwnMessage(pod.Log.Lines, first.Program)
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
