package cluster

import (
	"bytes"
	"encoding/json"
	"strings"

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

// maskTermination masks a termination message. An agent's summary is parsed first: in JSON, escapes hide where a secret begins and
// ends. What is not part of a summary is left out.
func maskTermination(masker logs.Masker, message string) string {
	summary, agents := agentapi.ParseSummary(message)
	if !agents {
		return masker.Text(fromLineStart(message))
	}
	data, err := maskSummary(masker, summary)
	if err != nil {
		return masker.Text(message)
	}
	return string(data)
}

// fromLineStart returns a termination message without its first line if that may be the end of one: of a longer file, the kubelet takes the
// last 4096 bytes, and of a log the last 2048 (k8s.io/kubernetes/pkg/kubelet/container/runtime.go). Of a secret that is cut there, the rest would
// not be recognized.
func fromLineStart(message string) string {
	const ofFile, ofLog = 4096, 2048
	if len(message) != ofFile && len(message) != ofLog {
		return message
	}
	if _, lines, found := strings.Cut(message, "\n"); found && lines != "" {
		return lines
	}
	return message
}

// maskSummary returns a summary as JSON with all of its texts masked.
func maskSummary(masker logs.Masker, summary agentapi.Summary) ([]byte, error) {
	data, err := json.Marshal(summary)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller masks the text as a whole
	}
	var fields any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err //nolint:wrapcheck // see above
	}
	if data, err = json.Marshal(maskTexts(masker, fields)); err != nil {
		return nil, err //nolint:wrapcheck // see above
	}
	var masked agentapi.Summary
	if err := json.Unmarshal(data, &masked); err != nil {
		return nil, err //nolint:wrapcheck // see above
	}
	return json.Marshal(masked) //nolint:wrapcheck // see above
}

// maskTexts masks all texts in a value of JSON.
func maskTexts(masker logs.Masker, value any) any {
	switch value := value.(type) {
	case string:
		return masker.Text(value)
	case []any:
		for i := range value {
			value[i] = maskTexts(masker, value[i])
		}
	case map[string]any:
		for name := range value {
			value[name] = maskTexts(masker, value[name])
		}
	}
	return value
}
