package worker

import (
	"slices"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestEndedBefore(t *testing.T) {
	ranks := []agentapi.RankEnd{{Rank: 1, At: 999}, {Rank: 2, At: 1000}, {Rank: 3, At: 2000, OOM: true}}
	if got, want := endedBefore(ranks, 1000), []agentapi.RankEnd{ranks[0], ranks[2]}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
