package diagnose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/phrase"
)

// stackLine is a line of a launcher's agent about where ranks are in their code, without agentapi.StackPrefix.
var (
	stackLine = regexp.MustCompile(`^(ranks? [\d, and more]+): (.+?)(?: \| (.+))?$`)
	stackCall = regexp.MustCompile(`^(\S+) \((.+?)(?::(\d+))?\)$`)
)

// StallLines returns the last line of a launcher's agent about ranks that make no progress, with the lines about their places in the
// code that follow it; nil if there is none, or that is over.
func StallLines(lines []string) []string {
	for i, line := range slices.Backward(lines) {
		if !strings.HasPrefix(strings.TrimSpace(line), agentapi.StallPrefix) {
			continue
		}
		if LastStall(lines[i:i+1]) == "" {
			return nil
		}
		found := []string{line}
		for _, next := range lines[i+1:] {
			if strings.HasPrefix(strings.TrimSpace(next), agentapi.StackPrefix) {
				found = append(found, next)
			}
		}
		return found
	}
	return nil
}

// StallEvidence returns the lines of a launcher's log on which the findings about ranks that make no progress rest: those of the agent,
// and all if the log also has the error of a rank. It is nil if there are none.
func StallEvidence(lines []string) []string {
	stall := StallLines(lines)
	if stall == nil {
		return nil
	}
	if loglines.FirstError(lines) != nil {
		return lines
	}
	return stall
}

// places describes where the ranks that make no progress are in their code, as a sentence after a space: those that differ from the
// others first, such as " Rank 1 is in load_batch (train.py:42), called from main (train.py:60); the others are in main (train.py:61).".
// It is "" if that is unknown. The lines are those that it is based on.
func places(lines []string) (sentence string, evidence []string) {
	// most is the number of groups of ranks in the sentence, and mostLines that of lines.
	const most, mostLines = 2, 4
	var parts []string
	for _, at := range placesIn(lines) {
		evidence = append(evidence, at.line)
		if strings.HasPrefix(at.ranks, "ranks") {
			parts = append(parts, at.ranks+" are "+at.text)
		} else {
			parts = append(parts, at.ranks+" is "+at.text)
		}
	}
	switch {
	case len(parts) == 0:
		return "", nil
	case len(parts) == 2 && strings.HasPrefix(parts[1], "ranks"):
		_, place, _ := strings.Cut(parts[1], " are ")
		parts[1] = "the others are " + place
	case len(parts) > most:
		parts = append(parts[:most], "others are elsewhere")
	}
	return " " + phrase.Capital(strings.Join(parts, "; ")) + ".", evidence[:min(len(evidence), mostLines)]
}

// place is where ranks that make no progress are in their code.
type place struct {
	// ranks are those of the same place, such as "rank 1" or "ranks 0, 2".
	ranks string
	// text describes the place in a sentence, calls are its calls with the innermost first, source is the code in the line there, and shown that line with
	// the values of its variables.
	text          string
	calls         []string
	source, shown string
	// ended is set for ranks whose program has ended.
	ended bool
	// line is that of the log.
	line string
}

// placesIn returns where the ranks are that make no progress, as the launcher's agent wrote it last.
func placesIn(lines []string) (all []place) {
	for _, line := range StallLines(lines) {
		text, isPlace := strings.CutPrefix(strings.TrimSpace(line), agentapi.StackPrefix)
		found := stackLine.FindStringSubmatch(text)
		if !isPlace || found == nil {
			continue
		}
		at := place{ranks: found[1], line: strings.TrimSpace(line)}
		at.shown, at.source = codeOf(found[3])
		if found[2] == agentapi.ProgramEnded {
			at.ended, at.text = true, atItsEnd
		} else {
			at.calls = strings.Split(found[2], " < ")
			at.text = stackPlace(at.calls, at.shown)
		}
		if at.text != "" {
			all = append(all, at)
		}
	}
	return all
}

// where names the files and lines of a place, such as "train.py:12, called from train.py:20".
func (at place) where() string {
	const most = 3
	var files []string
	for _, call := range at.calls[:min(len(at.calls), most)] {
		if found := stackCall.FindStringSubmatch(call); found != nil {
			files = append(files, fileText(found))
		}
	}
	return strings.Join(files, ", called from ")
}

