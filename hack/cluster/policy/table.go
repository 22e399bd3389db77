package policy

import (
	"fmt"
	"strings"

	"sigs.k8s.io/knftables"
)

// peer is how a rule names the other end of a connection.
type peer struct{ address, port string }

var (
	// Packets to pods: Services are already translated, so that ports are those of the pod.
	translated = peer{"ip daddr", "th dport"}
	// Packets to the machine: the API server and the DNS server are processes on other ports than in a real cluster, which is
	// why the port counts that the pod connects to.
	requested = peer{"ct original ip daddr", "ct original proto-dst"}
)

// write adds what replaces the table to a transaction. The chain forward sees the packets from pod to pod, also those within
// a bridge (net.bridge.bridge-nf-call-iptables), and to the world; the chain input sees those to the machine. Packets from
// the machine pass, as kubelets' probes must.
func (r RuleSet) write(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{Comment: new("NetworkPolicies")})
	chain := func(chain *knftables.Chain, rules ...string) {
		tx.Add(chain)
		tx.Flush(chain)
		for _, rule := range rules {
			tx.Add(&knftables.Rule{Chain: chain.Name, Rule: rule})
		}
	}
	base := func(name string, hook knftables.BaseChainHook) *knftables.Chain {
		return &knftables.Chain{Name: name, Type: new(knftables.FilterType), Hook: &hook, Priority: new(knftables.FilterPriority)}
	}
	// A set cannot be empty, so that there is always an address that no pod has.
	itself := []string{"0.0.0.0 . 0.0.0.0"}
	for _, pod := range r.Pods {
		itself = append(itself, pod.String()+" . "+pod.String())
	}
	chain(&knftables.Chain{Name: "egress"}, r.Egress.rules("ip saddr", translated)...)
	chain(&knftables.Chain{Name: "egress-machine"}, r.Egress.rules("ip saddr", requested)...)
	chain(&knftables.Chain{Name: "ingress"}, r.Ingress.rules("ip daddr", peer{"ip saddr", translated.port})...)
	chain(base("forward", knftables.ForwardHook),
		"ct state established,related accept",
		"ip saddr . ip daddr { "+strings.Join(itself, ", ")+" } accept",
		"jump egress",
		"jump ingress",
	)
	chain(base("input", knftables.InputHook),
		"ct state established,related accept",
		`iifname "mpijob-*" jump egress-machine`,
	)
}

// rules renders a direction: connections that are allowed return to the calling chain.
func (d Direction) rules(pod string, other peer) []string {
	if len(d.Isolated) == 0 {
		return nil
	}
	rules := []string{fmt.Sprintf("%s != %s return", pod, join(d.Isolated))}
	for _, c := range d.Clauses {
		if len(c.Pods) == 0 || len(c.Peers) == 0 {
			continue
		}
		rule := fmt.Sprintf("%s %s %s %s", pod, join(c.Pods), other.address, join(c.Peers))
		if c.Protocol != "" {
			rule += fmt.Sprintf(" meta l4proto %s %s %s", strings.ToLower(string(c.Protocol)), other.port, join(c.Ports))
		}
		rules = append(rules, fmt.Sprintf("%s counter return comment %q", rule, c.Policy))
	}
	return append(rules, "drop")
}

// join renders a set.
func join[T any](elements []T) string {
	return "{ " + strings.Trim(strings.ReplaceAll(fmt.Sprint(elements), " ", ", "), "[]") + " }"
}
