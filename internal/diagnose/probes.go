package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
)

var (
	// failedProbe is the message of the kubelet's event about a probe that failed (k8s.io/kubernetes/pkg/kubelet/prober/prober.go).
	// A probe that executes a command without output has no more to report. Readiness probes stop nothing.
	failedProbe = regexp.MustCompile(`^(Liveness|Startup) probe (?:failed|errored)(?:[^:]*: *(.*))?`)
	// stoppedByProbe is that of its event about a container that it stops for this
	// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_manager.go).
	stoppedByProbe = regexp.MustCompile(`[Cc]ontainer \S+ failed (liveness|startup) probe`)
)

// stopsSoon is how soon the kubelet stops a container after its probe failed for the last time.
const stopsSoon = 10 * time.Second

// probes returns a finding for the containers that the kubelet stopped because of a liveness or startup probe.
func probes(p *input) []Finding {
	var pods []facts.Pod
	var evidence []string
	figures := map[string]string{}
	for _, stop := range p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "Killing" }) {
		pod := p.Known(stop.Name)
		if pod == nil {
			continue
		}
		probe, answer, line := p.probeBefore(stop)
		if probe == "" {
			continue
		}
		if len(pods) == 0 {
			if figures["probe"] = probe; answer != "" {
				figures["message"] = " (" + answer + ")"
			}
		}
		if line != "" {
			evidence = append(evidence, line)
		}
		pods, evidence = append(pods, *pod), append(evidence, facts.EventLine(stop))
	}
	if len(pods) == 0 {
		return nil
	}
	return []Finding{p.find(codes.ProbeFailed, pods, figures, evidence...)}
}

// probeBefore returns the probe because of which a container was stopped, with its last answer and the event that has it; "" if it
// was stopped for another reason. The event of the stop names the probe, or the probe failed shortly before.
func (p *input) probeBefore(stop jobstate.Event) (probe, answer, line string) {
	named := stoppedByProbe.FindStringSubmatch(stop.Message)
	for _, e := range p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "Unhealthy" && e.Name == stop.Name }) {
		failed := failedProbe.FindStringSubmatch(e.Message)
		if failed == nil {
			continue
		}
		kind, since := strings.ToLower(failed[1]), stop.Last.Sub(e.Last)
		// A container that was started again fails again, after the last stop.
		if named != nil && named[1] == kind || named == nil && since >= 0 && since <= stopsSoon {
			probe, answer, line = kind, strings.TrimSpace(failed[2]), facts.EventLine(e)
		}
	}
	if probe == "" && named != nil {
		probe = named[1]
	}
	return probe, answer, line
}

// hooks returns a finding for the containers that the kubelet stopped because their postStart hook failed. Since Kubernetes 1.24 its
// event does not say why (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go).
func hooks(p *input) []Finding {
	var pods []facts.Pod
	var evidence []string
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "FailedPostStartHook" }) {
		pod := p.Known(event.Name)
		if pod == nil || slices.ContainsFunc(pods, func(has facts.Pod) bool { return has.Name == pod.Name }) {
			continue
		}
		pods, evidence = append(pods, *pod), append(evidence, facts.EventLine(event))
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.findAs(codes.HookFailed, pods, nil, evidence...)
	f.Severity = v1alpha1.SeverityError
	return []Finding{f}
}
