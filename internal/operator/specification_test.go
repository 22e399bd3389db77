package operator_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
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

// TestSpecificationOfAnAdmittedJob: the report and copies of a job have the node selectors and tolerations that its user wrote, and not
// those that Kueue added when it admitted the job; also if another operator goes on, or the job is deleted.
func TestSpecificationOfAnAdmittedJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	job := mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) {
		job.Labels, job.Spec.RunPolicy.Suspend = map[string]string{mpi.LabelQueue: "team"}, new(true)
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	})
	create(t, job)
	workload := createWorkload(t, job)
	queued := reported(t, namespace, "Queued")
	kueueSays(t, workload, `{"type":"Admitted","status":"True","reason":"Admitted","message":"","lastTransitionTime":"NOW"}`)
	edit := func(change func(*kubeflow.MPIJob)) {
		t.Helper()
		eventually(t, "the job is changed", func() error {
			now := get(t, namespace, "pi", &kubeflow.MPIJob{})
			change(now)
			return api.Update(t.Context(), now)
		})
	}
	edit(func(job *kubeflow.MPIJob) {
		job.Spec.RunPolicy.Suspend = new(false)
		for _, role := range job.Spec.MPIReplicaSpecs {
			pod := &role.Template.Spec
			metav1.SetMetaDataLabel(&role.Template.ObjectMeta, "kueue.x-k8s.io/podset", "main")
			pod.NodeSelector = labels.Merge(pod.NodeSelector, labels.Set{"flavor": "spot"})
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists})
		}
	})
	records := func(what, text string, before *v1alpha1.JobReport) *v1alpha1.JobReport {
		t.Helper()
		var found v1alpha1.JobReport
		eventually(t, what, func() error {
			found = *get(t, namespace, before.Name, &v1alpha1.JobReport{})
			if found.Status.Specification.Version == before.Status.Specification.Version {
				return errors.New("the specification is still that of before")
			}
			return nil
		})
		if manifest := found.Status.Specification.Manifest; strings.Contains(manifest, "spot") || strings.Count(manifest, "disk: ssd") != 1 || !strings.Contains(manifest, text) {
			t.Errorf("%s: the manifest is\n%s", what, manifest)
		}
		return &found
	}
	admitted := records("the admission is recorded", "", queued)
	stop()
	start(t, namespace)
	edit(func(job *kubeflow.MPIJob) {
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(2))
	})
	records("another operator records a change", "replicas: 2", admitted)

	watching, err := client.NewWithWatch(restConfig, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	users := jobs.NewClient(watching, nil, time.Now)
	clones := func(what string) {
		t.Helper()
		found, err := users.Find(t.Context(), namespace, "mpijob/pi")
		if err != nil {
			t.Fatal(err)
		}
		clone, err := users.Clone(t.Context(), found, "copy")
		if err != nil {
			t.Fatal(err)
		}
		for role, want := range map[string]map[string]string{"Launcher": nil, "Worker": {"disk": "ssd"}} {
			pod, _, _ := unstructured.NestedMap(clone.Job.Object, "spec", "mpiReplicaSpecs", role, "template", "spec")
			selector, _, _ := unstructured.NestedStringMap(pod, "nodeSelector")
			if !maps.Equal(selector, want) || pod["tolerations"] != nil {
				t.Errorf("%s: the %s of a copy has the node selector %v and the tolerations %v", what, role, selector, pod["tolerations"])
			}
		}
	}
	clones("admitted")
	if err := api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	reported(t, namespace, "Failed")
	clones("deleted")
}
