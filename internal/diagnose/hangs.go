package diagnose

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// LastStall returns what the launcher's agent last wrote about ranks that make no progress, or "" if that is over.
func LastStall(lines []string) string {
	for _, line := range slices.Backward(lines) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), agentapi.StallPrefix)
		if found {
			return strings.TrimSuffix(text, agentapi.StallOver)
		}
	}
	return ""
}

var (
	// These are the lines of a launcher's agent about ranks that make no progress (agentapi.StallPrefix).
	allWait    = regexp.MustCompile(`^all (\d+ ranks) wait, since (\S+ UTC); (.+)$`)
	allIdle    = regexp.MustCompile(`^(all \d+ ranks are|the only rank is) idle, since (\S+ UTC); (.+)$`)
	callsAlone = regexp.MustCompile(`^(the launcher) gets no answer from (\S+), since (\S+ UTC)$`)
	// aloneInKernel is one rank that sleeps or is blocked while the others do not.
	aloneInKernel = regexp.MustCompile(`; (?:sleeping: (\d+); (?:blocked|polling): \d|blocked: (\d+); polling: \d)`)
	calls         = regexp.MustCompile(`; (the launcher|\S+) gets no answer from (\S+)$`)
	waitForFew    = regexp.MustCompile(`^(\d+ of \d+ ranks) wait for (ranks? (\d+)[\d, and more]*)(?: \(slower: (` + slowness + `)\))?, since (\S+ UTC); (.+)$`)
	gpuIdle       = regexp.MustCompile(`^(the GPUs? of (ranks? (\d+)[\d, and more]*) (?:is|are) idle while (?:those of \d+ other ranks are|that of 1 other rank is) busy), since (\S+ UTC); (.+)$`)
	mpiOver       = regexp.MustCompile(`^(\w[\w.]*) ended(?: with exit code (\d+))?, but the launcher's command continues and is idle, since (\S+ UTC)$`)
	// atExit is a stack in which Python waits for threads and processes when its program has ended (Lib/threading.py,
	// Lib/concurrent/futures/thread.py, Lib/multiprocessing/util.py).
	atExit  = regexp.MustCompile(`\b(?:_shutdown \(\S*/threading|_python_exit \(\S*/thread|_exit_function \(\S*/util)\.py\b`)
	oneGone = regexp.MustCompile(`^Rank (\d+) \(([^)]*)\) (.+), but (\d+ other ranks? still runs?), since (\S+ UTC)$`)
)

// endless is a program in a command that does not end by itself, or not for long.
var endless = regexp.MustCompile(`\b(?:sleep (?:inf(?:inity)?\b|\d{4,}s?\b|\d{2,}m\b|\d+[hd]\b)|tail -[fF] \S+)`)

// slowness are the reasons that an agent gives for ranks that are slower (internal/agent/progress/slow.go). Programs can print such a line, too:
// nothing else is taken for one.
const slowness = `(?:` + slowHosts + ` (?:is|are) throttled \d+ %(?: or more)? of the time|` + slowHosts + ` (?:has|have) \d+(?: or more)? major page faults per second|the ranks of ` + slowHosts + ` wait for a CPU \d+ %(?: or more)? of the time)`

// slowHosts is how an agent names pods, and slowHost is one of them.
const (
	slowHosts = slowHost + `(?:, ` + slowHost + `)*(?: and \d+ more)?`
	slowHost  = `(?:[\w.-]+|the launcher's pod)`
)

// hostsOfSlowness are the pods in a reason that an agent gives for ranks that are slower.
var hostsOfSlowness = regexp.MustCompile(`^(?:the ranks of )?(` + slowHosts + `) (?:is|are|has|have|wait) `)

// slowPods returns the pods that are slower by the text of a stall, but that of a rank that it names; and the node on which all of them are: "" if
// there are several, only one pod is slower, or the text does not name all.
func (p *input) slowPods(text string, named facts.Pod) (others []facts.Pod, node string) {
	few := waitForFew.FindStringSubmatch(text)
	if few == nil || few[4] == "" {
		return nil, ""
	}
	hosts, _, isCut := strings.Cut(hostsOfSlowness.FindStringSubmatch(few[4])[1], " and ")
	names, nodes := strings.Split(hosts, ", "), map[string]bool{}
	for _, name := range names {
		pod := p.OfHost(name)
		if pod == nil {
			isCut = true
			continue
		}
		node, nodes[pod.Spec.NodeName] = pod.Spec.NodeName, true
		if pod.Name != named.Name {
			others = append(others, *pod)
		}
	}
	if isCut || len(names) < 2 || len(nodes) > 1 {
		node = ""
	}
	return others, node
}

