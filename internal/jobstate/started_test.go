package jobstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestCommunicates: there may be traffic between two pods that stay; a launcher's Job creates one unless it is suspended.
func TestCommunicates(t *testing.T) {
	job := mpitest.Job(2)
	workers := mpitest.Workers(job, corev1.PodRunning)
	launcher, suspended := mpitest.Launcher(job), mpitest.Launcher(job)
	suspended.Spec.Suspend = new(true)
	leaving := mpitest.Worker(job, 1, corev1.PodRunning, mpitest.Leaving)
	for name, test := range map[string]struct {
		seen jobstate.Observed
		want bool
	}{
		"nothing":                            {},
		"a suspended launcher":               {seen: jobstate.Observed{Launcher: suspended}},
		"a launcher alone":                   {seen: jobstate.Observed{Launcher: launcher, LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}}},
		"a launcher between two tries":       {seen: jobstate.Observed{Launcher: launcher, Workers: workers[:1]}, want: true},
		"workers that wait for the launcher": {seen: jobstate.Observed{Workers: workers}, want: true},
		"a worker that waits for another":    {seen: jobstate.Observed{Workers: workers[:1]}},
		"pods that are being stopped":        {seen: jobstate.Observed{Launcher: suspended, Workers: []jobstate.Worker{workers[0], leaving}}},
		"a worker is replaced":               {seen: jobstate.Observed{Launcher: launcher, Workers: []jobstate.Worker{workers[0], leaving}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.seen.Communicates(); got != test.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
