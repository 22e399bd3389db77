package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// queueIn makes a queue of Kueue's in a namespace that has room for so many pods. It returns the ClusterQueue, by which
// the room can be changed.
func queueIn(t *testing.T, namespace string, pods int) *unstructured.Unstructured {
	t.Helper()
	if _, err := api.RESTMapper().RESTMapping(gang.WorkloadKind.GroupKind(), gang.WorkloadKind.Version); err != nil {
		if apimeta.IsNoMatchError(err) {
			t.Skip("SKIPPED: Kueue is not installed here; make cluster-up WITH=kueue,trainer does that")
		}
		t.Fatal(err)
	}
	objects := fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  resourceGroups:
  - coveredResources: [pods, cpu, memory]
    flavors:
    - name: %[1]s
      resources:
      - {name: pods, nominalQuota: %[2]d}
      - {name: cpu, nominalQuota: 1k}
      - {name: memory, nominalQuota: 1Ti}
`, namespace, pods)
	var last *unstructured.Unstructured
	for text := range strings.SplitSeq(objects, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
		last = object
	}
	return last
}

// room changes how many pods a ClusterQueue has room for.
func room(t *testing.T, queue *unstructured.Unstructured, pods int) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"%d"}]`, pods)
	if err := api.Patch(t.Context(), queue, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatalf("change the queue: %v", err)
	}
}

// waitsFor waits until a job's record says that it waits in its queue, and with what words.
func waitsFor(t *testing.T, kind, namespace, name string, words ...string) v1alpha1.JobReportStatus {
	t.Helper()
	report := reported(t, kind, namespace, name, name+" waits in its queue", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.Phase(mpi.PhaseQueued) || status.Scheduling == nil {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		for _, word := range words {
			if !strings.Contains(status.Scheduling.Message, word) {
				return fmt.Errorf("it says %q, want %q", status.Scheduling.Message, word)
			}
		}
		return nil
	})
	t.Logf("%s %s: %s", kind, name, report.Status.Scheduling.Message)
	return report.Status
}

// TestQueuedAsAWhole: a job of 9 pods in a queue with room for 5 has none, says why and where it stands, and runs as
// soon as there is room.
func TestQueuedAsAWhole(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queue := queueIn(t, namespace, 5)
	big := queuedJob(namespace, "big", 8)
	create(t, big)
	never := reported(t, "MPIJob", namespace, "big", "it is told that it never fits", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != string(mpi.CodeQueueNeverFits) {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	text, _ := yaml.Marshal(never.Status.Findings)
	t.Logf("%s", text)
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are there, want none: %v", len(pods.Items), err)
	}
	start := time.Now()
	room(t, queue, 9)
	reported(t, "MPIJob", namespace, "big", "it runs once there is room", inPhase(mpi.PhaseRunning))
	t.Logf("all 9 pods ran %s after there was room", time.Since(start).Round(100*time.Millisecond))
}

// TestQueuedInTurn: jobs of both kinds wait for each other, and their records say which is next.
func TestQueuedInTurn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 4)
	runtimeIn(t, namespace, "mpi-openmpi")
	first := queuedJob(namespace, "first", 2)
	create(t, first)
	reported(t, "MPIJob", namespace, "first", "the first runs", inPhase(mpi.PhaseRunning))
	second := queuedJob(namespace, "second", 2)
	create(t, second)
	waitsFor(t, "MPIJob", namespace, "second", "number 1 in it", "pods")
	third := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")
	third.SetLabels(map[string]string{mpi.LabelQueue: "team"})
	createTrainJob(t, third)
	status := waitsFor(t, trainjob.Kind, namespace, "pi", "number")
	if status.Scheduling.Queue != "team" || status.Scheduling.Backend != gang.Kueue || status.Scheduling.Wanted != 2 {
		t.Errorf("it waits as %+v", status.Scheduling)
	}
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	reported(t, "MPIJob", namespace, "second", "the second runs", inPhase(mpi.PhaseRunning))
	if err := api.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	ends(t, third, "Complete")
}

// TestNoSuchQueue: a job whose queue is not there is told so.
func TestNoSuchQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 4)
	lost := queuedJob(namespace, "lost", 2)
	lost.Labels[mpi.LabelQueue] = "nowhere"
	create(t, lost)
	report := reported(t, "MPIJob", namespace, "lost", "it is told that there is no such queue", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != string(mpi.CodeQueueMissing) {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	t.Logf("%s", report.Status.Message)
}

// queuedJob is a job of so many workers that runs until it is deleted, in the queue team.
func queuedJob(namespace, name string, workers int32) *kubeflow.MPIJob {
	job := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, workers, "mpirun", "ranks", "--sleep", "600")
	job.Labels = map[string]string{mpi.LabelQueue: "team"}
	return job
}
