// Package policy enforces NetworkPolicies on the cluster's network. An agent translates them into a table of the packet
// filter (nftables) whenever policies, pods or namespaces change. A pod is isolated as soon as the API server has its address,
// about a second after its start.
package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod is a pod with an address of its own, which pods on the host network do not have.
type Pod struct {
	Namespace string
	Labels    labels.Set
	Address   netip.Addr
	Ports     []corev1.ContainerPort
}

// State decides which connections are allowed.
type State struct {
	Pods []Pod
	// Namespaces are the labels of each namespace.
	Namespaces map[string]labels.Set
	Policies   []*networkingv1.NetworkPolicy
}

// RuleSet is what the packet filter enforces. Its slices are sorted.
type RuleSet struct {
	// Pods are the known pods: their connections to themselves are always allowed.
	Pods            []netip.Addr
	Egress, Ingress Direction
}

// Direction restricts the connections from pods (egress) or to them (ingress).
type Direction struct {
	// Isolated pods have only the connections that a clause allows.
	Isolated []netip.Prefix
	Clauses  []Clause
}

// Clause allows connections between pods and peers.
type Clause struct {
	// Policy is the namespace and name of the NetworkPolicy.
	Policy      string
	Pods, Peers []netip.Prefix
	// Protocol is empty if all protocols and ports are allowed.
	Protocol corev1.Protocol
	// Ports do not overlap.
	Ports []PortRange
}

