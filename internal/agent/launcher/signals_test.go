package launcher

import (
	"log/slog"
	"testing"

	"opendatahub.io/mpijob/internal/agent/ranks"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestHaveRanks: a launcher that gets TERM is left alone while ranks of it are known to run.
func TestHaveRanks(t *testing.T) {
	const launcher = 40
	worker := func(seen int32, ended ...agentapi.RankEnd) *agentapi.Summary {
		return &agentapi.Summary{Role: agentapi.RoleWorker, RanksSeen: seen, Ranks: ended}
	}
	for name, test := range map[string]struct {
		record records.Record
		want   bool
	}{
		"ranks run":         {records.Record{Worker: worker(2)}, true},
		"one of two runs":   {records.Record{Worker: worker(2, agentapi.RankEnd{Rank: 1})}, true},
		"all have ended":    {records.Record{Worker: worker(2, agentapi.RankEnd{Rank: 0}, agentapi.RankEnd{Rank: 1})}, false},
		"none has started":  {records.Record{}, false},
		"the session ended": {records.Record{Worker: worker(2), Over: true}, false},
		"another launcher":  {records.Record{Worker: worker(2), Ancestors: []int{7}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{folder: t.TempDir(), ranks: ranks.New(slog.New(slog.DiscardHandler), t.TempDir())}
			test.record.Host, test.record.Process = "pi-worker-0", 50
			if test.record.Ancestors == nil {
				test.record.Ancestors = []int{45, launcher}
			}
			test.record.Write(s.folder)
			if got := s.haveRanks(launcher); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
