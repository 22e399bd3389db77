package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// enoughSlots reports whether a job has the slots that MPI says it has not.
func (p *input) enoughSlots(s sign) bool {
	asked, err := strconv.ParseInt(s.figures["slots"], 10, 64)
	return s.Code == codes.NotEnoughSlots && err == nil && asked <= p.job.Ranks()
}

// hostfileIgnored reports that no rank ran on a worker.
func hostfileIgnored(p *input) []Finding {
	s := p.launcherSummary()
	if s == nil || s.Code != agentapi.HostfileIgnored {
		return nil
	}
	launcher := p.failedLauncher()
	if launcher == nil {
		launcher = p.launcher()
	}
	f := p.find(codes.HostfileIgnored, []jobPod{*launcher}, map[string]string{
		"found": strconv.Itoa(int(s.SlotsFound)), "expected": strconv.Itoa(int(s.SlotsExpected)),
	})
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: %d of %d workers used, %d of %d slots; %d ranks ran in the launcher's pod.",
		s.HostsReached, s.HostsExpected, s.SlotsFound, s.SlotsExpected, s.RanksSeen)}
	f.ExitCode = s.ExitCode
	if main := p.template(mpi.RoleLauncher).Containers; len(main) > 0 && !choosesHosts(slices.Concat(main[0].Command, main[0].Args)) {
		// Nothing to remove from the command: the image's MPI reads another variable.
		f.Remedies[0], f.Remedies[1] = f.Remedies[1], f.Remedies[0]
	}
	return []Finding{f}
}

// transportless reports ranks that crashed although the job selects transports of Open MPI none of which connects pods: version 4.1.4
// crashes then without a word about it.
func transportless(p *input) []Finding {
	selected := p.job.WithoutTransport()
	crash := slices.IndexFunc(p.signs, func(s sign) bool { return s.Code == codes.SegmentationFault })
	if selected == "" || crash < 0 {
		return nil
	}
	f := p.find(codes.NoTransport, p.signs[crash].pods, nil)
	f.Evidence = []string{fmt.Sprintf("The launcher selects the transports %q of Open MPI (btl), none of which connects pods.", selected), quoted(p.signs[crash].pods[0], p.signs[crash].line)}
	return []Finding{f}
}

// startsRanks matches a word of a command that starts ranks, or may do so: a launcher of MPI, or a script.
var startsRanks = regexp.MustCompile(`\b(?:mpirun|mpiexec|orterun|prterun|horovodrun|srun|deepspeed)\b|\.sh\b`)

// nothingStarted reports that a job failed whose command started nothing on the workers, and does not call MPI: the workers only run
// what MPI starts there.
func nothingStarted(p *input) []Finding {
	launcher, s := p.failedLauncher(), p.launcherSummary()
	main := p.template(mpi.RoleLauncher).Containers
	if launcher == nil {
		launcher = p.launcher()
	}
	if !p.failed() || launcher == nil || len(main) == 0 || !p.job.UsesAgent() || p.job.Workers.Count == 0 || p.job.Workers.HasOwnCommand() ||
		s == nil || s.Launches > 0 || s.HostsReached > 0 || s.RanksSeen > 0 || len(s.Hosts) > 0 || len(s.Ranks) > 0 || s.Code != "" {
		return nil
	}
	command := strings.Join(slices.Concat(main[0].Command, main[0].Args), " ")
	if command == "" || startsRanks.MatchString(command) {
		return nil
	}
	f := p.findAs(codes.NothingStarted, []jobPod{*launcher}, map[string]string{"hosts": phrase.Count(p.job.Workers.Count, "worker")})
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: the command started no process on any of %s, and called no launcher of MPI.", phrase.Count(p.job.Workers.Count, "worker"))}
	return []Finding{f}
}

// workersIdle reports that a job succeeded without some of its workers. It may be intended, so that it is no failure.
func workersIdle(p *input) []Finding {
	idle, of, evidence := p.idleWorkers()
	if idle == 0 {
		return nil
	}
	f := p.find(codes.WorkersIdle, p.pods[:1], map[string]string{
		"idle": strconv.Itoa(int(idle)), "hosts": phrase.Count(of, "worker"), "ranks": strconv.FormatInt(p.job.Ranks(), 10),
	})
	f.Evidence = []string{evidence}
	return []Finding{f}
}

