package mpi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// stuck is why pods do not run although they exist.
type stuck struct{ reason, message string }

// stuckPods finds the first reason for which pods of the job do not start and will not by waiting, and says
// how many share it. The launcher is looked at first, then the workers by index.
func stuckPods(j Job, o Observed) *stuck {
	type named struct {
		name string
		pod  *corev1.Pod
	}
	var pods []named
	if n := len(o.LauncherPods); n > 0 {
		pods = append(pods, named{"The launcher", o.LauncherPods[n-1]})
	}
	for _, worker := range o.Workers {
		if worker.Index < int(j.Workers.Count) {
			pods = append(pods, named{fmt.Sprintf("Worker %d", worker.Index), worker.Pod})
		}
	}
	var first *stuck
	var who string
	more := int32(0)
	for _, p := range pods {
		found := stuckPod(p.pod)
		switch {
		case found == nil:
		case first == nil:
			first, who = found, p.name
		case found.reason == first.reason:
			more++
		}
	}
	if first == nil {
		return nil
	}
	first.message = who + " " + first.message
	if more > 0 {
		first.message += fmt.Sprintf(" (The same for %s more.)", count(more, "pod"))
	}
	return first
}

func stuckPod(pod *corev1.Pod) *stuck {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Labels[LabelRole] == string(RoleWorker) {
		return &stuck{ReasonWorkerFailed, failedText(pod)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &stuck{ReasonUnschedulable, "finds no node: " + sentence(c.Message)}
		}
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

// stuckContainer reads the reasons that the kubelet gives for a container that waits
// (k8s.io/kubernetes/pkg/kubelet/images/types.go, kuberuntime/kuberuntime_container.go).
func stuckContainer(c corev1.ContainerStatus) *stuck {
	waiting := c.State.Waiting
	if waiting == nil {
		return nil
	}
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "InvalidImageName":
		return &stuck{ReasonImagePull, fmt.Sprintf("cannot start: its image %q cannot be pulled: %s Check the image's name, and that "+
			"the namespace has a pull secret for its registry.", c.Image, sentence(pullError(waiting.Message)))}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return &stuck{ReasonContainerCreate, fmt.Sprintf("cannot start: its container %q cannot be created: %s", c.Name, sentence(waiting.Message))}
	case "CrashLoopBackOff":
		how := "ended"
		if last := c.LastTerminationState.Terminated; last != nil {
			how = exitText(last)
		}
		return &stuck{ReasonCrashLoop, fmt.Sprintf("does not stay up: its container %q %s, and was started %d times. Its log says why.", c.Name, how, c.RestartCount+1)}
	}
	return nil
}

// pullError cuts what the kubelet puts before the error while it waits to try again, so that the text does
// not change with every try.
func pullError(message string) string {
	if strings.HasPrefix(message, "Back-off pulling image") {
		if _, rest, found := strings.Cut(message, `": `); found {
			message = strings.TrimPrefix(rest, "ErrImagePull: ")
		}
	}
	return message
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
	return sentence(text)
}

// lastExit tells how a pod's first failed container ended; empty if none did.
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
		return "was killed because it used more memory than its limit (OOMKilled)"
	case t.ExitCode > 128 && t.ExitCode < 160:
		return fmt.Sprintf("ended with code %d, that is by signal %d", t.ExitCode, t.ExitCode-128)
	}
	return fmt.Sprintf("ended with code %d", t.ExitCode)
}

// sentence ends a text with a full stop and keeps it at a length that people read.
func sentence(text string) string {
	const most = 600
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
