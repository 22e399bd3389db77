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
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// hostfileIgnored reports that no rank ran on a worker.
func hostfileIgnored(p *input) []Finding {
	s := p.LauncherSummary()
	if s == nil || s.Code != agentapi.HostfileIgnored {
		return nil
	}
	launcher := p.FailedLauncher()
	if launcher == nil {
		launcher = p.Launcher()
	}
	entry, figures := codes.Lookup(codes.HostfileIgnored), map[string]string{
		"found": strconv.Itoa(int(s.SlotsFound)), "expected": strconv.Itoa(int(s.SlotsExpected)),
	}
	other := implementation.OtherThan(p.Job.Implementation, s.MPIVersions)
	if other != "" {
		entry, figures = p.otherMPIEntry(other, s.MPIVersions[0])
	}
	f := p.findAs(entry, []facts.Pod{*launcher}, figures)
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: %d of %d workers used, %d of %d slots; %d ranks ran in the launcher's pod.",
		s.HostsReached, s.HostsExpected, s.SlotsFound, s.SlotsExpected, s.RanksSeen)}
	f.ExitCode = s.ExitCode
	if other != "" {
		return []Finding{f}
	}
	if main := p.Template(mpi.RoleLauncher).Containers; len(main) > 0 && !choosesHosts(slices.Concat(main[0].Command, main[0].Args)) {
		// Nothing to remove from the command: the image's MPI reads another variable.
		f.Remedies[0], f.Remedies[1] = f.Remedies[1], f.Remedies[0]
	}
	return []Finding{f}
}

// choosesHosts reports whether a command names the hosts for MPI, or calls a script, which may.
func choosesHosts(command []string) bool {
	return len(command) == 0 || slices.ContainsFunc(command, func(word string) bool {
		return strings.Contains(word, "host") || strings.HasPrefix(word, "-H") || strings.Contains(word, " ") || strings.HasSuffix(word, ".sh")
	})
}

// workersIdle reports that a job succeeded without some of its workers. It may be intended, so that it is no failure.
func workersIdle(p *input) []Finding {
	idle, of, evidence := p.idleWorkers()
	if s := p.LauncherSummary(); idle == 0 || s != nil && s.LeftRunning != "" {
		return nil
	}
	entry, figures := codes.Lookup(codes.WorkersIdle), map[string]string{
		"idle": strconv.Itoa(int(idle)), "hosts": phrase.Count(of, "worker"), "ranks": strconv.FormatInt(p.Job.Ranks(), 10),
	}
	if main := p.Template(mpi.RoleLauncher).Containers; len(main) > 0 && idle == of {
		if figures["builtin"] = mpi.FoldedScript(slices.Concat(main[0].Command, main[0].Args)); figures["builtin"] != "" {
			entry = codes.FoldedScript
		}
	}
	f := p.findAs(entry, p.Pods[:1], figures)
	f.Evidence = []string{evidence}
	return []Finding{f}
}

// launcherName is the name of a launcher of MPI, also of one of several in an image, such as mpirun.openmpi.
var launcherName = regexp.MustCompile(`^[a-z]+(?:\.[a-z0-9]+)*$`)

// notAwaited reports a job whose command did not wait for MPI.
func notAwaited(p *input) []Finding {
	s := p.LauncherSummary()
	if s == nil || !slices.ContainsFunc(mpi.Launchers, func(name string) bool {
		return s.LeftRunning == name || strings.HasPrefix(s.LeftRunning, name+".") && launcherName.MatchString(s.LeftRunning)
	}) {
		return nil
	}
	return []Finding{p.find(codes.MPINotAwaited, []facts.Pod{*p.Launcher()}, map[string]string{"program": s.LeftRunning},
		fmt.Sprintf("Launcher's agent: %s was running when the command had ended with exit code 0.", s.LeftRunning))}
}

