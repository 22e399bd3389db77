package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/logs"
)

// TestNoSecretOfAPodsStatusIsCached: a command that was written as one word is in what Kubernetes and the agent say of it.
func TestNoSecretOfAPodsStatusIsCached(t *testing.T) {
	const secret = "hunter2hunter2"
	said := `exec: "train --password ` + secret + `": executable file not found in $PATH`
	agents := `{"role":"launcher","code":"ProgramMissing","message":"The command \"train --password ` + secret + `\" is not in its image.","exitCode":127}`
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Message: said, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Message: said}},
		InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: said}}}},
		ContainerStatuses: []corev1.ContainerStatus{{
			State:                corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127, Message: agents}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "token=" + secret + "\nno such file"}},
		}},
	}}
	for of, by := range cluster.CacheOptions(logs.Masker{}).ByObject {
		if _, pods := of.(*corev1.Pod); !pods {
			continue
		}
		made, err := by.Transform(pod)
		if err != nil {
			t.Fatal(err)
		}
		cached := made.(*corev1.Pod).Status
		all := fmt.Sprintf("%+v %+v", cached, cached.ContainerStatuses[0])
		for _, message := range []string{
			all, cached.InitContainerStatuses[0].State.Waiting.Message,
			cached.ContainerStatuses[0].State.Terminated.Message, cached.ContainerStatuses[0].LastTerminationState.Terminated.Message,
		} {
			if strings.Contains(message, secret) {
				t.Errorf("a secret is cached: %s", message)
			}
		}
		if got := cached.ContainerStatuses[0].LastTerminationState.Terminated.Message; !strings.HasSuffix(got, "\nno such file") {
			t.Errorf("the rest is gone: %q", got)
		}
		summary, agents := agentapi.ParseSummary(cached.ContainerStatuses[0].State.Terminated.Message)
		if !agents || summary.Code != agentapi.ProgramMissing || !strings.Contains(summary.Message, "is not in its image") {
			t.Errorf("the agent's words cannot be read any more: %+v", cached.ContainerStatuses[0].State.Terminated.Message)
		}
		return
	}
	t.Error("pods are not cached")
}
