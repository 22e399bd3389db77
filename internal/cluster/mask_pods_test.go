package cluster_test

import (
	"encoding/json"
	"fmt"
	"strconv"
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

// TestNoSecretOfASummaryIsCached: a secret in any text of an agent's summary is masked, whatever JSON writes in place of the
// characters around it.
func TestNoSecretOfASummaryIsCached(t *testing.T) {
	const secret = "hunter2hunter2"
	for name, text := range map[string]string{
		"behind a quote":       `--password "` + secret + `"`,
		"behind a line":        "no such file\npassword=" + secret + "\nend",
		"in an XML element":    "<password>" + secret + "</password>",
		"in JSON":              `{"password": "` + secret + `"}`,
		"behind a tab":         "a\ttoken=" + secret,
		"behind an ampersand":  "https://host/?a=b&token=" + secret,
		"in lines of a key":    "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----",
		"alone, as before":     "password=" + secret,
		"in a URL":             "https://user:" + secret + "@host/",
		"in quotes and quotes": `\"password\": \"` + secret + `\"`,
	} {
		t.Run(name, func(t *testing.T) {
			if masked := (logs.Masker{}).Text(text); strings.Contains(masked, secret) {
				t.Skipf("the masker finds no secret in %q", text)
			}
			summary := agentapi.Summary{
				Role: agentapi.RoleLauncher, Code: agentapi.RankFailed, Message: text, MPIVersions: []string{text}, MemoryPeak: 1<<62 + 1,
				Hosts: []agentapi.HostTrouble{{Host: text, Message: text, Seconds: 3}}, Ranks: []agentapi.RankEnd{{Rank: 1, Program: text, At: 1<<53 + 1}},
			}
			data, err := json.Marshal(summary)
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range []string{string(data), strings.Replace(string(data), "{", `{"role":"worker","other":`+strconv.Quote("password="+secret)+`,`, 1)} {
				pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}}}
				cached := cachedMessage(t, pod)
				if got, agents := agentapi.ParseSummary(cached); strings.Contains(cached, secret) || !agents || got.MemoryPeak != summary.MemoryPeak || got.Ranks[0].At != summary.Ranks[0].At || got.Code != summary.Code {
					t.Errorf("%s is cached for %s", cached, message)
				}
			}
		})
	}
}

// cachedMessage returns the termination message of a pod's container as it is cached.
func cachedMessage(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	for of, by := range cluster.CacheOptions(logs.Masker{}).ByObject {
		if _, pods := of.(*corev1.Pod); pods {
			made, err := by.Transform(pod)
			if err != nil {
				t.Fatal(err)
			}
			return made.(*corev1.Pod).Status.ContainerStatuses[0].State.Terminated.Message
		}
	}
	t.Fatal("pods are not cached")
	return ""
}

// TestTerminationMessagesThatAreCut: the kubelet takes the last bytes of a message. What is left of a secret at its begin is not cached.
func TestTerminationMessagesThatAreCut(t *testing.T) {
	for name, test := range map[string]struct {
		size int
		want bool
	}{"a file": {4096, false}, "a log": {2048, false}, "not cut": {1000, true}} {
		t.Run(name, func(t *testing.T) {
			const begin, end = "er2hunter2\n", "\nno such file"
			message := begin + strings.Repeat("x", test.size-len(begin)-len(end)) + end
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}},
			}}}}
			cluster.AsCached(logs.Masker{}, pod)
			got := pod.Status.ContainerStatuses[0].State.Terminated.Message
			if strings.Contains(got, "er2hunter2") != test.want || !strings.HasSuffix(got, end) {
				t.Errorf("it is %.40q", got)
			}
		})
	}
}
