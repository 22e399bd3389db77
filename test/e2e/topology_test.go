package e2e

import (
	"fmt"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// together waits until all pods of a job have the same node.
func together(t *testing.T, pods client.MatchingLabels, namespace string, want int) {
	t.Helper()
	eventually(t, "the pods are together", time.Minute, func() error {
		var list corev1.PodList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace), pods); err != nil {
			return err
		}
		nodes := map[string]int{}
		for _, pod := range list.Items {
			nodes[pod.Spec.NodeName]++
		}
		for node, n := range nodes {
			if node != "" && n == want && len(nodes) == 1 {
				t.Logf("%d pods are on %s", n, node)
				return nil
			}
		}
		return fmt.Errorf("they are on %v", nodes)
	})
}

// TestTogether: a job whose pods are to be together, each node being a place of its own, has all of them on one node.
func TestTogether(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 4, "sleep", "5")
	job.Annotations = map[string]string{mpi.AnnotationRequiredTopology: corev1.LabelHostname}
	job.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyNone)
	create(t, job)
	together(t, client.MatchingLabels{mpi.LabelJob: job.Name}, namespace, 5)
	waitFor(t, job, "the job ends", succeeded)
}

// TestTrainJobTogether: the same for a TrainJob.
func TestTrainJobTogether(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 4, command: [sleep, '20']}")
	job.SetAnnotations(map[string]string{mpi.AnnotationRequiredTopology: corev1.LabelHostname})
	createTrainJob(t, job)
	together(t, client.MatchingLabels{trainjob.LabelJobSet: job.GetName()}, namespace, 4)
}
