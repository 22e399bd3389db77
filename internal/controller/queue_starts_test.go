package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/waiting"
)

// TestQueueStarts: the starts in all queues are estimated together, from jobs of all namespaces, and not for each job anew.
func TestQueueStarts(t *testing.T) {
	objects := map[string][]string{
		"ClusterQueueList": {`{metadata: {name: team}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: "4"}]}]}]},
			status: {flavorsReservation: [{name: f, resources: [{name: cpu, total: "4"}]}]}}`},
		"LocalQueueList": {`{metadata: {namespace: one, name: q}, spec: {clusterQueue: team}}`, `{metadata: {namespace: two, name: other}, spec: {clusterQueue: elsewhere}}`},
	}
	workloads := []string{
		`{metadata: {namespace: two, name: a, uid: a, ownerReferences: [{kind: MPIJob, name: train, controller: true, uid: x, apiVersion: v}]}, spec: {queueName: gone},
			status: {admission: {clusterQueue: team, podSetAssignments: [{flavors: {cpu: f}, resourceUsage: {cpu: "4"}}]}, conditions: [{type: QuotaReserved, status: "True"}, {type: Admitted, status: "True"}]}}`,
		`{metadata: {namespace: one, name: b, uid: b, ownerReferences: [{kind: Job, name: batch, controller: true, uid: x, apiVersion: v}]}, spec: {queueName: q}, status: {resourceRequests: [{name: main, resources: {cpu: "2"}}]}}`,
		`{metadata: {namespace: two, name: c, uid: c}, spec: {queueName: other}, status: {resourceRequests: [{name: main, resources: {cpu: "2"}}]}}`,
	}
	var refused error
	read := 0
	api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			into := list.(*unstructured.UnstructuredList)
			into.Items = parsed(t, objects[into.GetKind()])
			return refused
		},
	}).Build()
	now, clock := mpitest.Now, mpitest.Now
	s := &queueStarts{
		live: api, isJob: func(kind string) bool { return kind == "MPIJob" }, clock: func() time.Time { return clock },
		workloads: func(context.Context) ([]unstructured.Unstructured, error) {
			read++
			clock = clock.Add(100 * time.Millisecond)
			return parsed(t, workloads), nil
		},
		describe: func(job mpi.ID) waiting.Job {
			if job != (mpi.ID{Kind: "MPIJob", Namespace: "two", Name: "train"}) {
				t.Errorf("it asks for %s", job)
			}
			return waiting.Job{Start: now.Add(-time.Minute), Deadline: time.Hour}
		},
	}
	b := s.startOf(t.Context(), "b", now)
	if b.By.IsZero() || b.By.Before(now.Add(58*time.Minute)) || b.By.After(now.Add(time.Hour+time.Minute)) {
		t.Errorf("b starts %+v", b)
	}
	if c := s.startOf(t.Context(), "c", now); !c.IsZero() {
		t.Errorf("c waits in a queue that is unknown, and starts %+v", c)
	}
	if s.startOf(t.Context(), "b", now.Add(29*time.Second)); read != 1 {
		t.Errorf("within 30 s the Workloads were read %d times", read)
	}
	if s.startOf(t.Context(), "b", now.Add(30*time.Second)); read != 2 {
		t.Errorf("after 30 s the Workloads were read %d times, want 2", read)
	}
	if s.startOf(t.Context(), "new", now.Add(36*time.Second)); read != 3 {
		t.Errorf("for a new job the Workloads were read %d times, want 3", read)
	}
	s.took = 3 * time.Second
	if s.startOf(t.Context(), "b", now.Add(90*time.Second)); read != 3 {
		t.Error("an estimate that takes long is repeated as often")
	}
	s.took, refused = 0, errors.New("clusterqueues is forbidden")
	if got := s.startOf(t.Context(), "b", now.Add(2*time.Minute)); !got.IsZero() {
		t.Errorf("without the right to read queues b starts %+v", got)
	}
	refused = nil
	if got := s.startOf(t.Context(), "b", now.Add(2*time.Minute+29*time.Second)); !got.IsZero() {
		t.Errorf("29 s after a refusal queues are read again: %+v", got)
	}
}

// parsed returns objects from YAML.
func parsed(t *testing.T, texts []string) []unstructured.Unstructured {
	t.Helper()
	objects := make([]unstructured.Unstructured, len(texts))
	for i, text := range texts {
		if err := yaml.Unmarshal([]byte(text), &objects[i].Object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	return objects
}
