package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	at := func(after time.Duration) time.Time { clock = now.Add(after); return clock }
	if first := s.startOf(t.Context(), "b", at(0)); !first.IsZero() || read != 0 {
		t.Errorf("before the running jobs are known b starts %+v", first)
	}
	b := s.startOf(t.Context(), "b", at(30*time.Second))
	if b.By.IsZero() || b.By.Before(now.Add(58*time.Minute)) || b.By.After(now.Add(time.Hour+time.Minute)) {
		t.Errorf("b starts %+v", b)
	}
	if c := s.startOf(t.Context(), "c", at(31*time.Second)); !c.IsZero() {
		t.Errorf("c waits in a queue that is unknown, and starts %+v", c)
	}
	for _, step := range []struct {
		what        string
		workload    types.UID
		seen, after time.Duration
		want        int
	}{
		{"within 30 s", "b", 0, 59 * time.Second, 1},
		{"after 30 s", "b", 0, 61 * time.Second, 2},
		{"by a pass that began before", "b", -time.Minute, 62 * time.Second, 2},
		{"for a job without an estimate", "c", 0, 70 * time.Second, 2},
		{"for a new job", "new", 0, 71 * time.Second, 3},
		{"for another one within 5 s", "newer", 0, 75 * time.Second, 3},
		{"for another one later", "newer", 0, 77 * time.Second, 4},
	} {
		at(step.after)
		if s.startOf(t.Context(), step.workload, now.Add(step.seen)); read != step.want {
			t.Errorf("%s: the Workloads were read %d times, want %d", step.what, read, step.want)
		}
	}
	s.last.Load().took = 3 * time.Second
	if s.startOf(t.Context(), "b", at(130*time.Second)); read != 4 {
		t.Error("an estimate that takes long is repeated as often")
	}
	s.last.Load().took, refused = 0, errors.New("clusterqueues is forbidden")
	if got := s.startOf(t.Context(), "b", at(140*time.Second)); !got.IsZero() {
		t.Errorf("without the right to read queues b starts %+v", got)
	}
	refused = nil
	if got := s.startOf(t.Context(), "b", at(169*time.Second)); !got.IsZero() {
		t.Errorf("29 s after a refusal queues are read again: %+v", got)
	}
	if got := s.startOf(t.Context(), "b", at(171*time.Second)); got.IsZero() {
		t.Error("after a refusal queues are never read again")
	}
	s.mu.Lock()
	if got := s.startOf(t.Context(), "b", at(300*time.Second)); got.IsZero() {
		t.Error("while another pass estimates the starts, there are none")
	}
	s.mu.Unlock()
	s.namespaces = []string{"two"}
	if got := s.startOf(t.Context(), "b", at(400*time.Second)); !got.IsZero() {
		t.Errorf("in a ClusterQueue that namespaces use that are not watched, b starts %+v", got)
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
