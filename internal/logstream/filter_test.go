package logstream

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestFilterAgent: of the agent's lines only warnings and errors are shown, unless all are requested.
func TestFilterAgent(t *testing.T) {
	t.Parallel()
	at := Place{Role: mpi.RoleWorker}
	const info = `{"time":"2026-11-22T10:00:00Z","level":"INFO","msg":"ready","logger":"mpi-agent","address":":2222"}`
	for text, shown := range map[string]bool{
		info: false,
		`{"time":"2026-11-22T10:00:00Z","level":"WARN","msg":"slow","logger":"mpi-agent"}`: true,
		`{"time":"2026-11-22T10:00:00Z","level":"INFO","msg":"of the program"}`:            true,
		"the agent is ready": true,
	} {
		if got := (Filter{}).wants(at, Line{Place: at, Rank: NoRank, Text: text}); got != shown {
			t.Errorf("%s is shown: %t", text, got)
		}
	}
	if !(Filter{Agent: true}).wants(at, Line{Place: at, Rank: NoRank, Text: info}) {
		t.Error("the agent's lines are not shown on request")
	}
}

func TestFilterUntil(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		at   time.Time
		want bool
	}{
		"before": {end.Add(-time.Second), true}, "at it": {end, true}, "after": {end.Add(time.Nanosecond), false}, "unknown": {time.Time{}, true},
	} {
		if got := (Filter{Until: end}).wants(Place{}, Line{Rank: NoRank, Time: test.at}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
