// Package mpitest builds jobs, pods and observations for tests.
package mpitest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Now is the current time in tests.
var Now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Template returns a pod template with one container.
func Template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "mpi"}}}}
}

// Job returns a valid job named "pi" in namespace "ns" with a number of workers.
func Job(workers int32, change ...func(*mpi.Job)) mpi.Job {
	job := mpi.New()
	job.APIVersion, job.Kind, job.Namespace, job.Name, job.UID = "kubeflow.org/v2beta1", "MPIJob", "ns", "pi", "uid-pi"
	job.Launcher.Template, job.Workers.Template, job.Workers.Count = Template(), Template(), workers
	for _, c := range change {
		c(&job)
	}
	return job
}

// MPIJob returns a valid MPIJob named "pi" with a number of workers.
func MPIJob(namespace string, workers int32, change ...func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
	object := &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pi"},
		Spec: kubeflow.MPIJobSpec{MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
			kubeflow.MPIReplicaTypeLauncher: {Template: Template()},
			kubeflow.MPIReplicaTypeWorker:   {Replicas: &workers, Template: Template()},
		}},
	}
	for _, c := range change {
		c(object)
	}
	return object
}

// Worker returns the pod of a worker in a phase. A running pod is ready.
func Worker(job mpi.Job, index int, phase corev1.PodPhase, change ...func(*corev1.Pod)) jobstate.Worker {
	pod := pod(job, job.WorkerName(index), mpi.RoleWorker, phase, job.Owner())
	for _, c := range change {
		c(pod)
	}
	return jobstate.Worker{Index: index, Pod: pod}
}

// Workers returns the pods of all workers of a job in a phase.
func Workers(job mpi.Job, phase corev1.PodPhase) []jobstate.Worker {
	workers := make([]jobstate.Worker, job.Workers.Count)
	for i := range workers {
		workers[i] = Worker(job, i, phase)
	}
	return workers
}

// Launcher returns the launcher's batch Job with conditions that are true.
func Launcher(job mpi.Job, conditions ...batchv1.JobConditionType) *batchv1.Job {
	launcher := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: job.LauncherName(), UID: "uid-launcher", OwnerReferences: []metav1.OwnerReference{job.Owner()},
	}}
	for _, c := range conditions {
		launcher.Status.Conditions = append(launcher.Status.Conditions, batchv1.JobCondition{
			Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(Now),
		})
	}
	return launcher
}

// LauncherPod returns the pod of an attempt of the launcher in a phase.
func LauncherPod(job mpi.Job, try int, phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.LauncherName(), UID: "uid-launcher", Controller: new(true)}
	pod := pod(job, fmt.Sprintf("%s-%d", job.LauncherName(), try), mpi.RoleLauncher, phase, owner)
	pod.CreationTimestamp = metav1.NewTime(Now.Add(time.Duration(try) * time.Minute))
	for _, c := range change {
		c(pod)
	}
	return pod
}

func pod(job mpi.Job, name string, role mpi.Role, phase corev1.PodPhase, owner metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: name, UID: types.UID("uid-" + name), Labels: job.PodLabels(role),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if phase == corev1.PodRunning {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return pod
}

// Waiting sets the waiting state of a pod's container.
func Waiting(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "quay.io/nobody/nothing:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

// Exited sets the terminated state of a pod's container.
func Exited(code int32, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
		}}
	}
}

// Leaving sets a pod's deletion timestamp.
func Leaving(pod *corev1.Pod) {
	at := metav1.NewTime(Now)
	pod.DeletionTimestamp = &at
}

var update = flag.Bool("update", false, "write the golden files")

// Updates reports whether golden files are to be written (go test -update).
func Updates() bool { return *update }

// Golden compares a value, as YAML, with testdata/<name>.yaml. go test -update writes the file.
func Golden(t *testing.T, name string, got any) {
	t.Helper()
	data, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(data)); diff != "" {
		t.Errorf("%s differs (-want +got); if the change is right, run go test -update:\n%s", path, diff)
	}
}
