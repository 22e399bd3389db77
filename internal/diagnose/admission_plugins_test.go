package diagnose

import (
	"testing"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestPluginRefusals: findings explain each message of Kubernetes' admission plugins about pods, with its figures and what to do.
func TestPluginRefusals(t *testing.T) {
	t.Parallel()
	tried := map[*codes.Entry]bool{}
	for message, want := range map[string]string{
		`error looking up service account team/trainer: serviceaccount "trainer" not found`:                                                            "service account trainer does not exist in namespace team",
		`no PriorityClass with name high was found`:                                                                                                    "PriorityClass high does not exist",
		`pod rejected: RuntimeClass "nvidia" not found`:                                                                                                "RuntimeClass nvidia does not exist",
		`conflict: runtimeClass.scheduling.nodeSelector[gpu] = a100; pod.spec.nodeSelector[gpu] = h100`:                                                "the nodes of their RuntimeClass have another value of label gpu than their nodeSelector requires",
		`[maximum cpu usage per Container is 500m, but limit is 1, maximum cpu usage per Pod is 1, but limit is 2]`:                                    "a LimitRange of namespace team allows at most 500m of cpu per Container, and their limit is 1",
		`minimum memory usage per Pod is 1Gi, but request is 128Mi`:                                                                                    "a LimitRange of namespace team requires at least 1Gi of memory per Pod, and their request is 128Mi",
		`maximum memory usage per Container is 1Gi.  No limit is specified`:                                                                            "a LimitRange of namespace team requires a limit for memory per Container, and they have none",
		`cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`:                                                            "a LimitRange of namespace team allows a limit of at most 2 times the request of cpu per Container",
		`failed quota: compute: must specify limits.cpu for: main; limits.memory for: main`:                                                            "quota compute of namespace team requires that each container specifies limits.cpu, limits.memory",
		`failed quota: compute: must specify limits.cpu for: a,b; requests.nvidia.com/gpu for: b`:                                                      "quota compute of namespace team requires that each container specifies limits.cpu, requests.nvidia.com/gpu",
		`failed quota: compute: must specify limits.cpu,limits.memory`:                                                                                 "quota compute of namespace team requires that each container specifies limits.cpu, limits.memory",
		`pod node label selector conflicts with its namespace node label selector`:                                                                     "their nodeSelector contradicts that of namespace team",
		`pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist`:                                   "namespace team does not allow their tolerations",
		`container main with envVar KEY referencing secret.secretName="login" is not allowed because service account a does not reference that secret`: "service account a may only use the Secrets that it lists, and Secret login is none of them",
		`affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed`:                        "the cluster only allows anti-affinity by nodes (kubernetes.io/hostname)",
	} {
		p := &input{&facts.Facts{Job: mpi.Job{Kind: mpi.KindMPIJob, Namespace: "team", Name: "pi"}}}
		f := p.refusal(jobstate.Refusal{Kind: "Pod", Name: "pi-worker-0", Message: `pods "pi-worker-0" is forbidden: ` + message})
		if want = "The API server rejects pods of the job: " + want + "."; f.Code != codes.ObjectRefused || f.Summary != want || len(f.Remedies) == 0 {
			t.Errorf("%s:\n got %s: %q\nwant %q", message, f.Code, f.Summary, want)
		}
		tried[ofPlugin(message, map[string]string{})] = true
	}
	for _, known := range pluginRefusals {
		if !tried[known.entry] {
			t.Errorf("%s is not tried", known.pattern)
		}
	}
}
