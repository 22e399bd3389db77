package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstore"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// bucketSecret is the secret key of the bucket in tests.
const bucketSecret = "secret-of-the-bucket"

// newBucket starts a real S3 server with a bucket, and returns the settings for it and the bucket's folder.
func newBucket(t *testing.T) (logstore.Settings, string) {
	t.Helper()
	program := os.Getenv("S3_SERVER")
	if program == "" {
		t.Skip("SKIPPED: S3_SERVER names no S3 server; `make unit` does")
	}
	root, keys := t.TempDir(), t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	err = errors.Join(os.Mkdir(filepath.Join(root, "logs"), 0o755),
		os.WriteFile(filepath.Join(keys, "AWS_ACCESS_KEY_ID"), []byte("me\n"), 0o600), os.WriteFile(filepath.Join(keys, "AWS_SECRET_ACCESS_KEY"), []byte(bucketSecret), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), program, "--quiet", "--port", address, "posix", root)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=me", "ROOT_SECRET_ACCESS_KEY="+bucketSecret)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context ends it
	eventually(t, "the S3 server answers", func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	return logstore.Settings{Bucket: "logs", Prefix: "kept/", Endpoint: "http://" + address, Region: "us-east-1", Credentials: keys, Retention: time.Hour, MaxBytes: 1 << 30}, filepath.Join(root, "logs")
}

// chatty returns the log of a pod that has printed so many lines, one with a secret.
func chatty(lines int) string {
	var text strings.Builder
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for i := range lines {
		fmt.Fprintf(&text, "%s line %d\n", at.Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano), i)
	}
	fmt.Fprintf(&text, "%s password=hunter2hunter2\n", at.Add(time.Hour).Format(time.RFC3339Nano))
	return text.String()
}

// checkCompleteLogs reads the complete logs of a job as users do, and checks that they are those of chatty.
func checkCompleteLogs(t *testing.T, report *v1alpha1.JobReport, folder string, lines int) {
	t.Helper()
	job := jobs.FromReport(report)
	if !job.HasCompleteLogs(time.Now()) || job.CompleteLogsNote() != "" {
		t.Fatalf("the report has %+v", report.Status.CompleteLogs)
	}
	stored, err := job.CompleteLogs(t.Context(), jobs.NewFetch(nil, ""))
	if err != nil {
		t.Fatal(err)
	}
	next, masked, others := 0, false, map[string]bool{}
	_, err = stored.Run(t.Context(), logstream.Options{}, func(some []logstream.Line) error {
		for _, line := range some {
			switch {
			case strings.HasPrefix(line.Text, "line "):
				if line.Text != fmt.Sprintf("line %d", next) {
					return fmt.Errorf("after line %d comes %q", next-1, line.Text)
				}
				next++
			case line.Text == "password=****":
				masked = true
			default:
				others[fmt.Sprint(line.Place, ": ", line.Text)] = true
			}
		}
		return nil
	})
	if err != nil || next != lines || !masked || len(others) != 1 || !others["worker-0: hello"] {
		t.Errorf("%d lines are kept, want %d; a secret is masked: %t; other lines are %v: %v", next, lines, masked, others, err)
	}
	// Only who has the address can read it.
	address, _, _ := strings.Cut(report.Status.CompleteLogs.Index, "?")
	if body, err := jobs.NewFetch(nil, "")(t.Context(), address, 1<<20); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "Signature") {
		t.Errorf("without a signature, the server sends %s: %v", body, err)
	}
	if entries, err := os.ReadDir(filepath.Join(folder, report.Namespace, string(report.Spec.JobRef.UID))); err != nil || len(entries) < 3 {
		t.Errorf("the folder of the job has %d entries: %v", len(entries), err)
	}
}

// completed waits until the report of the only job has the address of its complete logs.
func completed(t *testing.T, api client.Client, namespace string) *v1alpha1.JobReport {
	t.Helper()
	var reports v1alpha1.JobReportList
	eventually(t, "the report has the address of the complete logs", func() error {
		if err := api.List(t.Context(), &reports, client.InNamespace(namespace)); err != nil || len(reports.Items) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d reports", len(reports.Items)))
		}
		if kept := reports.Items[0].Status.CompleteLogs; kept == nil || kept.Index == "" {
			return fmt.Errorf("it has %+v", kept)
		}
		return nil
	})
	return &reports.Items[0]
}

