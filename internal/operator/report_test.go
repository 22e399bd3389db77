package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// reported waits until the one report of a namespace is in a phase, and returns it.
func reported(t *testing.T, namespace, phase string) *v1alpha1.JobReport {
	t.Helper()
	var report v1alpha1.JobReport
	eventually(t, "a report says "+phase, func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d reports", len(list.Items))
		}
		if report = list.Items[0]; string(report.Status.Phase) != phase {
			return fmt.Errorf("it says %s: %s", report.Status.Phase, report.Status.Message)
		}
		return nil
	})
	return &report
}

// runs brings the job "pi" with one worker up.
func runs(t *testing.T, namespace string, change ...func(*kubeflow.MPIJob)) (*batchv1.Job, *corev1.Pod) {
	t.Helper()
	create(t, mpitest.MPIJob(namespace, 1, change...))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	setPhase(t, exists(t, namespace, "pi-worker-0", &corev1.Pod{}), corev1.PodRunning)
	pod := launcherPod(t, launcher)
	setPhase(t, pod, corev1.PodRunning)
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	return launcher, pod
}

// fails plays kubelet and batch Job controller for a launcher that fails.
func fails(t *testing.T, launcher *batchv1.Job, pod *corev1.Pod) {
	t.Helper()
	pod = get(t, pod.Namespace, pod.Name, pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: "password=hunter2hunter2\nno such data set", FinishedAt: metav1.Now(),
	}}}}
	setPhase(t, pod, corev1.PodFailed)
	now := metav1.Now()
	launcher = get(t, launcher.Namespace, launcher.Name, launcher)
	launcher.Status = batchv1.JobStatus{StartTime: &now, Failed: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: now},
	}}
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	says(t, launcher.Namespace, "pi", kubeflow.JobFailed, corev1.ConditionTrue, "BackoffLimitExceeded")
}

func TestReportFollowsAJobThatSucceeds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	launcher, _ := runs(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(5)) })
	report := reported(t, namespace, "Running")
	if report.Status.Workers.Summary != "1/1" || len(report.Status.Pods) != 2 || len(report.Status.Findings) > 0 {
		t.Errorf("the report of a running job is %+v", report.Status)
	}
	// This API server has no network plug-in, and the operator may ask for all that are known.
	if encryption := report.Status.Encryption; encryption == nil || encryption.State != v1alpha1.NotEncrypted {
		t.Errorf("the report of a running job has the encryption %+v", encryption)
	}
	finish(t, get(t, namespace, "pi-launcher", launcher))
	report = reported(t, namespace, "Succeeded")
	if report.Status.CompletionTime == nil || report.Status.Failure != nil {
		t.Errorf("the report of a job that succeeded is %+v", report.Status)
	}

	// The report of a finished job is not written again: not by another operator, which reconciles the job when it starts and
	// when it deletes the job, nor before the first report of a new job of the same name.
	stop()
	final := reported(t, namespace, "Succeeded")
	unchanged := func(when string) {
		t.Helper()
		if now := get(t, namespace, final.Name, &v1alpha1.JobReport{}); now.ResourceVersion != final.ResourceVersion {
			t.Errorf("the report was written %s (-before +after):\n%s", when, cmp.Diff(final.Status, now.Status))
		}
	}
	start(t, namespace)
	eventually(t, "the job is deleted when its TTL expires", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi"}, &kubeflow.MPIJob{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it still exists"), err)
	})
	unchanged("after the job had finished")
	create(t, mpitest.MPIJob(namespace, 1))
	eventually(t, "a new job has a report", func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != 2 {
			return fmt.Errorf("there are %d reports", len(list.Items))
		}
		return nil
	})
	unchanged("after its job was deleted")
}

