package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

// TestGate: the gate of a TrainJob's pods follows the gang scheduler, except for a job that is suspended or has finished.
func TestGate(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	closed, open := &jobstate.Gate{Kind: kind, Name: "pi", UID: "uid-set", Closed: true}, &jobstate.Gate{Kind: kind, Name: "pi", UID: "uid-set"}
	asleep := &jobstate.Gate{Kind: kind, Name: "pi", UID: "uid-set", Closed: true, Suspended: true}
	for name, test := range map[string]struct {
		gate      *jobstate.Gate
		gang      *jobstate.GangState
		suspended bool
		finished  bool
		running   bool
		short     bool
		want      string // the annotation of the change, or "" for none
	}{
		"there is no gate":                              {gang: &jobstate.GangState{Hold: true}},
		"it waits":                                      {gate: closed, gang: &jobstate.GangState{Hold: true}},
		"all pods fit":                                  {gate: closed, gang: &jobstate.GangState{}, want: mpi.GateOpen},
		"a quota has no room for all pods":              {gate: open, gang: &jobstate.GangState{}, short: true, want: mpi.GateClosed},
		"a quota has no room, and pods run":             {gate: open, gang: &jobstate.GangState{}, short: true, running: true},
		"it waits for a quota":                          {gate: closed, short: true},
		"nothing places it any more":                    {gate: closed, want: mpi.GateOpen},
		"its pods have places":                          {gate: open, gang: &jobstate.GangState{Placed: 2, Wanted: 2}},
		"one of its pods is lost and waits for a place": {gate: open, gang: &jobstate.GangState{Hold: true, Placed: 1, Wanted: 2}, running: true},
		"it starts another attempt and has to wait":     {gate: open, gang: &jobstate.GangState{Hold: true, Wanted: 2}, want: mpi.GateClosed},
		"it is preempted":                               {gate: open, gang: &jobstate.GangState{Hold: true, Evict: true}, want: mpi.GateClosed},
		"its user suspends it while it waits":           {gate: closed, suspended: true},
		"its user suspends it while it runs":            {gate: open, gang: &jobstate.GangState{Hold: true}, suspended: true},
		"it was resumed, and its JobSet not yet":        {gate: asleep, gang: &jobstate.GangState{}},
		"it has finished":                               {gate: open, gang: &jobstate.GangState{Hold: true}, finished: true},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(1, func(j *mpi.Job) { j.External, j.Gated, j.Lifecycle.Suspended = true, true, test.suspended })
			seen := jobstate.Observed{Now: mpitest.Now, Gate: test.gate, Gang: test.gang}
			if test.running {
				seen.LauncherPods = []*corev1.Pod{{}}
			}
			if test.short {
				seen.Shortages = []quota.Shortage{{}}
			}
			out := jobstate.Judge(job, seen)
			if test.finished {
				out.Finish = &mpi.Finish{}
			}
			changes := plan.For(job, seen, out, plan.Settings{}).Base
			if len(changes) == 0 {
				if test.want != "" {
					t.Errorf("nothing changes, want %s", test.want)
				}
				return
			}
			change := changes[0]
			if got := change.GetAnnotations()[mpi.AnnotationGate]; len(changes) != 1 || got != test.want || change.GetUID() != "uid-set" || change.GetName() != "pi" {
				t.Errorf("it changes to %q: %+v, want %q", got, changes, test.want)
			}
		})
	}
}
