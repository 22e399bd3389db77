package plan

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

// OperatorLabels are on the operator's own pods (config/operator).
var OperatorLabels = map[string]string{"app.kubernetes.io/name": "mpijob-operator"}

// Isolate plans the NetworkPolicy of a job whose pods another controller makes, and nothing else. For does it for
// those whose pods are planned here.
func Isolate(job mpi.Job, seen mpi.Observed, out mpi.Outcome, settings Settings) Plan {
	plan := Plan{Delete: unwantedIsolation(job, seen, settings)}
	if !job.Lifecycle.Deleting && out.Finish == nil {
		plan.Base = wanted(isolation(job, seen, settings))
	}
	return plan
}

// isolation is the NetworkPolicy by which a job's pods reach each other and little else; nil if it is there as it
// should be, or if none is to be. Other frameworks' jobs are not judged: who they talk to is not known here.
//
// What runtimes allow is taken over once: a changed runtime is for new jobs.
func isolation(job mpi.Job, seen mpi.Observed, settings Settings) Object {
	if !isolable(job, settings) || job.Launcher.None {
		return nil
	}
	policy := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: meta(job, job.PolicyName(), ""),
	}
	byRuntime := job.AllowEgress
	if have := seen.Isolation; have != nil {
		policy.UID, byRuntime = have.UID, have.Annotations[mpi.AnnotationAllowEgress]
	}
	if byRuntime != "" {
		policy.Annotations = map[string]string{mpi.AnnotationAllowEgress: byRuntime}
	}
	policy.Spec = isolationSpec(job, settings, byRuntime, seen.AllowEgress)
	if seen.Isolation != nil && equality.Semantic.DeepEqual(seen.Isolation.Spec, policy.Spec) {
		return nil
	}
	return policy
}

// isolable tells whether a job can have a NetworkPolicy. In its node's network a pod is beyond any policy, and known to
// the others by an address that no policy can name: these could not reach it.
func isolable(job mpi.Job, settings Settings) bool {
	return settings.NetworkPolicies && !job.Launcher.Template.Spec.HostNetwork &&
		(job.Workers.Count == 0 || !job.Workers.Template.Spec.HostNetwork)
}

// unwantedIsolation are NetworkPolicies from before they were switched off.
func unwantedIsolation(job mpi.Job, seen mpi.Observed, settings Settings) []Ref {
	if seen.Isolation == nil || isolable(job, settings) || job.Lifecycle.Deleting {
		return nil
	}
	return []Ref{{Kind: "NetworkPolicy", Namespace: job.Namespace, Name: job.PolicyName(), UID: seen.Isolation.UID}}
}

// isolationSpec says who may reach whom. MPI picks ports as it likes, so that within the job all are open. What users
// may not widen is read from texts that administrators write; entries that are wrong allow nothing.
func isolationSpec(job mpi.Job, settings Settings, allowed ...string) networkingv1.NetworkPolicySpec {
	ownPods := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: job.Selector()}}}
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: *ownPods[0].PodSelector,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: ownPods}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: ownPods},
			{Ports: []networkingv1.NetworkPolicyPort{
				// Names: OpenShift's DNS pods listen on 5353. DNS can be in any namespace, on nodes, or outside.
				ports(corev1.ProtocolUDP, 53, 53), ports(corev1.ProtocolTCP, 53, 53),
				ports(corev1.ProtocolUDP, 5353, 5353), ports(corev1.ProtocolTCP, 5353, 5353),
				// HTTPS. What a Service offers on 443 is mostly judged by the port behind it: 6443 is that of the API
				// server and of OpenShift's object storage.
				ports(corev1.ProtocolTCP, 443, 443), ports(corev1.ProtocolTCP, 6443, 6443),
			}},
		},
	}
	if settings.OperatorNamespace != "" {
		spec.Ingress = append(spec.Ingress, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: namespaceNamed(settings.OperatorNamespace),
				PodSelector:       &metav1.LabelSelector{MatchLabels: OperatorLabels},
			}},
			Ports: []networkingv1.NetworkPolicyPort{ports(corev1.ProtocolTCP, launch.StatusPort, launch.StatusPort)},
		})
	}
	for _, text := range append([]string{settings.AllowEgress}, allowed...) {
		entries, _ := mpi.ParseEgress(text)
		for _, entry := range entries {
			spec.Egress = append(spec.Egress, egressRule(entry))
		}
	}
	return spec
}

func egressRule(to mpi.Egress) networkingv1.NetworkPolicyEgressRule {
	var rule networkingv1.NetworkPolicyEgressRule
	switch {
	case to.CIDR != "":
		rule.To = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: to.CIDR}}}
	case to.Namespace != "":
		rule.To = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: namespaceNamed(to.Namespace)}}
	}
	if to.Port != 0 {
		rule.Ports = []networkingv1.NetworkPolicyPort{ports(to.Protocol, to.Port, to.EndPort)}
	}
	return rule
}

// namespaceNamed selects by a label that the API server puts on every namespace.
func namespaceNamed(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

func ports(protocol corev1.Protocol, first, last int32) networkingv1.NetworkPolicyPort {
	port := networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(first))}
	if last > first {
		port.EndPort = &last
	}
	return port
}
