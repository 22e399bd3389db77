package dashboard

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func feedOf(t *testing.T, r *rows, kind string) *feed {
	t.Helper()
	for _, f := range feeds(r) {
		if f.kind.Kind == kind {
			return f
		}
	}
	t.Fatalf("there is no feed of %s", kind)
	return nil
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestRuntimesAreDropped(t *testing.T) {
	r := newRows(time.Now)
	f := feedOf(t, r, "ClusterTrainingRuntime")
	runtime := func(uid string) *unstructured.Unstructured {
		return read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: torch, uid: "`+uid+`", labels: {trainer.kubeflow.org/framework: torch}}}`)
	}
	job := read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: train, namespace: team, uid: job}, spec: {runtimeRef: {name: torch}}}`)
	_ = feedOf(t, r, "TrainJob").Add(job)
	framework := func() string {
		r.mu.RLock()
		defer r.mu.RUnlock()
		return r.byUID["job"].full.Framework
	}
	_ = f.Add(runtime("1"))
	if got := framework(); got != "PyTorch" {
		t.Fatalf("the framework is %q", got)
	}
	// A new runtime of the name is listed before the old one is dropped.
	_ = f.Replace([]any{runtime("2")}, "")
	if got := framework(); got != "PyTorch" || len(r.runtimes) != 1 {
		t.Errorf("with another runtime of the name, the framework is %q", got)
	}
	_ = f.Delete(runtime("2"))
	if got := framework(); got == "PyTorch" || len(r.runtimes) != 0 {
		t.Errorf("%d runtimes are kept; the framework of the job is %q", len(r.runtimes), got)
	}
}

func TestListedReportsAreTrimmed(t *testing.T) {
	f := feedOf(t, newRows(time.Now), "JobReport")
	report := read(t, `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: a, managedFields: [{manager: x}]}, status: {phase: Failed, failure: {logTail: [x]}, pods: [{name: p}], timeline: [{event: e}], findings: [{code: c}]}}`)
	var store cache.TransformingStore = f
	if _, err := store.Transformer()(report); err != nil {
		t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(report.Object, "status")
	if len(status) != 2 || status["phase"] != "Failed" || status["findings"] == nil || report.GetManagedFields() != nil {
		t.Errorf("the report is %v", report.Object)
	}
}
