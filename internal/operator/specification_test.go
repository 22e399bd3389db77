package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestSpecificationOutlivesTheJob: the report keeps the job's fields through all later writes, which are patches without them, and
// after the job is deleted.
func TestSpecificationOutlivesTheJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	launcher, pod := runs(t, namespace, func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{"note": "first"}
		main := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
		main.Env = append(main.Env, corev1.EnvVar{Name: "HF_TOKEN", Value: "hunter2hunter2"})
	})
	has := func(text string) *v1alpha1.JobReport {
		t.Helper()
		var found *v1alpha1.JobReport
		eventually(t, "the report contains "+text, func() error {
			found = reported(t, namespace, "Running")
			if s := found.Status.Specification; s == nil || !strings.Contains(s.Manifest, text) || int(s.Size) != len(s.Manifest) {
				return fmt.Errorf("the specification is %+v", s)
			}
			return nil
		})
		return found
	}
	running := has("note: first")
	if s := running.Status.Specification; strings.Contains(s.Manifest, "hunter2") || s.Masked != 1 || !strings.Contains(s.Manifest, "kind: MPIJob") {
		t.Errorf("the specification is %+v", s)
	}
	job := get(t, namespace, "pi", &kubeflow.MPIJob{})
	job.Annotations["note"] = "second"
	if err := api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	// A reconcile follows when the operator watches the annotation's job, or with the next change of a pod.
	setPhase(t, get(t, namespace, pod.Name, pod), corev1.PodRunning)
	// A report of an earlier version of the operator gets the fields.
	running = has("note: ")
	running.Status.Specification = nil
	if err := api.Update(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	fails(t, launcher, pod)
	failed := reported(t, namespace, "Failed")
	if s := failed.Status.Specification; s == nil || !strings.Contains(s.Manifest, "note: second") {
		t.Fatalf("after the upgrade: %+v", s)
	}
	if err := api.Delete(t.Context(), get(t, namespace, "pi", job)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion is recorded", func() error {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &kubeflow.MPIJob{})
		return errors.Join(client.IgnoreNotFound(err))
	})
	if s := reported(t, namespace, "Failed").Status.Specification; s == nil || s.Manifest != failed.Status.Specification.Manifest {
		t.Errorf("after the deletion: %+v", s)
	}
}

// TestSpecificationOfARunningJob: the report of a job that is deleted while it runs is closed with a patch.
func TestSpecificationOfARunningJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	runs(t, namespace)
	before := reported(t, namespace, "Running")
	if err := api.Delete(t.Context(), mpitest.MPIJob(namespace, 1)); err != nil {
		t.Fatal(err)
	}
	after := reported(t, namespace, "Failed")
	if after.Status.Reason != "JobDeleted" || after.Status.Specification == nil || after.Status.Specification.Manifest == "" || after.Status.Specification.Manifest != before.Status.Specification.Manifest {
		t.Errorf("the specification is %+v, reason %s", after.Status.Specification, after.Status.Reason)
	}
}
