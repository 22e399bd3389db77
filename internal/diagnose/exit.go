package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

var exitTexts = map[mpi.Code]text{
	mpi.CodeRankFailed: {
		summary: "The job counts as succeeded, but rank {rank} ({program}) failed with code {code}: the launcher's command ended with 0 all the same, and Kubernetes goes by that alone.",
		remedies: []Remedy{
			{Text: "Let the command end as mpirun does: call mpirun last, or have the shell stop at the first error.", Action: "sh -c 'set -e; mpirun ...; ...'"},
			{Text: "If the command tries again by itself, see whether the last try went well.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "MPICH 4.2's mpiexec now and then loses the code of a rank; another MPI does not."},
		},
	},
	mpi.CodeKilled: {
		summary: "{who} was killed (signal 9){rankText}. Mostly the memory was used up; Kubernetes also ends programs like this when a pod is removed and its program takes too long to stop.",
		remedies: []Remedy{
			{Text: "Give each {role} more memory{limitText}, or use a smaller batch.", Action: "{field}.spec.containers[0].resources.limits.memory"},
			{Text: "Look whether the pod was removed: the events of its node say so.", Action: "kubectl -n {namespace} get events --sort-by=.lastTimestamp"},
		},
	},
	mpi.CodeSegfault: {
		summary: "The program crashed{rankText}: it touched memory that is not its own (segmentation fault, signal 11).",
		remedies: []Remedy{
			{Text: "Look at the stack trace in the log.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "If it crashes as soon as it starts, the program or a Python package was built for another MPI or CUDA than the image's: build it anew in that image."},
			{Text: "Let Python say where it was.", Action: "env: PYTHONFAULTHANDLER=1"},
		},
	},
	mpi.CodeBusError: {
		summary: "The program was stopped{rankText} by a bus error (signal 7): mostly the shared memory at /dev/shm is full, which is 64 MiB unless the pod says otherwise.",
		remedies: []Remedy{
			{Text: "Give the pods more shared memory.", Action: "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}], mounted at /dev/shm"},
			{Text: "Or use fewer data-loading processes.", Action: "DataLoader(num_workers=...)"},
		},
	},
	mpi.CodeIllegalInstruction: {
		summary: "The program was stopped{rankText} because it uses instructions that this machine's processor does not have (signal 4): it was built for a newer one.",
		remedies: []Remedy{
			{Text: "Build the program for a more common processor.", Action: "-march=x86-64-v3 in place of -march=native"},
			{Text: "Or choose machines of the right kind.", Action: "{field}.spec.nodeSelector"},
		},
	},
	mpi.CodeAborted: {
		summary: "The program ended itself{rankText} because of an error that it found (abort, signal 6).",
		remedies: []Remedy{
			{Text: "Read the last lines before that in the log.", Action: "kubectl -n {namespace} logs {logPod}"},
		},
	},
	mpi.CodeTerminated: {
		summary: "{who} was asked to stop from outside (signal 15) and did: its pod was removed or its time was over. The program itself made no error.",
		remedies: []Remedy{
			{Text: "Look who removed it: the events say whether it was a person, an eviction, or a scale-down.", Action: "kubectl -n {namespace} get events --sort-by=.lastTimestamp"},
			{Text: "Start the job again, from the last checkpoint if there is one."},
		},
	},
	mpi.CodeProgramMissing: {
		summary: "The program {program|that mpirun was to start} is not there, in the image of {where|the launcher or a worker}.",
		remedies: []Remedy{
			{Text: "Check its name and folder, in the image of the workers too: ranks start there.", Action: "kubectl -n {namespace} exec {hostPod} -- ls -l {program|PROGRAM}"},
			{Text: "Use the same image for the launcher and the workers.", Action: "spec.mpiReplicaSpecs.{Launcher,Worker}.template.spec.containers[0].image"},
		},
	},
	mpi.CodeDaemonMissing: {
		summary: "A worker does not find MPI's own helper {program|program}: MPI is not in its image, or in a folder that is not in PATH for logins from outside.",
		remedies: []Remedy{
			{Text: "Use the same image for the launcher and the workers."},
			{Text: "Tell mpirun in which folder MPI is.", Action: "mpirun --prefix /opt/openmpi"},
			{Text: "Or set PATH in the image itself, not in a profile.", Action: "ENV PATH=/opt/openmpi/bin:$PATH"},
		},
	},
	mpi.CodeLibraryMissing: {
		summary: "The program does not start because the library {library|that it needs} is not found.",
		remedies: []Remedy{
			{Text: "Pass the folder on to all ranks.", Action: "mpirun -x LD_LIBRARY_PATH <program>"},
			{Text: "Or install the library in the image of the workers, too.", Action: "kubectl -n {namespace} exec {worker} -- ldconfig -p | grep {library|LIBRARY}"},
		},
	},
	mpi.CodeApplicationFailed: {
		summary: "The program ended with an error{rankText}{codeText}{errorText}. MPI then ends all other ranks.",
		remedies: []Remedy{
			{Text: "Read what that rank said before it ended; what other ranks say afterwards follows from it.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "Try the same command with one worker, to see whether it is the program or its being distributed.", Action: "{workersField}: 1"},
		},
	},
}

// The last line of a Python traceback, with mpirun's tag of the rank before it or without.
var exception = regexp.MustCompile(`^(?:\[[^\]]*\](?:<\w+>)?:?\s*)?((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt))(?:: (.*))?$`)

// mpirunCode is where Open MPI says how the first process ended.
var mpirunCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)

// firstEnds tells what ended before the launcher did: a rank, or a worker's container.
func firstEnds(p *patient) []Finding {
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

// lastEnds tells how the launcher ended, which says least: it ends because something else has. Workers that were told
// to end come after it.
func lastEnds(p *patient) []Finding {
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

// rankEnd tells of the first rank that an agent saw end badly.
func (p *patient) rankEnd() *Finding {
	first, teller := p.firstRank()
	// What was told to end, or was killed when a worker was lost, did not end by itself.
	if first == nil || first.OOM || first.Signal == 15 || first.Signal == 9 && p.lostWorker() {
		return nil
	}
	figures := map[string]string{"rank": fmt.Sprint(first.Rank), "rankText": fmt.Sprintf(" in rank %d (%s)", first.Rank, first.Program)}
	code := codeOfSignal(first.Signal)
	if code == "" {
		code = mpi.CodeApplicationFailed
		if first.ExitCode > 0 {
			figures["codeText"] = fmt.Sprintf(", code %d", first.ExitCode)
		}
	}
	host := p.hostOf(first.Rank)
	if host == nil {
		host = &teller
	}
	evidence := []string{fmt.Sprintf("The agent says: rank %d (%s) ended first, with code %d.", first.Rank, first.Program, first.ExitCode)}
	evidence = append(evidence, p.words(figures)...)
	f := p.find(code, p.severity(), []jobPod{*host}, p.ended(*host, figures))
	f.Evidence = evidence
	if first.ExitCode > 0 {
		f.ExitCode = &first.ExitCode
	}
	return &f
}

// unnoticed tells of a rank that failed in a job that has succeeded. Kubernetes goes by how the launcher's command ended,
// and that is mpirun's end only if the command lets it be.
func unnoticed(p *patient) []Finding {
	first, _ := p.firstRank()
	if first == nil || !first.OOM && (first.Signal == 15 || first.Signal == 9) {
		return nil
	}
	pods := p.pods[:1]
	if host := p.hostOf(first.Rank); host != nil {
		pods = []jobPod{*host}
	}
	f := p.find(mpi.CodeRankFailed, Warning, pods, map[string]string{
		"rank": fmt.Sprint(first.Rank), "program": first.Program, "code": fmt.Sprint(first.ExitCode),
	})
	f.Evidence = []string{fmt.Sprintf("The agent says: rank %d (%s) ended first, with code %d; the launcher's command ended with 0.", first.Rank, first.Program, first.ExitCode)}
	f.ExitCode = &first.ExitCode
	return []Finding{f}
}

// firstRank is the first rank that an agent saw end badly, and whose agent did; nil where none has.
func (p *patient) firstRank() (first *launch.RankEnd, teller jobPod) {
	for _, pod := range p.pods {
		if pod.summary == nil {
			continue
		}
		for i := range pod.summary.Ranks {
			end := &pod.summary.Ranks[i]
			// A rank that was told to end has followed another one.
			if first == nil || first.Signal == 15 && end.Signal != 15 {
				first, teller = end, pod
			}
		}
	}
	return first, teller
}

// lostWorker tells whether the launcher's agent lost a worker.
func (p *patient) lostWorker() bool {
	s := p.launcherSummary()
	return s != nil && slices.ContainsFunc(s.Hosts, func(h launch.HostTrouble) bool { return h.Code == launch.ConnectionLost })
}

// programMissing tells that the launcher's own command is not there.
func (p *patient) programMissing() *Finding {
	s := p.launcherSummary()
	if s == nil || s.Code != launch.ProgramMissing {
		return nil
	}
	launcher := p.failedLauncher()
	if launcher == nil {
		launcher = p.launcher()
	}
	figures := map[string]string{"where": "the launcher"}
	if name := regexp.MustCompile(`command ("[^"]+")`).FindStringSubmatch(s.Message); name != nil {
		figures["program"] = name[1]
	}
	f := p.find(mpi.CodeProgramMissing, p.severity(), []jobPod{*launcher}, figures)
	f.Evidence, f.ExitCode = []string{"The launcher's agent says: " + s.Message}, s.ExitCode
	return &f
}

// containerEnd tells what the exit code of a container that has ended means.
func (p *patient) containerEnd(pod jobPod) Finding {
	end := pod.end()
	figures := map[string]string{}
	code := mpi.CodeApplicationFailed
	switch {
	case end.Reason == startError || end.Reason == "ContainerCannotRun":
		code = p.notStarted(pod, end.Message, figures)
	case end.ExitCode == 127 && !passedOn(pod):
		code = mpi.CodeProgramMissing
		figures["where"] = lower(pod.title())
	case end.ExitCode == 255 && pod.role == mpi.RoleLauncher && !p.job.UsesAgent():
		code = mpi.CodeSSHFailed
	case codeOfSignal(end.ExitCode-128) != "" && !ownCode(pod, end.ExitCode):
		code = codeOfSignal(end.ExitCode - 128)
	default:
		figures["codeText"] = fmt.Sprintf(", code %d", end.ExitCode)
	}
	evidence := []string{fmt.Sprintf("Pod %s: its container ended with code %d (%s).", pod.Name, end.ExitCode, endReason(end))}
	if end.Reason == startError {
		evidence = append(evidence, "Kubernetes says: "+end.Message)
	}
	evidence = append(evidence, p.words(figures)...)
	if len(evidence) == 1 {
		evidence = append(evidence, lastLines(pod)...)
	}
	f := p.find(code, p.severity(), []jobPod{pod}, p.ended(pod, figures))
	f.Evidence, f.ExitCode = evidence, &end.ExitCode
	return f
}

// passedOn tells whether a launcher's code is a rank's: its own command was there.
func passedOn(pod jobPod) bool {
	s := pod.summary
	return s != nil && s.Role == launch.RoleLauncher && s.Code == launch.RankFailed
}

// ownCode tells whether a code that looks like a signal's is the command's own: agents know. mpirun has such codes.
func ownCode(pod jobPod, code int32) bool {
	s := pod.summary
	if s == nil || s.Role != launch.RoleLauncher || s.ExitCode == nil || s.Signal != 0 {
		return false
	}
	return !slices.ContainsFunc(s.Ranks, func(end launch.RankEnd) bool { return end.Signal == code-128 })
}

// notStarted reads why the container runtime could not start a container's command (runc's words).
func (p *patient) notStarted(pod jobPod, message string, figures map[string]string) mpi.Code {
	if !anyIn(message, "executable file not found", "no such file or directory") {
		figures["message"] = sentence(message)
		return mpi.CodeContainerCreate
	}
	figures["where"] = lower(pod.title())
	if program := execOf.FindStringSubmatch(message); program != nil {
		figures["program"] = program[1]
	}
	return mpi.CodeProgramMissing
}

// execOf is where runc names the command that it could not start.
var execOf = regexp.MustCompile(`exec: "([^"]+)"`)

func endReason(end *corev1.ContainerStateTerminated) string {
	if end.Reason == "" {
		return "Error"
	}
	return end.Reason
}

// ended adds figures that tell of a pod's end.
func (p *patient) ended(pod jobPod, figures map[string]string) map[string]string {
	if bytes := limit(p.template(pod.role), corev1.ResourceMemory); bytes > 0 {
		figures["limitText"] = ", more than " + bytesText(bytes)
	}
	return figures
}

// words are the program's own last words, from whichever log has them: the first exception that ended a rank.
func (p *patient) words(figures map[string]string) []string {
	var words []string
	for _, pod := range p.pods {
		for _, line := range pod.log.Lines {
			if code := mpirunCode.FindStringSubmatch(line); code != nil && figures["codeText"] == "" {
				figures["codeText"] = ", code " + code[1]
			}
			said := exception.FindStringSubmatch(strings.TrimRight(line, " \r"))
			if said == nil || words != nil {
				continue
			}
			figures["errorText"] = ": " + strings.TrimSuffix(cut(strings.TrimSuffix(said[1]+": "+said[2], ": "), 200), ".")
			words = []string{quoted(pod, line)}
		}
	}
	return words
}

func codeOfSignal(signal int32) mpi.Code {
	switch signal {
	case 4:
		return mpi.CodeIllegalInstruction
	case 6:
		return mpi.CodeAborted
	case 7:
		return mpi.CodeBusError
	case 9:
		return mpi.CodeKilled
	case 11:
		return mpi.CodeSegfault
	case 15:
		return mpi.CodeTerminated
	}
	return ""
}
