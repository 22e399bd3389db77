package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// endedWorkers reports workers that ended well before the launcher did. At the end of a job, workers may end a little before it.
func endedWorkers(p *input) []Finding {
	const patience = 5 * time.Second
	over := p.Seen.Now
	if launcher := p.Launcher(); launcher != nil && podstatus.HasEnded(launcher.Pod) {
		over = podstatus.EndedAt(launcher.Pod)
	} else if launcher == nil && p.Failed() {
		over = p.Outcome.Finish.At
	}
	var pods []facts.Pod
	var evidence []string
	for _, pod := range p.Pods {
		at := podstatus.EndedAt(pod.Pod)
		if pod.Role != mpi.RoleWorker || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodSucceeded || at.IsZero() || over.Sub(at) < patience {
			continue
		}
		pods, evidence = append(pods, pod), append(evidence, fmt.Sprintf("Pod %s ended with exit code 0 at %s.", pod.Name, facts.TimeText(at)))
		evidence = append(evidence, facts.LastLines(pod)...)
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.find(codes.WorkerEnded, pods, nil, evidence...)
	if p.Job.Kind == mpi.KindTrainJob {
		f.Remedies[0].Action = "the command of the job node in the runtime"
	}
	f.ExitCode = new(int32(0))
	return []Finding{f}
}

// workersNotReady reports workers that run and are not ready, if the launcher is not started before they are.
func workersNotReady(p *input) []Finding {
	const patience = 30 * time.Second
	if !p.awaitsReadyWorkers() {
		return nil
	}
	var pods []facts.Pod
	var evidence []string
	figures := map[string]string{}
	for _, pod := range p.Pods {
		started := podstatus.StartedAt(pod.Pod)
		if !podstatus.IsRunning(pod.Pod) || podstatus.IsReady(pod.Pod) || pod.DeletionTimestamp != nil || started.IsZero() || p.Seen.Now.Sub(started) < patience {
			continue
		}
		if pods = append(pods, pod); figures["since"] == "" {
			figures["since"] = facts.TimeText(started)
		}
		for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return e.Name == pod.Name && e.Reason == "Unhealthy" }) {
			found := unreadyProbe.FindStringSubmatch(event.Message)
			if found == nil {
				continue
			}
			// The latest event is about the probe that the pod waits for.
			figures["awaited"] = strings.ToLower(found[2])
			figures["message"] = p.unreadyText(pod.Role, figures["awaited"], found[1])
			evidence = append(evidence, sandboxID.ReplaceAllString(facts.EventLine(event), "…"))
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return []Finding{p.find(codes.WorkersNotReady, pods, figures, evidence...)}
}

// unreadyText returns the kubelet's message for the probe that keeps a pod from being ready, after a colon. If the probe's command has no output, the text
// shows the command.
func (p *input) unreadyText(role mpi.Role, kind, message string) string {
	if errored := erroredProbe.FindStringSubmatch(message); errored != nil && neverExecuted.MatchString(errored[2]) {
		return fmt.Sprintf(": its %s probe cannot be executed: %s", kind, probeError(errored[2]))
	}
	text := strings.TrimSpace(strings.TrimSuffix(lower(message), "."))
	if answer, isEmpty := strings.CutSuffix(text, "probe failed:"); isEmpty {
		text = answer + "probe failed" + p.probeOf(role, kind)
	}
	return ": " + text
}

// awaitsReadyWorkers reports whether a job has no launcher yet because it is started when all workers are ready.
func (p *input) awaitsReadyWorkers() bool {
	return p.Job.Launcher.AfterWorkers && p.Launcher() == nil && p.Outcome.Finish == nil
}