// TestCompleteLogs: all lines of all pods of a job of either kind are in the bucket, masked, and are read by the address in its report, after
// its pods were deleted.
func TestCompleteLogs(t *testing.T) {
	t.Parallel()
	settings, folder := newBucket(t)
	t.Run("MPIJob", func(t *testing.T) {
		t.Parallel()
		completeLogsOfMPIJob(t, settings, folder)
	})
	t.Run("TrainJob", func(t *testing.T) {
		t.Parallel()
		other := settings
		other.Prefix = "trainjobs/"
		completeLogsOfTrainJob(t, other, folder)
	})
}

// completeLogsOfMPIJob: another operator changes nothing of what is kept.
func completeLogsOfMPIJob(t *testing.T, settings logstore.Settings, folder string) {
	namespace := newNamespace(t)
	const lines = 60_000
	kubelet := &logKubelet{deleting: map[string]bool{}, texts: map[string]string{"launcher": chatty(lines), "worker": "2026-11-21T10:00:01Z hello\n"}}
	node := newKubelet(t, kubelet)
	options := operator.Options{WatchNamespaces: []string{namespace}, MaxLogBytes: 64 << 10, LogBucket: settings}
	stop := operate(t, rest.CopyConfig(restConfig), options)
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyRunning) }))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	runOn(t, node, exists(t, namespace, "pi-worker-0", &corev1.Pod{}))
	pod := launcherPod(t, launcher)
	runOn(t, node, pod)
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	pod = get(t, namespace, pod.Name, pod)
	status := &pod.Status.ContainerStatuses[0]
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.Now()}}
	setPhase(t, pod, corev1.PodSucceeded)
	finish(t, get(t, namespace, "pi-launcher", launcher))
	reported(t, namespace, "Succeeded")
	// The kubelet that this test plays does not delete pods.
	if err := api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	report := completed(t, api, namespace)
	checkCompleteLogs(t, report, filepath.Join(folder, settings.Prefix), lines)
	if kept := report.Status.CompleteLogs; kept.Pods != 2 || kept.Lines != lines+2 || kept.Size == 0 || kept.Expires == nil || time.Until(kept.Expires.Time) > settings.Retention {
		t.Errorf("the report has %+v", kept)
	}
	stop()
	before := report.Status.CompleteLogs
	operate(t, rest.CopyConfig(restConfig), options)
	// Another job shows that the operator works.
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Name = "next" }))
	exists(t, namespace, "next-launcher", &batchv1.Job{})
	// The rest of the report may change: the pods are gone since.
	if report = get(t, namespace, report.Name, &v1alpha1.JobReport{}); report.Status.CompleteLogs.Index != before.Index {
		t.Errorf("the next operator has changed what the report has, %+v, to %+v", before, report.Status.CompleteLogs)
	}
	checkCompleteLogs(t, report, filepath.Join(folder, settings.Prefix), lines)
}

// completeLogsOfTrainJob: the pods are those of JobSet.
func completeLogsOfTrainJob(t *testing.T, settings logstore.Settings, folder string) {
	server := newTrainerServer(t)
	server.runtime(t, "mpi")
	const lines = 20_000
	node := newKubeletOf(t, server.client, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := "2026-11-21T10:00:01Z hello\n"
		if strings.Contains(r.URL.Path, "-launcher-") {
			text = chatty(lines)
		} else if !strings.Contains(r.URL.Path, "-node-0-0-") {
			text = ""
		}
		_, _ = w.Write([]byte(text))
	}))
	server.node(t, "room")
	defer server.start(t, func(o *operator.Options) { o.LogBucket = settings })()
	g := server.gatedJob(t, "train")
	eventually(t, "its pods may be created", func() error {
		if !g.isOpen(t) {
			return errors.New("they may not")
		}
		return nil
	})
	g.createPods(t)
	g.runs(t, node)
	state := func(state corev1.ContainerState) {
		for _, pod := range g.pods {
			if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				t.Fatal(err)
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "node", Ready: state.Running != nil, State: state}}
			if err := g.client.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := metav1.Now()
	state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}})
	g.told(t, "it runs", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: began, FinishedAt: metav1.Now()}})
	g.end(t)
	g.told(t, "it has succeeded", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseSucceeded {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	if err := g.client.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	checkCompleteLogs(t, completed(t, g.client, "default"), filepath.Join(folder, settings.Prefix), lines)
}
