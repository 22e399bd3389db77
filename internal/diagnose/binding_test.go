package diagnose_test

import (
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
)

// clash has the agents of a running job report ranks that are bound to the same cores, since a time.
func clash(b agentapi.Binding, ago time.Duration) func(*scene) {
	return func(s *scene) {
		s.evidence.Usage = &agentapi.Usage{Launch: &agentapi.Launch{ConnectedAt: mpitest.Now.Add(-ago).UnixMilli(), Binding: &b}}
	}
}

// sameCore is a binding of two workers' ranks to one core.
func sameCore() agentapi.Binding {
	return agentapi.Binding{Policy: agentapi.BindUser, By: "--bind-to core", Clash: &agentapi.BoundRanks{Hosts: []string{"pi-worker-0", "pi-worker-1"}, CPUs: "0", Ranks: 2, Usable: 16}}
}

func TestRanksShareCores(t *testing.T) {
	several := agentapi.Binding{Policy: agentapi.BindShared, Clash: &agentapi.BoundRanks{Hosts: []string{"pi-worker-0", "pi-worker-1"}, CPUs: "0-3", Ranks: 8, Usable: 16}}
	// Only one is named, twice, and there cannot be as many pods as it says.
	many := agentapi.Binding{Policy: agentapi.BindShared, Clash: &agentapi.BoundRanks{Hosts: []string{"pi-worker-0", "pi-worker-0"}, Pods: 1 << 20, CPUs: "0-3", Ranks: 8, Usable: 16}}
	check(t, map[string]expect{
		"ranks-share-a-core":      {codes.RanksShareCores, running(2).with(clash(sameCore(), time.Minute))},
		"ranks-share-cores":       {codes.RanksShareCores, running(2).with(clash(several, time.Minute))},
		"ranks-of-many-pods":      {codes.RanksShareCores, running(2).with(clash(many, time.Minute))},
		"ranks-have-shared-cores": {codes.RanksShareCores, failed(0, "done").with(launcherLeft(agentapi.Summary{ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8, Binding: new(sameCore())}, 0), succeededLauncher)},
	})
}

// TestWhatAgentsReportOfSharedCores: what makes no sense, or is over, is no finding.
func TestWhatAgentsReportOfSharedCores(t *testing.T) {
	with := func(change func(*agentapi.BoundRanks)) agentapi.Binding {
		b := sameCore()
		change(b.Clash)
		return b
	}
	for name, s := range map[string]scene{
		"none":                    running(2).with(clash(agentapi.Binding{Policy: agentapi.BindShared}, time.Minute)),
		"of an earlier run":       running(2).with(launchedAgain(time.Minute), clash(sameCore(), time.Hour)),
		"of other pods":           running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.Hosts = []string{"x"} }), time.Minute)),
		"of many other pods":      running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.Hosts = append(make([]string, agentapi.MaxClashHosts), c.Hosts...) }), time.Minute)),
		"no list of CPUs":         running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.CPUs = "all" }), time.Minute)),
		"a core for each":         running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.CPUs = "0-1" }), time.Minute)),
		"no other cores":          running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.Usable = 1 }), time.Minute)),
		"more ranks than can be":  running(2).with(clash(with(func(c *agentapi.BoundRanks) { c.Ranks = 1 << 30 }), time.Minute)),
		"no report of the launch": running(2),
	} {
		if slices.ContainsFunc(s.findings(), func(f v1alpha1.Finding) bool { return f.Code == codes.RanksShareCores }) {
			t.Errorf("%s: it is a finding", name)
		}
	}
}
