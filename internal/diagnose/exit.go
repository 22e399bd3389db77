package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// mpirunCode is where Open MPI says how the first process ended.
var mpirunCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)

// firstEnds returns findings for what ended before the launcher: a rank, or a worker's container.
func firstEnds(p *input) []Finding {
	var found []Finding
	if f := p.rankEnd(); f != nil {
		found = append(found, *f)
	} else if f := p.programMissing(); f != nil {
		found = append(found, *f)
	}
	for i := range p.pods {
		if end := p.pods[i].end(); end == nil || p.pods[i].role == mpi.RoleLauncher || end.ExitCode == toldToEnd {
			continue
		}
		return append(found, p.containerEnd(p.pods[i]))
	}
	return found
}

// lastEnds returns a finding for the end of the launcher, the weakest evidence: it ends because something else did.
// Workers that received SIGTERM ended after it.
func lastEnds(p *input) []Finding {
	for i := range p.pods {
		end := p.pods[i].end()
		if end == nil || p.pods[i].role == mpi.RoleWorker && (end.ExitCode != toldToEnd || !p.failed()) {
			continue
		}
		return []Finding{p.containerEnd(p.pods[i])}
	}
	return nil
}

// toldToEnd is the exit code of what ends by SIGTERM.
const toldToEnd = 128 + 15

// rankEnd returns a finding for the first rank that failed, as an agent observed it.
func (p *input) rankEnd() *Finding {
	first, teller := p.firstRank()
	// A rank that received SIGTERM, or was killed when a worker was lost, did not fail by itself.
	if first == nil || first.OOM || first.Signal == 15 || first.Signal == 9 && (p.lostWorker() || p.aborts()) {
		return nil
	}
	figures := map[string]string{"rank": fmt.Sprint(first.Rank), "rankText": fmt.Sprintf(" in rank %d (%s)", first.Rank, first.Program)}
	code := cmp.Or(codeOfSignal(first.Signal), codeOfCrash(first.ExitCode))
	if code == "" {
		code = codes.ApplicationFailed
		if first.ExitCode > 0 {
			figures["codeText"] = exitText(first.ExitCode)
		}
	}
	host := p.hostOf(first.Rank)
	if host == nil {
		host = &teller
	}
	evidence := []string{fmt.Sprintf("Agent: rank %d (%s) ended first, exit code %d.", first.Rank, first.Program, first.ExitCode)}
	words := p.words(figures)
	if launcher := p.launcher(); len(words) == 0 && launcher != nil && code == codes.ApplicationFailed {
		words = lastLines(*launcher)
		words = words[max(0, len(words)-1):]
	}
	evidence = append(evidence, words...)
	f := p.find(code, []jobPod{*host}, p.ended(*host, figures))
	f.Evidence = evidence
	if first.ExitCode > 0 {
		f.ExitCode = &first.ExitCode
	}
	return &f
}

// aborting is what MPI prints of a rank that called MPI_Abort. It then kills the others.
var aborting = regexp.MustCompile(`application called MPI_Abort\(.*\) - process \d+|MPI_ABORT was invoked on rank \d+`)

// aborts reports whether a rank has called MPI_Abort.
func (p *input) aborts() bool {
	return slices.ContainsFunc(p.pods, func(pod jobPod) bool { return slices.ContainsFunc(pod.log.Lines, aborting.MatchString) })
}

// unnoticed reports a rank that failed in a job that succeeded. Kubernetes only knows the exit code of the launcher's
// command, which may differ from mpirun's.
func unnoticed(p *input) []Finding {
	first, _ := p.firstRank()
	if first == nil || !first.OOM && (first.Signal == 15 || first.Signal == 9) {
		return nil
	}
	pods := p.pods[:1]
	if host := p.hostOf(first.Rank); host != nil {
		pods = []jobPod{*host}
	}
	f := p.find(codes.RankFailed, pods, map[string]string{
		"rank": fmt.Sprint(first.Rank), "program": first.Program, "code": fmt.Sprint(first.ExitCode),
	})
	f.Evidence = []string{fmt.Sprintf("Agent: rank %d (%s) ended first, exit code %d; the launcher's command ended with 0.", first.Rank, first.Program, first.ExitCode)}
	f.ExitCode = &first.ExitCode
	return []Finding{f}
}

