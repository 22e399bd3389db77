package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestSessions: the sessions of each run of the launcher that has ended are known, the latest first.
func TestSessions(t *testing.T) {
	job := mpitest.Job(2)
	try := func(number int, message string) *corev1.Pod {
		return mpitest.LauncherPod(job, number, corev1.PodFailed, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}}}
		})
	}
	seen := jobstate.Observed{LauncherPods: []*corev1.Pod{
		try(0, `{"role":"launcher","sessions":{"count":2,"first":1000,"list":[{"host":"pi-worker-0","at":0,"connected":5,"end":7}]}}`),
		try(1, "the program's own message"),
		try(2, `{"role":"launcher"}`),
		try(3, `{"role":"launcher","sessions":{"count":1,"first":2000}}`),
		mpitest.LauncherPod(job, 4, corev1.PodRunning),
	}}
	want := []agentapi.Sessions{{Count: 1, First: 2000}, {Count: 2, First: 1000, List: []agentapi.Session{{Host: "pi-worker-0", Connected: 5, End: 7}}}}
	if diff := cmp.Diff(want, report.Sessions(seen)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
