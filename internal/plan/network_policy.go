package plan

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// isolate plans what a job needs whose other objects are created by another controller: the NetworkPolicy, and SSH keys of the
// type that the site requires.
func isolate(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, settings Settings) Plan {
	plan := Plan{Delete: unwantedIsolation(job, seen, settings)}
	if !job.Lifecycle.Deleting && out.Finish == nil {
		plan.Base = wanted(networkPolicy(job, seen, settings))
		if ReplacesKeys(job, settings) {
			plan.Base = append(plan.Base, wanted(secret(job, seen))...)
		}
	}
	return plan
}

// networkPolicy returns the NetworkPolicy that isolates a job's pods, or nil if it is up to date or not wanted.
//
// The destinations that a runtime allows are copied once: a change of the runtime applies to new jobs. The endpoints of data
// connections are read once too.
func networkPolicy(job mpi.Job, seen jobstate.Observed, settings Settings) Object {
	if !Isolates(job, settings) {
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
	for key, value := range map[string]string{mpi.AnnotationAllowEgress: byRuntime, mpi.AnnotationEndpoints: seen.Endpoints} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&policy.ObjectMeta, key, value)
		}
	}
	policy.Spec = isolationSpec(job, settings, byRuntime, seen.AllowEgress)
	for _, to := range isolation.ParseEndpoints(seen.Endpoints, settings.Home(job.Namespace)).All() {
		policy.Spec.Egress = append(policy.Spec.Egress, endpointRule(to))
	}
	addHostNetwork(&policy.Spec, seen)
	if have := seen.Isolation; have != nil && have.Annotations[mpi.AnnotationEndpoints] == seen.Endpoints && equality.Semantic.DeepEqual(have.Spec, policy.Spec) {
		return nil
	}
	return policy
}

// Isolates reports whether the operator creates a NetworkPolicy for a job that has pods. An MPIJob has none if all of its pods
// are in the host network, to which no policy applies. If some are, the policy applies to the others. A TrainJob has one
// anyway: what is known of its pods before they exist may come from its user (trainjob.RuntimeOf). TrainJobs of other frameworks
// have one if the administrator chose so.
func Isolates(job mpi.Job, settings Settings) bool {
	onHosts := job.Launcher.Template.Spec.HostNetwork && (job.Workers.Count == 0 || job.Workers.Template.Spec.HostNetwork)
	if job.External {
		return settings.NetworkPolicies && (!job.Launcher.None || settings.IsolatesAllTrainJobs)
	}
	return settings.NetworkPolicies && !onHosts
}

// unwantedIsolation returns the NetworkPolicy to delete after policies were disabled. For no other reason it is deleted
// before its job: pods that it isolates may exist.
func unwantedIsolation(job mpi.Job, seen jobstate.Observed, settings Settings) []Ref {
	if seen.Isolation == nil || settings.NetworkPolicies || job.Lifecycle.Deleting {
		return nil
	}
	return []Ref{{Kind: "NetworkPolicy", Namespace: job.Namespace, Name: job.PolicyName(), UID: seen.Isolation.UID}}
}