// stalled reports that ranks of a running job wait for each other, or for one that is gone, as the launcher's agent
// observed it.
func stalled(p *input) []Finding {
	text, launcher := p.stall(), p.Launcher()
	if text == "" {
		return nil
	}
	code, figures := stallFigures(text, launcher.Log.Lines)
	if code == "" || p.goesOn(code, figures) {
		return nil
	}
	if rank := p.endedUnseen(text, launcher.Log.Lines); rank != "" && code == codes.RanksWaiting {
		code, figures["rank"], figures["message"] = codes.RankGone, rank, fmt.Sprintf("all other %s wait since %s", figures["ranksNow"], figures["since"])
	}
	pod := *launcher
	if call := calls.FindStringSubmatch(text); call != nil && code != codes.RankGone && !p.isOwnAddress(call[2]) {
		figures["rankWho"], figures["address"] = phrase.Capital(call[1]), call[2]
		if caller := p.Known(call[1]); caller != nil {
			pod, figures["rankWho"] = *caller, call[1]
		}
		figures["ranksText"] = ", and no rank computes or transfers data"
		code = codes.NoAnswer
	}
	code, words := p.awaited(code, text, *launcher, figures)
	if figures["rank"] != "" {
		if host := p.HostOfText(figures["rank"]); host != nil {
			pod = *host
		}
	}
	if (code == codes.RankGone || figures["called"] != "") && figures["rank"] != "" && pod.Name != launcher.Name {
		figures["rankWho"] += " on " + pod.Name
	}
	evidence := []string{facts.LogLine(*launcher, agentapi.StallPrefix+text)}
	if code != codes.NoAnswer || figures["called"] != "" {
		evidence = append(evidence, addPlaces(*launcher, figures)...)
	}
	p.nameScript(code, figures)
	slower, node := p.slowPods(text, pod)
	if node != "" {
		figures["slower"] += " All of these pods are on node " + node + "."
	}
	entry := p.stallEntry(text, code, figures)
	return []Finding{p.findAs(entry, append([]facts.Pod{pod}, slower...), figures, append(evidence, words...)...)}
}

// awaited adds to the figures what the ranks wait for, and returns the lines that show it. It returns another code if one of them failed because of a
// call that got no answer.
func (p *input) awaited(code codes.Code, text string, launcher facts.Pod, figures map[string]string) (as codes.Code, words []string) {
	switch code {
	case codes.RankGone:
		words = p.wordsOfGone(launcher, figures)
		p.nameGone(text, launcher.Log.Lines, figures)
		if call := p.failedUnanswered(launcher.Log.Lines, figures); call != "" {
			code = codes.NoAnswer
			words = append(words, facts.LogLine(launcher, call))
		}
	case codes.RanksWaiting, codes.RanksIdle:
		if words = p.nameChild(text, launcher, figures); words == nil && code == codes.RanksWaiting {
			nameAwaited(text, launcher.Log.Lines, figures)
		}
	}
	return code, words
}

var (
	// askedRanks is the number of ranks in the options of MPI's launcher.
	askedRanks = regexp.MustCompile(`(?:^|\s)-{1,2}(?:n|np|c)[\s=]+(\d+)(?:\s|$)`)
	// listedRank is a number in the agent's lists of ranks.
	listedRank = regexp.MustCompile(`\b\d+\b`)
	// waitsForFile is a rank that waits for its files.
	waitsForFile = regexp.MustCompile(`; rank (\d+) waits for (` + agentapi.ForFileServer + `|` + agentapi.ForStorage + `)(?:;|$)`)
)

