package outcome

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// worker returns what is known of a host by its answer.
func workerWith(host string, policy agentapi.BindingPolicy, bound *agentapi.BoundRanks) records.Record {
	return records.Record{Host: host + ".job.ns.svc", Worker: &agentapi.Summary{Binding: &agentapi.Binding{Policy: policy, Bound: bound}}}
}

func TestBindingOf(t *testing.T) {
	t.Parallel()
	const core, shared, several = agentapi.BindCore, agentapi.BindShared, agentapi.BindSeveral
	launcher := func(policy agentapi.BindingPolicy, by string) *agentapi.Binding {
		return &agentapi.Binding{Policy: policy, By: by}
	}
	for name, test := range map[string]struct {
		own   *agentapi.Binding
		hosts []records.Record
		want  *agentapi.Binding
	}{
		"shared":              {launcher(shared, ""), nil, launcher(shared, "")},
		"no answer yet":       {launcher(core, ""), []records.Record{{Host: "w-0"}}, nil},
		"bound":               {launcher(core, ""), []records.Record{workerWith("w-0", core, nil), workerWith("w-1", core, nil)}, launcher(core, "")},
		"bound in part":       {launcher(core, ""), []records.Record{workerWith("w-0", core, nil), workerWith("w-1", shared, nil)}, &agentapi.Binding{Policy: core, Hosts: 1}},
		"all hosts share":     {launcher(core, ""), []records.Record{workerWith("w-0", shared, nil)}, launcher(shared, "")},
		"no host sees cores":  {launcher(core, ""), []records.Record{workerWith("w-0", agentapi.BindHidden, nil)}, launcher(agentapi.BindHidden, "")},
		"hidden and shared":   {launcher(core, ""), []records.Record{workerWith("w-0", agentapi.BindHidden, nil), workerWith("w-1", shared, nil)}, launcher(shared, "")},
		"fewer ranks":         {launcher(core, ""), []records.Record{workerWith("w-0", several, nil)}, launcher(several, "")},
		"a variable":          {launcher(agentapi.BindUser, "I_MPI_PIN=0"), nil, launcher(agentapi.BindUser, "I_MPI_PIN=0")},
		"a flag":              {launcher(shared, ""), []records.Record{{Host: "w-0", BoundBy: "--bind-to core"}}, launcher(agentapi.BindUser, "--bind-to core")},
		"nothing is known":    {nil, []records.Record{{Host: "w-0"}}, nil},
		"no launcher's agent": {nil, []records.Record{{Host: "w-0", BoundBy: "--bind-to core"}}, launcher(agentapi.BindUser, "--bind-to core")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, bindingOf(test.own, test.hosts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClash: ranks of several pods of a machine that share cores by binding, while others are free.
func TestClash(t *testing.T) {
	t.Parallel()
	bound := func(machine, cpus string, ranks, usable int32) *agentapi.BoundRanks {
		return &agentapi.BoundRanks{Machine: machine, CPUs: cpus, Ranks: ranks, Usable: usable}
	}
	with := func(pods ...*agentapi.BoundRanks) (hosts []records.Record) {
		for i, b := range pods {
			hosts = append(hosts, workerWith("w-"+string(rune('0'+i)), "", b))
		}
		return hosts
	}
	over := with(bound("a", "0", 1, 8), bound("a", "0", 1, 8))
	over[0].Over = true
	twice := with(bound("a", "0", 1, 8), bound("a", "0", 1, 8), bound("a", "0", 1, 8))
	twice[1].Host, twice[2].Host = "w-0", "w-1"
	many := slices.Repeat([]*agentapi.BoundRanks{bound("a", "0", 1, 99)}, 10)
	named := []string{"w-0", "w-1", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7"}
	for name, test := range map[string]struct {
		own   *agentapi.BoundRanks
		hosts []records.Record
		want  *agentapi.BoundRanks
	}{
		"the same core":            {hosts: with(bound("a", "0", 1, 8), bound("a", "0", 1, 8)), want: &agentapi.BoundRanks{Hosts: []string{"w-0", "w-1"}, Pods: 2, CPUs: "0", Ranks: 2, Usable: 8}},
		"the same cores":           {hosts: with(bound("a", "0-1", 2, 4), bound("a", "0-1", 2, 4), bound("b", "0-1", 2, 4)), want: &agentapi.BoundRanks{Hosts: []string{"w-0", "w-1"}, Pods: 2, CPUs: "0-1", Ranks: 4, Usable: 4}},
		"the launcher's ranks":     {own: bound("a", "0", 1, 2), hosts: with(bound("a", "0", 1, 2)), want: &agentapi.BoundRanks{Hosts: []string{"w-0"}, Pods: 2, CPUs: "0", Ranks: 2, Usable: 2}},
		"other machines":           {hosts: with(bound("a", "0", 1, 8), bound("b", "0", 1, 8))},
		"other cores":              {hosts: with(bound("a", "0", 1, 8), bound("a", "1", 1, 8))},
		"room for all":             {hosts: with(bound("a", "0-7", 2, 16), bound("a", "0-7", 2, 16))},
		"no core is free":          {hosts: with(bound("a", "0", 1, 1), bound("a", "0", 1, 1))},
		"one pod with many ranks":  {hosts: with(bound("a", "0", 4, 8), bound("a", "1", 1, 8))},
		"one is over":              {hosts: over},
		"no machine":               {hosts: with(bound("", "0", 1, 8), bound("", "0", 1, 8))},
		"the larger group":         {hosts: with(bound("a", "0", 1, 8), bound("a", "0", 1, 8), bound("b", "0", 2, 8), bound("b", "0", 2, 8)), want: &agentapi.BoundRanks{Hosts: []string{"w-2", "w-3"}, Pods: 2, CPUs: "0", Ranks: 4, Usable: 8}},
		"more pods than are named": {own: bound("a", "0", 1, 99), hosts: with(many...), want: &agentapi.BoundRanks{Hosts: named, Pods: 11, CPUs: "0", Ranks: 11, Usable: 99}},
		"two sessions of a pod":    {hosts: twice[:2]},
		"sessions of two pods":     {hosts: twice, want: &agentapi.BoundRanks{Hosts: []string{"w-0", "w-1"}, Pods: 2, CPUs: "0", Ranks: 2, Usable: 8}},
		"not bound, or no numbers": {hosts: with(nil, bound("a", "x", 1, 8), bound("a", "x", 1, 8))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var own *agentapi.Binding
			if test.own != nil {
				own = &agentapi.Binding{Bound: test.own}
			}
			if diff := cmp.Diff(test.want, clashOf(own, test.hosts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