// idleWorkers returns on how many of a job's workers certainly no rank ran, and how that is known.
func (p *input) idleWorkers() (idle, of int32, evidence string) {
	launcher, s := p.Launcher(), p.LauncherSummary()
	nothing := fmt.Sprintf("Agent: no process was started on any of %s.", phrase.Count(p.Job.Workers.Count, "worker"))
	switch {
	case launcher == nil:
		return 0, 0, ""
	case s != nil && s.HostsIdle == 0:
		return p.unfilledWorkers(s.RanksSeen)
	case s != nil && s.HostsIdle < s.HostsExpected:
		return s.HostsIdle, s.HostsExpected, fmt.Sprintf("Launcher's agent: ranks ran on %d of %s.", s.HostsExpected-s.HostsIdle, phrase.Count(s.HostsExpected, "worker"))
	case !p.Job.UsesAgent():
		return p.unconnectedWorkers()
	case p.Job.Workers.HasOwnCommand():
		// They may not wait for ranks, but do something else.
		return 0, 0, ""
	case s != nil:
		return s.HostsIdle, s.HostsExpected, nothing
	case !p.Job.External && facts.IsImageProgram(p.Template(mpi.RoleLauncher)) && !saysSomething(launcher.Pod):
		// The processes that MPI starts would have left a summary.
		return p.Job.Workers.Count, p.Job.Workers.Count, nothing
	}
	return 0, 0, ""
}

// unfilledWorkers returns how many workers have no rank because the ranks of the command fill the slots of the workers before them. MPI's daemons
// also run on these workers. seen is how many ranks the agents saw: a program may start more.
func (p *input) unfilledWorkers(seen int32) (idle, of int32, evidence string) {
	main := p.Template(mpi.RoleLauncher).Containers
	if len(main) == 0 || p.Job.Launcher.RunsRanks {
		return 0, 0, ""
	}
	ranks, hosts, known := p.Job.HostsWithRanks(p.LauncherCommand(), main[0].Env)
	if !known || hosts >= int(p.Job.Workers.Count) || int(seen) > ranks {
		return 0, 0, ""
	}
	idle = p.Job.Workers.Count - int32(hosts) //nolint:gosec // at most as many as there are
	return idle, p.Job.Workers.Count, fmt.Sprintf("Command: -n %d, and each worker has %s.", ranks, phrase.Count(p.Job.SlotsPerWorker, "slot"))
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
	for _, pod := range p.Pods {
		if pod.Role != mpi.RoleWorker || !slices.ContainsFunc(pod.Log.Lines, sshdStarted.MatchString) || slices.ContainsFunc(pod.Log.Lines, sshdConnected.MatchString) {
			continue
		}
		if idle++; idle == 1 {
			evidence = fmt.Sprintf("The log of %s contains the start of sshd, but no login.", pod.Name)
		}
	}
	return idle, p.Job.Workers.Count, evidence
}

// nothingStarted reports that a command failed which started nothing on the workers, and does not call MPI: the workers only run
// what MPI starts there.
func nothingStarted(p *input) []Finding {
	launcher := p.FailedLauncher()
	if launcher == nil {
		launcher = p.Launcher()
	}
	if launcher == nil || !p.failedWithoutMPI() {
		return nil
	}
	return []Finding{p.findAs(codes.NothingStarted, []facts.Pod{*launcher}, map[string]string{"hosts": phrase.Count(p.Job.Workers.Count, "worker")},
		fmt.Sprintf("Launcher's agent: the command started no process on any of %s, and called no launcher of MPI.", phrase.Count(p.Job.Workers.Count, "worker")))}
}

// failedWithoutMPI reports whether the launcher's command failed, does not call MPI, and started nothing on the workers.
func (p *input) failedWithoutMPI() bool {
	s, command := p.LauncherSummary(), p.LauncherCommand()
	return p.StartedNothing(s) && *s.ExitCode != 0 && !p.Job.Workers.HasOwnCommand() && command != "" && !startsRanks.MatchString(command)
}
