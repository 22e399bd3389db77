package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// serveJob makes a backend serve the MPIJob team/train, which the test's pods belong to.
func serveJob(b *backend) {
	const group, version = "kubeflow.org", "v2beta1"
	discovered := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
	b.Serve("/apis/"+group, metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group, Versions: []metav1.GroupVersionForDiscovery{discovered}, PreferredVersion: discovered})
	b.Serve("/apis/"+group+"/"+version, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group + "/" + version, APIResources: []metav1.APIResource{
		{Name: "mpijobs", SingularName: "mpijob", Namespaced: true, Kind: "MPIJob", Verbs: metav1.Verbs{"get", "list"}},
	}})
	b.Serve("/apis/"+group+"/"+version+"/namespaces/team/mpijobs/train", map[string]any{
		"apiVersion": group + "/" + version, "kind": "MPIJob", "metadata": map[string]any{"name": "train", "namespace": "team", "uid": "1"},
	})
}

// serveReport serves the report of team/train.
func serveReport(b *backend, status v1alpha1.JobReportStatus) {
	const group, version = "mpi.opendatahub.io", "v1alpha1"
	discovered := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
	b.Serve("/apis/"+group, metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group, Versions: []metav1.GroupVersionForDiscovery{discovered}, PreferredVersion: discovered})
	b.Serve("/apis/"+group+"/"+version, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group + "/" + version, APIResources: []metav1.APIResource{
		{Name: "jobreports", SingularName: "jobreport", Namespaced: true, Kind: "JobReport", Verbs: metav1.Verbs{"get", "list"}},
	}})
	report := v1alpha1.JobReport{TypeMeta: metav1.TypeMeta{APIVersion: group + "/" + version, Kind: "JobReport"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}, Status: status}
	report.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", Name: "train", UID: "1"}
	b.Serve("/apis/"+group+"/"+version+"/namespaces/team/jobreports", v1alpha1.JobReportList{TypeMeta: metav1.TypeMeta{APIVersion: group + "/" + version, Kind: "JobReportList"}, Items: []v1alpha1.JobReport{report}})
}

// jobPod returns a running pod with the labels of a worker of team/train.
func jobPod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	labels := mpi.Job{Name: "train"}.Selector()
	labels[mpi.LabelRole] = string(mpi.RoleWorker)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now(), Labels: labels, OwnerReferences: owners},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: running}}},
	}
}

var trainOwner = metav1.OwnerReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: "train", UID: "1", Controller: new(true)}

// TestForgedPodIsNotShown creates a pod with the labels of a job's pods.
func TestForgedPodIsNotShown(t *testing.T) {
	b := newBackend(t)
	serveJob(b)
	server := newServerFor(t, b, Options{})
	for _, pod := range []*corev1.Pod{jobPod("train-worker-0", trainOwner), jobPod("train-worker-1")} {
		b.Put(pod)
		b.Log(pod.Name, false).Say(time.Now(), "line of "+pod.Name)
	}
	for _, path := range []string{"logs?download=true", "pods"} {
		w := request(t, server, "user-ada", http.MethodGet, "/namespaces/team/jobs/mpijob/train/"+path, "")
		if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, "train-worker-0") || strings.Contains(text, "train-worker-1") {
			t.Errorf("%s: status %d: %s", path, w.Code, text)
		}
	}
}
