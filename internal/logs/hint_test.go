package logs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestHintsMissNothing masks lines with every pattern, whether or not its hint expects a match.
func TestHintsMissNothing(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/mask.json")
	if err != nil {
		t.Fatal(err)
	}
	var logs []struct {
		Lines []string `json:"lines"`
	}
	if err := json.Unmarshal(data, &logs); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, log := range logs {
		for _, line := range log.Lines {
			lines++
			want := line
			for _, r := range rules {
				want = r.hide(want)
			}
			if got := (Masker{}).settings(line); got != want {
				t.Errorf("%q is masked as %q, without hints as %q", line, got, want)
			}
		}
	}
	if lines < 100 {
		t.Errorf("only %d lines were compared", lines)
	}
}

func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	var line lowered
	line.set("Step=3 the TOKEN of user-17 é")
	for text, want := range map[string]bool{"token": true, "p=3": true, "of": true, "é": true, "tokens": false, "ens": false, "73": false} {
		if got := line.containsAny(newWords(text)); got != want {
			t.Errorf("contains %q: %t, want %t", text, got, want)
		}
	}
}

func BenchmarkMaskLine(b *testing.B) {
	lines := strings.Split(strings.TrimSpace(`
 epoch=3 step=120 loss=0.5123 throughput=1810 images/s lr=0.0010 node=gpu-17 line 5/1
2026-01-02 10:00:00,123 INFO train.py:120 Epoch [3/10], Step [120/500], Loss: 0.5123, lr: 0.0010
[1,5]<stdout>:rank 5 of 64 on node gpu-17: allreduce of 1073741824 bytes took 0.0123 s`), "\n")
	for b.Loop() {
		for _, line := range lines {
			_ = (Masker{}).settings(line)
		}
	}
}
