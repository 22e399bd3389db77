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

func TestMisspelled(t *testing.T) {
	t.Parallel()
	names := []string{"DATA_DIR", "LEARNING_RATE", "BATCH_SIZE", "LOG_1", "LOG_2"}
	for written, want := range map[string]string{
		"DATADIR": "DATA_DIR", "data_dir": "DATA_DIR", "DATA_DIRS": "DATA_DIR", "LEARNING_RAET": "LEARNING_RATE", "LERNING_RATES": "LEARNING_RATE", "BATCHSIZE": "BATCH_SIZE",
		// A name that exists, others, and one that could be either.
		"DATA_DIR": "", "DATA_URI": "", "SIZE": "", "DIR": "", "LOG_3": "",
	} {
		if got := Misspelled(written, names); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}
