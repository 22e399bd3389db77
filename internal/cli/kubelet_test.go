package cli_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpi"
)

// kubelet serves the logs of the scripts' pods to the API server, which passes them on.
var kubelet = sync.OnceValues(func() (*podserver.Server, error) {
	s := podserver.Start()
	address, err := url.Parse(s.Config().Host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := api.Create(context.Background(), node); err != nil {
		return nil, err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	return s, api.Status().Update(context.Background(), node)
})

// makePod is the script command pod: JOB NAME STATE [FILE] makes a pod of an MPIJob, or changes it, and has it write the
// lines of a file, one each second, or each when the time before it says. STATE is running, succeeded, failed,
// waiting=REASON, or again=REASON for a container that waits after a run that has failed, which wrote the file.
func makePod(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: pod JOB NAME STATE [FILE]")
	}
	node, err := kubelet()
	ts.Check(err)
	ctx, name := context.Background(), args[1]
	role := mpi.RoleWorker
	if strings.Contains(name, "launcher") {
		role = mpi.RoleLauncher
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ts.Getenv("NAMESPACE"), Name: name, Labels: map[string]string{
			mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: args[0], mpi.LabelRole: string(role),
		}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: args[0] + "-launcher", UID: "launcher", Controller: new(true)}
	if role == mpi.RoleWorker {
		job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{UID: "earlier"}}
		if err := api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: args[0]}, job); !apierrors.IsNotFound(err) {
			ts.Check(err)
		}
		owner = metav1.OwnerReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: args[0], UID: job.UID, Controller: new(true)}
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	if err := api.Create(ctx, pod); apierrors.IsAlreadyExists(err) {
		ts.Check(api.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	} else {
		ts.Check(err)
	}
	state, reason, _ := strings.Cut(args[2], "=")
	setState(ts, pod, state, reason)
	ts.Check(api.Status().Update(ctx, pod))
	if len(args) < 4 {
		return
	}
	log := node.Log(pod.Namespace+"/"+name, state == "again")
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for line := range strings.Lines(ts.ReadFile(args[3])) {
		stamp, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if given, err := time.Parse(time.RFC3339, stamp); err == nil {
			at = given
		} else {
			text = strings.TrimSuffix(line, "\n")
		}
		log.Say(at, text)
		at = at.Add(time.Second)
	}
	if state != "running" {
		log.End()
	}
}

func setState(ts *testscript.TestScript, pod *corev1.Pod, state, reason string) {
	began := metav1.NewTime(time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC))
	id := fmt.Sprintf("containerd://%s/%s", pod.Namespace, pod.Name)
	status := corev1.ContainerStatus{Name: "main", ContainerID: id}
	terminated := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: began, FinishedAt: began, ContainerID: id}
	}
	switch state {
	case "running":
		pod.Status.Phase, status.State.Running = corev1.PodRunning, &corev1.ContainerStateRunning{StartedAt: began}
	case "succeeded":
		pod.Status.Phase, status.State.Terminated = corev1.PodSucceeded, terminated(0)
	case "failed":
		pod.Status.Phase, status.State.Terminated = corev1.PodFailed, terminated(1)
	case "waiting", "again":
		pod.Status.Phase, status.State.Waiting = corev1.PodPending, &corev1.ContainerStateWaiting{Reason: reason}
		if state == "again" {
			pod.Status.Phase, status.RestartCount, status.LastTerminationState.Terminated = corev1.PodRunning, 1, terminated(1)
		}
	default:
		ts.Fatalf("no such state: %s", state)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
}