// PortRange is a range of ports with both ends.
type PortRange struct{ First, Last int32 }

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Compile translates the policies into a rule set.
func Compile(state State) RuleSet {
	rules := RuleSet{}
	for _, pod := range state.Pods {
		rules.Pods = append(rules.Pods, pod.Address)
	}
	slices.SortFunc(rules.Pods, netip.Addr.Compare)
	var outgoing, incoming []Pod
	for _, policy := range state.Policies {
		pods := state.podsIn(policy.Namespace, &policy.Spec.PodSelector)
		name := policy.Namespace + "/" + policy.Name
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			outgoing = append(outgoing, pods...)
			for _, rule := range policy.Spec.Egress {
				peers := state.peers(policy.Namespace, rule.To)
				rules.Egress.add(name, addresses(pods), peers, rule.Ports, state.Pods, func(c *Clause, servers *netipx.IPSet) {
					c.Peers = intersection(peers, servers).Prefixes()
				})
			}
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			incoming = append(incoming, pods...)
			for _, rule := range policy.Spec.Ingress {
				peers := state.peers(policy.Namespace, rule.From)
				rules.Ingress.add(name, addresses(pods), peers, rule.Ports, pods, func(c *Clause, servers *netipx.IPSet) {
					c.Pods = servers.Prefixes()
				})
			}
		}
	}
	rules.Egress.Isolated, rules.Ingress.Isolated = addresses(outgoing).Prefixes(), addresses(incoming).Prefixes()
	for _, clauses := range [][]Clause{rules.Egress.Clauses, rules.Ingress.Clauses} {
		slices.SortFunc(clauses, func(a, b Clause) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return rules
}

// add adds the clauses of a rule: one per protocol, and one for each number that a named port has in the pods that serve it.
// narrow limits a clause to those of them.
func (d *Direction) add(name string, pods, peers *netipx.IPSet, ports []networkingv1.NetworkPolicyPort, servers []Pod, narrow func(*Clause, *netipx.IPSet)) {
	clause := Clause{Policy: name, Pods: pods.Prefixes(), Peers: peers.Prefixes()}
	if len(ports) == 0 {
		d.Clauses = append(d.Clauses, clause)
	}
	ranges := map[corev1.Protocol][]PortRange{}
	for _, port := range ports {
		clause.Protocol = *cmp.Or(port.Protocol, new(corev1.ProtocolTCP))
		switch {
		case port.Port == nil:
			ranges[clause.Protocol] = append(ranges[clause.Protocol], PortRange{0, 65535})
		case port.Port.Type == intstr.String:
			for number, listening := range named(servers, port.Port.StrVal, clause.Protocol) {
				narrowed := clause
				narrowed.Ports = []PortRange{{number, number}}
				narrow(&narrowed, addresses(listening))
				d.Clauses = append(d.Clauses, narrowed)
			}
		default:
			ranges[clause.Protocol] = append(ranges[clause.Protocol], PortRange{port.Port.IntVal, *cmp.Or(port.EndPort, &port.Port.IntVal)})
		}
	}
	for protocol, list := range ranges {
		clause.Protocol, clause.Ports = protocol, merge(list)
		d.Clauses = append(d.Clauses, clause)
	}
}

// peers returns the addresses that peers select; no peers select all addresses. A block of addresses that cannot be read
// selects none. The cluster has no IPv6.
func (s State) peers(own string, peers []networkingv1.NetworkPolicyPeer) *netipx.IPSet {
	var all netipx.IPSetBuilder
	if len(peers) == 0 {
		all.AddPrefix(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
	}
	for _, peer := range peers {
		if peer.IPBlock != nil {
			all.AddSet(block(peer.IPBlock))
			continue
		}
		for namespace, set := range s.Namespaces {
			if selects(peer.NamespaceSelector, set, namespace == own) {
				all.AddSet(addresses(s.podsIn(namespace, peer.PodSelector)))
			}
		}
	}
	set, _ := all.IPSet() // no prefix in it is invalid
	return set
}

func block(b *networkingv1.IPBlock) *netipx.IPSet {
	var set netipx.IPSetBuilder
	if prefix, err := netip.ParsePrefix(b.CIDR); err == nil && prefix.Addr().Is4() {
		set.AddPrefix(prefix)
	}
	for _, text := range b.Except {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return &netipx.IPSet{}
		}
		set.RemovePrefix(prefix)
	}
	result, _ := set.IPSet() // no prefix in it is invalid
	return result
}

// podsIn returns the pods of a namespace that a selector selects; nil selects all.
func (s State) podsIn(namespace string, selector *metav1.LabelSelector) []Pod {
	return slices.DeleteFunc(slices.Clone(s.Pods), func(pod Pod) bool {
		return pod.Namespace != namespace || !selects(selector, pod.Labels, true)
	})
}

// selects reports whether a selector selects labels, or returns otherwise if there is no selector.
func selects(selector *metav1.LabelSelector, set labels.Set, otherwise bool) bool {
	if selector == nil {
		return otherwise
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(set)
}

// named returns the pods with a port of a name, by the port's number.
func named(pods []Pod, name string, protocol corev1.Protocol) map[int32][]Pod {
	numbers := map[int32][]Pod{}
	for _, pod := range pods {
		for _, port := range pod.Ports {
			if port.Name == name && cmp.Or(port.Protocol, corev1.ProtocolTCP) == protocol {
				numbers[port.ContainerPort] = append(numbers[port.ContainerPort], pod)
			}
		}
	}
	return numbers
}

// merge joins the ranges that overlap.
func merge(ranges []PortRange) []PortRange {
	slices.SortFunc(ranges, func(a, b PortRange) int { return cmp.Compare(a.First, b.First) })
	merged := ranges[:1]
	for _, next := range ranges[1:] {
		if last := &merged[len(merged)-1]; next.First <= last.Last {
			last.Last = max(last.Last, next.Last)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

func addresses(pods []Pod) *netipx.IPSet {
	var set netipx.IPSetBuilder
	for _, pod := range pods {
		set.Add(pod.Address)
	}
	result, _ := set.IPSet() // no address in it is invalid
	return result
}

func intersection(a, b *netipx.IPSet) *netipx.IPSet {
	var set netipx.IPSetBuilder
	set.AddSet(a)
	set.Intersect(b)
	result, _ := set.IPSet() // no prefix in it is invalid
	return result
}
