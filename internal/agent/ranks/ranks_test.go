package ranks

import (
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestMayBeKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  agentapi.RankEnd
		want bool
	}{
		"killed":                       {agentapi.RankEnd{ExitCode: 137, Signal: 9}, true},
		"a shell whose program was":    {agentapi.RankEnd{ExitCode: 137}, true},
		"not known":                    {agentapi.RankEnd{ExitCode: -1}, true},
		"terminated":                   {agentapi.RankEnd{ExitCode: 143, Signal: 15}, false},
		"failed":                       {agentapi.RankEnd{ExitCode: 1}, false},
		"ended well":                   {agentapi.RankEnd{}, false},
		"a shell whose program failed": {agentapi.RankEnd{ExitCode: 139}, false},
	} {
		if got := mayBeKilled(test.end); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestRestartedRanks: the failure of a rank that is started again is not one of the job.
func TestRestartedRanks(t *testing.T) {
	t.Parallel()
	for isRestarted, want := range map[bool]int64{false: 1, true: 0} {
		r := New(slog.New(slog.DiscardHandler), t.TempDir())
		r.keepEnd(100, agentapi.RankEnd{Rank: 1}, isRestarted, unix.WaitStatus(1<<8), true)
		var summary agentapi.Summary
		r.Tell(&summary, 0)
		if r.Failed() != want || len(summary.Ranks) != int(want) {
			t.Errorf("restarted %t: %d ranks failed, %+v", isRestarted, r.Failed(), summary.Ranks)
		}
	}
}
