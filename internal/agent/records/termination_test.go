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

// TestTerminationHasRoomForUsage: the usage takes the room that the rest leaves, and nothing of the rest is lost for it.
func TestTerminationHasRoomForUsage(t *testing.T) {
	points := make([]int64, agentapi.MaxUsagePoints)
	for i := range points {
		points[i] = 31000 + int64(i)
	}
	used := agentapi.Usage{Start: 1200, Step: 10, Since: 1205, Until: 2400, PodCount: 64}
	for _, metric := range agentapi.Metrics() {
		used.Metrics = append(used.Metrics, agentapi.MetricUsage{Metric: metric, Mean: 31060, P95: 31100, Max: 31119, Limit: 32000, Points: points})
	}
	for message, want := range map[int]bool{10: true, 1500: true, 3900: false} {
		summary := agentapi.Summary{Role: agentapi.RoleLauncher, Message: strings.Repeat("x", message), Usage: &used}
		data := terminationMessage(summary)
		got, is := agentapi.ParseSummary(string(data))
		if !is || len(data) > mostMessage || len(got.Message) != message || (got.Usage != nil) != want {
			t.Errorf("with a message of %d bytes: %d bytes, %+v", message, len(data), got)
		}
		if want && (len(got.Usage.Metrics) != len(used.Metrics) || got.Usage.Metrics[0].Max != 31119) {
			t.Errorf("with a message of %d bytes: %+v", message, got.Usage)
		}
	}
	if summary := (agentapi.Summary{Role: agentapi.RoleLauncher, Usage: &used}); len(terminationMessage(summary)) == 0 || summary.Usage == nil {
		t.Error("the summary itself was changed")
	}
}

// TestTerminationHasSessions: as many sessions are kept as there is room for, and all are counted. Nothing else is lost for them.
func TestTerminationHasSessions(t *testing.T) {
	sessions := &agentapi.Sessions{Count: 64, First: 1767268800000}
	for range agentapi.MaxSessions {
		sessions.List = append(sessions.List, agentapi.Session{Host: "train-with-a-long-name-worker-12", At: 12, Connected: 250, Ranks: 1400, End: 3_600_000})
	}
	for message, want := range map[int]int{10: agentapi.MaxSessions, 3500: 5, 4000: 0, 4060: -1} {
		data := terminationMessage(agentapi.Summary{Role: agentapi.RoleLauncher, Message: strings.Repeat("x", message), Sessions: sessions})
		got, is := agentapi.ParseSummary(string(data))
		kept := -1
		if got.Sessions != nil {
			kept = len(got.Sessions.List)
		}
		if !is || len(data) > mostMessage || len(got.Message) != message || kept != want {
			t.Errorf("with a message of %d bytes: %d bytes, %d sessions, want %d", message, len(data), kept, want)
		}
	}
}

// TestTerminationFits: whatever is too long is left out, and how the command ended stays.
func TestTerminationFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", mostMessage)
	setting := &agentapi.InterfaceSetting{Name: "btl_tcp_if_include", Value: long}
	for name, test := range map[string]struct {
		summary agentapi.Summary
		message int
		bound   bool
	}{
		"a message":              {agentapi.Summary{Message: long, Binding: &agentapi.Binding{By: "x"}}, 1024, true},
		"a message of controls":  {agentapi.Summary{Message: strings.Repeat("\x01", mostMessage)}, 0, false},
		"how the user binds":     {agentapi.Summary{Message: "x", Binding: &agentapi.Binding{By: long}}, 1, false},
		"CPUs that ranks share":  {agentapi.Summary{Message: "x", Binding: &agentapi.Binding{Clash: &agentapi.BoundRanks{CPUs: long}}}, 1, false},
		"interfaces":             {agentapi.Summary{Message: "x", NoInterface: setting}, 1, false},
		"interfaces and binding": {agentapi.Summary{Message: long, NoInterface: setting, Binding: &agentapi.Binding{By: long}}, 1024, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.summary.Role, test.summary.ExitCode = agentapi.RoleLauncher, new(int32(3))
			data := terminationMessage(test.summary)
			got, is := agentapi.ParseSummary(string(data))
			if !is || len(data) > mostMessage || got.ExitCode == nil || len(got.Message) != test.message || (got.Binding != nil) != test.bound {
				t.Errorf("%d bytes: %+v", len(data), got)
			}
		})
	}
}
