package operator_test

import (
	"fmt"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// TestUnrecordedUsers: if no webhook answered, the report names the field managers that created, changed and suspended a job, and the
// operator's writes leave the managed fields as they are.
func TestUnrecordedUsers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	if err := api.Create(t.Context(), mpitest.MPIJob(namespace, 1), client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}})
	timelineSays(t, namespace, "Created", `The user was not recorded; field manager: "kubectl-create".`)
	change := func(manager, patch string) error {
		return api.Patch(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{}), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(manager))
	}
	// A change within the second of the creation is that of the creation.
	n := 2
	eventually(t, "a change is attributed", func() error {
		n++
		if err := change("kubectl-edit", fmt.Sprintf(`{"spec":{"slotsPerWorker":%d}}`, n)); err != nil {
			return err
		}
		for _, report := range reportsIn(t, namespace) {
			for _, entry := range report.Status.Timeline {
				if entry.Event == "Changed" && entry.Detail == `The user was not recorded; field manager: "kubectl-edit".` {
					return nil
				}
			}
		}
		return fmt.Errorf("the timeline has no entry")
	})
	changed := time.Now()
	eventually(t, "another second has begun, since managed fields have no smaller times", func() error {
		if time.Since(changed) < time.Second {
			return fmt.Errorf("%s passed", time.Since(changed))
		}
		return nil
	})
	if err := change("kubectl-patch", suspend); err != nil {
		t.Fatal(err)
	}
	timelineSays(t, namespace, "Suspended", `The user was not recorded; field manager: "kubectl-patch".`)
	for _, report := range reportsIn(t, namespace) {
		if run := report.Status.Run; run == nil || run.FieldManager != "kubectl-create" || run.Creator != "" {
			t.Errorf("the record of the creation is %+v", run)
		}
	}
	managers := map[string]bool{}
	for _, entry := range get(t, namespace, "pi", &kubeflow.MPIJob{}).ManagedFields {
		managers[entry.Manager+" "+entry.Subresource] = entry.FieldsV1 != nil
	}
	if !managers["kubectl-create "] || !managers["kubectl-edit "] || !managers["mpijob-operator status"] {
		t.Errorf("the managed fields are of %v", managers)
	}
}

func reportsIn(t *testing.T, namespace string) []v1alpha1.JobReport {
	t.Helper()
	var list v1alpha1.JobReportList
	if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
