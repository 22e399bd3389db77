package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// coscheduling installs what of coscheduling's API the operator uses. The whole of it, and that of Volcano, are part of
// test/conformance.
var coscheduling = sync.OnceValue(func() error {
	return install(api, podGroups("scheduling.x-k8s.io", "v1alpha1"))
})

// podGroups is a definition of PodGroups that may say anything.
func podGroups(group, version string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.%[1]s
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
spec:
  group: %[1]s
  names: {kind: PodGroup, plural: podgroups}
  scope: Namespaced
  versions:
  - name: %[2]s
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, group, version), &crd.Object)
	if err != nil {
		panic(err)
	}
	return crd
}

// install creates a definition and waits until its objects can be listed.
func install(api client.Client, crd *unstructured.Unstructured) error {
	ctx := context.Background()
	if err := api.Create(ctx, crd); err != nil {
		return err
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(fmt.Sprintf("%s/%s", group, versions[0].(map[string]any)["name"]))
	list.SetKind("PodGroupList")
	var err error
	for range 100 {
		if err = api.List(ctx, list); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// gangsBy runs an operator on one namespace that places jobs by a back end; the returned function stops it.
func gangsBy(t *testing.T, namespace, backend string) (stop func()) {
	t.Helper()
	return operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, GangScheduling: backend})
}

func podGroup() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("scheduling.x-k8s.io/v1alpha1")
	object.SetKind("PodGroup")
	return object
}

// groupOf waits for the PodGroup of a job to be for so many pods.
func groupOf(t *testing.T, namespace, name string, pods int64) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	eventually(t, fmt.Sprintf("PodGroup of %d pods", pods), func() error {
		found = podGroup()
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(found.Object, "spec", "minMember"); n != pods || found.GetDeletionTimestamp() != nil {
			return fmt.Errorf("it is of %d", n)
		}
		return nil
	})
	return found
}

func noGroup(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "no PodGroup", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, podGroup())
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("there is one")
	})
}

// TestPodGroupFollowsItsJob: it comes with the job, grows with it, and goes when the job wants no pods, or has another
// back end.
func TestPodGroupFollowsItsJob(t *testing.T) {
	t.Parallel()
	if err := coscheduling(); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	stop := gangsBy(t, namespace, "gangs")
	create(t, mpitest.MPIJob(namespace, 2))
	first := groupOf(t, namespace, "pi", 3)
	worker := exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	for _, pod := range []corev1.PodTemplateSpec{{ObjectMeta: worker.ObjectMeta, Spec: worker.Spec}, launcher.Spec.Template} {
		if pod.Labels["scheduling.x-k8s.io/pod-group"] != "pi" || pod.Spec.SchedulerName != "gangs" {
			t.Errorf("a pod has labels %v and goes to the scheduler %s", pod.Labels, pod.Spec.SchedulerName)
		}
	}
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForPlaces)

	change(t, namespace, func(job *kubeflow.MPIJob) {
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(4))
	})
	groupOf(t, namespace, "pi", 5)

	change(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	noGroup(t, namespace, "pi")
	change(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	if again := groupOf(t, namespace, "pi", 5); again.GetUID() == first.GetUID() {
		t.Error("it is the same one")
	}
	exists(t, namespace, "pi-worker-3", &corev1.Pod{})

	stop()
	gangsBy(t, namespace, gang.None)
	noGroup(t, namespace, "pi")
	exists(t, namespace, "pi-worker-3", &corev1.Pod{})
}

// TestGangIsPutBack: a job whose pods find no places in time is put back, though its operator is killed meanwhile, and
// fails when that was too often.
func TestGangIsPutBack(t *testing.T) {
	t.Parallel()
	if err := coscheduling(); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	stop := gangsBy(t, namespace, "gangs")
	create(t, mpitest.MPIJob(namespace, 2, func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationRequeues: "0"}
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(2))}
	}))
	exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	pod := launcherPod(t, exists(t, namespace, "pi-launcher", &batchv1.Job{}))
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForPlaces)
	stop()
	gangsBy(t, namespace, "gangs")
	suspended(t, namespace, true)
	// The batch Job controller's part.
	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	failed := &kubeflow.MPIJob{}
	eventually(t, "it fails", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi"}, failed)
		isFailed := slices.ContainsFunc(failed.Status.Conditions, func(c kubeflow.JobCondition) bool {
			// While another test has nodes, these are too small.
			return c.Type == kubeflow.JobFailed && (c.Reason == codes.GangTimeout || c.Reason == codes.GangNeverFits)
		})
		if !isFailed {
			return errors.Join(err, fmt.Errorf("conditions are %+v", failed.Status.Conditions))
		}
		return err
	})
	t.Logf("%s", message(failed, kubeflow.JobFailed))
	noGroup(t, namespace, "pi")
	eventually(t, "no pods", func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
			return errors.Join(err, fmt.Errorf("%d pods are there", len(pods.Items)))
		}
		return nil
	})
}

// TestPodGroupsGo: when a cluster loses the API of PodGroups, jobs say so instead of failing to be written, and go on when
// it is back.
func TestPodGroupsGo(t *testing.T) {
	t.Parallel()
	volcano := podGroups("scheduling.volcano.sh", "v1beta1")
	if err := install(api, volcano.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), volcano) })
	namespace := newNamespace(t)
	gangsBy(t, namespace, gang.Volcano)
	create(t, mpitest.MPIJob(namespace, 1))
	exists(t, namespace, "pi-worker-0", &corev1.Pod{})

	if err := api.Delete(t.Context(), volcano.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	const lacks = "whose PodGroup API is not installed on this cluster"
	waitsFor := func(what string, lacking bool) {
		t.Helper()
		eventually(t, what, func() error {
			if text := message(says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForPlaces), kubeflow.JobRunning); strings.Contains(text, lacks) != lacking {
				return errors.New(text)
			}
			return nil
		})
	}
	waitsFor("the job saying that they are gone", true)
	eventually(t, "the definition gone", func() error {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(volcano), volcano.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	if err := install(api, volcano.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waitsFor("the job waiting for places again", false)
	eventually(t, "its PodGroup made anew", func() error {
		again := podGroup()
		again.SetAPIVersion("scheduling.volcano.sh/v1beta1")
		return api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi"}, again)
	})
}
