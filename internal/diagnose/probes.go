package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

var (
	// failedProbe is the message of the kubelet's event about a probe that failed (k8s.io/kubernetes/pkg/kubelet/prober/prober.go).
	// A probe that executes a command without output has no more to report. Readiness probes stop nothing.
	failedProbe = regexp.MustCompile(`^(?:\(combined from similar events\): )?(Liveness|Startup) probe (?:failed|errored)(?:[^:]*: *(.*))?`)
	// unreadyProbe is that of its event about a probe for want of which a pod is not ready: those for readiness begin after that for the start.
	unreadyProbe = regexp.MustCompile(`^(?:\(combined from similar events\): )?((Readiness|Startup) probe .*)`)
	// erroredProbe is that of its event about a probe that could not be executed. It drops the result of such a probe: it neither
	// succeeds nor stops the container (worker.go in the same folder).
	erroredProbe = regexp.MustCompile(`^(?:\(combined from similar events\): )?(Liveness|Readiness|Startup) probe errored[^:]*: *(.*)`)
	// neverExecuted is in its message if trying again does not help: the words of execve(2), of container runtimes for a command that is
	// not in the image, and of the kubelet for a port without a number. Time-outs and containers that end are temporary.
	neverExecuted = regexp.MustCompile(`(?i)executable file|no such file or directory|permission denied|exec format error|not a directory|is a directory|port "[^"]*" not found|invalid port number`)
	// executed is the command in such a message, with what is wrong with it (runc).
	executed = regexp.MustCompile(`exec: ("[^"]+": .*?)(?:: unknown)?$`)
	// ofRPC begins messages that the kubelet got from the container runtime.
	ofRPC = regexp.MustCompile(`^rpc error: code = \w+ desc = (?:command error: )?`)
	// stoppedByProbe is that of its event about a container that it stops for this
	// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_manager.go).
	stoppedByProbe = regexp.MustCompile(`[Cc]ontainer \S+ failed (liveness|startup) probe`)
)

// maxProbe is how much of a probe is shown.
const maxProbe = 100

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
			} else {
				figures["message"] = p.probeOf(pod.Role, probe)
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

// probeOf returns what the readiness, liveness or startup probe of a role's pods does, in brackets, such as " (test -f /tmp/ready)"; "" if they
// have none.
func (p *input) probeOf(role mpi.Role, kind string) string {
	template, text := p.Template(role), ""
	for _, c := range slices.Concat(template.InitContainers, template.Containers) {
		probe := map[string]*corev1.Probe{"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe}[kind]
		switch {
		case text != "" || probe == nil:
		case probe.Exec != nil:
			text = phrase.Cut(phrase.QuoteCommand(probe.Exec.Command), maxProbe)
		case probe.HTTPGet != nil:
			path, _, _ := strings.Cut(probe.HTTPGet.Path, "?")
			text = fmt.Sprintf("GET %s at port %s", phrase.Cut(cmp.Or(path, "/"), maxProbe), probe.HTTPGet.Port.String())
		case probe.TCPSocket != nil:
			text = "connect to port " + probe.TCPSocket.Port.String()
		}
	}
	if text == "" {
		return ""
	}
	return " (" + p.mask(text) + ")"
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
		// A container that was started again fails again, after the last stop. Startup probes fail until the container has started.
		if named != nil && named[1] == kind || named == nil && kind != "startup" && since >= 0 && since <= stopsSoon {
			probe, answer, line = kind, strings.TrimSpace(failed[2]), facts.EventLine(e)
		}
	}
	if probe == "" && named != nil {
		probe = named[1]
	}
	return probe, answer, line
}

// probesNotExecuted returns a finding for the pods with a probe that cannot be executed, such as a command that is not in the image. MPI
// runs on them nevertheless, unless a pod waits for it: a launcher for its workers (workersNotReady), or containers for a sidecar before them.
func probesNotExecuted(p *input) []Finding {
	const patience = 30 * time.Second
	if p.Outcome.Finish != nil || p.awaitsReadyWorkers() {
		return nil
	}
	var pods []facts.Pod
	var evidence []string
	figures := map[string]string{}
	for _, pod := range p.Pods {
		if pod.DeletionTimestamp != nil || podstatus.HasEnded(pod.Pod) || p.Seen.Now.Sub(pod.CreationTimestamp.Time) < patience {
			continue
		}
		probe, message, event := p.errorOfProbe(pod)
		if probe == "" || len(pods) > 0 && figures["probe"] != probe {
			continue
		}
		if len(pods) == 0 {
			figures["probe"], figures["message"], figures["effect"] = probe, message, probeEffect(probe, pod)
			if pod.Status.Phase == corev1.PodPending {
				figures["containers"] = "initContainers"
			}
		}
		// The number of such events grows with each try.
		event.Count = 1
		pods, evidence = append(pods, pod), append(evidence, sandboxID.ReplaceAllString(facts.EventLine(event), "…"))
	}
	if len(pods) == 0 {
		return nil
	}
	return []Finding{p.findAs(codes.ProbeNotExecuted, pods, figures, evidence...)}
}

// errorOfProbe returns the probe of a pod that cannot be executed, why, and the latest event about it; "" if there is none, or it has
// been executed since.
func (p *input) errorOfProbe(pod facts.Pod) (probe, message string, latest jobstate.Event) {
	const recently = 10 * time.Minute
	for _, event := range slices.Backward(p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "Unhealthy" && e.Name == pod.Name })) {
		found := erroredProbe.FindStringSubmatch(event.Message)
		if found == nil || !neverExecuted.MatchString(found[2]) {
			continue
		}
		probe = strings.ToLower(found[1])
		if probe != "liveness" && podstatus.IsReady(pod.Pod) || probe == "liveness" && p.Seen.Now.Sub(event.Last) > recently {
			continue
		}
		return probe, probeError(found[2]), event
	}
	return "", "", latest
}

// probeError returns what is wrong with a probe, without how the kubelet asked for it.
func probeError(message string) string {
	message = sandboxID.ReplaceAllString(ofRPC.ReplaceAllString(message, ""), "…")
	if found := executed.FindStringSubmatch(message); found != nil {
		message = found[1]
	}
	message, _, _ = strings.Cut(message, ", stdout: ")
	return strings.TrimSuffix(message, ".")
}

// probeEffect returns what follows for a pod from a probe that is not executed.
func probeEffect(probe string, pod facts.Pod) string {
	switch {
	case pod.Status.Phase == corev1.PodPending:
		return "The containers after it do not start."
	case probe == "liveness":
		return "It checks nothing."
	}
	return "A pod with it does not become ready. Programs run nevertheless."
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
	slices.SortFunc(pods, func(a, b facts.Pod) int { return cmp.Compare(a.Index, b.Index) })
	f := p.findAs(codes.HookFailed, pods, map[string]string{"hookText": hookText(p.Template(pods[0].Role), p.mask)}, evidence...)
	f.Severity = v1alpha1.SeverityError
	return []Finding{f}
}

// hookText returns the command of the first postStart hook of a pod template as a part of a sentence; "" if there is none.
func hookText(spec corev1.PodSpec, mask func(string) string) string {
	for _, container := range spec.Containers {
		if life := container.Lifecycle; life != nil && life.PostStart != nil && life.PostStart.Exec != nil {
			return fmt.Sprintf(" (%s)", quotedText(mask(strings.Join(life.PostStart.Exec.Command, " "))))
		}
	}
	return ""
}
