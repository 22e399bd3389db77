package diagnose_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestGangs: what is said of pods that are to be placed together and are not.
func TestGangs(t *testing.T) {
	said := func(message string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
		}
	}
	job := mpitest.Job(2, func(j *mpi.Job) { j.Workers.Template.Spec.NodeSelector = map[string]string{"gpu": "a100"} })
	others := mpitest.Worker(job, 0, corev1.PodPending, said("pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, pod group preemption: No preemption victims found for incoming preemptor"))
	short := mpitest.Worker(job, 1, corev1.PodPending, said("0/2 nodes are available: 2 Insufficient cpu."))
	fit := int32(2)
	tests := map[string]struct {
		state   jobstate.GangState
		workers []jobstate.Worker
		code    codes.Code
		says    string
	}{
		"it simply waits":        {state: jobstate.GangState{Wanted: 3}},
		"it is put back":         {state: jobstate.GangState{Wanted: 3, Hold: true, Evict: true, Attempts: 1}},
		"others find no place":   {state: jobstate.GangState{Wanted: 3}, workers: []jobstate.Worker{others}},
		"a pod finds no place":   {state: jobstate.GangState{Wanted: 3, PodsFit: &fit, NodesFit: &fit, NodesTotal: &fit}, workers: []jobstate.Worker{others, short}, code: codes.InsufficientResources, says: "3 pods requested, 2 fit on 2 of 2 nodes"},
		"there will be no place": {state: jobstate.GangState{Wanted: 3, Hold: true, Never: true, Message: "the nodes have 4 CPUs in all"}, code: codes.GangNeverFits, says: "4 CPUs in all"},
		"no node has a label": {
			state: jobstate.GangState{Wanted: 3, Hold: true, Never: true, Reason: codes.NoMatchingNode, Message: "No node matches its pods.", NodesTotal: &fit},
			code:  codes.NoMatchingNode, says: "A pod cannot be scheduled on any of 2 nodes: none matches the pod's nodeSelector, affinity and tolerations (gpu=a100).",
		},
		"it cannot be placed": {state: jobstate.GangState{Wanted: 3, Hold: true, Never: true, Reason: codes.GangImpossible, Message: "priorities differ"}, code: codes.GangImpossible, says: "priorities differ"},
		"it was put back for good": {
			state: jobstate.GangState{Wanted: 3, Hold: true, GaveUp: true, Attempts: 6, EvictedAt: mpitest.Now}, code: codes.GangTimeout, says: "requeued 5 times before",
		},
		"it was put back for good, and never fits": {
			state: jobstate.GangState{Wanted: 3, Hold: true, GaveUp: true, Attempts: 6, EvictedAt: mpitest.Now, Never: true, Message: "only 2 of 3 pods fit"},
			code:  codes.GangNeverFits, says: "only 2 of 3 pods fit",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := jobstate.Observed{Now: mpitest.Now, Gang: &test.state, Workers: test.workers}
			if test.state.Evict {
				seen.Launcher, seen.LauncherPods = mpitest.Launcher(job), []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodPending, mpitest.Leaving)}
			}
			found := diagnose.Job(job, seen, jobstate.Evidence{}, jobstate.Judge(job, seen))
			if test.code == "" {
				if len(found) > 0 {
					t.Errorf("it finds %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Code != test.code || !strings.Contains(found[0].Summary, test.says) {
				t.Errorf("it finds %+v", found)
			}
		})
	}
}
