package cluster

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
)

// masked returns a cache's transform of pods that also removes secrets from their status: waiting reasons can contain
// the command, and termination messages any output.
func masked(masker logs.Masker, transform func(any) (any, error)) func(any) (any, error) {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			maskStatus(masker, &pod.Status)
		}
		return transform(object)
	}
}

func maskStatus(masker logs.Masker, status *corev1.PodStatus) {
	status.Message = masker.Text(status.Message)
	for i := range status.Conditions {
		status.Conditions[i].Message = masker.Text(status.Conditions[i].Message)
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if state.Waiting != nil {
					state.Waiting.Message = masker.Text(state.Waiting.Message)
				}
				if state.Terminated != nil {
					state.Terminated.Message = maskTermination(masker, state.Terminated.Message)
				}
			}
		}
	}
}

// maskTermination masks a termination message. In an agent's summary it only masks texts, so that the summary can be
// parsed.
func maskTermination(masker logs.Masker, message string) string {
	without := masker.Text(message)
	if without == message {
		return message
	}
	summary, agents := agentapi.ParseSummary(message)
	if !agents {
		return without
	}
	summary.Message = masker.Text(summary.Message)
	for i := range summary.Hosts {
		summary.Hosts[i].Message = masker.Text(summary.Hosts[i].Message)
	}
	for i := range summary.Ranks {
		summary.Ranks[i].Program = masker.Text(summary.Ranks[i].Program)
	}
	data, err := json.Marshal(summary)
	if err != nil {
		return without
	}
	return string(data)
}