// endedUnseen returns the rank that has ended with an error before it called MPI, while all others wait for it there: MPICH does not end them.
// It is the only one of the ranks that the command asks for which the agent does not see wait, and the log has an error; "" otherwise.
func (p *input) endedUnseen(text string, lines []string) string {
	d := doingsIn(text)
	listed, launches := d.listed(), mpi.OptionsOfLaunchers(p.LauncherCommand())
	if d.cut || len(launches) != 1 || loglines.FirstError(lines) == nil {
		return ""
	}
	if asked := askedRanks.FindStringSubmatch(launches[0]); asked == nil || asked[1] != strconv.Itoa(len(listed)+1) {
		return ""
	}
	for rank := range len(listed) + 1 {
		if !slices.Contains(listed, rank) {
			return strconv.Itoa(rank)
		}
	}
	return ""
}

// nameGone adds the rank that is gone to the figures, if it is unknown there and the lines of a launcher's log show it.
func (p *input) nameGone(text string, lines []string, figures map[string]string) {
	if figures["thread"] != "" {
		return
	}
	figures["rank"] = cmp.Or(figures["rank"], loneRank(endedPrograms(lines)), p.finalizing(text))
	if rank := figures["rank"]; rank != "" && figures["rankWho"] == "" {
		figures["rankWho"] = "Rank " + rank
	} else if several := endedPrograms(lines); rank == "" && several != "" {
		figures["rankWho"] = phrase.Capital(several)
	}
}

// nameAwaited adds the rank for which the others wait to the figures, if the lines of a launcher's log show it.
func nameAwaited(text string, lines []string, figures map[string]string) {
	rank, does := aloneIn(text)
	if ended := endedPrograms(lines); ended != "" {
		d := doingsIn(text)
		rank = ""
		switch late, known := d.late(ended); {
		case len(late) == 0:
			figures["alone"] = "The others wait for " + ended + ", whose program has probably ended without the calls that the others make."
			rank = loneRank(ended)
		case len(late) == 1 && known:
			rank, does = strconv.Itoa(late[0]), d.does(late[0])
		}
	}
	if file := waitsForFile.FindStringSubmatch(text); file != nil {
		rank, figures["storage"] = file[1], file[2]
	} else if rank != "" && figures["alone"] == "" {
		figures["alone"] = "The job is probably stuck: the others wait for rank " + rank + ", which " + does + "."
	}
	if rank != "" {
		figures["rank"], figures["option"] = rank, rank
	}
}

// loneRank returns the number in a text such as "rank 1"; "" if that names several ranks, or none.
func loneRank(ranks string) string {
	if rank, isOne := strings.CutPrefix(ranks, "rank "); isOne {
		return rank
	}
	return ""
}

// addPlaces adds where the ranks are in their code to the figures, and returns the lines of the launcher's log that show it.
func addPlaces(launcher facts.Pod, figures map[string]string) (evidence []string) {
	text, lines := places(launcher.Log.Lines)
	if slices.ContainsFunc(lines, atExit.MatchString) {
		figures["atExit"] = "yes"
		text += " That is Python's own end: the program has ended, and a thread or process that it started has not."
	}
	figures["places"] = text
	for _, line := range lines {
		evidence = append(evidence, facts.LogLine(launcher, line))
	}
	return evidence
}

