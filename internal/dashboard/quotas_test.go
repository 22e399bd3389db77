package dashboard_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
)

// TestClusterResourceQuotas shows OpenShift's quotas for several projects to those who may read them.
func TestClusterResourceQuotas(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "shared-one", "user", "nobody")
	namespace(t, "shared-two")
	admin := caller{t, administrator(t, "shared-one")}
	mpiJob(t, "shared-one", "seen", nil)
	const amounts = `{total: {hard: {requests.cpu: "40", pods: "20"}, used: {requests.cpu: "30", pods: "4"}}, namespaces: [{namespace: shared-one, status: {}}, {namespace: shared-two, status: {}}]}`
	for _, text := range []string{
		`{apiVersion: quota.openshift.io/v1, kind: AppliedClusterResourceQuota, metadata: {name: team, namespace: shared-one}, spec: {quota: {}, selector: {}}, status: ` + amounts + `}`,
		`{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: team}, spec: {quota: {}, selector: {}}}`,
		`{apiVersion: v1, kind: ResourceQuota, metadata: {name: own, namespace: shared-one}, spec: {hard: {pods: "9"}}}`,
	} {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
		var status map[string]any
		if object.GetKind() == "ClusterResourceQuota" {
			t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), &object) })
			must(t, yaml.Unmarshal([]byte(amounts), &status))
			object.Object["status"] = status
			must(t, api.Status().Update(t.Context(), &object))
		}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shared-one", Name: "own"}}
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": resource.MustParse("1")}}
	must(t, api.Status().Update(t.Context(), quota))

	cpu := dashboard.Quota{Name: "team (ClusterResourceQuota)", Resource: "requests.cpu", Hard: 40, Used: 30, HardText: "40", UsedText: "30", Shared: true}
	pods := dashboard.Quota{Name: "team (ClusterResourceQuota)", Resource: "pods", Hard: 20, Used: 4, HardText: "20", UsedText: "4", Shared: true}
	want := []dashboard.Quota{{Name: "own", Resource: "pods", Hard: 9, Used: 1, HardText: "9", UsedText: "1"}, pods, cpu}
	user, nobody := caller{t, tokens["user"]}, caller{t, tokens["nobody"]}
	choices := get[dashboard.Choices](user, "namespaces/shared-one/options")
	if diff := cmp.Diff(want, choices.Quotas); diff != "" || slices.Contains(choices.Missing, "ClusterResourceQuotas") {
		t.Errorf("the wizard of a user, without %q (-want +got)\n%s", choices.Missing, diff)
	}
	page := get[dashboard.Quotas](user, "quotas?namespace=shared-one")
	if diff := cmp.Diff([]dashboard.NamespaceQuotas{{Namespace: "shared-one", Quotas: want}}, page.Quotas); diff != "" {
		t.Errorf("the page of a user (-want +got)\n%s", diff)
	}
	// OpenShift lists the applied quotas of one namespace at a time: the page of an administrator is of the quotas themselves.
	found := map[string][]dashboard.Quota{}
	for _, each := range get[dashboard.Quotas](admin, "quotas").Quotas {
		found[each.Namespace] = each.Quotas
	}
	if diff := cmp.Diff(map[string][]dashboard.Quota{"shared-one": want, "shared-two": {pods, cpu}}, map[string][]dashboard.Quota{"shared-one": found["shared-one"], "shared-two": found["shared-two"]}); diff != "" {
		t.Errorf("the page of an administrator (-want +got)\n%s", diff)
	}
	closed := get[dashboard.Quotas](nobody, "quotas?namespace=shared-one")
	if len(closed.Quotas) > 0 || !slices.Contains(closed.Missing, "ClusterResourceQuotas of shared-one") {
		t.Errorf("a user without rights sees %+v", closed)
	}
	if closed := get[dashboard.Quotas](user, "quotas?namespace=shared-two"); len(closed.Quotas) > 0 {
		t.Errorf("a user of another project sees %+v", closed.Quotas)
	}
}

func TestAdministratorsSeeAllQuotasAndUsersTheirFailures(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "quota-jobs", "user")["user"]}
	admin := caller{t, administrator(t, "quota-jobs")}
	namespace(t, "quota-idle")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "quota-idle", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("10")}}}
	must(t, api.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": resource.MustParse("9")}}
	must(t, api.Status().Update(t.Context(), quota))
	for name, code := range map[string]string{"one": "OutOfMemory", "two": "OutOfMemory", "three": "NotACode"} {
		report(t, mpiJob(t, "quota-jobs", name, nil), v1alpha1.JobReportStatus{
			Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now()}, Findings: []v1alpha1.Finding{{Code: code, Severity: v1alpha1.SeverityError, Summary: "It failed."}},
		})
	}
	report(t, mpiJob(t, "quota-jobs", "long-ago", nil), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now().Add(-48 * time.Hour)}, Findings: []v1alpha1.Finding{{Code: "Killed", Severity: v1alpha1.SeverityError, Summary: "It failed."}},
	})
	want := []dashboard.FailureCount{{Code: "OutOfMemory", Jobs: 2, Guide: true}, {Code: "NotACode", Jobs: 1}}
	eventually(t, "the failures of the last day", func() bool {
		return slices.Equal(get[dashboard.Usage](user, "usage?since=24h&namespace=quota-jobs").Failures, want)
	})
	other := caller{t, namespace(t, "quota-other", "user")["user"]}
	if failures := get[dashboard.Usage](other, "usage?since=24h").Failures; len(failures) != 0 {
		t.Errorf("a user of another project sees the failures %+v", failures)
	}
	has := func(page dashboard.Quotas) bool {
		return slices.ContainsFunc(page.Quotas, func(one dashboard.NamespaceQuotas) bool {
			return one.Namespace == "quota-idle" && len(one.Quotas) == 1 && one.Quotas[0].Used == 9
		})
	}
	if page := get[dashboard.Quotas](admin, "quotas"); !has(page) {
		t.Errorf("an administrator does not see the quota of a project without jobs: %+v", page)
	}
	if page := get[dashboard.Quotas](user, "quotas"); has(page) {
		t.Errorf("a user sees the quota of another project: %+v", page)
	}
}
