package records

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestTerminationIsReplaced: a shorter message replaces a longer one, and one that the kubelet would read only in part.
func TestTerminationIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "message")
	t.Setenv(agentapi.EnvTermination, file)
	for _, before := range []string{"", "{", strings.Repeat("x", 300), strings.Repeat("x", mostMessage+1)} {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		WriteTermination(agentapi.Summary{Role: agentapi.RoleLauncher, HostsReached: 3})
		got, err := os.ReadFile(file)
		if summary, is := agentapi.ParseSummary(string(got)); err != nil || !is || summary.HostsReached != 3 || len(got) > mostMessage {
			t.Errorf("after %d bytes: %q, %v", len(before), got, err)
		}
	}
}
