package report

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
)

func TestBindingText(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]agentapi.Binding{
		"each rank to a core of its pod":                                       {Policy: agentapi.BindCore},
		"each rank to a core of its pod on 3 of 4 workers, others share cores": {Policy: agentapi.BindCore, Hosts: 3},
		"none, cores are shared":                                               {Policy: agentapi.BindShared},
		"none, MPI does not find the cores of its pod":                         {Policy: agentapi.BindHidden},
		"none, a rank may use several cores":                                   {Policy: agentapi.BindSeveral},
		"none, this version of Open MPI cannot do it per pod":                  {Policy: agentapi.BindVersion},
		"as set: --bind-to core":                                               {Policy: agentapi.BindUser, By: "--bind-to core"},
		"":                                                                     {Policy: "odd", By: "x"},
	} {
		if got := bindingText(b, 4); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if odd := bindingText(agentapi.Binding{Policy: agentapi.BindUser, By: strings.Repeat("a\n\x1b", 1000)}, 4); len(odd) > 256 || strings.ContainsAny(odd, "\n\x1b") {
		t.Errorf("%q", odd)
	}
}

// TestBindingOfRun: what workers reported of a run before the latest one no longer counts.
func TestBindingOfRun(t *testing.T) {
	t.Parallel()
	started := time.Unix(1000, 0)
	var pod corev1.Pod
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"role":"launcher","binding":{"policy":"several"}}`}},
	}}
	for name, test := range map[string]struct {
		connected time.Duration
		want      string
	}{
		"of this run":   {time.Second, "none, cores are shared"},
		"of one before": {-time.Second, "none, a rank may use several cores"},
	} {
		used := &agentapi.Usage{Launch: &agentapi.Launch{ConnectedAt: started.Add(test.connected).UnixMilli(), Binding: &agentapi.Binding{Policy: agentapi.BindShared}}}
		m := maker{seen: jobstate.Observed{LauncherPods: []*corev1.Pod{&pod}}, evidence: jobstate.Evidence{Usage: used}}
		if got := m.binding(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
