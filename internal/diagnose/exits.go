package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

func endReason(end *corev1.ContainerStateTerminated) string {
	if end.Reason == "" {
		return "Error"
	}
	return end.Reason
}

// firstEnds returns findings for what ended before the launcher: a rank, or a worker's container.
func firstEnds(p *input) []Finding {
	var found []Finding
	s := p.LauncherSummary()
	isScript := s != nil && s.Code == agentapi.WindowsLineEnds
	if f := p.restartedTooOften(); f != nil {
		found = append(found, *f)
	} else if f := p.timeLimitOver(); f != nil {
		found = append(found, *f)
	} else if f := p.rankEnd(); f != nil && !isScript && (s == nil || !s.LaterSucceeded) {
		found = append(found, *f)
	} else if f := p.programMissing(); f != nil {
		found = append(found, *f)
	}
	for i := range p.Pods {
		if end := p.Pods[i].End(); end == nil || p.Pods[i].Role == mpi.RoleLauncher || end.ExitCode == facts.Terminated {
			continue
		}
		return append(found, p.containerEnd(p.Pods[i]))
	}
	return found
}

// lastEnds returns a finding for the end of the launcher, the weakest evidence: it ends because something else did.
// Workers that received SIGTERM ended after it.
func lastEnds(p *input) []Finding {
	for i := range p.Pods {
		end := p.Pods[i].End()
		if end == nil || p.Pods[i].Role == mpi.RoleWorker && (end.ExitCode != facts.Terminated || !p.Failed()) {
			continue
		}
		return []Finding{p.containerEnd(p.Pods[i])}
	}
	return nil
}

// rankEnd returns a finding for the first rank that failed, as an agent observed it.
func (p *input) rankEnd() *Finding {
	first, teller := p.FirstRank()
	// A rank that received SIGTERM, or was killed when a worker was lost, did not fail by itself.
	if first == nil || first.OOM || first.Signal == 15 || first.Signal == 9 && (p.LostWorker() || p.aborts() || p.KilledByMPI()) {
		return nil
	}
	figures := map[string]string{"rank": fmt.Sprint(first.Rank), "rankText": " in " + rankName(*first)}
	code := cmp.Or(facts.CodeOfSignal(first.Signal), facts.CodeOfCrash(first.ExitCode))
	if code == "" || code == codes.SegmentationFault && p.LaunchedInRank() {
		code = codes.ApplicationFailed
		if first.ExitCode > 0 {
			figures["codeText"] = exitText(first.ExitCode)
		}
	}
	host := p.HostOf(first.Rank)
	if host == nil {
		host = &teller
	}
	evidence := []string{fmt.Sprintf("Agent: %s ended first, exit code %d.", rankName(*first), first.ExitCode)}
	words := p.words(figures)
	if launcher := p.Launcher(); len(words) == 0 && launcher != nil && code == codes.ApplicationFailed {
		words = facts.LastLinesOf(*launcher, figures["rank"])
		figures["placeText"] = cmp.Or(figures["placeText"], outputEnd(*launcher))
	}
	evidence = append(evidence, words...)
	f := p.find(code, []facts.Pod{*host}, p.ended(*host, figures), evidence...)
	if first.ExitCode > 0 {
		f.ExitCode = &first.ExitCode
	}
	adviseOnExit(&f)
	if figures["errorText"] == "" && f.Code == codes.ApplicationFailed && first.ExitCode == 1 && strings.HasPrefix(first.Program, "python") {
		f.Remedies = append(f.Remedies, codes.SilentPython)
	}
	return &f
}

// outputEnd quotes the last line that a program printed, for a summary.
func outputEnd(pod facts.Pod) string {
	return lastLineText("the output ends with", slices.DeleteFunc(slices.Clone(loglines.ProgramLines(pod.Log.Lines)), saidByMPICH.MatchString))
}

// rankName names a rank with its program, such as "rank 1 (python3)". The program of a rank that was not observed is unknown.
func rankName(end agentapi.RankEnd) string {
	return fmt.Sprintf("rank %d", end.Rank) + asAside(end.Program)
}

