package diagnose

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

var stallTexts = map[mpi.Code]text{
	mpi.CodeNoOutput: {
		summary: "All pods run, but the program has said nothing since {since}. It may compute in silence; or a rank hangs, and the others wait for it.",
		remedies: []Remedy{
			{Text: "See whether the ranks still compute: one that hangs uses no processor, those that wait for it use all of theirs.", Action: "kubectl -n {namespace} top pods -l {selector}"},
			{Text: "Look where a rank is.", Action: "kubectl -n {namespace} exec {worker} -- py-spy dump --pid PID"},
			{Text: "If it hangs, end it by a limit of time, so that it does not keep its machines.", Action: "{deadlineField}"},
		},
	},
	mpi.CodeSlowStart: {
		summary: "{who} should have started since {since}: {state}.",
		remedies: []Remedy{
			{Text: "See what Kubernetes says of the pod.", Action: "kubectl -n {namespace} describe pod {pod}"},
			{Text: "A large image takes minutes on a machine that has not had it before; the next start there is quicker."},
		},
	},
	mpi.CodeUnknown: {
		summary: "{state} The cause is not one that is known here. {known}",
		remedies: []Remedy{
			{Text: "Read the launcher's log: the first error in it is mostly the cause.", Action: "kubectl -n {namespace} logs {launcherPods} --tail=200"},
			{Text: "Then the events.", Action: "kubectl -n {namespace} get events --sort-by=.lastTimestamp"},
			{Text: "Then the state of the pods.", Action: "kubectl -n {namespace} describe pods -l {selector}"},
		},
	},
}

// slowAfter is after how long a pod that has not started is worth a word.
const slowAfter = 5 * time.Minute

// quietSince tells whether a pod that runs has said nothing for long, as far as its log was read.
func (p *patient) quietSince(pod jobPod) bool {
	last := p.lastWord(pod)
	return !last.IsZero() && p.seen.Now.Sub(last) >= p.job.Lifecycle.SilentAfter
}

// lastWord is when a pod that runs has last said something, or began to run; zero where its log was not read.
func (p *patient) lastWord(pod jobPod) time.Time {
	if _, read := p.evidence.Logs[pod.Name]; !read || !mpi.IsRunning(pod.Pod) {
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

// silent tells that a running job has not said anything for long. Ranks' output comes through the launcher.
func silent(p *patient) []Finding {
	launcher := p.launcher()
	if p.outcome.Phase != mpi.PhaseRunning || launcher == nil || !p.quietSince(*launcher) {
		return nil
	}
	for _, pod := range p.pods {
		if !p.lastWord(pod).IsZero() && !p.quietSince(pod) {
			return nil
		}
	}
	f := p.find(mpi.CodeNoOutput, Warning, []jobPod{*launcher}, map[string]string{"since": clock(p.lastWord(*launcher))})
	if f.Evidence = lastLines(*launcher); len(f.Evidence) == 0 {
		f.Evidence = []string{fmt.Sprintf("The log of %s is empty.", launcher.Name)}
	}
	return []Finding{f}
}

// slowStart tells of pods that do not start although nothing speaks against it.
func slowStart(p *patient) []Finding {
	if p.outcome.Finish != nil || p.outcome.Trouble {
		return nil
	}
	var slow []jobPod
	for _, pod := range p.pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || pod.CreationTimestamp.IsZero() || unschedulable(pod) != "" {
			continue
		}
		if p.seen.Now.Sub(pod.CreationTimestamp.Time) >= slowAfter {
			slow = append(slow, pod)
		}
	}
	if len(slow) == 0 {
		return nil
	}
	first := slow[0]
	state := "it waits for a machine"
	if first.Spec.NodeName != "" {
		state = "its image is being fetched, or its volumes attached, on " + first.Spec.NodeName
	}
	f := p.find(mpi.CodeSlowStart, Warning, slow, map[string]string{"since": clock(first.CreationTimestamp.Time), "state": state})
	for _, event := range p.events("Pod", func(e mpi.Event) bool { return e.Name == first.Name }) {
		f.Evidence = append(f.Evidence, saying(event))
	}
	if extra := len(f.Evidence) - MaxEvidence; extra > 0 {
		f.Evidence = f.Evidence[extra:]
	}
	return []Finding{f}
}

// unknown says of a job that failed or is in trouble for no reason that is known what there is to be said.
func unknown(p *patient) []Finding {
	if !p.failed() && !p.outcome.Trouble {
		return nil
	}
	figures := map[string]string{"state": "The job does not get on.", "known": sentence(p.outcome.Message)}
	if p.failed() {
		figures["state"] = "The job failed."
	}
	var pods []jobPod
	if launcher := p.launcher(); launcher != nil {
		pods = []jobPod{*launcher}
	}
	f := p.find(mpi.CodeUnknown, p.severity(), pods, figures)
	if len(pods) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s is %s.", pods[0].Name, pods[0].Status.Phase))
		f.Evidence = append(f.Evidence, lastLines(pods[0])...)
	} else {
		f.Evidence = append(f.Evidence, "There is no pod of the launcher any more, and so no log.")
	}
	for _, event := range p.evidence.Events {
		if event.Warning {
			f.Evidence = append(f.Evidence, saying(event))
		}
	}
	return []Finding{f}
}