// stallEntry returns the definition of a stall, with the remedies for what else is known of it, and adds figures for them.
func (p *input) stallEntry(text string, code codes.Code, figures map[string]string) codes.Entry {
	entry := codes.Lookup(code)
	switch {
	case figures["afterMPI"] != "":
		entry = codes.CommandContinues
		if waits := endless.FindString(p.LauncherCommand()); waits != "" {
			figures["words"] = waits
			entry.Remedies = slices.Concat(codes.WaitsOnPurpose, entry.Remedies[1:])
		}
		return entry
	case figures["storage"] != "":
		return codes.WaitsForStorage
	case figures["child"] != "":
		return p.childEntry(code, figures)
	}
	if figures["script"] != "" {
		entry.Remedies = slices.DeleteFunc(slices.Clone(entry.Remedies), isShowStacks)
	}
	if i := slices.IndexFunc(entry.Remedies, isShowStacks); i > 0 && figures["places"] != "" {
		// It is a Python program: what shows the most comes first.
		entry.Remedies = slices.Insert(slices.Delete(slices.Clone(entry.Remedies), i, i+1), 0, codes.ShowStacks)
	}
	if figures["alone"] != "" && figures["places"] == "" && !lockAwaited.MatchString(text) {
		entry.Remedies = slices.Concat(codes.SleepsAlone, entry.Remedies)
	}
	if why := figures["slower"]; why != "" {
		entry = slowerEntry(why)
	}
	if figures["gpuText"] != "" {
		entry = codes.GPUStraggler
	}
	switch known := p.knownWait(text, code, figures); {
	case figures["atExit"] != "":
		entry.Remedies = slices.Concat(codes.ThreadsLeft, entry.Remedies)
	case known != nil:
		entry.Remedies = slices.Concat(known, entry.Remedies)
	}
	if code == codes.RankGone && figures["errorText"] != "" {
		// What to do about its error, in place of reading it.
		own := p.ownError(codes.Lookup(codes.ApplicationFailed), figures)
		rest := entry.Remedies[1:]
		if figures["thread"] != "" {
			// An exception in a thread does not end the rank, however it is started.
			rest = rest[1:]
		}
		entry.Remedies = slices.Concat(own.Remedies, rest)
	}
	if crash := crashOf[endSignal.FindString(figures["message"])]; code == codes.RankGone && figures["errorText"] == "" && crash != "" {
		// No exception ended the rank, and its output need not have a reason.
		own := slices.DeleteFunc(slices.Clone(codes.Lookup(crash).Remedies), func(r v1alpha1.Remedy) bool { return r.Action == entry.Remedies[0].Action })
		rest := slices.DeleteFunc(slices.Clone(entry.Remedies), func(r v1alpha1.Remedy) bool { return r.Action == codes.ByMPI4Py })
		entry.Remedies = slices.Concat(own[:min(2, len(own))], rest)
	}
	if figures["called"] != "" {
		entry = codes.NoAnswerFailed
	}
	if code == codes.NoAnswer && p.Seen.Isolation != nil {
		figures["policy"] = p.Seen.Isolation.Name
		p.nameURL(figures)
		entry.Remedies = slices.Concat(codes.IsolatedNetwork, entry.Remedies[1:])
	}
	return entry
}

// knownWait returns the first remedies for ranks of which it is known where they wait, in their code or in a shell script, and adds figures for
// them; nil if that is unknown.
func (p *input) knownWait(text string, code codes.Code, figures map[string]string) []v1alpha1.Remedy {
	lines := p.Launcher().Log.Lines
	if code == codes.RanksWaiting {
		if known := apart(text, lines, figures); known != nil {
			return known
		}
		if known := messageRemedies(text, lines, figures); known != nil {
			return known
		}
		if known := receiveRemedies(text, lines, p.LauncherCommand(), figures); known != nil {
			return known
		}
	}
	late, _ := doingsIn(text).late("")
	if code != codes.RanksWaiting && code != codes.RanksIdle || len(late) == 0 {
		return nil
	}
	if known := lockRemedies(text, lines, figures); known != nil {
		return known
	}
	rank, does := aloneIn(text)
	switch {
	case code == codes.RanksWaiting && does == isBlocked && waitsForChild(lines, rank, p.LauncherCommand()):
		return codes.ChildProcess
	case p.separateFolder(figures):
		return codes.SeparateFolder
	case figures["script"] != "":
		return codes.ShellWaits
	case figures["atExit"] != "":
		return nil
	}
	return ownWaitRemedies(text, lines, p.LauncherCommand(), figures)
}

// childCall is a line of Python that waits for a process which it has started (subprocess and os of the library reference).
var childCall = regexp.MustCompile(`\.communicate\(|\bsubprocess\.(?:run|call|check_call|check_output|getoutput)\(|\bos\.(?:system|wait|waitpid)\(`)

// waitCall is a line that waits for the value of a variable: a process, a thread, a message or a result.
var waitCall = regexp.MustCompile(`\b(\w+)\.wait\(`)