// timeLimitOver returns a finding for ranks that MPI's launcher ended at its own time limit; nil if it reports none.
func (p *input) timeLimitOver() *Finding {
	line, limit := p.TimeLimit()
	if line == "" {
		return nil
	}
	launcher := p.FailedLauncher()
	figures := map[string]string{}
	if limit != "" {
		figures["limitText"] = " of " + limit
	}
	f := p.find(codes.TimeLimitExceeded, []facts.Pod{*launcher}, figures, facts.LogLine(*launcher, line))
	f.ExitCode = launcher.ExitCode()
	return &f
}

// saidByMPICH matches lines of MPICH and Hydra about ranks that failed.
var saidByMPICH = regexp.MustCompile(`^\s*(?:=|\[(?:mpiexec|proxy)|MPI|internal_|Fatal error in|Abort\(|YOUR APPLICATION|This typically)`)

// unnoticed reports a rank that failed in a job that succeeded. Kubernetes only knows the exit code of the launcher's
// command, which may differ from mpirun's.
func unnoticed(p *input) []Finding {
	first, _ := p.FirstRank()
	if first == nil || !first.OOM && (first.Signal == 15 || first.Signal == 9) {
		return nil
	}
	pods := p.Pods[:1]
	if host := p.HostOf(first.Rank); host != nil {
		pods = []facts.Pod{*host}
	}
	figures := map[string]string{"rank": fmt.Sprint(first.Rank), "program": first.Program, "code": fmt.Sprint(first.ExitCode)}
	words := p.words(figures)
	entry := codes.Lookup(codes.RankFailed)
	switch s := p.LauncherSummary(); {
	case s != nil && s.LaterSucceeded:
		entry = codes.EarlierRunFailed
	case mpi.PipesRanks(p.LauncherWords()):
		entry.Remedies = codes.LostInPipe
	}
	evidence := fmt.Sprintf("Agent: %s ended first, exit code %d; the launcher's command ended with 0.", rankName(*first), first.ExitCode)
	f := p.findAs(entry, pods, figures, append([]string{evidence}, words...)...)
	f.ExitCode = &first.ExitCode
	return []Finding{f}
}

// containerEnd returns a finding for the exit code of a container's command that ended.
func (p *input) containerEnd(pod facts.Pod) Finding {
	end, exit := pod.End(), *pod.ExitCode()
	figures := map[string]string{}
	what, entry := "container", p.exitEntry(pod, figures)
	if name := pod.FailedInit(); name != "" && (entry.Code == codes.ApplicationFailed || entry.Code == codes.ProgramMissing) {
		code := entry.Code
		entry, what, figures["container"] = codes.InitContainerFailed, "init container "+name, name
		if code == codes.ProgramMissing {
			entry, figures["program"] = codes.InitProgramMissing, cmp.Or(figures["program"], notFoundIn(pod.Log.Lines))
		}
	}
	evidence := []string{endText(pod, what, end, exit)}
	if name := figures["container"]; entry.Summary == codes.InitContainerFailed.Summary {
		words, remedies := p.initWords(pod, name, figures)
		if evidence = append(evidence, words...); remedies != nil {
			entry.Remedies = remedies
		}
	}
	if entry.Summary == codes.Lookup(codes.ApplicationFailed).Summary && pod.Role == mpi.RoleLauncher {
		var line string
		entry, line = p.outsideMPI(pod, figures)
		if line != "" {
			evidence = append(evidence, line)
		}
	}
	if end.Reason == facts.StartError {
		evidence = append(evidence, "Kubernetes: "+end.Message)
	}
	if first, _ := p.FirstRank(); pod.Role == mpi.RoleLauncher && first != nil && first.Signal == 9 && p.KilledByMPI() {
		evidence = append(evidence, fmt.Sprintf("Agent: %s was killed when MPI ended the ranks because of this.", rankName(*first)))
	}
	if what == "container" {
		evidence = append(evidence, p.words(figures)...)
	}
	if figures["errorText"] == "" {
		first, _ := p.FirstRank()
		evidence = append(evidence, facts.LastLinesOf(pod, failedRank(figures, first))...)
		if entry.Summary == codes.Lookup(codes.ApplicationFailed).Summary && figures["placeText"] == "" && p.startedRanks(figures) {
			figures["placeText"] = outputEnd(pod)
		}
	}
	f := p.findAs(p.launcherSaid(entry, pod, figures), []facts.Pod{pod}, p.ended(pod, figures), evidence...)
	f.ExitCode = &exit
	adviseOnExit(&f)
	return f
}