// firstRank is the first rank that an agent saw end badly, and whose agent did; nil where none has.
func (p *input) firstRank() (first *agentapi.RankEnd, teller jobPod) {
	for _, pod := range p.pods {
		if pod.summary == nil {
			continue
		}
		for i := range pod.summary.Ranks {
			end := &pod.summary.Ranks[i]
			// A rank that received SIGTERM ended because of another one.
			if first == nil || first.Signal == 15 && end.Signal != 15 {
				first, teller = end, pod
			}
		}
	}
	return first, teller
}

// lostWorker reports whether the launcher's agent lost a worker.
func (p *input) lostWorker() bool {
	s := p.launcherSummary()
	return s != nil && slices.ContainsFunc(s.Hosts, func(h agentapi.HostTrouble) bool { return h.Code == agentapi.ConnectionLost })
}

// programMissing reports that the launcher's own command does not exist.
func (p *input) programMissing() *Finding {
	s := p.launcherSummary()
	if s == nil || s.Code != agentapi.ProgramMissing && s.Code != agentapi.WindowsLineEnds {
		return nil
	}
	launcher := p.failedLauncher()
	if launcher == nil {
		launcher = p.launcher()
	}
	figures := map[string]string{"where": "the launcher"}
	entry := codes.Lookup(codes.ProgramMissing)
	if name := commandOf.FindStringSubmatch(s.Message); name != nil {
		figures["program"] = name[1]
		written, err := strconv.Unquote(name[1])
		if words := splitCommand(written); err == nil && len(words) > 1 {
			entry, figures["words"] = codes.CommandInOneWord, list(words)
		}
		if reason := notStartedFor.FindStringSubmatch(s.Message); reason != nil {
			entry, figures["reason"] = codes.CommandNotStarted, reason[1]
		}
		if err == nil && figures["words"] == "" && figures["reason"] == "" {
			figures["program"] = written
		}
		if s.Code == agentapi.WindowsLineEnds {
			entry, figures["file"], figures["program"] = codes.Lookup(codes.WindowsLineEnds), written, ""
			if interpreter := interpreterIn.FindStringSubmatch(s.Message); interpreter != nil {
				figures["program"] = interpreter[1]
			}
		}
	}
	f := p.findAs(entry, []jobPod{*launcher}, figures)
	// The agent prints its message, too.
	f.Evidence, f.ExitCode = []string{quoted(*launcher, agentapi.Logger+": "+s.Message)}, s.ExitCode
	return &f
}

var (
	// commandOf is where the agent names the launcher's command, notStartedFor why it cannot be started although it exists, and
	// interpreterIn the interpreter of a script.
	commandOf     = regexp.MustCompile(`command ("(?:[^"\\]|\\.)+")`)
	notStartedFor = regexp.MustCompile(`" cannot be started: (.+)\.$`)
	interpreterIn = regexp.MustCompile(`names the interpreter (\S+),`)
)

// splitCommand returns the words of a command that was written as one word. What only a shell understands is left to a shell.
func splitCommand(command string) []string {
	words := strings.Fields(command)
	if len(words) > 1 && strings.ContainsAny(command, "'$|&;<>*?`(){}\\") {
		return []string{"sh", "-c", command}
	}
	return words
}

