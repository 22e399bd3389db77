package policy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestMergeJoinsRangesThatOverlap(t *testing.T) {
	got := merge([]PortRange{{80, 90}, {5, 5}, {85, 100}, {1, 10}, {100, 100}, {2, 3}})
	if want := []PortRange{{1, 10}, {80, 100}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// end is an end of a connection: a pod, or another address.
type end struct {
	address netip.Addr
	pod     *Pod
}

// allows is the evaluator: it decides about one connection as the API documents NetworkPolicies, without sets of addresses.
func allows(state State, from, to end, protocol corev1.Protocol, port int32) bool {
	if from.pod != nil && from.address == to.address {
		return true // a pod cannot block access to itself
	}
	isolated, let := false, false
	for _, policy := range state.Policies {
		if from.pod != nil && concerns(policy, networkingv1.PolicyTypeEgress, *from.pod) {
			isolated = true
			for _, rule := range policy.Spec.Egress {
				let = let || anyPeer(state, policy.Namespace, rule.To, to) && anyPort(rule.Ports, to, protocol, port)
			}
		}
	}
	if isolated && !let {
		return false
	}
	isolated, let = false, false
	for _, policy := range state.Policies {
		if to.pod != nil && concerns(policy, networkingv1.PolicyTypeIngress, *to.pod) {
			isolated = true
			for _, rule := range policy.Spec.Ingress {
				let = let || anyPeer(state, policy.Namespace, rule.From, from) && anyPort(rule.Ports, to, protocol, port)
			}
		}
	}
	return !isolated || let
}

func concerns(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod Pod) bool {
	return slices.Contains(policy.Spec.PolicyTypes, direction) && policy.Namespace == pod.Namespace && fits(&policy.Spec.PodSelector, pod.Labels)
}

func fits(selector *metav1.LabelSelector, set labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		panic(err)
	}
	return parsed.Matches(set)
}

func anyPeer(state State, own string, peers []networkingv1.NetworkPolicyPeer, other end) bool {
	if len(peers) == 0 {
		return true
	}
	return slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.IPBlock != nil {
			return netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(other.address) && !slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool {
				return netip.MustParsePrefix(except).Contains(other.address)
			})
		}
		switch {
		case other.pod == nil:
			return false
		case peer.NamespaceSelector == nil && other.pod.Namespace != own:
			return false
		case peer.NamespaceSelector != nil && !fits(peer.NamespaceSelector, state.Namespaces[other.pod.Namespace]):
			return false
		}
		return peer.PodSelector == nil || fits(peer.PodSelector, other.pod.Labels)
	})
}

func anyPort(ports []networkingv1.NetworkPolicyPort, to end, protocol corev1.Protocol, number int32) bool {
	if len(ports) == 0 {
		return true
	}
	return slices.ContainsFunc(ports, func(port networkingv1.NetworkPolicyPort) bool {
		switch {
		case port.Protocol == nil && protocol != corev1.ProtocolTCP, port.Protocol != nil && *port.Protocol != protocol:
			return false
		case port.Port == nil:
			return true
		case port.Port.Type == intstr.String:
			return to.pod != nil && slices.ContainsFunc(to.pod.Ports, func(p corev1.ContainerPort) bool {
				return p.Name == port.Port.StrVal && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol && p.ContainerPort == number
			})
		case port.EndPort != nil:
			return port.Port.IntVal <= number && number <= *port.EndPort
		}
		return port.Port.IntVal == number
	})
}

// random makes policies that are neither all empty nor all alike: few labels, few ports, so that rules meet.
type random struct{ *rand.Rand }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

func (r random) labels() labels.Set {
	set := labels.Set{}
	for _, key := range []string{"app", "team"} {
		if r.IntN(3) > 0 {
			set[key] = pick(r, "x", "y")
		}
	}
	return set
}

func (r random) selector() *metav1.LabelSelector {
	switch r.IntN(6) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: pick(r, "app", "team"), Operator: pick(r, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), Values: []string{pick(r, "x", "y"), "z"},
		}}}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: pick(r, "app", "team"), Operator: pick(r, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
		}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{pick(r, "app", "team"): pick(r, "x", "y")}}
}

func (r random) peer() networkingv1.NetworkPolicyPeer {
	switch r.IntN(5) {
	case 0:
		return networkingv1.NetworkPolicyPeer{PodSelector: r.selector()}
	case 1:
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: r.selector()}
	case 2:
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: r.selector(), PodSelector: r.selector()}
	}
	block := pick(r,
		networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.244.0.0/16"}},
		networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.244.1.2/31", "10.244.2.0/24", "192.0.2.2/32"}},
		networkingv1.IPBlock{CIDR: "10.244.1.0/24", Except: []string{"10.244.1.3/32"}},
		networkingv1.IPBlock{CIDR: "10.244.2.2/31"},
		networkingv1.IPBlock{CIDR: "192.0.2.0/24"},
		networkingv1.IPBlock{CIDR: "10.96.0.0/16"},
		networkingv1.IPBlock{CIDR: "10.244.0.0/24"},
		networkingv1.IPBlock{CIDR: "fd00::/8"},
	)
	return networkingv1.NetworkPolicyPeer{IPBlock: &block}
}

func (r random) port() networkingv1.NetworkPolicyPort {
	port := networkingv1.NetworkPolicyPort{}
	if r.IntN(3) > 0 {
		port.Protocol = new(pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP))
	}
	switch r.IntN(5) {
	case 0:
	case 1:
		port.Port = new(intstr.FromString(pick(r, "web", "dns", "none")))
	case 2:
		port.Port = new(intstr.FromInt32(pick[int32](r, 50, 80, 443)))
		port.EndPort = new(pick[int32](r, 443, 9000, 65535))
	default:
		port.Port = new(intstr.FromInt32(pick(r, numbers...)))
	}
	return port
}

// several returns none to two elements.
func several[T any](r random, one func() T) []T {
	var list []T
	for range r.IntN(3) {
		list = append(list, one())
	}
	return list
}

func (r random) policy(name string) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, "a", "b"), Name: name}}
	policy.Spec.PodSelector = *r.selector()
	policy.Spec.PolicyTypes = pick(r,
		[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
	policy.Spec.Egress = several(r, func() networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: several(r, r.peer), Ports: several(r, r.port)}
	})
	policy.Spec.Ingress = several(r, func() networkingv1.NetworkPolicyIngressRule {
		return networkingv1.NetworkPolicyIngressRule{From: several(r, r.peer), Ports: several(r, r.port)}
	})
	return policy
}

// state makes pods with the given addresses, and policies for them.
func (r random) state(addresses []netip.Addr) State {
	state := State{Namespaces: map[string]labels.Set{"a": r.labels(), "b": r.labels()}}
	for _, address := range addresses {
		pod := Pod{Namespace: pick(r, "a", "b"), Labels: r.labels(), Address: address}
		pod.Ports = append(pod.Ports,
			corev1.ContainerPort{Name: "web", ContainerPort: pick[int32](r, 80, 9000)},
			corev1.ContainerPort{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP})
		state.Pods = append(state.Pods, pod)
	}
	for i := range 1 + r.IntN(4) {
		state.Policies = append(state.Policies, r.policy(fmt.Sprint("policy-", i)))
	}
	return state
}