// exitEntry returns the definition that follows from the exit code of a container's command alone, and adds figures for it.
func (p *input) exitEntry(pod facts.Pod, figures map[string]string) codes.Entry {
	end, exit := pod.End(), *pod.ExitCode()
	switch {
	case end.Reason == facts.StartError || end.Reason == "ContainerCannotRun":
		return p.notStarted(pod, end.Message, figures)
	case exit == 127 && !facts.PassedOn(pod) && !p.Shows(codes.LibraryMissing) && !p.Shows(codes.WindowsLineEnds):
		figures["where"] = lower(pod.Title())
		return codes.Lookup(codes.ProgramMissing)
	case exit == 255 && pod.Role == mpi.RoleLauncher && !p.Job.UsesAgent():
		return codes.Lookup(codes.SSHFailed)
	case facts.CodeOfSignal(exit-128) == codes.SegmentationFault && p.LaunchedInRank():
		return codes.Lookup(codes.ApplicationFailed)
	case facts.CodeOfSignal(exit-128) != "" && !facts.OwnCode(pod, exit):
		return codes.Lookup(facts.CodeOfSignal(exit - 128))
	}
	figures["codeText"] = exitText(exit)
	return codes.Lookup(codes.ApplicationFailed)
}

// endText describes how a container of a pod ended, and its command if that ended with another exit code.
func endText(pod facts.Pod, what string, end *corev1.ContainerStateTerminated, exit int32) string {
	text := fmt.Sprintf("Pod %s: %s ended with exit code %d (%s)", pod.Name, what, end.ExitCode, endReason(end))
	if exit != end.ExitCode {
		text += fmt.Sprintf(", and its command with %d", exit)
	}
	return text + "."
}

// launcherSaid returns the definition for what MPI's launcher printed before any rank ran, which is no error of the program; entry if it
// printed nothing.
func (p *input) launcherSaid(entry codes.Entry, pod facts.Pod, figures map[string]string) codes.Entry {
	if entry.Summary != codes.Lookup(codes.ApplicationFailed).Summary || pod.Role != mpi.RoleLauncher || figures["said"] == "" || !p.noRankRan() {
		return entry
	}
	if word, variable := p.unexpandedInCommand(); word != "" {
		figures["option"], figures["variable"] = strconv.Quote(quotedText(word)), variable
		return codes.ReferenceInCommand
	}
	return codes.LauncherMessage
}

// notFoundIn returns the program that a shell did not find, by the last line of a log that names one; "" if none does.
func notFoundIn(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if program := notFoundAt(line); program != "" {
			return program
		}
	}
	return ""
}

// shellNotFound is what shells print of a program that they do not find, in a script or a command: dash, busybox, bash and zsh. starterNotFound is what
// programs print that start others: coreutils, busybox, util-linux and numactl.
var (
	shellNotFound   = regexp.MustCompile(`(?:(?:ba|da|a|k|z)?sh: (?:-c: )?(?:line )?(?:\d+: )?|[^\s:]*/[^\s:]+: (?:line )?\d+: |[^\s:]+: line \d+: )(?:exec: )?([^\s:]+): (?:command )?not found`)
	starterNotFound = regexp.MustCompile("\\b(?:env|nice|nohup|timeout|stdbuf|taskset|setsid|chrt|ionice|numactl): (?:can't execute |failed to (?:run command|execute) |execution of )?['`\\x{2018}]?([\\w.+/-]+)['\\x{2019}]?: No such file or directory$")
)

