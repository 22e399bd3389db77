package kueue_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestEachReasonIsDecided holds the list of the reasons for which Kueue keeps a Workload waiting, from its source. For those of never,
// waiting does not help.
func TestEachReasonIsDecided(t *testing.T) {
	never := []string{"ExceedsMaxQuota", "Inadmissible", "Misconfigured", "NoMatchingFlavor"}
	waits := []string{
		"AdmissionGated", "NoReservation", "OnHold", "Pending", "PendingDelayedTopologyRequests", "PendingEvaluation", "Suspended", "TopologyPlacementFailed",
		"UnsatisfiedAdmissionChecks", "Waiting", "WaitingForPodsReady", "WaitingForPreemptedWorkloads", "WaitingForQuota",
	}
	kueueAPI := mpitest.Origin{
		Module: "sigs.k8s.io/kueue", Folders: []string{"apis/kueue/v1beta2"},
		Named: regexp.MustCompile("^Workload((QuotaReserved|Admitted)Reason.*|Inadmissible|OnHold|Pending|Waiting|AdmissionGated)$"),
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(never, waits))), kueueAPI.Reported(t)); diff != "" {
		t.Errorf("what is decided, and what is reported (-decided +reported):\n%s", diff)
	}
	for _, reason := range slices.Concat(never, waits) {
		var workload kueue.Workload
		if err := yaml.Unmarshal(fmt.Appendf(nil, "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: %s, message: it says so}]}}", reason), &workload); err != nil {
			t.Fatal(err)
		}
		state := kueue.FromKueue("team-a", &workload)
		if want := slices.Contains(never, reason); state.Never != want || state.Reason != reason || state.Message != "it says so" {
			t.Errorf("%s: never %t, want %t; reason %q, message %q", reason, state.Never, want, state.Reason, state.Message)
		}
	}
}

// TestEachEvictionIsDecided holds the list of the reasons for which Kueue evicts a Workload, and of the causes for which it deactivates one, from
// its source. An evicted Workload waits again with Kueue's message; one that Kueue has deactivated does not, and one of a user waits for that user.
func TestEachEvictionIsDecided(t *testing.T) {
	const user = "Deactivated"
	evictions := []string{
		"AdmissionCheck", "ClusterQueueStopped", "EvictedOnManagerCluster", "FlavorMigration", "LocalQueueStopped", "NodeFailures", "PodsReadyTimeout", "Preempted",
		"WorkloadSliceReplaced",
	}
	causes := []string{"MaximumExecutionTimeExceeded", "RequeuingLimitExceeded"}
	for named, decided := range map[string][]string{
		"^WorkloadEvicted(By|Due|On)|^WorkloadDeactivated$|^WorkloadSliceReplaced$": append([]string{user}, evictions...),
		"^Workload[A-Za-z]+Exceeded$": causes,
	} {
		origin := mpitest.Origin{Module: "sigs.k8s.io/kueue", Folders: []string{"apis/kueue/v1beta2"}, Named: regexp.MustCompile(named)}
		if diff := cmp.Diff(slices.Sorted(slices.Values(decided)), origin.Reported(t)); diff != "" {
			t.Errorf("what is decided, and what is reported (-decided +reported):\n%s", diff)
		}
	}
	stateOf := func(active bool, reason string) jobstate.QueueState {
		var workload kueue.Workload
		if err := yaml.Unmarshal(fmt.Appendf(nil, "{spec: {active: %t}, status: {conditions: [{type: Evicted, status: 'True', reason: %s, message: it says so}]}}", active, reason), &workload); err != nil {
			t.Fatal(err)
		}
		return kueue.FromKueue("team-a", &workload)
	}
	for _, reason := range evictions {
		if state := stateOf(true, reason); state.Evicted != "it says so" || state.Never || state.Admitted {
			t.Errorf("evicted for %s: %+v", reason, state)
		}
	}
	// An admission check that fails for good deactivates as well.
	for _, cause := range append(causes, "AdmissionCheck") {
		if state := stateOf(false, user+"DueTo"+cause); state.Reason != kueue.ReasonDeactivated || state.Message != "it says so" || !state.Never || state.Stopped {
			t.Errorf("deactivated for %s: %+v", cause, state)
		}
	}
	if state := stateOf(false, user); !state.Never || !state.Stopped {
		t.Errorf("deactivated by a user: %+v", state)
	}
}
