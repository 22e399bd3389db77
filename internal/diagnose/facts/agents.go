package facts

import (
	"path"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// LauncherSummary returns the summary of the launcher's agent for its latest run that ended.
func (f *Facts) LauncherSummary() *agentapi.Summary {
	for i := range f.Pods {
		if s := f.Pods[i].Summary; s != nil && f.Pods[i].Role == mpi.RoleLauncher {
			return s
		}
	}
	return nil
}

// FirstRank is the first rank that an agent saw end badly, and whose agent did; nil where none has.
func (f *Facts) FirstRank() (first *agentapi.RankEnd, teller Pod) {
	for _, pod := range f.Pods {
		if pod.Summary == nil {
			continue
		}
		for i := range pod.Summary.Ranks {
			end := &pod.Summary.Ranks[i]
			// A rank that received SIGTERM ended because of another one.
			if first == nil || first.Signal == 15 && end.Signal != 15 {
				first, teller = end, pod
			}
		}
	}
	return first, teller
}

// ExitOf is the exit code with which an agent saw a rank end by itself; nil if none did.
func (f *Facts) ExitOf(rank string) *int32 {
	for _, pod := range f.Pods {
		if pod.Summary == nil {
			continue
		}
		for _, end := range pod.Summary.Ranks {
			if strconv.Itoa(int(end.Rank)) == rank && end.Signal == 0 {
				return &end.ExitCode
			}
		}
	}
	return nil
}

// OomRank is the first rank that an agent saw killed for lack of memory.
func (f *Facts) OomRank() *agentapi.RankEnd {
	for _, pod := range f.Pods {
		if pod.Summary == nil {
			continue
		}
		for i := range pod.Summary.Ranks {
			if pod.Summary.Ranks[i].OOM {
				return &pod.Summary.Ranks[i]
			}
		}
	}
	return nil
}

// LostWorker reports whether the launcher's agent lost a worker.
func (f *Facts) LostWorker() bool {
	s := f.LauncherSummary()
	return s != nil && slices.ContainsFunc(s.Hosts, func(h agentapi.HostTrouble) bool { return h.Code == agentapi.ConnectionLost })
}

// ranksEnded reports whether the launcher's agent saw a rank fail and lost no worker: a node that does not answer for a
// while, since it is busy, then has nothing to do with it.
func (f *Facts) ranksEnded() bool {
	s := f.LauncherSummary()
	return s != nil && len(s.Ranks) > 0 && len(s.Hosts) == 0
}

// crashedLater reports whether an agent saw another rank crash when a rank had ended.
func (f *Facts) crashedLater(first agentapi.RankEnd) bool {
	return slices.ContainsFunc(f.Pods, func(pod Pod) bool {
		return pod.Summary != nil && slices.ContainsFunc(pod.Summary.Ranks, func(end agentapi.RankEnd) bool {
			return end.Rank != first.Rank && (end.Signal == 11 || end.ExitCode == 128+11)
		})
	})
}

// KilledByMPI reports whether ranks that ended by signal 9 were killed by MPI's launcher, since something else had ended the program:
// the launcher's command ended with a code that states another end, and no process lacked memory. Hydra kills all other ranks
// then, and the line of the rank that called MPI_Abort may be missing in the log.
func (f *Facts) KilledByMPI() bool {
	s := f.LauncherSummary()
	if s == nil || s.ExitCode == nil || s.Signal != 0 || slices.ContainsFunc(f.Pods, lackedMemory) {
		return false
	}
	switch *s.ExitCode {
	case 0, 9, 15, KilledCode, Terminated, 255:
		// A rank was killed, or the launcher lost its processes.
		return false
	case 1:
		// Scripts and other launchers exit with it whatever has ended mpirun.
		command := f.Template(mpi.RoleLauncher).Containers
		return len(command) > 0 && len(command[0].Command) > 0 && startsMPI(command[0].Command[0])
	}
	return true
}

// startsMPI reports whether a program is MPI's own launcher.
func startsMPI(program string) bool {
	switch path.Base(program) {
	case "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun":
		return true
	}
	return false
}

// lackedMemory reports whether the kernel killed a process of a pod for lack of memory.
func lackedMemory(pod Pod) bool {
	if pod.Summary != nil && pod.Summary.OOMKills > 0 {
		return true
	}
	return slices.ContainsFunc(ContainersOf(pod), func(c corev1.ContainerStatus) bool {
		for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end != nil && end.Reason == "OOMKilled" {
				return true
			}
		}
		return false
	})
}

// LauncherEnd returns when the launcher's command ended, or the present time if it runs.
func (f *Facts) LauncherEnd() time.Time {
	if launcher := f.Launcher(); launcher != nil {
		if end := launcher.End(); end != nil && !end.FinishedAt.IsZero() {
			return end.FinishedAt.Time
		}
	}
	return f.Seen.Now
}

// StartedNothing reports whether the agent of a launcher that ended saw its command call no launcher of MPI, and start no process on
// the job's workers.
func (f *Facts) StartedNothing(s *agentapi.Summary) bool {
	return s != nil && s.ExitCode != nil && f.Job.UsesAgent() && f.Job.Workers.Count > 0 && s.Code == "" &&
		s.Launches == 0 && s.HostsReached == 0 && s.RanksSeen == 0 && len(s.Hosts) == 0 && len(s.Ranks) == 0
}

// AgentKnowsProgram reports whether the launcher's agent found why a program could not be started, of which MPI knows less.
func (f *Facts) AgentKnowsProgram() bool {
	s := f.LauncherSummary()
	return s != nil && (s.Code == agentapi.WindowsLineEnds || s.Code == agentapi.ProgramMissing)
}

// PassedOn reports whether a launcher's code is a rank's: its own command was there.
func PassedOn(pod Pod) bool {
	s := pod.Summary
	return s != nil && s.Role == agentapi.RoleLauncher && s.Code == agentapi.RankFailed
}

// OwnCode reports whether an exit code over 128 is the command's own and not that of a signal, according to the agent.
// mpirun has such codes, such as 132. A segmentation fault's is never its own, but that of a rank whose end no agent saw.
func OwnCode(pod Pod, code int32) bool {
	s := pod.Summary
	if code == 128+11 || s == nil || s.Role != agentapi.RoleLauncher || s.ExitCode == nil || s.Signal != 0 {
		return false
	}
	return !slices.ContainsFunc(s.Ranks, func(end agentapi.RankEnd) bool { return end.Signal == code-128 })
}