// TestReportWarnsBeforeAJobEnds: a running job is warned of its deadline, and of a node that accepts no new pods, each by an event.
func TestReportWarnsBeforeAJobEnds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: corev1.NodeSpec{Unschedulable: true}}
	create(t, node)
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(3600)) }))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	launcher.Status.StartTime = new(metav1.NewTime(time.Now().Add(-55 * time.Minute)))
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	worker := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	if err := api.SubResource("binding").Create(t.Context(), worker, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}); err != nil {
		t.Fatal(err)
	}
	setPhase(t, get(t, namespace, "pi-worker-0", worker), corev1.PodRunning)
	setPhase(t, launcherPod(t, launcher), corev1.PodRunning)
	want := map[string]string{
		codes.DeadlineNear: "The deadline of 3600 seconds ends the job at ", codes.NodeCordoned: "Node " + node.Name + " is cordoned: a drain evicts worker 0 and ",
	}
	eventually(t, "the report warns", func() error {
		report := reported(t, namespace, "Running")
		for code, summary := range want {
			if !slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Code == code && strings.HasPrefix(f.Summary, summary) }) {
				return fmt.Errorf("the findings are %+v", report.Status.Findings)
			}
			if !slices.ContainsFunc(report.Status.Timeline, func(entry v1alpha1.TimelineEntry) bool {
				return entry.Event == code && strings.HasPrefix(entry.Detail, summary)
			}) {
				return fmt.Errorf("the timeline is %+v", report.Status.Timeline)
			}
		}
		return nil
	})
	wantTypes := map[string]string{codes.DeadlineNear: corev1.EventTypeWarning, codes.NodeCordoned: corev1.EventTypeNormal}
	eventually(t, "the events are written", func() error {
		var events corev1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		types := map[string]string{}
		for _, event := range events.Items {
			if wantTypes[event.Reason] != "" && event.InvolvedObject.Kind == kubeflow.Kind {
				types[event.Reason] = event.Type
			}
		}
		if !maps.Equal(types, wantTypes) {
			return fmt.Errorf("the types of the events are %v", types)
		}
		return nil
	})
}

// TestReportOfADeletedJobEnds: the record of a job that is deleted while it runs does not say for good that it runs.
func TestReportOfADeletedJobEnds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	runs(t, namespace)
	reported(t, namespace, "Running")
	if err := api.Delete(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{})); err != nil {
		t.Fatal(err)
	}
	if report := reported(t, namespace, "Failed"); report.Status.Reason != "JobDeleted" || report.Status.CompletionTime == nil {
		t.Errorf("it says %s: %s, ended %v", report.Status.Reason, report.Status.Message, report.Status.CompletionTime)
	}
}

// TestDeletedJobKeptByAFinalizerIsStopped: another program's finalizer keeps a deleted job. Its pods do not compute on, its
// report ends, and no pod comes back. Deleted without its objects, a job leaves them.
func TestDeletedJobKeptByAFinalizerIsStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		finalizers []string
		stops      bool
	}{
		"of another program":          {[]string{"example.com/accounting"}, true},
		"and its objects are to stay": {[]string{"example.com/accounting", metav1.FinalizerOrphanDependents}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			start(t, namespace)
			runs(t, namespace, func(job *kubeflow.MPIJob) { job.Finalizers = test.finalizers })
			reported(t, namespace, "Running")
			if err := api.Delete(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{})); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = api.Patch(context.Background(), &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pi"}}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			})
			if !test.stops {
				change(t, namespace, func(job *kubeflow.MPIJob) { job.Annotations = map[string]string{"example.com/seen": "1"} })
				create(t, mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) { job.Name = "next" }))
				exists(t, namespace, "next-worker-0", &corev1.Pod{})
				if pod := get(t, namespace, "pi-worker-0", &corev1.Pod{}); pod.DeletionTimestamp != nil {
					t.Error("its worker was deleted")
				}
				return
			}
			if report := reported(t, namespace, "Failed"); report.Status.Reason != "JobDeleted" || report.Status.CompletionTime == nil {
				t.Errorf("it says %s: %s, ended %v", report.Status.Reason, report.Status.Message, report.Status.CompletionTime)
			}
			eventually(t, "its launcher and workers are deleted", func() error {
				var pods corev1.PodList
				var launchers batchv1.JobList
				if err := errors.Join(api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelRole: "worker"}), api.List(t.Context(), &launchers, client.InNamespace(namespace))); err != nil {
					return err
				}
				if len(pods.Items)+len(launchers.Items) > 0 {
					return fmt.Errorf("%d workers and %d launchers exist", len(pods.Items), len(launchers.Items))
				}
				return nil
			})
		})
	}
}

