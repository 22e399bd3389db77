package jobs

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestChangeGPUs: the number of GPUs is changed where the job requests them, whoever made them.
func TestChangeGPUs(t *testing.T) {
	t.Parallel()
	for limits, test := range map[string]struct{ want, wrong string }{
		"{cpu: 1}":                                  {want: `nvidia.com/gpu: "4"`},
		"{nvidia.com/gpu: 1}":                       {want: `nvidia.com/gpu: "4"`},
		"{amd.com/gpu: 1}":                          {want: `amd.com/gpu: "4"`},
		"{habana.ai/gaudi: 8}":                      {want: `habana.ai/gaudi: "4"`},
		"{nvidia.com/mig-1g.5gb: 2}":                {want: `nvidia.com/mig-1g.5gb: "4"`},
		"{nvidia.com/gpu: 1, nvidia.com/gpumem: 9}": {want: `nvidia.com/gpu: "4"`},
		"{nvidia.com/gpu: 1, amd.com/gpu: 1}":       {wrong: "several kinds of GPUs (amd.com/gpu, nvidia.com/gpu)"},
	} {
		job := object(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {
			Launcher: {template: {spec: {containers: [{name: a, image: i}]}}},
			Worker: {replicas: 2, template: {spec: {containers: [{name: a, image: i, resources: {limits: `+limits+`}}]}}}}}}`)
		err := applyText(job, "gpu=4")
		text, _ := yaml.Marshal(job.Object)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: the error is %v, want %q", limits, err, test.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", limits, err)
		case strings.Count(string(text), `"4"`) != 1 || !strings.Contains(string(text), test.want):
			t.Errorf("%s became\n%s", limits, text)
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
	s.refuse = func(_, kind string) error {
		if strings.HasPrefix(kind, "AppliedClusterResourceQuota") {
			return forbidden("appliedclusterresourcequotas")
		}
		return nil
	}
	if uses, err := c.QuotaUse(t.Context(), job); err != nil || len(uses) != 0 {
		t.Errorf("without the right: %v, %v", uses, err)
	}
}
