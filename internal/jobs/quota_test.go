package jobs

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

func TestQuotaUse(t *testing.T) {
	t.Parallel()
	quota := func(text string) *corev1.ResourceQuota {
		var q corev1.ResourceQuota
		if err := yaml.UnmarshalStrict([]byte(text), &q); err != nil {
			t.Fatal(err)
		}
		q.Namespace = "ns"
		return &q
	}
	elsewhere := quota("{metadata: {name: elsewhere}, status: {hard: {cpu: 1}}}")
	elsewhere.Namespace = "other"
	c, s := newServer(t,
		quota("{metadata: {name: team}, status: {hard: {requests.cpu: 10, requests.memory: 64Gi, requests.nvidia.com/gpu: 12, pods: 9}, used: {requests.cpu: 2, requests.nvidia.com/gpu: 4}}}"),
		quota("{metadata: {name: all}, status: {hard: {cpu: 100, limits.cpu: 3}}}"),
		quota("{metadata: {name: long}, spec: {scopes: [Terminating]}, status: {hard: {cpu: 1}}}"),
		quota("{metadata: {name: high}, spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}, status: {hard: {cpu: 1}}}"), elsewhere)
	job := func(resources string) string {
		return `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {
			Launcher: {template: {spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 1}}}]}}},
			Worker: {replicas: 2, template: {spec: {containers: [{name: a, image: i, resources: {limits: ` + resources + `}}]}}}}}}`
	}
	for name, test := range map[string]struct {
		job  string
		want []string
	}{
		"cores and memory": {job("{cpu: 3, memory: 8Gi}"), []string{"7 of 100 cpu of quota all", "9 of 10 requests.cpu of quota team", "16Gi of 64Gi requests.memory of quota team"}},
		"devices only":     {job("{cpu: 3, nvidia.com/gpu: 2}"), []string{"8 of 12 requests.nvidia.com/gpu of quota team"}},
		"no devices":       {job("{nvidia.com/gpu: 0}"), []string{"1 of 100 cpu of quota all", "3 of 10 requests.cpu of quota team"}},
		"an unknown size":  {trainJobText, nil},
	} {
		uses, err := c.QuotaUse(t.Context(), object(t, test.job))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, use := range uses {
			got = append(got, use.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	for want, refused := range map[bool]error{false: forbidden("resourcequotas"), true: errors.New("broken")} {
		s.refuse = func(string, string) error { return refused }
		if uses, err := c.QuotaUse(t.Context(), object(t, job("{cpu: 1}"))); uses != nil || (err != nil) != want {
			t.Errorf("%v: %v, %v", refused, uses, err)
		}
	}
}

// TestClusterQuotaUse: OpenShift's quotas for several namespaces are shown like those of the namespace.
func TestClusterQuotaUse(t *testing.T) {
	t.Parallel()
	applied := object(t, `{apiVersion: quota.openshift.io/v1, kind: AppliedClusterResourceQuota, metadata: {name: team, namespace: ns},
		spec: {selector: {annotations: {openshift.io/requester: ada}}, quota: {hard: {requests.nvidia.com/gpu: 12}}},
		status: {total: {hard: {requests.nvidia.com/gpu: 12}, used: {requests.nvidia.com/gpu: 4}}, namespaces: []}}`)
	elsewhere := applied.DeepCopy()
	elsewhere.SetNamespace("other")
	c, s := newServer(t, applied, elsewhere)
	job := object(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi, namespace: ns}, spec: {mpiReplicaSpecs: {
		Launcher: {template: {spec: {containers: [{name: a, image: i}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 3}}}]}}}}}}`)
	uses, err := c.QuotaUse(t.Context(), job)
	if err != nil || len(uses) != 1 || uses[0].String() != "10 of 12 requests.nvidia.com/gpu of quota team (ClusterResourceQuota)" {
		t.Errorf("%v, %v", uses, err)
	}
	shared, err := c.ClusterQuotas(t.Context(), "ns")
	if err != nil || len(shared) != 1 || len(shared["ns"]) != 1 {
		t.Errorf("the quotas of ns are %v, %v", shared, err)
	}
	s.refuse = func(_, kind string) error {
		if strings.HasPrefix(kind, "AppliedClusterResourceQuota") {
			return forbidden("appliedclusterresourcequotas")
		}
		return nil
	}
	if uses, err := c.QuotaUse(t.Context(), job); err != nil || len(uses) != 0 {
		t.Errorf("without the right: %v, %v", uses, err)
	}
	if _, err := c.ClusterQuotas(t.Context(), "ns"); !apierrors.IsForbidden(err) {
		t.Errorf("without the right, the quotas of ns are an error: %v", err)
	}
}
