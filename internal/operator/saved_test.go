package operator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/offline"
)

// TestSavedObjects: a diagnosis of saved objects finds what the operator reports, and the same pods, in every state of a job.
func TestSavedObjects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provoke func(t *testing.T, namespace string)
		phase   string
		code    string
	}{
		"runs": {func(t *testing.T, namespace string) { t.Helper(); runs(t, namespace) }, "Running", ""},
		"fails": {func(t *testing.T, namespace string) {
			t.Helper()
			launcher, pod := runs(t, namespace)
			fails(t, launcher, pod)
		}, "Failed", "ApplicationFailed"},
		"succeeds": {func(t *testing.T, namespace string) {
			t.Helper()
			launcher, _ := runs(t, namespace)
			finish(t, launcher)
		}, "Succeeded", ""},
		"an image is missing": {func(t *testing.T, namespace string) {
			t.Helper()
			create(t, mpitest.MPIJob(namespace, 1))
			pod := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: `Back-off pulling image "registry.invalid/none:none"`,
			}}}}
			setPhase(t, pod, corev1.PodPending)
		}, "Initializing", "ImagePullFailed"},
		"is invalid": {func(t *testing.T, namespace string) { t.Helper(); create(t, mpitest.MPIJob(namespace, 0)) }, "Pending", "JobInvalid"},
		"is suspended": {func(t *testing.T, namespace string) {
			t.Helper()
			create(t, mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) }))
		}, "Suspended", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			start(t, namespace)
			test.provoke(t, namespace)
			eventually(t, "its report is complete", func() error {
				status := reported(t, namespace, test.phase).Status
				if test.code != "" && (len(status.Findings) == 0 || status.Findings[0].Code != test.code) {
					return fmt.Errorf("its findings are %+v", status.Findings)
				}
				return nil
			})
			folder := saveObjects(t, namespace)
			want := reported(t, namespace, test.phase).Status
			saved, err := offline.Read(offline.Input{Paths: []string{folder}})
			if err != nil {
				t.Fatal(err)
			}
			if len(saved.Problems) > 0 || len(saved.Jobs()) != 1 {
				t.Fatalf("%d jobs, problems %q", len(saved.Jobs()), saved.Problems)
			}
			found, err := saved.Diagnose(t.Context(), saved.Jobs()[0], time.Now(), logs.Masker{})
			if err != nil {
				t.Fatal(err)
			}
			got := found.Report.Status
			if diff := cmp.Diff(essence(want), essence(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-operator +files):\n%s\nmissing: %q", diff, found.Missing)
			}
		})
	}
}

// essence is what a diagnosis has in common with another one, at another time, of the same job. The reason of a job that has ended
// is that of its own condition later.
func essence(status v1alpha1.JobReportStatus) v1alpha1.JobReportStatus {
	kept := v1alpha1.JobReportStatus{
		Phase: status.Phase, MPI: status.MPI, Workers: status.Workers, Pods: status.Pods, Run: status.Run.DeepCopy(),
		Findings: status.Findings,
	}
	if status.CompletionTime == nil {
		kept.Reason, kept.Message = status.Reason, status.Message
	}
	if status.Failure != nil {
		kept.Failure = &v1alpha1.Failure{Code: status.Failure.Code, Pod: status.Failure.Pod, Rank: status.Failure.Rank, ExitCode: status.Failure.ExitCode}
	}
	return kept
}

// saveObjects writes the objects of a namespace, without reports, as kubectl does.
func saveObjects(t *testing.T, namespace string) string {
	t.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, kind := range []schema.GroupVersionKind{
		kubeflow.SchemeGroupVersionKind,
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Pod"},
		{Version: "v1", Kind: "Event"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Service"},
	} {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(kind)
		if err := api.List(t.Context(), found, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range found.Items {
			items = append(items, found.Items[i].Object)
		}
	}
	list["items"] = items
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "objects.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}