// waitsForChild reports whether a rank is at a line that waits for a process, by the lines of a launcher's log and a program in its command.
func waitsForChild(lines []string, rank, command string) bool {
	isProcess := func(source string) bool {
		waits := waitCall.FindStringSubmatch(source)
		return waits != nil && regexp.MustCompile(`\b`+waits[1]+`\s*=\s*(?:subprocess\.)?Popen\(`).MatchString(command)
	}
	return slices.ContainsFunc(placesIn(lines), func(at place) bool {
		return at.ranks == "rank "+rank && (childCall.MatchString(at.source) || isProcess(at.source) || slices.ContainsFunc(at.calls, func(call string) bool { return strings.Contains(call, "subprocess.py:") }))
	})
}

// failedUnanswered returns the line about a call that got no answer, for which the rank that is gone failed: its error says so, and the launcher's
// agent had written before which address it called. It adds that call to the figures. It is "" if there is none.
func (p *input) failedUnanswered(lines []string, figures map[string]string) string {
	if !timedOut.MatchString(cmp.Or(figures["wholeError"], figures["errorText"])) {
		return ""
	}
	for _, line := range slices.Backward(lines) {
		text, isStall := strings.CutPrefix(strings.TrimSpace(line), agentapi.StallPrefix)
		call, since := calls.FindStringSubmatch(text), callSince.FindStringSubmatch(text)
		if !isStall || call == nil || since == nil || p.isOwnAddress(call[2]) {
			continue
		}
		figures["caller"], figures["address"], figures["called"] = phrase.Capital(call[1]), call[2], since[1]
		if at := p.Known(call[1]); at != nil {
			figures["caller"] = call[1]
		}
		return strings.TrimSpace(line)
	}
	return ""
}

var (
	// timedOut is an error of a connection whose packets got no answer.
	timedOut  = regexp.MustCompile(`(?i)timed out|timeout|No route to host|Network is unreachable`)
	callSince = regexp.MustCompile(`, since (\S+ UTC)(?:;|$)`)
)

// nameScript adds the script of ranks that are idle shells to the figures.
func (p *input) nameScript(code codes.Code, figures map[string]string) {
	if code != codes.RanksIdle || figures["places"] != "" || figures["afterMPI"] != "" {
		return
	}
	if figures["script"] = p.shellScript(); figures["script"] != "" && figures["reason"] == "" {
		figures["reason"] = "It may be on purpose: the ranks run " + figures["script"] + ", in which a command waits, such as sleep in a loop."
	}
}

// shellScript names what the shells run that are the ranks of a job, by the command of its launcher, such as "the shell script /app/run.sh"; ""
// if they are none.
func (p *input) shellScript() string {
	programs := mpi.ProgramsOfLaunchers(p.LauncherCommand())
	if len(programs) != 1 || len(programs[0]) == 0 {
		return ""
	}
	program := programs[0]
	if strings.HasSuffix(program[0], ".sh") {
		return "the shell script " + quotedText(program[0])
	}
	if !loglines.IsShell(program[0]) {
		return ""
	}
	for _, word := range program[1:] {
		switch isOption := strings.HasPrefix(word, "-"); {
		case isOption && !strings.HasPrefix(word, "--") && strings.Contains(word, "c"):
			return "the script of " + program[0] + " " + word
		case !isOption:
			return "the shell script " + quotedText(word)
		}
	}
	return ""
}

// slowerEntry returns the definition of Straggler for ranks of which it is known why they are slower, with what helps against that.
func slowerEntry(why string) codes.Entry {
	entry, first := codes.SlowerRanks, codes.BusyNode
	switch {
	case strings.Contains(why, " throttled "):
		first = codes.Lookup(codes.CPUThrottled).Remedies[:1]
	case strings.Contains(why, " page faults "):
		first = codes.MemoryFromDisk
	}
	if strings.Contains(why, "the launcher's pod") && !strings.Contains(why, "the launcher's pod, ") && !strings.Contains(why, ", the launcher's pod") {
		first = slices.Clone(first)
		for i := range first {
			first[i].Action = strings.ReplaceAll(first[i].Action, "{workerTemplate}", "{launcherTemplate}")
		}
	}
	entry.Remedies = slices.Concat(first, entry.Remedies[:2])
	return entry
}

func isShowStacks(r v1alpha1.Remedy) bool { return r.Action == codes.ShowStacks.Action }

