package operator_test

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/operator"
)

// TestIsolateAllTrainJobs: TrainJobs without MPI have a NetworkPolicy if the administrator chose so.
func TestIsolateAllTrainJobs(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	server.runtime(t, "torch", "mpi:", "torch:", "mpi-implementation: OpenMPI", "other: annotation")
	defer server.start(t, func(o *operator.Options) { o.NetworkPolicies, o.IsolateAllTrainJobs = true, true })()
	job := trainjob.New()
	job.SetNamespace("default")
	job.SetName("pytorch")
	job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"kind": trainjob.RuntimeKind, "name": "torch"}, "trainer": map[string]any{"command": []any{"python", "train.py"}}}
	server.create(t, job)
	eventually(t, "the TrainJob's pods are isolated", func() error {
		var policy networkingv1.NetworkPolicy
		if err := server.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "pytorch.trainjob"}, &policy); err != nil {
			return err
		}
		if of := policy.Spec.PodSelector.MatchLabels; len(of) != 1 || of[mpi.LabelJobSet] != "pytorch" {
			return fmt.Errorf("the policy selects %v", of)
		}
		return nil
	})
}
