package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/mpi"
)

func TestNewsOfPodsWaitLongerTheLongerTheyTake(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: time.Second, 2 * time.Second: time.Second, 8 * time.Second: 4 * time.Second, time.Hour: 10 * time.Second,
		-time.Minute: time.Second, // the API server's clock is ahead
	} {
		if got := batchDelayFor(age, false); got != want {
			t.Errorf("after %s news wait for %s, want %s", age, got, want)
		}
	}
	for age, want := range map[time.Duration]time.Duration{0: time.Second, 8 * time.Second: 4 * time.Second, time.Hour: 30 * time.Second} {
		if got := batchDelayFor(age, true); got != want {
			t.Errorf("after %s, while writes wait, news wait for %s, want %s", age, got, want)
		}
	}
}

func TestHinderedPodsAreNews(t *testing.T) {
	waits := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
	}
	tests := map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"not placed yet":            {},
		"being made":                {status: waits("ContainerCreating")},
		"its first container works": {status: waits("PodInitializing")},
		"up":                        {status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Ready: true}}}},
		"no image":                  {status: waits("ErrImagePull"), want: true},
		"no node": {want: true, status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isStuck(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestJobsThatChangeComeFirst: hundreds of jobs that start do not keep those waiting that are new, have ended or were decided upon.
func TestJobsThatChangeComeFirst(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("jobs")
	defer q.ShutDown()
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	pod := func(job string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{mpi.LabelJob: job}}}
	}
	enqueueJobs(q, time.Nanosecond, pod("starts"), pod("ends"))
	time.Sleep(10 * time.Millisecond)
	q.Add(request("new"))
	enqueueJobs(q, 0, pod("ends"))
	for _, want := range []string{"new", "ends", "starts"} {
		if got, _ := q.Get(); got != request(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