// finalizing returns the rank that alone sleeps while all others wait for a message, in what the agent wrote of a job with Open MPI; ""
// if there is none. A rank whose program has ended sleeps in MPI_Finalize between two looks at the others
// (OMPI_LAZY_WAIT_FOR_COMPLETION in ompi/runtime/ompi_mpi_finalize.c); one that waits for a message does not.
func (p *input) finalizing(text string) string {
	if rank, does := aloneIn(text); does == sleeps && p.Job.Implementation == mpi.OpenMPI {
		return rank
	}
	return ""
}

// What one rank does while the others look for messages.
const (
	sleeps    = "sleeps"
	isBlocked = "is blocked in the kernel"
)

// aloneIn returns the rank that alone sleeps or is blocked in what the agent wrote, and which of the two; "" if there is none. Ranks that wait
// in MPI all do the same, mostly look for messages in a loop.
func aloneIn(text string) (rank, does string) {
	switch found := aloneInKernel.FindStringSubmatch(text); {
	case found == nil:
		return "", ""
	case found[1] != "":
		return found[1], sleeps
	default:
		return found[2], isBlocked
	}
}

// endSignal is the signal that ended a rank, in what the agent wrote about it, and crashOf the codes of those that the program caused.
var (
	endSignal = regexp.MustCompile(`\bby signal \d+`)
	crashOf   = map[string]codes.Code{"by signal 4": codes.IllegalInstruction, "by signal 7": codes.BusError, "by signal 11": codes.SegmentationFault}
)

// stall returns what the launcher's agent of a running job last wrote about ranks that make no progress; "" if it wrote nothing.
func (p *input) stall() string {
	launcher := p.Launcher()
	if launcher == nil || p.Outcome.Phase != v1alpha1.PhaseRunning || !podstatus.IsRunning(launcher.Pod) {
		return ""
	}
	return LastStall(launcher.Log.Lines)
}

// stallFigures returns the code of what an agent wrote about ranks that make no progress, with figures from it; "" if it wrote nothing.
// The lines are those of the launcher's log.
func stallFigures(text string, lines []string) (code codes.Code, figures map[string]string) {
	code, figures = codes.RanksWaiting, map[string]string{}
	if gone := oneGone.FindStringSubmatch(text); gone != nil {
		code = codes.RankGone
		figures["rank"], figures["rankWho"] = gone[1], fmt.Sprintf("Rank %s (%s)", gone[1], gone[2])
		figures["message"] = fmt.Sprintf("it %s, and %s since %s", gone[3], gone[4], gone[5])
	} else if waiting := allWait.FindStringSubmatch(text); waiting != nil {
		figures["ranksNow"], figures["since"], figures["message"] = waiting[1], waiting[2], waiting[3]
		switch {
		case mayHaveRaised(text, lines):
			// Python's interpreter is still there when its program has ended: MPI waits for the other ranks.
			code = codes.RankGone
			figures["message"] = fmt.Sprintf("all %s wait since %s", waiting[1], waiting[2])
		case threadFailed(text, lines):
			code, figures["thread"], figures["rankWho"] = codes.RankGone, "yes", threadName(lines)
			figures["message"] = fmt.Sprintf("all %s wait since %s", waiting[1], waiting[2])
		}
	} else if idle := allIdle.FindStringSubmatch(text); idle != nil {
		code = codes.RanksIdle
		figures["ranksNow"], figures["since"], figures["message"] = phrase.Capital(idle[1]), idle[2], idle[3]
		if strings.Contains(idle[3], " waits for ") {
			figures["reason"] = "It may be on purpose."
		}
		if threadFailed(text, lines) {
			code, figures["thread"], figures["rankWho"] = codes.RankGone, "yes", threadName(lines)
			figures["message"] = fmt.Sprintf("%s idle since %s", idle[1], idle[2])
		}
	} else if addStragglers(text, figures) {
		code = codes.Straggler
	} else if over := mpiOver.FindStringSubmatch(text); over != nil {
		code, figures["since"], figures["program"] = codes.RanksIdle, over[3], over[1]
		figures["afterMPI"], figures["codeText"] = "yes", ""
		if over[2] != "" {
			figures["codeText"] = " with exit code " + over[2]
		}
	} else if alone := callsAlone.FindStringSubmatch(text); alone != nil {
		code, figures["since"] = codes.NoAnswer, alone[3]
		figures["rankWho"], figures["address"] = phrase.Capital(alone[1]), alone[2]
	} else {
		return "", nil
	}
	return code, figures
}

