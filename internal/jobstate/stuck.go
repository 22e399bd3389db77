package jobstate

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// stuck is why pods do not run although they exist.
type stuck struct {
	reason, message string
	// values fill the placeholders of the reason's message.
	values map[string]string
}

// stuckPods finds the first reason for which pods of the job do not start and will not by waiting, and says
// how many share it. The launcher is looked at first, then the workers by index.
func stuckPods(j mpi.Job, o Observed) *stuck {
	type named struct {
		name string
		pod  *corev1.Pod
	}
	var pods []named
	if n := len(o.LauncherPods); n > 0 {
		pods = append(pods, named{"The launcher", o.LauncherPods[n-1]})
	}
	launchers := len(pods)
	for _, worker := range o.Workers {
		if worker.Index < int(j.Workers.Count) {
			pods = append(pods, named{fmt.Sprintf("Worker %d", worker.Index), worker.Pod})
		}
	}
	for _, pod := range o.Initializers {
		pods = append(pods, named{"The " + pod.Labels[mpi.LabelJobSetJob], pod})
	}
	var first *stuck
	more := int32(0)
	for i, p := range pods {
		found := stuckPod(p.pod)
		switch {
		case found == nil:
		case first == nil:
			first = found
			first.values["who"] = p.name
			if attempts := CountAttempts(j, o); found.reason == codes.CrashLoop && i < launchers && attempts.Number > 0 {
				first.values["tries"] = "in " + attempts.String()
			}
		case found.reason == first.reason:
			more++
		}
	}
	if first == nil {
		return nil
	}
	first.message = codes.Status(first.reason, first.values)
	if more > 0 {
		first.message += fmt.Sprintf(" (and %s)", phrase.Count(more, "more pod"))
	}
	return first
}

func stuckPod(pod *corev1.Pod) *stuck {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Labels[mpi.LabelRole] == string(mpi.RoleWorker) {
		return &stuck{reason: codes.WorkerFailed, values: map[string]string{"exit": failedText(pod)}}
	}
	if message, is := podstatus.Unschedulable(pod); is {
		return &stuck{reason: codes.Unschedulable, values: map[string]string{"message": phrase.Sentence(message)}}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if found := stuckContainer(c); found != nil {
				return found
			}
		}
	}
	return nil
}

// stuckContainer returns why a container waits; nil if it has no problem.
func stuckContainer(c corev1.ContainerStatus) *stuck {
	switch podstatus.ObstacleOf(c) {
	case podstatus.NoObstacle:
		return nil
	case podstatus.InvalidImageName, podstatus.ImageNotPulled:
		return &stuck{reason: codes.ImagePullFailed, values: map[string]string{
			"imageNow": strconv.Quote(c.Image), "message": phrase.Sentence(podstatus.PullError(c.State.Waiting.Message)),
		}}
	case podstatus.CrashLoop:
		exit := "ended"
		if last := c.LastTerminationState.Terminated; last != nil {
			exit = exitText(last)
		}
		return &stuck{reason: codes.CrashLoop, values: map[string]string{"container": strconv.Quote(c.Name), "exit": exit, "tries": fmt.Sprintf("and was started %d times", c.RestartCount+1)}}
	case podstatus.NotCreated:
	}
	message := phrase.Sentence(cmp.Or(c.State.Waiting.Message, c.State.Waiting.Reason))
	return &stuck{reason: codes.ContainerCreateFailed, values: map[string]string{"container": strconv.Quote(c.Name), "message": message}}
}

func failedText(pod *corev1.Pod) string {
	text := "failed"
	if exit := lastExit(pod); exit != "" {
		text += ": it " + exit
	}
	if pod.Status.Reason != "" {
		text += fmt.Sprintf(" (%s)", pod.Status.Reason)
	}
	if pod.Status.Message != "" {
		text += ": " + pod.Status.Message
	}
	return phrase.Sentence(text)
}

// lastExit describes how a pod's first failed container ended, or returns "" if none failed.
func lastExit(pod *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
				return exitText(t)
			}
		}
	}
	return ""
}

func exitText(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return "exceeded its memory limit (OOMKilled)"
	case t.ExitCode > 128 && t.ExitCode < 160:
		return fmt.Sprintf("exited with code %d (signal %d)", t.ExitCode, t.ExitCode-128)
	}
	return fmt.Sprintf("exited with code %d", t.ExitCode)
}
