package diagnose

import (
	"regexp"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
)

// failedProbe is the message of the kubelet's event about a probe that failed (k8s.io/kubernetes/pkg/kubelet/prober/prober.go).
// Readiness probes stop nothing.
var failedProbe = regexp.MustCompile(`^(Liveness|Startup) probe (?:failed|errored)[^:]*: (.+)`)

// stopsSoon is how soon the kubelet stops a container after its probe failed for the last time.
const stopsSoon = 10 * time.Second

// probes returns a finding for the containers that the kubelet stopped because of a liveness or startup probe.
func probes(p *input) []Finding {
	var pods []jobPod
	var evidence []string
	figures := map[string]string{}
	for _, stop := range p.events("Pod", func(e jobstate.Event) bool { return e.Reason == "Killing" }) {
		pod := p.known(stop.Name)
		if pod == nil {
			continue
		}
		before := p.events("Pod", func(e jobstate.Event) bool {
			since := stop.Last.Sub(e.Last)
			return e.Reason == "Unhealthy" && e.Name == stop.Name && since >= 0 && since <= stopsSoon && failedProbe.MatchString(e.Message)
		})
		if len(before) == 0 {
			continue
		}
		last := before[len(before)-1]
		if len(pods) == 0 {
			answer := failedProbe.FindStringSubmatch(last.Message)
			figures["probe"], figures["message"] = strings.ToLower(answer[1]), " ("+strings.TrimSpace(answer[2])+")"
		}
		pods, evidence = append(pods, *pod), append(evidence, saying(last), saying(stop))
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.find(codes.ProbeFailed, pods, figures)
	f.Evidence = evidence
	return []Finding{f}
}
