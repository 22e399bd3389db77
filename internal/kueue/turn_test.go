package kueue_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestTurn: an admitted job whose pods do not all find a node in the time that its user gives them is evicted, waits, is admitted
// again, and fails at last.
func TestTurn(t *testing.T) {
	const (
		letIn = "{type: Admitted, status: 'True', lastTransitionTime: '2026-01-02T03:00:00Z'}"
		waits = "{type: PodsReady, status: 'False', reason: WaitForStart}"
	)
	active := func(conditions ...string) string {
		return "{status: {conditions: [" + strings.Join(conditions, ", ") + "]}}"
	}
	rests := func(timeouts string) string {
		return "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '" + timeouts + "'}}, spec: {active: false}, status: {conditions: [" + letIn + "]}}"
	}
	tests := map[string]struct {
		workload  string
		after     time.Duration
		placed    int
		unbounded bool
		suspended bool
		byUser    bool
		forEver   bool
		never     bool
		since     time.Duration
		limit     time.Duration
		ran       time.Duration
		want      kueue.Turn
	}{
		"not admitted":                     {workload: "{}", after: time.Hour},
		"still in time":                    {workload: active(letIn, waits), after: 20 * time.Second, placed: 3, want: kueue.Turn{Again: 40 * time.Second}},
		"all are placed":                   {workload: active(letIn, waits), after: time.Hour, placed: 5},
		"all have run, and one comes back": {workload: active(letIn, "{type: PodsReady, status: 'False', reason: WaitForRecovery}"), after: time.Hour, placed: 4},
		"has run, and one is replaced":     {workload: active(letIn), after: time.Hour, placed: 4, ran: time.Minute},
		"never fits, and has run":          {workload: active(letIn), after: time.Hour, unbounded: true, never: true, ran: time.Minute},
		"had run before it was admitted again": {
			workload: active(letIn), after: time.Minute, placed: 3, forEver: true, ran: -time.Minute,
			want: kueue.Turn{Active: new(false), Timeouts: "1 2026-01-02T03:01:30Z", Says: "3 of 5 pods scheduled within 60 s (spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds). " +
				"The job releases its quota; next attempt at 03:01:30 UTC."},
		},
		"no limit of its own":       {workload: active(letIn, waits), after: time.Hour, placed: 3, unbounded: true},
		"is not resumed yet":        {workload: active(letIn, waits), after: 20 * time.Second, unbounded: true, suspended: true, want: kueue.Turn{Again: 40 * time.Second}},
		"is not resumed":            {workload: active(letIn, waits), after: time.Hour, unbounded: true, suspended: true},
		"is being put out by Kueue": {workload: active(letIn, "{type: Evicted, status: 'True'}"), after: time.Hour, placed: 3},
		"stopped by somebody":       {workload: "{spec: {active: false}, status: {conditions: [" + letIn + "]}}", after: time.Hour, placed: 3},
		"too late, and never fails": {
			workload: active(letIn, waits), after: time.Minute, placed: 3, forEver: true,
			want: kueue.Turn{Active: new(false), Timeouts: "1 2026-01-02T03:01:30Z", Says: "3 of 5 pods scheduled within 60 s (spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds). " +
				"The job releases its quota; next attempt at 03:01:30 UTC."},
		},
		"too late": {
			workload: active(letIn, waits), after: time.Minute, placed: 3,
			want: kueue.Turn{Active: new(false), Timeouts: "1 2026-01-02T03:01:30Z", Says: "3 of 5 pods scheduled within 60 s (spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds). " +
				"The job releases its quota; next attempt at 03:01:30 UTC. It fails after this happens 3 times (mpi.opendatahub.io/gang-requeues: 2)."},
		},
		"too late for the last time": {
			workload: "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '2'}}, status: {conditions: [" + letIn + "]}}", after: time.Minute,
			want: kueue.Turn{Active: new(false), Timeouts: "3 2026-01-02T03:03:00Z", Says: "0 of 5 pods scheduled within 60 s (spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds). " +
				"This happened 3 times, so the job fails."},
		},
		"never fits, and a node may be registering": {workload: active(letIn, waits), after: 20 * time.Second, unbounded: true, never: true, want: kueue.Turn{Again: 40 * time.Second}},
		"never fits, and gives its quota back": {
			workload: active(letIn, waits), after: time.Minute, unbounded: true, never: true,
			want: kueue.Turn{Active: new(false), Timeouts: "1 2026-01-02T03:01:30Z", Says: "None of 5 pods scheduled. Only 2 of 5 pods fit. The job releases its quota; next attempt at 03:01:30 UTC."},
		},
		"never fits, since a moment": {workload: active(letIn, waits), after: time.Hour, unbounded: true, never: true, since: time.Hour - 20*time.Second, want: kueue.Turn{Again: 40 * time.Second}},
		"never fits, and has a longer limit": {
			workload: active(letIn, waits), after: 2 * time.Minute, never: true, limit: time.Hour, want: kueue.Turn{Again: 58 * time.Minute},
		},
		"never fits, and does not fail without a limit": {workload: rests("9 2026-01-02T03:01:30Z"), after: time.Minute, unbounded: true, suspended: true, want: kueue.Turn{Again: 30 * time.Second}},
		"never fits, and has a limit": {
			workload: "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '2'}}, status: {conditions: [" + letIn + "]}}", after: time.Minute, never: true,
			want: kueue.Turn{Active: new(false), Timeouts: "3 2026-01-02T03:03:00Z", Says: "None of 5 pods scheduled. Only 2 of 5 pods fit. This happened 3 times, so the job fails."},
		},
		"some have nodes, though not all ever will": {workload: active(letIn, waits), after: time.Hour, placed: 1, unbounded: true, never: true},
		"its user suspends it":                      {workload: active(letIn, waits), byUser: true, want: kueue.Turn{Active: new(false), Timeouts: "0 suspended"}},
		"its user suspends it while it waits":       {workload: "{}", byUser: true, suspended: true, want: kueue.Turn{Active: new(false), Timeouts: "0 suspended"}},
		"its user suspends it while it rests":       {workload: rests("2 2026-01-02T03:01:30Z"), byUser: true, suspended: true, want: kueue.Turn{Active: new(false), Timeouts: "2 suspended"}},
		"is suspended by its user":                  {workload: rests("2 suspended"), byUser: true, suspended: true, after: time.Hour},
		"its user suspends it, but Kueue gave up":   {workload: rests("1"), byUser: true, suspended: true},
		"its user resumes it":                       {workload: rests("2 suspended"), suspended: true, want: kueue.Turn{Active: new(true), Timeouts: "2"}},
		"its Workload was activated, not resumed":   {workload: "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '2 suspended'}}, spec: {active: true}}", byUser: true, want: kueue.Turn{Active: new(false), Timeouts: "2 suspended"}},
		"its Workload was activated, then resumed":  {workload: "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '2 suspended'}}, spec: {active: true}}"},
		"rests":                          {workload: rests("1 2026-01-02T03:01:30Z"), after: time.Minute, suspended: true, want: kueue.Turn{Again: 30 * time.Second}},
		"has rested":                     {workload: rests("1 2026-01-02T03:01:30Z"), after: 2 * time.Minute, suspended: true, want: kueue.Turn{Active: new(true), Timeouts: "1"}},
		"has rested, and has no limit":   {workload: rests("1 2026-01-02T03:01:30Z"), after: 2 * time.Minute, unbounded: true, want: kueue.Turn{Active: new(true), Timeouts: "1"}},
		"is stopped after it has rested": {workload: rests("1"), after: 2 * time.Minute},
		"its pods go for the last time":  {workload: rests("3 2026-01-02T03:03:00Z"), after: time.Minute, placed: 1, suspended: true, want: kueue.Turn{Attempts: 3, EvictedAt: day.Add(3*time.Hour + time.Minute)}},
		"is given up":                    {workload: rests("3 2026-01-02T03:03:00Z"), after: time.Minute, suspended: true, want: kueue.Turn{GaveUp: true, Attempts: 3, EvictedAt: day.Add(3*time.Hour + time.Minute)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(4)
			job.Gang.Timeout, job.Gang.TimeoutSet, job.Gang.Requeues = max(test.limit, time.Minute), !test.unbounded, 2
			job.SuspendedInQueue = test.byUser
			job.Lifecycle.Suspended, job.Fields.Gang = test.suspended, field.NewPath("spec", "runPolicy", "schedulingPolicy")
			job.Fields.GangTimeout = job.Fields.Gang.Child("scheduleTimeoutSeconds")
			if test.forEver {
				job.Gang.Requeues = math.MaxInt32
			}
			seen := jobstate.Observed{Now: day.Add(3*time.Hour + test.after)}
			for i := range test.placed {
				seen.Workers = append(seen.Workers, jobstate.Worker{Index: i % 4, Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}}})
			}
			if test.never {
				seen.Gang = &jobstate.GangState{Hold: true, Never: true, NeverSince: day.Add(3*time.Hour + test.since), Message: "Only 2 of 5 pods fit"}
			}
			workload := &kueue.Workload{}
			if err := yaml.Unmarshal([]byte(test.workload), workload); err != nil {
				t.Fatal(err)
			}
			var ran time.Time
			if test.ran != 0 {
				ran = day.Add(3*time.Hour + test.ran)
			}
			if diff := cmp.Diff(test.want, kueue.TurnOf(job, seen, workload, ran)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
