package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// setClusterQuota makes or changes a ClusterResourceQuota of pods that selects namespaces. OpenShift's controller, which counts
// what is used in all of them, does not run here.
func setClusterQuota(t *testing.T, name string, hard, used int64, namespaces ...string) {
	t.Helper()
	quota := &unstructured.Unstructured{}
	quota.SetAPIVersion("quota.openshift.io/v1")
	quota.SetKind("ClusterResourceQuota")
	quota.SetName(name)
	err := api.Get(t.Context(), client.ObjectKeyFromObject(quota), quota)
	quota.Object["spec"] = map[string]any{
		"quota":    map[string]any{"hard": map[string]any{"pods": fmt.Sprint(hard)}},
		"selector": map[string]any{"annotations": map[string]any{"openshift.io/requester": name}},
	}
	if apierrors.IsNotFound(err) {
		err = api.Create(t.Context(), quota)
		t.Cleanup(func() { _ = api.Delete(context.Background(), quota) })
	} else if err == nil {
		err = api.Update(t.Context(), quota)
	}
	total := map[string]any{"hard": map[string]any{"pods": fmt.Sprint(hard)}, "used": map[string]any{"pods": fmt.Sprint(used)}}
	var each []any
	for _, namespace := range namespaces {
		each = append(each, map[string]any{"namespace": namespace, "status": map[string]any{}})
	}
	quota.Object["status"] = map[string]any{"total": total, "namespaces": each}
	if err := errors.Join(err, api.Status().Update(t.Context(), quota)); err != nil {
		t.Fatal(err)
	}
}

// TestClusterQuotaPreflight: OpenShift's quotas for several namespaces are compared with the whole job, as the namespace's own.
func TestClusterQuotaPreflight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	name := "quota-of-" + namespace
	setQuota(t, namespace, "count/events=9", "")
	refused := func(workers int32, is func(error) bool, says ...string) {
		t.Helper()
		eventually(t, "the job is refused", func() error {
			err := api.Create(t.Context(), mpitest.MPIJob(namespace, workers), client.DryRunAll)
			if !is(err) {
				return fmt.Errorf("the answer is %w", err)
			}
			for _, word := range says {
				if !strings.Contains(err.Error(), word) {
					return fmt.Errorf("the answer lacks %q: %w", word, err)
				}
			}
			return nil
		})
	}
	taken := func(workers int32) {
		t.Helper()
		eventually(t, "the job is taken", func() error {
			return api.Create(t.Context(), mpitest.MPIJob(namespace, workers), client.DryRunAll)
		})
	}
	setClusterQuota(t, name, 5, 0, "another", namespace)
	refused(5, apierrors.IsInvalid, "6 pods requested (the launcher and 5 workers), quota "+name+" (ClusterResourceQuota) allows 5", "use at most 4 workers")
	setClusterQuota(t, name, 5, 3, "another", namespace)
	refused(4, apierrors.IsForbidden, "5 pods requested", "3 of 5 used in quota "+name+" (ClusterResourceQuota), 2 free", mpi.AnnotationWaitForQuota)
	taken(1)
	setClusterQuota(t, name, 5, 3, "another")
	taken(4)
}

// TestWaitsForClusterQuota: a job has no pods until a quota for several namespaces has room for all of them.
func TestWaitsForClusterQuota(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := "wait-of-" + namespace
	setClusterQuota(t, name, 5, 3, namespace)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 3, annotated(mpi.AnnotationWaitForQuota, "true")))
	eventually(t, "the report names the quota", func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || len(list.Items[0].Status.Findings) == 0 {
			return fmt.Errorf("the reports are %v", list.Items)
		}
		first := list.Items[0].Status.Findings[0]
		if first.Code != codes.QuotaExhausted || !strings.Contains(fmt.Sprint(first.Summary, first.Evidence), "3 of 5 used in quota "+name+" (ClusterResourceQuota)") {
			return fmt.Errorf("it says %+v", first)
		}
		return nil
	})
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
		t.Errorf("it has %d pods: %v", len(pods.Items), err)
	}
}
