package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// gatheredOf returns what is gathered of a new MPIJob, with changes.
func gatheredOf(t *testing.T, change ...func(*gathered)) gathered {
	t.Helper()
	loaded, err := mpijob.Kind{}.Load(t.Context(), readersOf(t, mpitest.MPIJob("ns", 2)), keyOf("ns", "pi"))
	if err != nil || loaded == nil {
		t.Fatalf("load: %v, %v", loaded, err)
	}
	g := gathered{loaded: loaded, seen: jobstate.Observed{Now: mpitest.Now}, settings: plan.Settings{}}
	g.job, g.errs = loaded.Convert()
	for _, c := range change {
		c(&g)
	}
	return g
}

func TestDecide(t *testing.T) {
	ttl := time.Hour
	ended := func(ago time.Duration) func(*gathered) {
		return func(g *gathered) {
			g.job.Recorded.Finish = &mpi.Finish{Succeeded: true, Reason: codes.Succeeded, At: mpitest.Now.Add(-ago)}
			g.job.Lifecycle.TTL = &ttl
		}
	}
	gaveUp := func(limited bool, neverFits string) func(*gathered) {
		return func(g *gathered) {
			g.workload = &kueue.Workload{}
			const text = "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '9 2020-01-01T00:00:00Z'}}, spec: {active: false}}"
			if err := yaml.Unmarshal([]byte(text), g.workload); err != nil {
				t.Fatal(err)
			}
			queue := kueue.FromKueue("team-a", g.workload)
			queue.NeverFits = neverFits
			g.seen.Queue, g.job.Gang.TimeoutSet, g.job.Lifecycle.Suspended = &queue, limited, true
		}
	}
	tests := map[string]struct {
		change  func(*gathered)
		phase   v1alpha1.Phase
		reason  string
		says    string
		changes bool
		expired bool
	}{
		"new": {phase: v1alpha1.PhasePending, reason: codes.PodsStarting, changes: true},
		"invalid": {
			change: func(g *gathered) { g.errs = field.ErrorList{field.Required(field.NewPath("spec"), "")} },
			phase:  v1alpha1.PhasePending, reason: codes.ValidationError,
		},
		"the TTL runs":             {change: ended(ttl - time.Second), phase: v1alpha1.PhaseSucceeded, reason: codes.Succeeded},
		"the TTL expires":          {change: ended(ttl), phase: v1alpha1.PhaseSucceeded, reason: codes.Succeeded, expired: true},
		"Kueue's clock gave it up": {change: gaveUp(true, ""), phase: v1alpha1.PhaseFailed, reason: codes.GangTimeout},
		"Kueue's clock gave up a job that never fits": {
			change: gaveUp(true, "Only 2 of 3 pods fit."), phase: v1alpha1.PhaseFailed, reason: codes.GangNeverFits,
		},
		"Kueue's clock gave up a job, and its report has what kept its pods from starting": {
			change: func(g *gathered) {
				gaveUp(true, "")(g)
				g.record = &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Findings: []v1alpha1.Finding{
					{Code: codes.NoMatchingNode, Severity: v1alpha1.SeverityError, Summary: "2 pods cannot be scheduled: nodes have taints."},
				}}}
			},
			phase: v1alpha1.PhaseFailed, reason: codes.GangTimeout, says: "3 pods could not be scheduled together, requeued 8 times before. 2 pods cannot be scheduled: nodes have taints.",
		},
		"without a limit it waits for other nodes": {
			change: gaveUp(false, "Only 2 of 3 pods fit."), phase: v1alpha1.PhaseQueued, reason: codes.Queued, changes: true,
		},
		"another controller runs it": {
			change: func(g *gathered) {
				read := trainjob.Job{}
				g.loaded = read
				g.job, g.errs = read.Convert()
			},
			phase: v1alpha1.PhasePending, reason: trainjob.ReasonNoJobSet,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var changes []func(*gathered)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			d := decide(gatheredOf(t, changes...))
			if d.out.Phase != test.phase || d.out.Reason != test.reason || !strings.Contains(d.out.Message, test.says) {
				t.Errorf("it is %s of %s: %s", d.out.Phase, d.out.Reason, d.out.Message)
			}
			if got := len(d.plan.Base)+len(d.plan.Pods)+len(d.plan.Delete) > 0; got != test.changes {
				t.Errorf("the plan is %+v", d.plan)
			}
			if d.isExpired() != test.expired {
				t.Errorf("expired: %v", d.isExpired())
			}
		})
	}
}
