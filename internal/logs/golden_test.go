package logs_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/logs"
)

var update = flag.Bool("update", false, "write the golden file anew")

// maskedLog is a log, or its end if it is not whole, and the same log masked.
type maskedLog struct {
	Whole  bool     `json:"whole"`
	Lines  []string `json:"lines"`
	Masked []string `json:"masked"`
}

// TestStreamMasks masks the logs in a file. The Python SDK's tests read it too, since the SDK masks logs by the same rules.
func TestStreamMasks(t *testing.T) {
	compareGolden(t, "testdata/mask.json", func(log *maskedLog) {
		stream := logs.Masker{}.Stream(log.Whole)
		log.Masked = nil
		for _, line := range log.Lines {
			log.Masked = append(log.Masked, stream.Line(line))
		}
	})
}

// trainingLine is a line and the progress in it.
type trainingLine struct {
	Line     string            `json:"line"`
	Training map[string]string `json:"training,omitempty"`
}

// TestParseTrainingGolden reads the progress in the lines of a file. The Python SDK's tests read it too.
func TestParseTrainingGolden(t *testing.T) {
	compareGolden(t, "testdata/training.json", func(line *trainingLine) {
		line.Training = nil
		if got, found := logs.ParseTraining(line.Line); found {
			line.Training = map[string]string{
				"epoch": got.Epoch, "step": got.Step, "loss": got.Loss, "accuracy": got.Accuracy, "progress": got.Progress,
			}
			maps.DeleteFunc(line.Training, func(_, value string) bool { return value == "" })
		}
	})
}

// compareGolden compares a JSON list in a file with the same list after compute has set the results in each element.
func compareGolden[T any](t *testing.T, file string, compute func(*T)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []T
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(want)
	for i := range got {
		compute(&got[i])
	}
	if *update {
		text, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not as in %s (-want +got):\n%s", file, diff)
	}
}
