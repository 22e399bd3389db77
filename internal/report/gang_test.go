package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestGangInReport: a job waits for its places, is put back, waits again, and gives up.
func TestGangInReport(t *testing.T) {
	h := &history{t: t, job: job(2)}
	pods := func(after time.Duration, state jobstate.GangState, workers ...jobstate.Worker) jobstate.Observed {
		state.Backend, state.Wanted = "podgroup", 3
		return jobstate.Observed{Now: mpitest.Now.Add(after), Gang: &state, Workers: workers}
	}
	fit, nodes := int32(2), int32(2)
	waits := h.pass(0, pods(0, jobstate.GangState{PodsFit: &fit, NodesFit: &nodes, NodesTotal: &nodes, Since: mpitest.Now}, mpitest.Worker(h.job, 0, corev1.PodPending)), jobstate.Evidence{})
	told := waits.Status.Scheduling
	if told == nil || told.Backend != "podgroup" || told.Wanted != 3 || *told.PodsFit != 2 || *told.NodesTotal != 2 || !strings.Contains(told.Message, "2 fit on 2 of 2 nodes") || told.Attempts != 0 || told.EvictedAt != nil {
		t.Errorf("it waits as %+v", told)
	}

	at := mpitest.Now.Add(10 * time.Minute)
	back := jobstate.GangState{Hold: true, Since: mpitest.Now, Attempts: 1, EvictedAt: at, NextTry: at.Add(30 * time.Second), Placed: 1}
	h.pass(10*time.Minute, pods(0, back), jobstate.Evidence{})
	h.pass(10*time.Minute+time.Second, pods(0, back), jobstate.Evidence{})
	told = h.last.Status.Scheduling
	if told.Attempts != 1 || !told.EvictedAt.Time.Equal(at) || !told.NextTry.Time.Equal(at.Add(30*time.Second)) {
		t.Errorf("it is put back as %+v", told)
	}
	back.GaveUp = true
	h.pass(20*time.Minute, pods(0, back), jobstate.Evidence{})
	if h.last.Status.Phase != "Failed" || h.last.Status.Scheduling != nil || h.last.Status.Failure.Code != codes.GangTimeout {
		t.Errorf("it has ended as %+v", h.last.Status)
	}
	want := []string{"00:00 Created", "00:00 PodsStarting", "00:00 GangScheduling", "10:00 PutBack", "20:00 GangTimeout", "20:00 Failed"}
	if got := h.events(); !slices.Equal(got, want) {
		t.Errorf("its timeline is %v, want %v", got, want)
	}
}

// TestPreemptionByTheOperator: each time that a job's pods are stopped to make room stands once on the timeline.
func TestPreemptionByTheOperator(t *testing.T) {
	h := &history{t: t, job: job(1)}
	runs := func(after time.Duration, gang jobstate.GangState) jobstate.Observed {
		seen := pods(h.job, corev1.PodRunning, after)
		gang.Backend, gang.Wanted, gang.Placed = "embedded", 2, 2
		seen.Gang = &gang
		return seen
	}
	h.pass(0, runs(0, jobstate.GangState{}), jobstate.Evidence{})
	for _, at := range []time.Duration{10 * time.Second, 40 * time.Second} {
		stopped := jobstate.GangState{Hold: true, Evict: true, Reason: "Preempted", Message: "Its pods were stopped " + at.String() + " later."}
		h.pass(at, runs(0, stopped), jobstate.Evidence{})
		h.pass(at+time.Second, runs(0, stopped), jobstate.Evidence{})
		stopped.Backend, stopped.Wanted, stopped.Evict, stopped.Reason = "embedded", 2, false, codes.InsufficientCapacity
		h.pass(at+2*time.Second, jobstate.Observed{Gang: &stopped}, jobstate.Evidence{})
		h.pass(at+20*time.Second, runs(at+20*time.Second, jobstate.GangState{}), jobstate.Evidence{})
	}
	want := []string{
		"00:00 Created", "00:00 PodsStarting", "00:00 PodsPlaced", "00:00 WorkersReady", "00:00 LauncherStarted", "00:00 Running",
		"00:10 Preempted", "00:12 GangScheduling", "00:30 Running", "00:40 Preempted", "00:42 GangScheduling", "01:00 Running",
	}
	if got := h.events(); !slices.Equal(got, want) {
		t.Errorf("its timeline is %v, want %v", got, want)
	}
}
