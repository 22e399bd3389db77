package kueue_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

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