// idleWorkers returns on how many of a job's workers certainly no rank ran, and how that is known.
func (p *input) idleWorkers() (idle, of int32, evidence string) {
	launcher, s := p.launcher(), p.launcherSummary()
	nothing := fmt.Sprintf("Agent: no process was started on any of %s.", phrase.Count(p.job.Workers.Count, "worker"))
	switch {
	case launcher == nil:
		return 0, 0, ""
	case s != nil && s.HostsIdle == 0:
		return 0, 0, ""
	case s != nil && s.HostsIdle < s.HostsExpected:
		return s.HostsIdle, s.HostsExpected, fmt.Sprintf("Launcher's agent: ranks ran on %d of %s.", s.HostsExpected-s.HostsIdle, phrase.Count(s.HostsExpected, "worker"))
	case !p.job.UsesAgent():
		return p.unconnectedWorkers()
	case p.job.Workers.HasOwnCommand():
		// They may not wait for ranks, but do something else.
		return 0, 0, ""
	case s != nil:
		return s.HostsIdle, s.HostsExpected, nothing
	case !p.job.External && isImageProgram(p.template(mpi.RoleLauncher)) && !saysSomething(launcher.Pod):
		// The processes that MPI starts would have left a summary.
		return p.job.Workers.Count, p.job.Workers.Count, nothing
	}
	return 0, 0, ""
}

// isImageProgram reports whether only the image defines the program of a pod, which then runs without an agent above it.
func isImageProgram(pod corev1.PodSpec) bool {
	return len(pod.Containers) > 0 && len(pod.Containers[0].Command) == 0
}

// saysSomething reports whether a container of a pod left a message at its end, or has not ended.
func saysSomething(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 0 || slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.Message != ""
	})
}

var (
	sshdStarted   = regexp.MustCompile(`^Server listening on \S+ port \d+`)
	sshdConnected = regexp.MustCompile(`^Accepted \S+ for \S+ from |^Starting session: `)
)

// unconnectedWorkers returns how many workers ran an OpenSSH server that nobody logged in to, by their logs. There is none of
// workers whose log is unknown, or whose server does not log.
func (p *input) unconnectedWorkers() (idle, of int32, evidence string) {
	for _, pod := range p.pods {
		if pod.role != mpi.RoleWorker || !slices.ContainsFunc(pod.log.Lines, sshdStarted.MatchString) || slices.ContainsFunc(pod.log.Lines, sshdConnected.MatchString) {
			continue
		}
		if idle++; idle == 1 {
			evidence = fmt.Sprintf("The log of %s contains the start of sshd, but no login.", pod.Name)
		}
	}
	return idle, p.job.Workers.Count, evidence
}

// choosesHosts reports whether a command names the hosts for MPI, or calls a script, which may.
func choosesHosts(command []string) bool {
	return len(command) == 0 || slices.ContainsFunc(command, func(word string) bool {
		return strings.Contains(word, "host") || strings.HasPrefix(word, "-H") || strings.Contains(word, " ") || strings.HasSuffix(word, ".sh")
	})
}

var onlyRank = regexp.MustCompile(`(?i)\brank:? 0 (?:of|out of|/) 1\b|\brank 0, size 1\b|\brank=0,? (?:world_)?size=1\b`)

// mixedMPI reports that processes which mpirun started together did not find each other. This looks like success.
func mixedMPI(p *input) []Finding {
	if p.job.Ranks() < 2 || p.outcome.Finish == nil {
		return nil
	}
	for _, pod := range p.pods {
		if pod.role != mpi.RoleLauncher {
			continue
		}
		var lines []string
		for _, line := range pod.log.Lines {
			if onlyRank.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) < 2 || pod.summary != nil && int(pod.summary.Launches) >= len(lines) {
			// A script may start one rank after the other.
			continue
		}
		f := p.find(codes.MixedMPI, p.pods[:1], map[string]string{"times": strconv.Itoa(len(lines))})
		f.Evidence = []string{quoted(pod, lines[0]), fmt.Sprintf("%d such lines.", len(lines))}
		f.Pod, f.Affected = pod.Name, []string{pod.Name}
		return []Finding{f}
	}
	return nil
}
