package phrase

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNearest(t *testing.T) {
	names := []string{"train", "train-2", "tune", "solver"}
	tests := map[string][]string{
		"trian": {"train"}, "tran": {"train"}, "train-": {"train", "train-2"}, "TRAIN": {"train"}, "so": {"solver"}, "xyz": nil, "": nil, "t": nil,
	}
	for written, want := range tests {
		t.Run(written, func(t *testing.T) {
			if diff := cmp.Diff(want, Similar(written, names)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
