package e2e

import (
	"fmt"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestOperatorUpgraded replaces both replicas of the operator, as an upgrade does, while one job runs and others
// come: the one that runs is not disturbed, and the others start.
func TestOperatorUpgraded(t *testing.T) {
	namespace := newNamespace(t)
	job := sleeping(t, namespace, 600, func(job *kubeflow.MPIJob) { job.Name = "before" })
	create(t, job)
	waitFor(t, job, "it runs", runs)
	uids := func() map[string]types.UID {
		found := map[string]types.UID{}
		for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
			for _, pod := range podsOf(t, job, role) {
				found[pod.Name] = pod.UID
			}
		}
		return found
	}
	before := uids()

	operator := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: "mpijob-system", Name: "mpijob-operator"}
	if err := api.Get(t.Context(), key, operator); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", key, err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"mpi.opendatahub.io/restarted-at":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if err := api.Patch(t.Context(), operator, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for i := 0; ; i++ {
		start := time.Now()
		next := sleeping(t, namespace, 0, func(job *kubeflow.MPIJob) { job.Name = fmt.Sprintf("during-%d", i) })
		create(t, next)
		eventually(t, next.Name+" has its pods", time.Minute, func() error {
			if pods := podsOf(t, next, mpi.RoleWorker); len(pods) != 2 {
				return fmt.Errorf("there are %d workers", len(pods))
			}
			return nil
		})
		slowest = max(slowest, time.Since(start))
		if err := api.Delete(t.Context(), next, client.PropagationPolicy("Background")); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), key, operator); err != nil {
			t.Fatal(err)
		}
		s := operator.Status
		if s.ObservedGeneration >= operator.Generation && s.UpdatedReplicas == *operator.Spec.Replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas {
			t.Logf("%d jobs came while the operator was replaced; the one that waited longest had its pods after %s", i+1, slowest.Round(10*time.Millisecond))
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for name, uid := range uids() {
		if before[name] != uid {
			t.Errorf("%s was %q before and is %q now", name, before[name], uid)
		}
	}
	if len(uids()) != len(before) {
		t.Errorf("there were pods %v, and now there are %v", before, uids())
	}
}