func TestReportSaysWhyAJobFailed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	launcher, pod := runs(t, namespace)
	fails(t, launcher, pod)
	report := reported(t, namespace, "Failed")
	failure := report.Status.Failure
	if failure == nil || failure.ExitCode == nil || *failure.ExitCode != 1 || len(report.Status.Findings) == 0 {
		t.Fatalf("the report of a job that failed is %+v", report.Status)
	}
	want := []string{"[" + pod.Name + "] password=****", "[" + pod.Name + "] no such data set"}
	if fmt.Sprint(failure.LogTail) != fmt.Sprint(want) {
		t.Errorf("the log's end is %q, want %q", failure.LogTail, want)
	}
}

func TestReportsOfTheInvalidAndTheRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 0))
	if report := reported(t, namespace, "Pending"); report.Status.Reason != "ValidationError" || len(report.Status.Findings) == 0 {
		t.Errorf("the report of an invalid job is %+v", report.Status)
	}
	other := newNamespace(t)
	create(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "pi"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	start(t, other)
	create(t, mpitest.MPIJob(other, 1))
	if report := reported(t, other, "Pending"); report.Status.Reason != "ErrResourceExists" || len(report.Status.Findings) == 0 {
		t.Errorf("the report of a refused job is %+v", report.Status)
	}
}

func TestOldReportsAreDeleted(t *testing.T) {
	t.Parallel()
	good, bad := newNamespace(t), newNamespace(t)
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{good, bad}, ReportRetention: 3 * time.Second})
	launcher, pod := runs(t, bad)
	fails(t, launcher, pod)
	launcher, _ = runs(t, good)
	name := reported(t, good, "Running").Name
	finish(t, get(t, good, "pi-launcher", launcher))
	eventually(t, "the report of the job that succeeded is deleted", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: good, Name: name}, &v1alpha1.JobReport{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
	reported(t, bad, "Failed") // for how long: TestDeleteExpired of internal/reporting
}

// TestDeletedReportIsWrittenAgain: also that of a job that has ended.
func TestDeletedReportIsWrittenAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	launcher, pod := runs(t, namespace)
	fails(t, launcher, pod)
	first := reported(t, namespace, "Failed")
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	again := reported(t, namespace, "Failed")
	if again.UID == first.UID || len(again.Status.Findings) == 0 {
		t.Errorf("the report is %+v", again)
	}
}

// TestForeignReportIsReplaced: another user has created a report of the job's name, about something else.
func TestForeignReportIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := mpitest.MPIJob(namespace, 1)
	create(t, job)
	foreign := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mpi.Job{Name: job.Name, UID: job.UID}.ReportName()}}
	foreign.Spec.JobRef = v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: "other", UID: "other"}
	foreign.Status.Phase = v1alpha1.PhaseSucceeded
	create(t, foreign)
	start(t, namespace)
	exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	eventually(t, "the report is the job's", func() error {
		var found v1alpha1.JobReport
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(foreign), &found); err != nil {
			return err
		}
		if found.Spec.JobRef.UID != job.UID || found.Status.Phase == v1alpha1.PhaseSucceeded {
			return fmt.Errorf("it is of %+v, %s", found.Spec.JobRef, found.Status.Phase)
		}
		return nil
	})
}