// isolationSpec returns the rules of the NetworkPolicy. Within the job all ports are open, because MPI uses random
// ports. Further destinations are those that administrators allow; invalid entries are ignored.
func isolationSpec(job mpi.Job, settings Settings, allowed ...string) networkingv1.NetworkPolicySpec {
	ownPods := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: job.Selector()}}}
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: *ownPods[0].PodSelector,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: ownPods}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: ownPods},
			{To: []networkingv1.NetworkPolicyPeer{{PodSelector: ownServices()}}},
			{Ports: []networkingv1.NetworkPolicyPort{
				// DNS. OpenShift's DNS pods listen on 5353. DNS servers can be in any namespace, on nodes, or outside
				// of the cluster.
				ports(corev1.ProtocolUDP, 53, 53), ports(corev1.ProtocolTCP, 53, 53),
				ports(corev1.ProtocolUDP, 5353, 5353), ports(corev1.ProtocolTCP, 5353, 5353),
				// Most network plugins compare the port behind a Service on 443: 6443 is that of the API server and of
				// OpenShift's object storage. API servers are on nodes, which some networks do not count among the
				// addresses.
				ports(corev1.ProtocolTCP, 6443, 6443),
			}},
			// HTTPS. Some clouds serve their metadata with it.
			{To: anywhere(), Ports: []networkingv1.NetworkPolicyPort{ports(corev1.ProtocolTCP, 443, 443)}},
		},
	}
	for _, text := range append([]string{settings.AllowEgress}, allowed...) {
		entries, _ := isolation.ParseEgress(text)
		for _, entry := range entries {
			rule := egressRule(entry)
			if isolation.IsWithoutMetadata(text) && !leaveOutMetadata(&rule) {
				continue
			}
			spec.Egress = append(spec.Egress, rule)
		}
	}
	return spec
}

// ownServices selects the pods of the job's namespace that belong to no job, such as object storage, MLflow or a database of
// the project: those without the labels that the training operators, JobSet, Kubernetes' Jobs and KubeRay set.
func ownServices() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	for _, label := range []string{mpi.LabelJob, mpi.LabelJobSet, batchv1.JobNameLabel, "ray.io/cluster"} {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	return selector
}

// addHostNetwork allows connections between the job's pods and those of its pods that are in the host network, by the
// addresses of their nodes.
func addHostNetwork(spec *networkingv1.NetworkPolicySpec, seen jobstate.Observed) {
	addresses := map[string]bool{}
	add := func(pod *corev1.Pod) {
		if pod.Spec.HostNetwork && pod.Status.HostIP != "" {
			addresses[pod.Status.HostIP] = true
		}
	}
	for _, pod := range seen.LauncherPods {
		add(pod)
	}
	for _, worker := range seen.Workers {
		add(worker.Pod)
	}
	if len(addresses) == 0 {
		return
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, address := range slices.Sorted(maps.Keys(addresses)) {
		bits := "/32"
		if strings.Contains(address, ":") {
			bits = "/128"
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: address + bits}})
	}
	spec.Ingress = append(spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: peers})
	spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: peers})
}

func egressRule(to isolation.Egress) networkingv1.NetworkPolicyEgressRule {
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

// leaveOutMetadata makes a rule not include the addresses of metadata services. It returns false if nothing is left of it.
func leaveOutMetadata(rule *networkingv1.NetworkPolicyEgressRule) bool {
	if len(rule.To) == 0 {
		rule.To = anywhere()
	}
	for _, to := range rule.To {
		if to.IPBlock == nil || len(to.IPBlock.Except) > 0 {
			continue
		}
		except, all := isolation.ExceptionsIn(to.IPBlock.CIDR)
		if all {
			return false
		}
		to.IPBlock.Except = except
	}
	return true
}

// anywhere are all pods and all addresses, except for those of metadata services. Some networks do not count pods among the
// addresses.
func anywhere() []networkingv1.NetworkPolicyPeer {
	return append([]networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}, anyAddress()...)
}

// anyAddress are all addresses, except for those of metadata services.
func anyAddress() []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	excepted := isolation.AnyAddress()
	for _, cidr := range slices.Sorted(maps.Keys(excepted)) {
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: excepted[cidr]}})
	}
	return peers
}

// endpointRule allows the endpoint of a data connection. A port without a place is that of a name outside of the cluster:
// policies know no names, so that it is allowed at any address, except for those of metadata services.
func endpointRule(to isolation.Egress) networkingv1.NetworkPolicyEgressRule {
	rule := egressRule(to)
	if len(rule.To) > 0 {
		return rule
	}
	rule.To = anyAddress()
	return rule
}

// namespaceNamed selects a namespace by the label that the API server sets on every namespace.
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