// list writes words as a list in YAML, which JSON is.
func list(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// containerEnd returns a finding for the exit code of a container that ended.
func (p *input) containerEnd(pod jobPod) Finding {
	end := pod.end()
	figures := map[string]string{}
	code := codes.ApplicationFailed
	switch {
	case end.Reason == startError || end.Reason == "ContainerCannotRun":
		code = p.notStarted(pod, end.Message, figures)
	case end.ExitCode == 127 && !passedOn(pod) && !p.shows(codes.LibraryMissing) && !p.shows(codes.WindowsLineEnds):
		code = codes.ProgramMissing
		figures["where"] = lower(pod.title())
	case end.ExitCode == 255 && pod.role == mpi.RoleLauncher && !p.job.UsesAgent():
		code = codes.SSHFailed
	case codeOfSignal(end.ExitCode-128) != "" && !ownCode(pod, end.ExitCode):
		code = codeOfSignal(end.ExitCode - 128)
	default:
		figures["codeText"] = exitText(end.ExitCode)
	}
	what := "container"
	entry := codes.Lookup(code)
	if name := pod.failedInit(); name != "" && code == codes.ApplicationFailed {
		entry, what, figures["container"] = codes.InitContainerFailed, "init container "+name, name
	}
	evidence := []string{fmt.Sprintf("Pod %s: %s ended with exit code %d (%s).", pod.Name, what, end.ExitCode, endReason(end))}
	if end.Reason == startError {
		evidence = append(evidence, "Kubernetes: "+end.Message)
	}
	evidence = append(evidence, p.words(figures)...)
	if len(evidence) == 1 {
		evidence = append(evidence, lastLines(pod)...)
	}
	f := p.findAs(entry, []jobPod{pod}, p.ended(pod, figures))
	f.Evidence, f.ExitCode = evidence, &end.ExitCode
	return f
}

// shows reports whether a log shows a symptom.
func (p *input) shows(code codes.Code) bool {
	return slices.ContainsFunc(p.signs, func(s sign) bool { return s.Code == code })
}

// passedOn reports whether a launcher's code is a rank's: its own command was there.
func passedOn(pod jobPod) bool {
	s := pod.summary
	return s != nil && s.Role == agentapi.RoleLauncher && s.Code == agentapi.RankFailed
}

// ownCode reports whether an exit code over 128 is the command's own and not that of a signal, according to the agent.
// mpirun has such codes, such as 132. A segmentation fault's is never its own, but that of a rank whose end no agent saw.
func ownCode(pod jobPod, code int32) bool {
	s := pod.summary
	if code == 128+11 || s == nil || s.Role != agentapi.RoleLauncher || s.ExitCode == nil || s.Signal != 0 {
		return false
	}
	return !slices.ContainsFunc(s.Ranks, func(end agentapi.RankEnd) bool { return end.Signal == code-128 })
}

// notStarted reads why the container runtime could not start a container's command (runc's words).
func (p *input) notStarted(pod jobPod, message string, figures map[string]string) codes.Code {
	if !lacksProgram(message) {
		figures["message"] = sentence(message)
		return codes.ContainerCreateFailed
	}
	figures["where"] = lower(pod.title())
	if program := execOf.FindStringSubmatch(message); program != nil {
		figures["program"] = program[1]
	}
	return codes.ProgramMissing
}

// workingDir is what runc reports about a working directory that it can neither find nor make.
var workingDir = regexp.MustCompile(`: (?:mkdir /|chdir to cwd )`)

// lacksProgram reports whether the container runtime did not find a container's command.
func lacksProgram(message string) bool {
	return anyIn(message, "executable file not found", "no such file or directory") && !workingDir.MatchString(message)
}

// execOf is where runc names the command that it could not start.
var execOf = regexp.MustCompile(`exec: "([^"]+)"`)

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

func endReason(end *corev1.ContainerStateTerminated) string {
	if end.Reason == "" {
		return "Error"
	}
	return end.Reason
}

// ended adds the figures about the end of a pod.
func (p *input) ended(pod jobPod, figures map[string]string) map[string]string {
	if bytes := memoryLimit(p.template(pod.role)); bytes > 0 {
		figures["limitText"] = " (now " + bytesText(bytes) + ")"
	}
	return figures
}

// codeOfCrash returns the code of a crash that a rank's shell passed on as its own exit code, or "".
func codeOfCrash(exitCode int32) codes.Code {
	switch signal := exitCode - 128; signal {
	case 4, 6, 7, 11:
		return codeOfSignal(signal)
	}
	return ""
}

// crashPassedOn returns the code of the crash of a rank whose exit code mpirun prints in a log with a sign that sums up, or
// with which it ends itself; "" if there is none.
func crashPassedOn(s sign) codes.Code {
	if !s.Umbrella || s.Code != codes.ApplicationFailed {
		return ""
	}
	for _, pod := range s.pods {
		for _, line := range pod.log.Lines {
			if printed := mpirunCode.FindStringSubmatch(line); printed != nil {
				code, _ := strconv.ParseInt(printed[1], 10, 32)
				return codeOfCrash(int32(code))
			}
		}
	}
	for _, pod := range s.pods {
		if end := pod.end(); end != nil && pod.role == mpi.RoleLauncher && strings.Contains(s.line, "a non-zero exit code") {
			return codeOfCrash(end.ExitCode)
		}
	}
	return ""
}

func codeOfSignal(signal int32) codes.Code {
	switch signal {
	case 4:
		return codes.IllegalInstruction
	case 6:
		return codes.Aborted
	case 7:
		return codes.BusError
	case 9:
		return codes.Killed
	case 11:
		return codes.SegmentationFault
	case 15:
		return codes.Terminated
	}
	return ""
}
