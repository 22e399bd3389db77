package diagnose

import (
	"regexp"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
)

var (
	// probeKill is the message of the event with which the kubelet stops a container because of a probe
	// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_manager.go), and probeAnswer that of a failed probe
	// (pkg/kubelet/prober/prober.go).
	probeKill   = regexp.MustCompile(`^Container (\S+) failed (liveness|startup) probe`)
	probeAnswer = regexp.MustCompile(`^(?:Liveness|Startup) probe (?:failed|errored)[^:]*: (.+)`)
)

// probes returns a finding for the containers that the kubelet stopped because of a liveness or startup probe.
func probes(p *input) []Finding {
	var pods []jobPod
	var evidence []string
	figures := map[string]string{}
	for _, event := range p.events("Pod", func(e jobstate.Event) bool { return e.Reason == "Killing" && probeKill.MatchString(e.Message) }) {
		pod := p.known(event.Name)
		// An earlier pod of the same name is another matter.
		if pod == nil || event.Last.Before(pod.CreationTimestamp.Time) {
			continue
		}
		if len(pods) == 0 {
			stopped := probeKill.FindStringSubmatch(event.Message)
			figures["container"], figures["probe"] = stopped[1], stopped[2]
		}
		pods, evidence = append(pods, *pod), append(evidence, saying(event))
	}
	if len(pods) == 0 {
		return nil
	}
	for _, event := range p.events("Pod", func(e jobstate.Event) bool { return e.Reason == "Unhealthy" && e.Name == pods[0].Name }) {
		if answer := probeAnswer.FindStringSubmatch(event.Message); answer != nil {
			evidence = append(evidence, saying(event))
			if figures["message"] == "" {
				figures["message"] = " (" + answer[1] + ")"
			}
		}
	}
	f := p.find(codes.ProbeFailed, pods, figures)
	f.Evidence = evidence
	return []Finding{f}
}
