package operator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
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
func runs(t *testing.T, namespace string) (*batchv1.Job, *corev1.Pod) {
	t.Helper()
	create(t, mpitest.MPIJob(namespace, 1))
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
	launcher, _ := runs(t, namespace)
	report := reported(t, namespace, "Running")
	if report.Status.Workers.Summary != "1/1" || len(report.Status.Pods) != 2 || len(report.Status.Findings) > 0 {
		t.Errorf("the report of a running job is %+v", report.Status)
	}
	finish(t, get(t, namespace, "pi-launcher", launcher))
	report = reported(t, namespace, "Succeeded")
	if report.Status.CompletionTime == nil || report.Status.Failure != nil {
		t.Errorf("the report of a job that succeeded is %+v", report.Status)
	}

	// Passes over a job of which nothing is new write nothing.
	says(t, namespace, "pi", kubeflow.JobSucceeded, corev1.ConditionTrue, "MPIJobSucceeded")
	time.Sleep(2 * time.Second)
	before := reported(t, namespace, "Succeeded")
	stop()
	start(t, namespace)
	time.Sleep(2 * time.Second)
	if after := reported(t, namespace, "Succeeded"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a pass over a job of which nothing is new has written its report (-before +after):\n%s", cmp.Diff(before.Status, after.Status))
	}
	if err := api.Delete(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{})); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	reported(t, namespace, "Succeeded")
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
	time.Sleep(2 * time.Second)
	reported(t, bad, "Failed")
}
