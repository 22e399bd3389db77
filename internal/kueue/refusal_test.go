package kueue

import (
	"testing"

	"opendatahub.io/mpijob/internal/jobstate"
)

// TestMayLackNodes: only jobs that wait for nodes are compared with all of them.
func TestMayLackNodes(t *testing.T) {
	for name, test := range map[string]struct {
		state jobstate.QueueState
		want  bool
	}{
		"it waits for quota":       {state: jobstate.QueueState{Message: "insufficient unused quota for cpu in flavor a, 3 more needed"}},
		"no domain has room":       {state: jobstate.QueueState{Message: perPodSet + `main: topology "default" allows to fit only 3 out of 4 pod(s)`}, want: true},
		"no domain accepts a pod":  {state: jobstate.QueueState{Message: perPodSet + `main: topology "default" doesn't allow to fit any of 3 pod(s)`}, want: true},
		"its pods found no nodes":  {state: jobstate.QueueState{Reason: ReasonTimeout}, want: true},
		"it is admitted meanwhile": {state: jobstate.QueueState{Reason: ReasonTimeout, Admitted: true}},
	} {
		if got := MayLackNodes(test.state); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRefusal: only for jobs that their queue never admits does waiting not help. The messages are those of Kueue 0.10 to 0.19.
func TestRefusal(t *testing.T) {
	const waits = "insufficient unused quota for cpu in flavor spot, 3 more needed"
	const exceeds = "insufficient quota for cpu in flavor small, previously considered podsets requests (0) + current podset request (8) > maximum capacity (4)"
	for name, test := range map[string]struct{ message, reason, why string }{
		"it waits for quota":              {message: perPodSet + "main: " + waits},
		"it waits for a preemption":       {message: perPodSet + "main: " + waits + ". Pending the preemption of 1 workload(s)"},
		"it waits for nodes":              {message: perPodSet + `main: topology "default" allows to fit only 3 out of 4 pod(s)`},
		"no node has the label":           {perPodSet + `worker: topology "default" doesn't allow to fit any of 3 pod(s). Total nodes: 2; excluded: nodeSelector: 1, taint "gpu": 1`, reasonNoFlavor, `none of its 2 nodes accepts the pods: nodeSelector excludes 1 node, taint "gpu" excludes 1 node`},
		"some nodes have the label":       {message: perPodSet + `worker: topology "default" doesn't allow to fit any of 3 pod(s). Total nodes: 3; excluded: nodeSelector: 1, resource "cpu": 2`},
		"nothing is known":                {message: "the workload is not considered yet"},
		"nothing is said":                 {},
		"it exceeds one flavor of two":    {message: perPodSet + "main: " + exceeds + ", " + waits},
		"a taint, and another flavor":     {message: perPodSet + "main: untolerated taint {gpu true NoSchedule <nil>} in flavor gpu, " + waits},
		"it exceeds the quota":            {perPodSet + "main: " + exceeds, reasonExceeds, "flavor small has at most 4 of cpu, and 8 are requested"},
		"it exceeds it with the launcher": {perPodSet + "worker: insufficient quota for pods in flavor f, previously considered podsets requests (1) + current podset request (8) > maximum capacity (5)", reasonExceeds, "flavor f has at most 5 of pods, and 1 + 8 are requested"},
		"it exceeds one resource, and waits for another": {
			perPodSet + "main: " + exceeds + ", insufficient unused quota for memory in flavor small, 3Gi more needed", reasonExceeds, "flavor small has at most 4 of cpu, and 8 are requested",
		},
		"as earlier versions say it":    {perPodSet + "main: insufficient quota for cpu in flavor a.b, request > maximum capacity (4)", reasonExceeds, "flavor a.b has at most 4 of cpu"},
		"no quota":                      {perPodSet + "launcher: resource nvidia.com/gpu unavailable in ClusterQueue", ReasonLacksResource, "it has no quota for nvidia.com/gpu"},
		"the workers only":              {perPodSet + "launcher: " + waits + "; " + perPodSet + "worker: flavor spot doesn't match node affinity", reasonNoFlavor, "flavor spot: its node labels do not match the node selector or affinity"},
		"a taint":                       {perPodSet + "main: untolerated taint {gpu true NoSchedule <nil>} in flavor gpu", reasonNoFlavor, "flavor gpu: its taint gpu=true:NoSchedule is not tolerated"},
		"a topology that no flavor has": {perPodSet + `main: Flavor "default" does not support TopologyAwareScheduling`, reasonNoFlavor, "flavor default: it has no topology, which the pods request"},
		"one is too small, one tainted": {perPodSet + "main: " + exceeds + ", untolerated taint {a b NoExecute <nil>} in flavor big", reasonExceeds, "flavor small has at most 4 of cpu, and 8 are requested; flavor big: its taint a=b:NoExecute is not tolerated"},
	} {
		t.Run(name, func(t *testing.T) {
			if reason, why := refusal(test.message); reason != test.reason || why != test.why {
				t.Errorf("it is %q (%q), want %q (%q)", reason, why, test.reason, test.why)
			}
		})
	}
}
