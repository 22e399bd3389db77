package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// symptoms returns findings for the symptoms in logs, without those that only sum up others.
func symptoms(p *input) []Finding {
	var found []Finding
	for _, s := range p.Signs {
		if !s.Umbrella && !p.endedAfterwards(s) && !p.continuedAfter(s) && !p.ofPodMemory(s) && !p.hasNCCLCause(s) && (s.Code != codes.ProgramMissing || !p.AgentKnowsProgram()) {
			found = append(found, p.signFinding(s))
		}
	}
	return found
}

// ofPodMemory reports whether a log shows that TensorFlow or JAX lacked memory in a job without GPUs: they have the same words for that of pods.
func (p *input) ofPodMemory(s facts.Sign) bool {
	return s.As == &codes.GPUTakenAtStart && !strings.Contains(s.Line, "GPU") && p.Gpus(mpi.RoleWorker)+p.Gpus(mpi.RoleLauncher) == 0
}

// hasNCCLCause reports whether a log shows a system error of NCCL and, in another line, what caused it.
func (p *input) hasNCCLCause(s facts.Sign) bool {
	return s.Code == codes.NCCLSystemError && s.As == nil && slices.ContainsFunc(p.Signs, func(other facts.Sign) bool {
		return other.Code == codes.LockedMemoryLimit || other.Code == codes.GPUOutOfMemory || other.Code == codes.WrongInterface
	})
}

// continuedAfter reports whether the shell that did not find a program went on with its script, which something else ended: a rank that is no
// shell crashed or ended with an error; or the rank, or the launcher if no rank failed, ended with another code than that of a missing program,
// and the log has another error.
func (p *input) continuedAfter(s facts.Sign) bool {
	if s.Code != codes.ProgramMissing || notFoundAt(s.Line) == "" {
		return false
	}
	code := int32(0)
	if first, _ := p.FirstRank(); first != nil {
		if code = first.ExitCode; endedByItself(*first) {
			return true
		}
	} else if launcher := p.FailedLauncher(); launcher != nil {
		code = ptr.Deref(launcher.ExitCode(), 0)
	}
	if code <= 0 || code == shellFoundNothing {
		return false
	}
	return slices.ContainsFunc(s.Pods, func(pod facts.Pod) bool {
		found := loglines.FirstError(pod.Log.Lines)
		return found != nil && notFoundAt(found.Line) == ""
	})
}

// endedByItself reports whether a rank crashed, or is no shell and ended with an error: then a program that a shell did not find is not what
// ended it.
func endedByItself(end agentapi.RankEnd) bool {
	if end.Signal == 9 || end.Signal == 15 {
		return false
	}
	return end.Signal != 0 || facts.CodeOfCrash(end.ExitCode) != "" || end.ExitCode > 0 && end.ExitCode != shellFoundNothing && !loglines.IsShell(end.Program)
}

// shellFoundNothing is the exit code of a shell whose last program was not found (POSIX).
const shellFoundNothing = 127

// summings returns findings for symptoms that sum up others, and for workers that the agent lost: consequences,
// usually.
func summings(p *input) []Finding {
	var found []Finding
	if s := p.LauncherSummary(); s != nil && !p.endedByTimeout() {
		for _, trouble := range s.Hosts {
			if trouble.Code == agentapi.ConnectionLost || p.stillWaiting(trouble, s) {
				found = append(found, p.hostTrouble(trouble, s))
			}
		}
	}
	var after []Finding
	for _, s := range p.Signs {
		switch {
		case p.endedAfterwards(s):
			after = append(after, p.signFinding(s))
		case s.Umbrella:
			found = append(found, p.signFinding(s))
		}
	}
	return append(found, after...)
}

