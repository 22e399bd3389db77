package agentapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestParseSummary: what an agent writes is read, and the last words of other programs are not taken for it.
func TestParseSummary(t *testing.T) {
	t.Parallel()
	want := agentapi.Summary{Role: "worker"}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{string(data), "\n " + string(data) + "\n"} {
		got, is := agentapi.ParseSummary(message)
		if diff := cmp.Diff(want, got); !is || diff != "" {
			t.Errorf("%q is a summary: %t (-want +got)\n%s", message, is, diff)
		}
	}
	for _, message := range []string{"", "panic: x", "{}", `{"error": "x", "role": "worker"}`, string(data[:len(data)-1])} {
		if got, is := agentapi.ParseSummary(message); is {
			t.Errorf("%q is taken for the summary %+v", message, got)
		}
	}
}

func TestIsMPIVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Open MPI 5.0.7": true, "Open MPI 5.0.8rc1": true, "MPICH 4.2.1": true, "Intel MPI 2021.13": true, "Intel MPI 2019.9": true,
		"": false, "Open MPI": false, "Open MPI ": false, "Open MPI x": false, "open mpi 5": false, "MVAPICH 4": false, "Open MPI 5 or so": false,
		"Open MPI 5.0\n": false, "Open MPI 5\x1b[2J": false, "Open MPI 5.0.7<b>": false, "Open MPI 5é": false, "MPICH 4." + strings.Repeat("1", agentapi.MaxMPIVersion): false,
	} {
		if got := agentapi.IsMPIVersion(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