var (
	// collective is a call of a collective operation in a line of Python: of mpi4py, PyTorch or Horovod, all of whose names end in one of these ways.
	collective = regexp.MustCompile(`\b(I?(?i:(?:neighbor_)?(?:barrier|bcast|broadcast|all_?gather|gather|reduce_scatter|scatter|all_?to_?all|all_?reduce|reduce|exscan|scan)` +
		`[vw]?(?:_(?:async_?|block|coalesced|global_variables|init|into_tensor|multigpu|objects?|object_list|optimizer_state|parameters|single|tensor|variables))*))\(`)
	// pauseInLoop is a line that only sleeps, after the begin of the loop that repeats it. Calls there have returned.
	pauseInLoop = regexp.MustCompile(`^(?:async )?(?:while|for)\b.*: *(?:if .*: *)?(?:await )?(?:\w+\.)?sleep\(`)
)

// pauses reports whether a place is in a pause between two turns of a loop.
func (at place) pauses() bool { return pauseInLoop.MatchString(at.source) }

// collective returns the collective operation that the line of a place calls; "" if it calls none.
func (at place) collective() string {
	if found := collective.FindStringSubmatch(at.source); found != nil && !at.pauses() {
		return found[1]
	}
	return ""
}

// apart returns the remedies for ranks of which the places in the code show why they wait for each other, and adds figures for them: the program of
// some has ended, or they call collective operations at different places. It is nil if the lines of the launcher's log show neither.
func apart(text string, lines []string, figures map[string]string) []v1alpha1.Remedy {
	at := placesIn(lines)
	if len(at) < 2 {
		return nil
	}
	figures["first"], figures["firstPlace"], figures["firstCall"] = at[0].ranks, at[0].where(), at[0].collective()
	figures["second"], figures["secondPlace"], figures["secondCall"] = at[1].ranks, at[1].where(), at[1].collective()
	switch late, _ := doingsIn(text).late(endedPrograms(lines)); {
	case at[0].ended && len(late) == 0:
		return codes.EndedBeforeOthers
	case figures["firstCall"] != "" && figures["secondCall"] != "":
		if figures["alone"] == "" {
			figures["alone"] = phrase.Capital(at[0].ranks) + verbOf(at[0].ranks, " calls ", " call ") + figures["firstCall"] + ", and " + at[1].ranks + verbOf(at[1].ranks, " calls ", " call ") + figures["secondCall"] + " at another place: the two wait for each other."
		}
		return codes.CollectivesApart
	}
	return nil
}

// atItsEnd is the place of a rank whose Python code has returned.
const atItsEnd = "at the end of the program"

// endedPrograms returns the ranks whose program has ended while others make no progress, as the launcher's agent names them, such as "rank 1"
// or "ranks 1, 2"; "" if there are none.
func endedPrograms(lines []string) string {
	for _, line := range StallLines(lines) {
		text, _ := strings.CutPrefix(strings.TrimSpace(line), agentapi.StackPrefix)
		if found := stackLine.FindStringSubmatch(text); found != nil && found[2] == agentapi.ProgramEnded {
			return found[1]
		}
	}
	return ""
}

// stackPlace describes a place by its call, the line of source code if that is known, and the caller, such as "in load_batch (train.py:42,
// `batch = next(it)`), called from main (train.py:60)"; "" if it is no call.
func stackPlace(calls []string, source string) string {
	inner := stackCall.FindStringSubmatch(calls[0])
	if inner == nil {
		return ""
	}
	where := fileText(inner)
	if source != "" {
		where += ", `" + source + "`"
	}
	place := fmt.Sprintf("in %s (%s)", inner[1], where)
	if inner[1] == wholeModule {
		place = "at " + where
	}
	if len(calls) > 1 {
		if outer := stackCall.FindStringSubmatch(calls[1]); outer != nil && outer[1] != wholeModule {
			place += ", called from " + callText(outer)
		}
	}
	return place
}

// wholeModule is the name that Python gives to the code outside of functions.
const wholeModule = "<module>"

func callText(call []string) string { return fmt.Sprintf("%s (%s)", call[1], fileText(call)) }

func fileText(call []string) string {
	file := call[2]
	if !agentapi.IsInlineProgram(file) {
		file = path.Base(file)
	}
	if call[3] == "" {
		return file
	}
	return file + ":" + call[3]
}