// notFoundAt returns the program that a line of a log reports as not found; "" if it reports none.
func notFoundAt(line string) string {
	for _, form := range []*regexp.Regexp{shellNotFound, starterNotFound} {
		if found := form.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

// outsideMPI returns the definition for a launcher whose command failed, by whether MPI ran meanwhile, and what the launcher's agent
// observed, or "".
func (p *input) outsideMPI(launcher facts.Pod, figures map[string]string) (entry codes.Entry, observed string) {
	entry = codes.Lookup(codes.ApplicationFailed)
	switch {
	case launcher.Summary != nil && launcher.Summary.MPISucceeded:
		entry, observed = p.afterRanks(launcher, figures), "Launcher's agent: each launcher of MPI that the command called ended with exit code 0."
	case p.StartedNothing(launcher.Summary) && startsRanks.MatchString(p.LauncherCommand()):
		entry, observed = codes.EndedBeforeRanks, "Launcher's agent: the command called no launcher of MPI, and started no process on a worker."
	default:
		return entry, ""
	}
	if last := loglines.LastTraced(launcher.Log.Lines); last != "" {
		figures["lastText"] = ", at " + quotedText(last)
	}
	return entry, observed
}

// aborts reports whether a rank has called MPI_Abort.
func (p *input) aborts() bool {
	return slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool { return slices.ContainsFunc(pod.Log.Lines, loglines.Abort.MatchString) })
}

// exitText is an exit code in a sentence, with the meaning of codes that programs end with in silence.
func exitText(code int32) string {
	text := fmt.Sprintf(" with exit code %d", code)
	if meaning := silentExits[code]; meaning != "" {
		text += " (" + meaning + ")"
	}
	return text
}

// silentExits are the meanings of exit codes, by code: those of signals (signal(7)), and that of timeout(1).
var silentExits = map[int32]string{
	124:      "the program timeout ended its command because the time was over",
	128 + 8:  "SIGFPE, an arithmetic error such as a division by zero",
	128 + 13: "SIGPIPE, the reader of its output had ended",
	128 + 14: "SIGALRM, a timer that the program had set",
	128 + 24: "SIGXCPU, more CPU time than ulimit -t allows",
	128 + 25: "SIGXFSZ, a file larger than ulimit -f allows",
	128 + 31: "SIGSYS, a system call that is not allowed in the container",
}

// adviseOnExit adds what to do about the exit code of a program that reported no error.
func adviseOnExit(f *Finding) {
	if f.ExitCode == nil || f.Code != codes.ApplicationFailed {
		return
	}
	if remedy, is := silentRemedies[*f.ExitCode]; is {
		f.Remedies = append([]v1alpha1.Remedy{remedy}, f.Remedies...)
	}
}

// silentRemedies are what to do about some of silentExits.
var silentRemedies = map[int32]v1alpha1.Remedy{
	124:      {Text: "Increase the time of the program timeout in the command, or remove it.", Action: "timeout 1h mpirun <program>"},
	128 + 8:  {Text: "Correct the calculation: a division by zero of integers, or floating-point exceptions that the program has turned on."},
	128 + 14: {Text: "Turn the timer off when it is not needed any more, or give it more time.", Action: "signal.alarm(0)"},
}

// ended adds the figures about the end of a pod.
func (p *input) ended(pod facts.Pod, figures map[string]string) map[string]string {
	if bytes := facts.MemoryLimit(p.Template(pod.Role)); bytes > 0 {
		figures["limitText"] = " (now " + bytesText(bytes) + ")"
	}
	// mpi4py calls it after an exception, which then is what the rank failed by.
	if launcher := p.Launcher(); launcher != nil && figures["rank"] != "" && figures["errorText"] == "" {
		if loglines.Aborted(launcher.Log.Lines, figures["rank"], p.ExitOf(figures["rank"])) {
			figures["abortText"] = " by calling MPI_Abort"
		}
	}
	return figures
}

// startsRanks matches a word of a command that starts ranks, or may do so: a launcher of MPI, or a script.
var startsRanks = regexp.MustCompile(`\b(?:mpirun|mpiexec|orterun|prterun|horovodrun|srun|deepspeed)\b|\.sh\b`)
