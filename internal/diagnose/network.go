package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// workersIdle reports that a job succeeded without some of its workers. It may be intended, so that it is no failure.
func workersIdle(p *input) []Finding {
	s := p.launcherSummary()
	if s == nil || s.HostsIdle == 0 || s.Code != "" {
		return nil
	}
	f := p.find(codes.WorkersIdle, p.pods[:1], map[string]string{
		"idle": strconv.Itoa(int(s.HostsIdle)), "hosts": phrase.Count(s.HostsExpected, "worker"), "ranks": strconv.FormatInt(p.job.Ranks(), 10),
	})
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: ranks ran on %d of %s.", s.HostsExpected-s.HostsIdle, phrase.Count(s.HostsExpected, "worker"))}
	return []Finding{f}
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
		if len(lines) < 2 {
			continue
		}
		f := p.find(codes.MixedMPI, p.pods[:1], map[string]string{"times": strconv.Itoa(len(lines))})
		f.Evidence = []string{quoted(pod, lines[0]), fmt.Sprintf("%d such lines.", len(lines))}
		f.Pod, f.Affected = pod.Name, []string{pod.Name}
		return []Finding{f}
	}
	return nil
}
