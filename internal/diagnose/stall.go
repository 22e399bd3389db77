package diagnose

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// slowAfter is after how long a pod that has not started is worth a word.
const slowAfter = 5 * time.Minute

// quietSince reports whether a pod that runs has said nothing for long, as far as its log was read.
func (p *input) quietSince(pod jobPod) bool {
	last := p.lastWord(pod)
	return !last.IsZero() && p.seen.Now.Sub(last) >= p.job.Lifecycle.SilentAfter
}

// lastWord is when a pod that runs has last said something, or began to run; zero where its log was not read.
func (p *input) lastWord(pod jobPod) time.Time {
	if _, read := p.evidence.Logs[pod.Name]; !read || !podstatus.IsRunning(pod.Pod) {
		return time.Time{}
	}
	last := pod.log.LastAt
	for _, c := range pod.Status.ContainerStatuses {
		if running := c.State.Running; running != nil && running.StartedAt.After(last) {
			last = running.StartedAt.Time
		}
	}
	return last
}

// silent reports that a running job has printed nothing for long. The launcher's log contains the output of the ranks.
func silent(p *input) []Finding {
	launcher := p.launcher()
	if p.outcome.Phase != v1alpha1.PhaseRunning || launcher == nil || !p.quietSince(*launcher) {
		return nil
	}
	for _, pod := range p.pods {
		if !p.lastWord(pod).IsZero() && !p.quietSince(pod) {
			return nil
		}
	}
	f := p.find(codes.NoOutput, []jobPod{*launcher}, map[string]string{"since": clock(p.lastWord(*launcher))})
	if f.Evidence = lastLines(*launcher); len(f.Evidence) == 0 {
		f.Evidence = []string{fmt.Sprintf("The log of %s is empty.", launcher.Name)}
	}
	return []Finding{f}
}

// slowStart reports pods that have not started. It counts if no problem of them is known.
func slowStart(p *input) []Finding {
	if p.outcome.Finish != nil || p.outcome.NeedsAction {
		return nil
	}
	var slow []jobPod
	for _, pod := range p.pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || pod.CreationTimestamp.IsZero() ||
			unschedulable(pod) != "" {
			continue
		}
		patience := slowAfter
		if runningInit(pod) != nil {
			patience = time.Minute
		}
		if p.seen.Now.Sub(pod.CreationTimestamp.Time) >= patience {
			slow = append(slow, pod)
		}
	}
	if len(slow) == 0 {
		return nil
	}
	first := slow[0]
	state := "waiting for a node"
	if first.Spec.NodeName != "" {
		state = "pulling the image or mounting volumes on " + first.Spec.NodeName
	}
	var evidence []string
	if c := runningInit(first); c != nil {
		state = "its init container " + c.Name + " is still running"
		evidence = []string{fmt.Sprintf("Pod %s: init container %s has been running since %s.", first.Name, c.Name, clock(c.State.Running.StartedAt.Time))}
	}
	f := p.find(codes.SlowStart, slow, map[string]string{"since": clock(first.CreationTimestamp.Time), "state": state})
	f.Evidence = evidence
	for _, event := range p.events("Pod", func(e jobstate.Event) bool { return e.Name == first.Name }) {
		f.Evidence = append(f.Evidence, saying(event))
	}
	if extra := len(f.Evidence) - MaxEvidence; extra > 0 {
		f.Evidence = f.Evidence[extra:]
	}
	return []Finding{f}
}

// runningInit returns the init container that a pod waits for while it runs; nil if there is none.
func runningInit(pod jobPod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.State.Running != nil && !ptr.Deref(c.Started, false) {
			return c
		}
	}
	return nil
}

// unknown returns what is known about a job that failed or needs action without a known cause.
func unknown(p *input) []Finding {
	if !p.failed() && !p.outcome.NeedsAction {
		return nil
	}
	figures := map[string]string{"state": "The job is stuck.", "known": sentence(p.outcome.Message)}
	if p.failed() {
		figures["state"] = "The job failed."
	}
	var pods []jobPod
	if launcher := p.launcher(); launcher != nil {
		pods = []jobPod{*launcher}
	}
	f := p.find(codes.Unknown, pods, figures)
	if len(pods) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s is %s.", pods[0].Name, pods[0].Status.Phase))
		f.Evidence = append(f.Evidence, lastLines(pods[0])...)
	} else {
		f.Evidence = append(f.Evidence, "No launcher pod exists, so there is no log.")
	}
	for _, event := range p.evidence.Events {
		if event.Warning {
			f.Evidence = append(f.Evidence, saying(event))
		}
	}
	return []Finding{f}
}