// signFinding makes a finding of what logs show.
func (p *input) signFinding(s facts.Sign) Finding {
	figures, pods := p.place(s)
	words := p.wordsOfSign(s, figures)
	entry := p.signEntry(s, pods[0], figures)
	switch {
	case s.Code == codes.NameUnresolved || s.Code == codes.LauncherNameUnresolved:
		entry = p.withOwnDNS(entry, s.Line, figures)
	case (s.Code == codes.DaemonUnroutable || s.Code == codes.DaemonsNotStarted) && !p.Job.UsesAgent():
		// An image's own ssh may not print why it failed.
		entry = p.withOwnDNS(entry, "", figures)
	}
	f := p.findAs(entry, pods, p.ended(pods[0], figures))
	failedItself := s.Code == codes.ApplicationFailed && p.firstFailedItself()
	for _, pod := range s.Pods {
		// The error of a rank, or the end of one that an agent observed, makes it unnecessary to quote that some rank failed.
		if shown := facts.FirstShown(pod, s.Symptom); shown != nil && (!s.Umbrella || len(words) == 0 && !failedItself) {
			if line := facts.LogLine(pod, shown.Line); !slices.Contains(f.Evidence, line) {
				f.Evidence = append(f.Evidence, line)
			}
		}
	}
	if errno := figures["errno"]; errno != "" && !strings.Contains(s.Line, errno) {
		f.Evidence = append(f.Evidence, facts.LogLine(s.Pods[0], "Error: "+errno))
	}
	f.Evidence = append(f.Evidence, words...)
	return f
}

// wordsOfSign returns the program's own error line with a sign of its end, and adds figures for it; nil where no program has ended.
func (p *input) wordsOfSign(s facts.Sign, figures map[string]string) []string {
	summary := p.LauncherSummary()
	ranksEnded := summary != nil && len(summary.Ranks) > 0
	if s.Code != codes.ApplicationFailed && s.Code != codes.Aborted && (s.Code != codes.NotEnoughSlots || !ranksEnded) {
		return nil
	}
	words := p.words(figures)
	if figures["codeText"] == "" && p.KilledByMPI() {
		figures["codeText"] = exitText(*summary.ExitCode)
	}
	return words
}

// signEntry returns the definition for what logs show, by what else is known of it, and adds figures for that.
func (p *input) signEntry(s facts.Sign, pod facts.Pod, figures map[string]string) codes.Entry {
	entry := codes.Lookup(s.Code)
	if s.As != nil {
		entry = *s.As
	}
	switch kind := codes.OwnErrorOf(figures["wholeError"]); {
	case s.Code == codes.NotEnoughSlots && kind != nil && kind.Name == "spawn":
		entry = codes.SpawnWithoutSlots
	case p.enoughSlots(s):
		entry = codes.HostfileNotRead
	}
	if s.Code == codes.MoreSlotsThanGPUs && p.hasGPUForEachSlot() {
		entry = codes.Lookup(codes.WrongGPU)
	}
	if launcher, worker := facts.Image(p.Template(mpi.RoleLauncher)), facts.Image(p.Template(mpi.RoleWorker)); s.Code == codes.MPINotInPath && launcher != worker && launcher != "" && worker != "" {
		entry, figures["launcherImage"], figures["workerImage"] = codes.HelperOfOtherMPI, launcher, worker
	}
	if slices.Contains(withoutServer, s.Code) && !p.Job.UsesAgent() && p.Job.Workers.ServesNothing() {
		entry, figures["setting"] = codes.NoServerOnWorkers, quotedText(facts.CommandOf(p.Template(mpi.RoleWorker)))
		if containers := p.Template(mpi.RoleWorker).Containers; len(containers) > 1 {
			entry, figures["container"] = codes.NoServerInFirstContainer, containers[0].Name
			figures["others"] = strings.Join(containerNames(containers[1:]), ", ")
		}
		entry.Code = s.Code
	}
	if entry.Summary == codes.ComponentMissing.Summary && slices.Contains(frameworks, figures["component"]) {
		figures["component"] = cmp.Or(p.Job.SelectedComponent(figures["component"]), figures["component"])
	}
	if s.Code == codes.PortInUse && !p.Template(pod.Role).HostNetwork {
		entry = codes.PortInUseInPod
	}
	if s.Code == codes.ConnectionLost && p.daemonEnded() {
		entry = p.nameCores(codes.DaemonEnded, figures)
	}
	if entry.Code == codes.LaunchRefused {
		entry = p.refusedEntry(entry, figures)
	}
	return p.executedEntry(entry, s, figures)
}

