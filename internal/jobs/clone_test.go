package jobs

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestClone(t *testing.T) {
	t.Parallel()
	job := object(t, `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  labels: {team: x}
  annotations: {mpi.opendatahub.io/created-by: alice, kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
  resourceVersion: "7"
spec: {runPolicy: {suspend: true}, slotsPerWorker: 2, mpiReplicaSpecs: {Worker: {replicas: 2}}}
status: {conditions: [{type: Failed, status: "True"}]}
`)
	c, s := newServer(t, job, reportFor("MPIJob", "pi-2", "gone", v1alpha1.JobReportStatus{}))
	clone, err := c.Clone(t.Context(), FromObject(job), "", Change{Field: "workers", Value: "4"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
		"metadata": map[string]any{"name": "pi-3", "namespace": "ns", "labels": map[string]any{"team": "x"}, "annotations": map[string]any{"note": "kept"}},
		"spec":     map[string]any{"slotsPerWorker": int64(2), "mpiReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(4)}}},
	}
	if diff := cmp.Diff(want, clone.Job.Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if clone.Original.GetName() != "pi" || !FromObject(clone.Original).Suspended() {
		t.Errorf("the original is %v", clone.Original)
	}
	if clone, err := c.Clone(t.Context(), FromObject(job), "own"); err != nil || clone.Job.GetName() != "own" {
		t.Errorf("%v, %v", clone, err)
	}
	if _, err := c.Clone(t.Context(), FromObject(job), "own", Change{Field: "workers", Value: "many"}); err == nil {
		t.Error("a wrong change is ignored")
	}
	deleted := FromReport(reportFor("MPIJob", "gone", "g", v1alpha1.JobReportStatus{}))
	if _, is := errors.AsType[*DeletedError](second(c.Clone(t.Context(), deleted, ""))); !is {
		t.Error("a deleted job is cloned")
	}
	s.refuse = func(string, string) error { return errors.New("broken") }
	if _, err := c.Clone(t.Context(), FromObject(job), ""); err == nil {
		t.Error("a name is chosen without the list of jobs")
	}
}

// second returns the second of two values.
func second[A, B any](_ A, b B) B { return b }

func TestSuspendIsNotCloned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ job, want string }{
		"an empty policy":      {"{kind: MPIJob, spec: {runPolicy: {suspend: true}}}", "{kind: MPIJob, spec: {}}"},
		"a policy with more":   {"{kind: MPIJob, spec: {runPolicy: {suspend: true, backoffLimit: 1}}}", "{kind: MPIJob, spec: {runPolicy: {backoffLimit: 1}}}"},
		"not suspended":        {"{kind: MPIJob, spec: {runPolicy: {suspend: false}}}", "{kind: MPIJob, spec: {runPolicy: {suspend: false}}}"},
		"a TrainJob with more": {"{kind: TrainJob, spec: {suspend: true, runtimeRef: {name: r}}}", "{kind: TrainJob, spec: {runtimeRef: {name: r}}}"},
	} {
		job := parsed(t, test.job)
		removeSuspend(job)
		if diff := cmp.Diff(parsed(t, test.want).Object, job.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