// addStragglers adds to the figures which ranks the others wait for, by what an agent wrote; false if it wrote nothing of them.
func addStragglers(text string, figures map[string]string) bool {
	if idle := gpuIdle.FindStringSubmatch(text); idle != nil {
		figures["gpuText"], figures["rankWho"], figures["rank"], figures["since"], figures["message"] = phrase.Capital(idle[1]), idle[2], idle[3], idle[4], idle[5]
		return true
	}
	few := waitForFew.FindStringSubmatch(text)
	if few == nil {
		return false
	}
	figures["ranksNow"], figures["rankWho"], figures["rank"], figures["since"], figures["message"] = few[1], few[2], few[3], few[5], few[6]
	if few[4] != "" {
		is := " is slower: "
		if strings.HasPrefix(few[2], "ranks") {
			is = " are slower: "
		}
		figures["slower"] = phrase.Capital(few[2]) + is + few[4] + "."
	}
	return true
}

// threadFailed reports whether a thread of the program has failed whose rank goes on: its exception is the first error of the log, or a rank waits at a line
// that can wait for a thread.
func threadFailed(text string, lines []string) bool {
	if slices.ContainsFunc(placesIn(lines), func(at place) bool { return processAwaited.MatchString(at.source) }) {
		return false
	}
	return loglines.ThreadFailed(lines) || failedThread(lines) != nil && len(waitForChildren(text, lines)) > 0
}

// processAwaited is a line of Python that waits for a program, which may take long.
var processAwaited = regexp.MustCompile(`(?i)\b(?:\w*(?:proc|process|processes|popen|child|cmd)|p)(?:\[[^\]]*\])?\.(?:wait|poll|join|communicate)\(|\bpopen\(.*\)\.|\.communicate\(|\bsubprocess\.`)

// failedThread returns the exception of a thread that the first error of a log is, or else of the first thread that failed; nil if none did.
func failedThread(lines []string) (found *loglines.Aside) {
	words := loglines.FirstError(lines)
	for _, aside := range loglines.Asides(lines) {
		if aside.Part != loglines.Thread {
			continue
		}
		if words != nil && words.Line == aside.Line {
			return &aside
		}
		if found == nil {
			found = &aside
		}
	}
	return found
}

// threadName names the thread that failed as the beginning of a sentence.
func threadName(lines []string) string {
	if found := failedThread(lines); found != nil {
		return "Thread " + quotedText(found.Name) + " of the program"
	}
	return "A thread of the program"
}

// wordsOfGone is words for what has ended while the job goes on: the exception of a thread may not be the first error of the log.
func (p *input) wordsOfGone(launcher facts.Pod, figures map[string]string) []string {
	lines := launcher.Log.Lines
	if found := failedThread(lines); figures["thread"] != "" && found != nil && !loglines.ThreadFailed(lines) {
		return p.addError(launcher, found.ErrorLine, figures)
	}
	return p.words(figures)
}

// mayHaveRaised reports whether a log has an exception that can be that of a rank for which the others wait: no stack shows what the ranks do, or the
// program of one has ended and no other does something else than to wait for it. Programs handle exceptions and go on.
func mayHaveRaised(text string, lines []string) bool {
	words := loglines.FirstError(lines)
	if words == nil || !loglines.IsException(words.Message) && !isRaised(lines) {
		return false
	}
	if child, _ := loglines.ChildFailed(lines); child != nil && child.Line == words.Line {
		// The rank itself goes on.
		return false
	}
	if len(StallLines(lines)) == 1 {
		return true
	}
	ended := endedPrograms(lines)
	late, _ := doingsIn(text).late(ended)
	return ended != "" && len(late) == 0
}

// isRaised reports whether a log has a traceback of Python with an exception, whatever its name, such as socket.gaierror.
func isRaised(lines []string) bool {
	return loglines.AfterTraceback(lines, func(string) bool { return false }) != nil
}

// isOwnAddress reports whether an address, with its port, is that of a pod of the job.
func (p *input) isOwnAddress(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool {
		own, err := netip.ParseAddr(pod.Status.PodIP)
		return err == nil && own == at.Addr()
	})
}