func containerNames(containers []corev1.Container) []string {
	names := make([]string, len(containers))
	for i, c := range containers {
		names[i] = c.Name
	}
	return names
}

// refusedEntry returns the definition for a command that MPI's launcher refuses, by the words of that command.
func (p *input) refusedEntry(entry codes.Entry, figures map[string]string) codes.Entry {
	if word, variable := p.unexpandedInCommand(); word != "" {
		figures["option"], figures["variable"] = strconv.Quote(quotedText(word)), variable
		return codes.ReferenceInCommand
	}
	if word, meant := p.joinedOptions(); word != "" {
		figures["option"], figures["words"] = strconv.Quote(quotedText(word)), list(meant)
		return codes.OptionsInOneWord
	}
	if meant := p.cutScript(); meant != nil && entry.Summary == codes.ProgramNotNamed.Summary {
		figures["words"] = list(meant)
		return codes.ScriptInManyWords
	}
	if name := p.undefinedInScript(); name != "" && (entry.Summary == codes.ProgramNotNamed.Summary || entry.Summary == codes.Lookup(codes.LaunchRefused).Summary) {
		figures["variable"] = name
		return codes.UndefinedInScript
	}
	if foreign := implementation.Foreign(figures["option"], p.Job.Implementation); foreign != nil && entry.Summary == codes.Lookup(codes.LaunchRefused).Summary {
		figures["option"], figures["others"] = foreign.Option, foreign.Of
		if foreign.Instead != "" {
			figures["first"] = fmt.Sprintf("Write %s in place of it.", foreign.Instead)
		}
		return codes.OptionOfOther
	}
	return p.placedEntry(entry, figures)
}

// executedEntry returns the definition for a program that exists and was not executed; entry if it is about something else.
func (p *input) executedEntry(entry codes.Entry, s facts.Sign, figures map[string]string) codes.Entry {
	reason := whyNotExecuted(s)
	if reason != "" {
		entry, figures["reason"] = codes.RankNotStarted, reason
	}
	if reason == notExecutable || entry.Summary == codes.ProgramNotAccessible.Summary {
		if volume, mounted := p.withoutExecution(figures["program"]); volume != "" {
			entry, figures["volume"], figures["mounted"], figures["programTemplate"] = codes.ModeWithoutExecution, volume, mounted, p.field(mpi.RoleWorker)
		}
	}
	return entry
}

// unexpandedInCommand returns a word of the launcher's command with a reference to a variable that nothing replaces, and its name
// (mpi.UnexpandedIn), if the launcher's log shows that word; "" if there is none, or data connections may define it.
func (p *input) unexpandedInCommand() (word, variable string) {
	main, launcher := p.Template(mpi.RoleLauncher).Containers, p.Launcher()
	if len(main) == 0 || len(p.Job.Connections) > 0 || launcher == nil {
		return "", ""
	}
	word, variable = mpi.UnexpandedIn(main[0])
	if word == "" || !slices.ContainsFunc(launcher.Log.Lines, func(line string) bool { return strings.Contains(line, word) }) {
		return "", ""
	}
	return word, variable
}

// joinedOptions returns a word of the launcher's command that joins options of MPI's launcher with their values, and the command as it was
// meant (mpi.JoinedOptions); "" if there is none.
func (p *input) joinedOptions() (word string, meant []string) {
	main := p.Template(mpi.RoleLauncher).Containers
	if len(main) == 0 {
		return "", nil
	}
	return mpi.JoinedOptions(slices.Concat(main[0].Command, main[0].Args))
}

// cutScript returns the words that the launcher's shell was meant to run, if it runs only the first one (mpi.CutScript); else nil.
func (p *input) cutScript() []string {
	main := p.Template(mpi.RoleLauncher).Containers
	if len(main) == 0 {
		return nil
	}
	meant, cut := mpi.CutScript(slices.Concat(main[0].Command, main[0].Args))
	if !cut {
		return nil
	}
	return meant
}

