package kueue

import (
	"fmt"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWithoutWorkload: a job of which Kueue has created no Workload names the class that does not exist, if that is why.
func TestWithoutWorkload(t *testing.T) {
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("c%02d", i))
	}
	const none = "Kueue has created no Workload since 2026-11-21 10:00:00 UTC"
	for name, test := range map[string]struct {
		priority        string
		classes         []string
		reason, why     string
		message, warned string
	}{
		"no class is named":      {classes: []string{"high"}, reason: ReasonNoWorkload, message: none},
		"the class exists":       {priority: "high", classes: []string{"high"}, reason: ReasonNoWorkload, message: none},
		"classes are unknown":    {priority: "nosuch", reason: ReasonNoWorkload, message: none},
		"the class is missing":   {priority: "nosuch", classes: []string{"high", "low"}, reason: ReasonNoPriority, why: "WorkloadPriorityClass nosuch does not exist (those that exist: high, low)"},
		"there are none":         {priority: "nosuch", classes: []string{}, reason: ReasonNoPriority, why: "WorkloadPriorityClass nosuch does not exist (the cluster has none)"},
		"there are more than 10": {priority: "nosuch", classes: many, reason: ReasonNoPriority, why: "WorkloadPriorityClass nosuch does not exist (those that exist: c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 3 more)"},
	} {
		if test.why != "" {
			test.message = none + ": " + test.why
			test.warned = "metadata.labels[kueue.x-k8s.io/priority-class]: " + test.why + ". Kueue does not queue the job until it does"
		}
		job := mpitest.Job(2, func(j *mpi.Job) { j.Queue, j.QueuePriority = "team", test.priority })
		state := WithoutWorkload(job, mpitest.Now.In(time.FixedZone("", 3600)), test.classes)
		if !state.Never || state.Name != "team" || state.Reason != test.reason || state.Why != test.why || state.Message != test.message {
			t.Errorf("%s: %+v", name, state)
		}
		if got := PriorityWarning(job, test.classes); got != test.warned {
			t.Errorf("%s: warned %q, want %q", name, got, test.warned)
		}
	}
}
