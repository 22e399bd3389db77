package jobs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHasEvent(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	existing := FromObject(object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi, uid: now, creationTimestamp: 2026-11-01T12:00:00Z}}"))
	deleted := Job{Kind: "MPIJob", Name: "pi", UID: "now"}
	for name, test := range map[string]struct {
		job    Job
		object corev1.ObjectReference
		seen   time.Time
		want   bool
	}{
		"the job":                          {existing, corev1.ObjectReference{Kind: "MPIJob", Name: "pi", UID: "now"}, created, true},
		"the job without a UID":            {existing, corev1.ObjectReference{Kind: "MPIJob", Name: "pi"}, created, true},
		"before the job was created":       {existing, corev1.ObjectReference{Kind: "Pod", Name: "pi-worker-0"}, created.Add(-time.Second), false},
		"any time of a deleted job":        {deleted, corev1.ObjectReference{Kind: "Pod", Name: "pi-worker-0"}, created.Add(-time.Second), true},
		"an earlier job of this name":      {deleted, corev1.ObjectReference{Kind: "MPIJob", Name: "pi", UID: "before"}, created, false},
		"a job of this name, other kind":   {existing, corev1.ObjectReference{Kind: "TrainJob", Name: "pi"}, created, false},
		"another object of this name":      {existing, corev1.ObjectReference{Kind: "Service", Name: "pi"}, created, true},
		"a worker":                         {existing, corev1.ObjectReference{Kind: "Pod", Name: "pi-worker-12"}, created, true},
		"a pod of the launcher":            {existing, corev1.ObjectReference{Kind: "Pod", Name: "pi-launcher-x7k2p"}, created, true},
		"a pod of a TrainJob":              {existing, corev1.ObjectReference{Kind: "Pod", Name: "pi-node-0-1-abcde"}, created, true},
		"a worker of a job with this name": {existing, corev1.ObjectReference{Kind: "Pod", Name: "pi-2-worker-0"}, created, false},
		"an object of another job":         {existing, corev1.ObjectReference{Kind: "Pod", Name: "e-worker-0"}, created, false},
		"the job's Workload":               {existing, corev1.ObjectReference{Kind: "Workload", Name: "mpijob-pi-1a2b3"}, created, true},
		"the Workload of another kind":     {existing, corev1.ObjectReference{Kind: "Workload", Name: "trainjob-pi-1a2b3"}, created, false},
	} {
		event := &corev1.Event{InvolvedObject: test.object, LastTimestamp: metav1.NewTime(test.seen)}
		if got := test.job.HasEvent(event); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestLastSeen(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 1, 12, minute, 0, 0, time.UTC) }
	event := corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}
	steps := []struct {
		name string
		set  func()
	}{
		{"creation only", func() {}},
		{"an event of events.k8s.io", func() { event.EventTime = metav1.NewMicroTime(at(2)) }},
		{"an event of core/v1", func() { event.LastTimestamp = metav1.NewTime(at(3)) }},
		{"a series without a time", func() { event.Series = &corev1.EventSeries{Count: 2} }},
		{"a series", func() { event.Series.LastObservedTime = metav1.NewMicroTime(at(5)) }},
	}
	for i, want := range []time.Time{at(1), at(2), at(3), at(3), at(5)} {
		steps[i].set()
		if got := LastSeen(&event); !got.Time.Equal(want) {
			t.Errorf("%s: %v, want %v", steps[i].name, got, want)
		}
	}
}