// endedAfterwards reports whether a log shows a lost connection to a rank that had ended before: it had called MPI_Abort, or an
// exception of the program's own ended it. The connection of the other rank may have been tried only then.
func (p *input) endedAfterwards(s facts.Sign) bool {
	if s.Code != codes.WrongInterface {
		return false
	}
	if first, _ := p.FirstRank(); first != nil && first.Signal == 0 && first.ExitCode > 0 {
		for _, pod := range s.Pods {
			if loglines.AfterTraceback(pod.Log.Lines, aboutPeers.MatchString) != nil {
				return true
			}
		}
	}
	for _, pod := range s.Pods {
		for _, line := range pod.Log.Lines {
			if line == s.Line {
				break
			}
			if strings.Contains(line, "MPI_ABORT was invoked on rank") {
				return true
			}
		}
	}
	return false
}

// aboutPeers matches exceptions that can follow from a connection that another rank lacks.
var aboutPeers = regexp.MustCompile(`(?i)mpi|nccl|gloo|connect|socket|time[d ]*out|broken pipe|network|distributed|horovod`)

// withoutServer are what launchers report of workers on which no SSH server runs.
var withoutServer = []codes.Code{codes.SSHMissing, codes.ConnectionRefused, codes.SSHFailed}

// frameworks are those of Open MPI by whose components ranks communicate. Some of its messages name them in place of the component.
var frameworks = []string{"pml", "btl", "mtl"}

const notExecutable = "the file is not executable"

// withoutExecution returns the volume of a ConfigMap or Secret on which the ranks' program is, and its mode, if that does not allow to
// execute it; "" otherwise. The default is 0644.
func (p *input) withoutExecution(program string) (volume, mounted string) {
	const executable, byDefault = 0o111, 0o644
	spec := p.Template(mpi.RoleWorker)
	if !path.IsAbs(program) {
		return "", ""
	}
	name := facts.VolumeOf(spec, program)
	for _, v := range spec.Volumes {
		object, mode := facts.ObjectOf(v)
		if v.Name != name || object == "" {
			continue
		}
		if mode := ptr.Deref(mode, byDefault); mode&executable == 0 {
			return name, fmt.Sprintf("%s with mode %04o", object, mode)
		}
	}
	return "", ""
}

// whyNotExecuted returns why the kernel did not execute a rank's program that exists, by the error that MPI printed; "" if the
// program may not exist.
func whyNotExecuted(s facts.Sign) string {
	switch errno := s.Figures["errno"]; {
	case s.Code != codes.ProgramMissing:
		return ""
	case strings.Contains(errno, "Exec format error"):
		return agentapi.UnknownFormat
	case strings.Contains(errno, "ermission denied"):
		return notExecutable
	case strings.Contains(errno, "has a bad interpreter"), strings.Contains(errno, "No such file") && strings.Contains(s.Text, "execve"):
		// Open MPI has found the file before.
		return "the interpreter that its first line names is not in the image, or the line ends with a carriage return"
	}
	return ""
}

// daemonEnded reports whether the launcher's agent reached all hosts, lost none of them and saw no rank, and whether all
// workers run: if MPI misses a daemon, that has ended by itself.
func (p *input) daemonEnded() bool {
	s := p.LauncherSummary()
	if s == nil || !p.Job.UsesAgent() || s.HostsExpected == 0 || s.HostsReached == 0 || s.HostsReached < s.HostsExpected || len(s.Hosts) > 0 || s.InitSeconds > 0 {
		return false
	}
	workers := 0
	for _, pod := range p.Pods {
		if pod.Role != mpi.RoleWorker {
			continue
		}
		if p.RemovalOf(pod) != nil || !podstatus.IsReady(pod.Pod) || pod.DeletionTimestamp != nil || podstatus.Restarts(pod.Pod) > 0 {
			return false
		}
		workers++
	}
	return workers == int(p.Job.Workers.Count)
}

