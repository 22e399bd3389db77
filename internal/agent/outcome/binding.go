package outcome

import (
	"slices"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// bindingOf returns how the ranks of a job are bound to cores, by what its launcher decided and its hosts did; nil if that is unknown. own is
// the launcher's, or nil.
func bindingOf(own *agentapi.Binding, hosts []records.Record) *agentapi.Binding {
	var b agentapi.Binding
	if own != nil {
		b.Policy, b.By = own.Policy, own.By
	}
	count := map[agentapi.BindingPolicy]int32{}
	for _, r := range hosts {
		if r.BoundBy != "" && b.Policy != agentapi.BindUser {
			b.Policy, b.By = agentapi.BindUser, r.BoundBy
		}
		if r.Worker != nil && r.Worker.Binding != nil {
			count[r.Worker.Binding.Policy]++
		}
	}
	if b.Policy == agentapi.BindCore {
		b.Policy, b.Hosts = policyOf(count)
	}
	b.Clash = clashOf(own, hosts)
	if b.Policy == "" && b.Clash == nil {
		return nil
	}
	return &b
}

// policyOf returns what hosts did that were to bind ranks where these own their cores: "" before one has answered. bound is the number of
// those that did so if others did not.
func policyOf(count map[agentapi.BindingPolicy]int32) (policy agentapi.BindingPolicy, bound int32) {
	switch core, shared := count[agentapi.BindCore], count[agentapi.BindShared]+count[agentapi.BindHidden]; {
	case count[agentapi.BindSeveral] > 0:
		return agentapi.BindSeveral, 0
	case core > 0 && shared > 0:
		return agentapi.BindCore, core
	case core > 0:
		return agentapi.BindCore, 0
	case shared > 0 && shared == count[agentapi.BindHidden]:
		return agentapi.BindHidden, 0
	case shared > 0:
		return agentapi.BindShared, 0
	}
	return "", 0
}

// boundPod is a pod with ranks that are bound to CPUs. The host of the launcher's own is "".
type boundPod struct {
	host string
	// cpus are in order.
	cpus []int
	agentapi.BoundRanks
}

// clashOf returns the ranks of pods on one machine that are bound to the same cores, more ranks than cores, although they could use others;
// nil if there are none, the largest group if there are several.
func clashOf(own *agentapi.Binding, hosts []records.Record) (worst *agentapi.BoundRanks) {
	for _, pods := range boundByMachine(own, hosts) {
		for i := range pods {
			if clash, is := clashAround(pods, i); is && isWorse(clash, worst) {
				worst = &clash
			}
		}
	}
	return worst
}

// boundByMachine returns the pods whose ranks are bound now, by the machine on which they run.
func boundByMachine(own *agentapi.Binding, hosts []records.Record) map[string][]boundPod {
	machines := map[string][]boundPod{}
	seen := map[string]bool{}
	add := func(host string, b *agentapi.Binding) {
		// Each session of a pod reports all of its ranks.
		if b == nil || b.Bound == nil || b.Bound.Machine == "" || seen[host] {
			return
		}
		seen[host] = true
		if cpus, ok := agentapi.ParseCPUs(b.Bound.CPUs); ok {
			machines[b.Bound.Machine] = append(machines[b.Bound.Machine], boundPod{host, cpus, *b.Bound})
		}
	}
	add("", own)
	for _, r := range hosts {
		if r.Worker != nil && !r.Over {
			add(hostfile.Short(r.Host), r.Worker.Binding)
		}
	}
	return machines
}

// clashAround returns the ranks of a pod, by its index, and of those pods of its machine that are bound to some of the same CPUs. is is set
// if they are more than their CPUs, and could use others.
func clashAround(pods []boundPod, index int) (clash agentapi.BoundRanks, is bool) {
	center := pods[index]
	var cpus []int
	for i, pod := range pods {
		if i != index && !pod.shares(center) {
			continue
		}
		cpus = append(cpus, pod.cpus...)
		clash.Ranks += pod.Ranks
		clash.Usable = max(clash.Usable, pod.Usable)
		clash.Pods++
		if pod.host != "" && len(clash.Hosts) < agentapi.MaxClashHosts {
			clash.Hosts = append(clash.Hosts, pod.host)
		}
	}
	slices.Sort(cpus)
	cpus = slices.Compact(cpus)
	clash.CPUs = agentapi.FormatCPUs(cpus)
	return clash, int(clash.Ranks) > len(cpus) && int(clash.Usable) > len(cpus) && clash.Ranks > center.Ranks
}

// shares reports whether pods are bound to some of the same CPUs.
func (p boundPod) shares(other boundPod) bool {
	return slices.ContainsFunc(p.cpus, func(cpu int) bool {
		_, has := slices.BinarySearch(other.cpus, cpu)
		return has
	})
}

// isWorse reports whether a clash has more ranks than another one, or the same in an order that does not depend on that of machines.
func isWorse(clash agentapi.BoundRanks, than *agentapi.BoundRanks) bool {
	return than == nil || clash.Ranks > than.Ranks || clash.Ranks == than.Ranks && slices.Compare(clash.Hosts, than.Hosts) < 0
}
