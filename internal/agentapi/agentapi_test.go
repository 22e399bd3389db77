package agentapi_test

import (
	"encoding/json"
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