// place returns the pods that a sign is about, or else those whose logs contain it, and its figures with those derived
// from them.
func (p *input) place(s facts.Sign) (map[string]string, []facts.Pod) {
	figures := map[string]string{}
	maps.Copy(figures, s.Figures)
	if (codes.Has(s.Code, codes.EndsRank) || codes.Has(s.Code, codes.FromProgram)) && figures["rank"] == "" {
		p.copyRank(figures)
	}
	pods := s.Pods[:1]
	if s.Code == codes.LauncherNameUnresolved && figures["host"] == "" {
		figures["host"] = p.Job.LauncherHost()
	}
	if host := figures["host"]; host != "" {
		figures["host"] = short(host)
		if p.Known(short(host)) != nil {
			// Only pods of the job are named in commands: logs may contain any text.
			figures["hostPod"] = short(host)
		}
	}
	if host := p.Known(short(figures["host"])); host != nil && host.Role == mpi.RoleWorker && figures["rank"] == "" && s.Code == codes.ApplicationFailed &&
		p.Job.SlotsPerWorker == 1 && !p.Job.Launcher.RunsRanks {
		// The host has a single rank.
		figures["rank"] = strconv.Itoa(host.Index)
	}
	if port := figures["port"]; port != "" {
		figures["portText"] = " (port " + port + ")"
	}
	if rank, err := strconv.ParseInt(figures["rank"], 10, 32); err == nil {
		figures["rankText"], figures["rankWho"] = fmt.Sprintf(" in rank %d", rank), fmt.Sprintf("Rank %d", rank)
		if host := p.HostOf(int32(rank)); host != nil {
			pods = []facts.Pod{*host}
			if s.Code == codes.ProgramMissing {
				figures["where"], figures["hostPod"] = lower(host.Title()), host.Name
			}
		}
	}
	if host := p.Known(figures["host"]); host != nil {
		pods = []facts.Pod{*host}
		figures["where"] = lower(host.Title())
	}
	if s.Code == codes.ProgramMissing && figures["where"] == "" && figures["rank"] == "" && p.ranNoRank(s) {
		figures["where"] = "the launcher"
	}
	figures["whoLower"] = lower(subject(pods))
	p.gpuFigures(pods, figures)
	return figures, pods
}

// ranNoRank reports whether the log of a launcher shows a symptom, and its agent saw no rank: the line is not the output of one.
func (p *input) ranNoRank(s facts.Sign) bool {
	summary := s.Pods[0].Summary
	return s.Pods[0].Role == mpi.RoleLauncher && !loglines.RankTag.MatchString(s.Line) && !loglines.LauncherWords.MatchString(s.Line) && summary != nil &&
		summary.RanksSeen == 0 && summary.HostsReached == 0 && len(summary.Ranks) == 0
}

// copyRank adds the rank that ended first: the one that crashed as an agent observed it, the one in a log, or else the one that an
// agent observed.
func (p *input) copyRank(figures map[string]string) {
	if first, _ := p.FirstRank(); first != nil && first.Signal != 0 && first.Signal != 9 && first.Signal != 15 {
		figures["rank"] = fmt.Sprint(first.Rank)
		return
	}
	for _, other := range p.Signs {
		if rank := other.Figures["rank"]; rank != "" {
			figures["rank"], figures["host"] = rank, other.Figures["host"]
			return
		}
	}
	if first, _ := p.FirstRank(); first != nil && first.Signal != 15 {
		figures["rank"] = fmt.Sprint(first.Rank)
	}
}

// enoughSlots reports whether a job has the slots that MPI says it has not.
func (p *input) enoughSlots(s facts.Sign) bool {
	asked, err := strconv.ParseInt(s.Figures["slots"], 10, 64)
	return s.Code == codes.NotEnoughSlots && err == nil && asked <= p.Job.Ranks()
}

// short is a host's name without its domain; an address stays as it is.
func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	if _, err := strconv.Atoi(name); err == nil || name == "" {
		return host
	}
	return name
}
