package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// slowStart reports pods that have not started. It counts if no problem of them is known.
func slowStart(p *input) []Finding {
	if p.Outcome.Finish != nil || p.Outcome.NeedsAction {
		return nil
	}
	var slow []facts.Pod
	for _, pod := range p.Pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || pod.CreationTimestamp.IsZero() ||
			facts.Unschedulable(pod) != "" {
			continue
		}
		patience := slowAfter
		if podstatus.RunningInit(pod.Pod) != nil {
			patience = time.Minute
		}
		if p.Seen.Now.Sub(pod.CreationTimestamp.Time) >= patience {
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
	entry := codes.Lookup(codes.SlowStart)
	figures := map[string]string{"since": facts.TimeText(first.CreationTimestamp.Time), "state": state}
	var evidence []string
	if c := podstatus.RunningInit(first.Pod); c != nil {
		entry, figures["container"] = codes.InitContainerRuns, c.Name
		evidence = []string{fmt.Sprintf("Pod %s: init container %s has been running since %s.", first.Name, c.Name, facts.TimeText(c.State.Running.StartedAt.Time))}
		if last := facts.LastLines(first); len(last) > 0 {
			_, text, _ := strings.Cut(last[len(last)-1], ": ")
			figures["lastText"] = " It last printed: " + quotedText(text) + "."
			evidence = append(evidence, last[len(last)-1])
		}
	}
	f := p.findAs(entry, slow, figures)
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return e.Name == first.Name }) {
		f.Evidence = append(f.Evidence, facts.EventLine(event))
	}
	f.Evidence = append(evidence, f.Evidence[max(0, len(f.Evidence)+len(evidence)-MaxEvidence):]...)
	return []Finding{f}
}

// slowAfter is after how long a pod that has not started is worth a word.
const slowAfter = 5 * time.Minute
