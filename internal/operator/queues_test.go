package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// kueueSays plays Kueue: it writes a Workload's conditions.
func kueueSays(t *testing.T, workload *unstructured.Unstructured, conditions string) {
	t.Helper()
	patch := `{"status":{"conditions":[` + strings.ReplaceAll(conditions, "NOW", time.Now().UTC().Format(time.RFC3339)) + `]}}`
	if err := api.Status().Patch(t.Context(), workload, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// createWorkload plays Kueue: it creates an active Workload for a job in queue team.
func createWorkload(t *testing.T, job *kubeflow.MPIJob) *unstructured.Unstructured {
	t.Helper()
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queueName": "team", "active": true}}}
	workload.SetGroupVersionKind(kueue.WorkloadKind)
	workload.SetNamespace(job.Namespace)
	workload.SetName(job.Name)
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind))})
	create(t, workload)
	return workload
}

// hold plays Kueue, too: it suspends a job, or has it go on.
func hold(t *testing.T, job *kubeflow.MPIJob, yes bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"runPolicy":{"suspend":%v}}}`, yes)
	if err := api.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// reportOf waits until a job's report meets a check.
func reportOf(t *testing.T, namespace, job, what string, check func(v1alpha1.JobReportStatus) bool) v1alpha1.JobReportStatus {
	t.Helper()
	var found v1alpha1.JobReportStatus
	eventually(t, what, func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, report := range list.Items {
			if report.Spec.JobRef.Name == job {
				if found = report.Status; check(found) {
					return nil
				}
				return fmt.Errorf("it says %s: %s\n%+v", found.Phase, found.Message, found.Scheduling)
			}
		}
		return fmt.Errorf("there is no report")
	})
	return found
}

// TestQueuedJobHasItsTurn: a job that waits says how long others did, also those from before the operator started. Let
// in, it is put out by its Workload when its pods find no nodes in time, rests, is let in again and fails at last.
func TestQueuedJobHasItsTurn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for i := range 10 {
		create(t, &v1alpha1.JobReport{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("earlier-", i)},
			Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: "v1", Kind: "MPIJob", Name: fmt.Sprint("earlier-", i), UID: types.UID(fmt.Sprint(i))}},
			Status:     v1alpha1.JobReportStatus{Waited: &v1alpha1.Waited{Backend: kueue.Kueue, Queue: "team", Pods: 3, Seconds: int64(i+1) * 60, Until: metav1.Now()}},
		})
	}
	start(t, namespace)
	job := mpitest.MPIJob(namespace, 2)
	job.Labels, job.Annotations = map[string]string{mpi.LabelQueue: "team"}, map[string]string{mpi.AnnotationRequeues: "0"}
	job.Spec.RunPolicy.Suspend, job.Spec.RunPolicy.SchedulingPolicy = new(true), &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(2))}
	create(t, job)
	workload := createWorkload(t, job)
	kueueSays(t, workload, `{"type":"QuotaReserved","status":"False","reason":"Pending","message":"2 more needed","lastTransitionTime":"NOW"}`)
	waits := reportOf(t, namespace, "pi", "it says how long others waited", func(s v1alpha1.JobReportStatus) bool {
		return s.Phase == "Queued" && s.Scheduling.Samples == 10 && strings.Contains(s.Scheduling.Message, "2 more needed")
	})
	if s := waits.Scheduling; *s.WaitP50 != 300 || *s.WaitP90 != 540 || s.Since == nil || !strings.Contains(s.Message, "median 5 min") {
		t.Errorf("it waits as %+v", s)
	}

	const letIn = `{"type":"Admitted","status":"True","reason":"Admitted","message":"","lastTransitionTime":"NOW"}`
	kueueSays(t, workload, letIn)
	hold(t, job, false)
	var timeouts string
	eventually(t, "it is put out", func() error {
		now := get(t, namespace, "pi", workload)
		active, _, _ := unstructured.NestedBool(now.Object, "spec", "active")
		if timeouts = now.GetAnnotations()[mpi.AnnotationGangTimeouts]; active || !strings.HasPrefix(timeouts, "1 ") {
			return fmt.Errorf("it is active: %v, and has timed out: %q", active, timeouts)
		}
		return nil
	})
	eventually(t, "an event tells it", func() error {
		var list corev1.EventList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == kueue.ReasonTimeout && e.Source.Component == mpi.StepSource && strings.HasPrefix(e.Message, "0 of 3 pods scheduled within 2 s (spec.runPolicy") {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
	kueueSays(t, workload, letIn+`,{"type":"Evicted","status":"True","reason":"Deactivated","message":"The workload is deactivated","lastTransitionTime":"NOW"}`)
	hold(t, job, true)
	failed := reportOf(t, namespace, "pi", "it fails", func(s v1alpha1.JobReportStatus) bool { return s.Phase == "Failed" })
	if failed.Reason != codes.GangTimeout || failed.Waited == nil || failed.Waited.Pods != 3 {
		t.Errorf("it failed with %s, and had waited %+v: %s", failed.Reason, failed.Waited, failed.Message)
	}
	says(t, namespace, "pi", kubeflow.JobFailed, corev1.ConditionTrue, codes.GangTimeout)
}

// TestAnnotationAloneSuspendsInQueue: nothing but its annotation changes of a job that waits, and its Workload is deactivated and
// activated.
func TestAnnotationAloneSuspendsInQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	job := mpitest.MPIJob(namespace, 2)
	job.Labels, job.Spec.RunPolicy.Suspend = map[string]string{mpi.LabelQueue: "team"}, new(true)
	create(t, job)
	workload := createWorkload(t, job)
	reportOf(t, namespace, "pi", "it waits", func(s v1alpha1.JobReportStatus) bool { return s.Phase == v1alpha1.PhaseQueued })
	for _, suspended := range []bool{true, false, true} {
		value := "null"
		if suspended {
			value = `"true"`
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, mpi.AnnotationSuspendInQueue, value)
		if err := api.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its Workload follows", func() error {
			active, _, _ := unstructured.NestedBool(get(t, namespace, "pi", workload).Object, "spec", "active")
			if active == suspended {
				return fmt.Errorf("active: %t, suspended: %t", active, suspended)
			}
			return nil
		})
	}
	suspended := reportOf(t, namespace, "pi", "it says how it is resumed", func(s v1alpha1.JobReportStatus) bool { return s.Phase == v1alpha1.PhaseSuspended })
	if !strings.Contains(suspended.Message, "kubectl odh mpijob resume pi") {
		t.Errorf("it says %q", suspended.Message)
	}
}

// TestAdmissionInStoppedQueue: the webhook warns of a queue that admits no jobs, and of one without a quota for RDMA, without which the job
// would run.
func TestAdmissionInStoppedQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	queue := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterQueue": "all", "stopPolicy": "Hold"}}}
	queue.SetGroupVersionKind(kueue.LocalQueueKind)
	queue.SetNamespace(namespace)
	queue.SetName("team")
	create(t, queue)
	patch := []byte(`{"status":{"flavorsUsage":[{"name":"default","resources":[{"name":"cpu","total":"0"},{"name":"memory","total":"0"}]}]}}`)
	if err := api.Status().Patch(t.Context(), queue, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	job := mpitest.MPIJob(namespace, 2, func(job *kubeflow.MPIJob) {
		job.Labels = map[string]string{mpi.LabelQueue: "team"}
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("cpu=1 example.com/rdma-queue=1")
	})
	for _, want := range []string{
		"metadata.labels[kueue.x-k8s.io/queue-name]: LocalQueue team is stopped: it admits no job until its administrator starts it again. The job waits until then",
		"queue team has no quota for example.com/rdma-queue, which the pods request",
	} {
		eventually(t, "the webhook warns: "+want, func() error {
			var recorded warnings
			config := rest.CopyConfig(restConfig)
			config.WarningHandler, config.Impersonate = &recorded, rest.ImpersonationConfig{}
			recording, err := client.New(config, client.Options{Scheme: api.Scheme()})
			if err != nil {
				t.Fatal(err)
			}
			err = recording.Create(t.Context(), job.DeepCopy(), client.DryRunAll)
			if err != nil || !slices.ContainsFunc(recorded, func(text string) bool { return strings.Contains(text, want) }) {
				return fmt.Errorf("warnings %q (%w)", recorded, err)
			}
			return nil
		})
	}
}

// TestAdmissionWithoutRequests: the webhook refuses a job whose pods request nothing where Kueue selects the nodes, with the operator's rights, until a
// LimitRange has a default.
func TestAdmissionWithoutRequests(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	for _, text := range []string{
		"{kind: LocalQueue, metadata: {name: team, namespace: NAME}, spec: {clusterQueue: NAME}}",
		"{kind: ResourceFlavor, metadata: {name: NAME}, spec: {topologyName: racks}}",
		"{kind: ClusterQueue, metadata: {name: NAME}, spec: {resourceGroups: [{flavors: [{name: NAME}]}]}}",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAME", namespace)), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetGroupVersionKind(kueue.LocalQueueKind.GroupVersion().WithKind(object.GetKind()))
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
	try := func() error {
		return api.Create(t.Context(), mpitest.MPIJob(namespace, 2, func(job *kubeflow.MPIJob) {
			job.Labels, job.Spec.RunPolicy.Suspend = map[string]string{mpi.LabelQueue: "team"}, new(true)
		}), client.DryRunAll)
	}
	eventually(t, "the webhook refuses the job", func() error {
		err := try()
		for _, role := range []string{"Launcher", "Worker"} {
			want := "spec.mpiReplicaSpecs[" + role + "].template.spec.containers[0].resources.requests: Required value: the pods ("
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("the answer lacks %q: %w", want, err)
			}
		}
		return nil
	})
	create(t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sizes"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("cpu=100m")}}},
	})
	eventually(t, "it accepts the job", try)
}
