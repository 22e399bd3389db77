package kueue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/kueue"
)

func TestParsePositions(t *testing.T) {
	got, err := kueue.ParsePositions([]byte(`{"items": [{"metadata": {"name": "mpijob-pi"}, "positionInLocalQueue": 2, "positionInClusterQueue": 6}]}`))
	want := map[string]kueue.Position{"mpijob-pi": {InQueue: 2, InClusterQueue: 6}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := kueue.ParsePositions([]byte("no queue")); err == nil {
		t.Error("text that is not JSON is no error")
	}
}
