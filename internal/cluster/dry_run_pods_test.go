package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestEstimatedPriority: pods without a priority class have that of the cluster's default class, which is read again when it is old.
func TestEstimatedPriority(t *testing.T) {
	class := func(name string, value int32, isDefault bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault, PreemptionPolicy: ptr.To(corev1.PreemptNever)}
	}
	api := mpitest.FakeAPI().WithObjects(class("low", 100, false)).Build()
	clock := clocktesting.NewFakePassiveClock(mpitest.Now)
	c := cluster.New(api, api, nil, clock)
	job := mpitest.Job(2)
	expect := func(when string, want int32) {
		t.Helper()
		pods, sure := c.Estimated(t.Context(), job, plan.Settings{})
		if !sure {
			t.Fatalf("%s: the pods are not known", when)
		}
		for _, pod := range []*corev1.Pod{pods.Launcher, pods.Worker} {
			if got := ptr.Deref(pod.Spec.Priority, -1); got != want {
				t.Errorf("%s: the priority is %d, want %d", when, got, want)
			}
		}
	}
	expect("without a default class", 0)
	if err := api.Create(t.Context(), client.Object(class("normal", 1000, true))); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(mpitest.Now.Add(time.Minute + 1))
	expect("with a default class", 1000)
	named := mpitest.Job(2, func(j *mpi.Job) { j.Workers.Template.Spec.PriorityClassName = "low" })
	if _, sure := c.Estimated(t.Context(), named, plan.Settings{}); sure {
		t.Error("the priority of a job with a class is taken as known")
	}
}
