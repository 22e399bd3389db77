package diagnose

import (
	"fmt"
	"regexp"
	"strconv"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

var onlyRank = regexp.MustCompile(`(?i)\brank:? 0 (?:of|out of|/) 1\b|\brank 0, size 1\b|\brank=0,? (?:world_)?size=1\b`)

// mixedMPI reports that processes which mpirun started together did not find each other. This looks like success.
func mixedMPI(p *input) []Finding {
	if p.Job.Ranks() < 2 || p.Outcome.Finish == nil {
		return nil
	}
	for _, pod := range p.Pods {
		if pod.Role != mpi.RoleLauncher {
			continue
		}
		var lines []string
		for _, line := range pod.Log.Lines {
			if onlyRank.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) < 2 || pod.Summary != nil && int(pod.Summary.Launches) >= len(lines) {
			// A script may start one rank after the other.
			continue
		}
		f := p.find(codes.MixedMPI, p.Pods[:1], map[string]string{"times": strconv.Itoa(len(lines))}, facts.LogLine(pod, lines[0]), fmt.Sprintf("%d such lines.", len(lines)))
		f.Pod, f.Affected = pod.Name, []string{pod.Name}
		return []Finding{f}
	}
	return nil
}
