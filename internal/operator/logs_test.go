package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// logKubelet serves the logs of the pods of a node, and records which pods were being deleted when their log was first read.
type logKubelet struct {
	texts map[string]string

	mu       sync.Mutex
	deleting map[string]bool
}

func (k *logKubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /containerLogs/NAMESPACE/POD/CONTAINER
	path := strings.Split(r.URL.Path, "/")
	var pod corev1.Pod
	err := api.Get(r.Context(), client.ObjectKey{Namespace: path[2], Name: path[3]}, &pod)
	k.mu.Lock()
	if _, read := k.deleting[path[3]]; !read {
		k.deleting[path[3]] = err != nil || pod.DeletionTimestamp != nil
	}
	k.mu.Unlock()
	text, has := k.texts[pod.Labels[mpi.LabelRole]+path[3][len(path[3])-2:]]
	if !has {
		text, has = k.texts[pod.Labels[mpi.LabelRole]]
	}
	if !has {
		http.Error(w, "no such log", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(text))
}

// newKubelet makes a node whose kubelet serves logs, and returns its name.
func newKubelet(t *testing.T, kubelet *logKubelet) string {
	t.Helper()
	return newKubeletOf(t, api, kubelet)
}

// newKubeletOf makes a node in any cluster whose kubelet serves logs, and returns its name.
func newKubeletOf(t *testing.T, api client.Client, kubelet http.Handler) string {
	t.Helper()
	server := httptest.NewTLSServer(kubelet)
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "logs-"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if err := api.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return node.Name
}

// runOn plays kube-scheduler and kubelet: the pod runs on a node.
func runOn(t *testing.T, node string, pod *corev1.Pod) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := api.SubResource("binding").Create(t.Context(), pod, binding); err != nil {
		t.Fatal(err)
	}
	pod = get(t, pod.Namespace, pod.Name, pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	setPhase(t, pod, corev1.PodRunning)
}

// TestLogsAreInTheReport: the logs of all pods are read before the workers are deleted, and are in the report, masked, also after another
// operator has written it.
func TestLogsAreInTheReport(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	kubelet := &logKubelet{deleting: map[string]bool{}, texts: map[string]string{
		"launcher": "2026-11-21T10:00:00Z start\n2026-11-21T10:00:02Z password=hunter2hunter2\n",
		"worker-0": "2026-11-21T10:00:01Z hello from worker 0\n",
	}}
	node := newKubelet(t, kubelet)
	options := operator.Options{WatchNamespaces: []string{namespace}, MaxLogBytes: 64 << 10}
	stop := operate(t, rest.CopyConfig(restConfig), options)
	create(t, mpitest.MPIJob(namespace, 2, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyRunning) }))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	for i := range 2 {
		runOn(t, node, exists(t, namespace, fmt.Sprintf("pi-worker-%d", i), &corev1.Pod{}))
	}
	runOn(t, node, launcherPod(t, launcher))
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	finish(t, get(t, namespace, "pi-launcher", launcher))
	report := reported(t, namespace, "Succeeded")
	check := func() {
		t.Helper()
		var texts []string
		for _, line := range jobs.FromReport(report).KeptLogs().Lines {
			texts = append(texts, line.Text)
		}
		if got := strings.Join(texts, ", "); got != "start, hello from worker 0, password=****" {
			t.Errorf("the report has the lines %s", got)
		}
	}
	check()
	kubelet.mu.Lock()
	if read := len(kubelet.deleting); read != 3 || slices.Contains(slices.Collect(maps.Values(kubelet.deleting)), true) {
		t.Errorf("logs of %d pods were read; which ones were being deleted by then: %v", read, kubelet.deleting)
	}
	kubelet.mu.Unlock()
	kept := report.Status.Logs
	if kept == nil || kept.Pods != 2 || kept.PodsUnread != 1 || !strings.Contains(kept.Omitted, "pi-worker-1") || kept.Lines != 3 {
		t.Fatalf("the report has the logs %+v", kept)
	}
	// A change that the next operator writes, which has the report from its cache, leaves the logs.
	stop()
	report = reported(t, namespace, "Succeeded")
	delete(report.Labels, mpi.LabelReportKind)
	if err := api.Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	operate(t, rest.CopyConfig(restConfig), options)
	eventually(t, "the report has its label again", func() error {
		if report = get(t, namespace, report.Name, &v1alpha1.JobReport{}); report.Labels[mpi.LabelReportKind] == "" {
			return errors.New("it has not")
		}
		return nil
	})
	check()
}
