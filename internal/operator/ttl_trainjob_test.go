package operator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestTTLOfTrainJobs: a finished TrainJob is deleted when its TTL expires, also by a later operator and with a TTL that was set
// after its end, and its report is kept. Running jobs, and those without a valid TTL, are kept.
func TestTTLOfTrainJobs(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	server.runtime(t, "mpi")
	server.runtime(t, "torch", "mpi:", "torch:", "mpi-implementation: OpenMPI", "other: annotation")
	made := func(name, runtime, ttl string) *unstructured.Unstructured {
		job := trainjob.New()
		job.SetNamespace("default")
		job.SetName(name)
		if ttl != "" {
			job.SetAnnotations(map[string]string{mpi.AnnotationTTL: ttl})
		}
		job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"kind": trainjob.RuntimeKind, "name": runtime}, "trainer": map[string]any{"command": []any{"mpirun", "pi"}}}
		server.create(t, job)
		return job
	}
	update := func(job *unstructured.Unstructured) {
		t.Helper()
		if err := server.client.Update(t.Context(), job); err != nil {
			t.Fatalf("update %s: %v", job.GetName(), err)
		}
	}
	finish := func(job *unstructured.Unstructured, kind string) {
		t.Helper()
		job.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": kind, "status": "True", "reason": "Over", "message": "over", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}}
		update(job)
	}
	left := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() error {
			if got := server.jobs(t); !slices.Equal(got, want) {
				return fmt.Errorf("TrainJobs %q, want %q", got, want)
			}
			return nil
		})
	}
	stop := server.start(t)
	failed, finished, other, kept := made("failed", "mpi", "2"), made("finished", "mpi", "5"), made("other", "torch", "0"), made("kept", "mpi", "")
	made("running", "mpi", "0")
	invalid := made("invalid", "mpi", "soon")
	finish(failed, "Failed")
	finish(other, "Complete")
	left("what is over is deleted", "finished", "invalid", "kept", "running")
	finish(finished, "Complete")
	finish(kept, "Complete")
	finish(invalid, "Complete")
	stop()
	defer server.start(t)()
	left("another operator deletes as well", "invalid", "kept", "running")

	kept.SetAnnotations(map[string]string{mpi.AnnotationTTL: "1"})
	update(kept)
	left("a TTL may be set later", "invalid", "running")
	var reports v1alpha1.JobReportList
	if err := server.client.List(t.Context(), &reports, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(reports.Items, func(r v1alpha1.JobReport) bool { return r.Spec.JobRef.Name == "failed" }) {
		t.Errorf("%d reports, none of the job that was deleted", len(reports.Items))
	}
}
