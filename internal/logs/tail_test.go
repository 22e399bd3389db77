package logs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
)

func TestTail(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	tests := map[string]struct {
		log  string
		most int
		want []string
	}{
		"nothing":       {"", 3, nil},
		"only ends":     {"\n\r\n", 3, nil},
		"fewer":         {"a\nb\n", 3, []string{"a", "b"}},
		"more":          {"a\nb\n\nc", 2, []string{"", "c"}},
		"none wanted":   {"a", 0, nil},
		"windows":       {"a\r\nb\r\n", 3, []string{"a", "b"}},
		"progress bar":  {"10%\r50%\r100%\ndone\n", 3, []string{"100%", "done"}},
		"colours":       {"\x1b[1;31merror:\x1b[0m it \x1b]8;;http://x\x07broke\x1b]8;;\x1b\\ down\x1b", 1, []string{"error: it broke down"}},
		"binary":        {"a\x00b\xff\xfe\x7fc\u009b", 1, []string{"ab??c"}},
		"tabs":          {"\ta\tb  ", 1, []string{" a b"}},
		"long":          {long, 1, []string{long[:logs.MaxLine-4] + "…"}},
		"no end at all": {strings.Repeat("x", 10<<20), 5, []string{strings.Repeat("x", logs.MaxLine-3) + "…"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, logs.Tail([]byte(test.log), test.most)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31m\xff"), 2)
	f.Add([]byte("\x1b]\x1b\\\x1b[\x1b"), 1)
	f.Fuzz(func(t *testing.T, log []byte, most int) {
		lines := logs.Tail(log, most)
		if len(lines) > max(most, 0) {
			t.Errorf("%d lines, want at most %d", len(lines), most)
		}
		for _, line := range lines {
			if len(line) > logs.MaxLine || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\x1b\x00") {
				t.Errorf("a line is not clean: %q", line)
			}
			if again := logs.Clean(line); again != line {
				t.Errorf("cleaning again changes %q to %q", line, again)
			}
		}
	})
}

func TestTraining(t *testing.T) {
	tests := map[string]struct {
		line string
		want v1alpha1.Training
	}{
		"json":             {`{"epoch": 3, "step": 1200, "loss": 0.1230, "accuracy": 0.97, "progress": "30%"}`, v1alpha1.Training{Epoch: "3", Step: "1200", Loss: "0.1230", Accuracy: "0.97", Progress: "30%"}},
		"json after words": {`INFO 2026-11-21 train: {"epoch": 3, "train_loss": 1e-3}`, v1alpha1.Training{Epoch: "3", Loss: "1e-3"}},
		"pairs":            {"epoch=3 step=1200 loss=0.123 acc=0.9", v1alpha1.Training{Epoch: "3", Step: "1200", Loss: "0.123", Accuracy: "0.9"}},
		"with commas":      {"Epoch: 3/10, Loss: 0.5, Accuracy: 97.5%", v1alpha1.Training{Epoch: "3/10", Loss: "0.5", Accuracy: "97.5%"}},
		"nan":              {"epoch=3 loss=nan", v1alpha1.Training{Epoch: "3", Loss: "nan"}},
		"rank 0":           {"[1,0]<stdout>: epoch=3 loss=0.5", v1alpha1.Training{Epoch: "3", Loss: "0.5"}},
		"another rank":     {"[1,3]<stdout>: epoch=3 loss=0.5", v1alpha1.Training{}},
		"the agent":        {"mpi-agent: no progress: 1 of 2 ranks wait for rank 1, since 03:49:09 UTC; busy: 1; polling: 0", v1alpha1.Training{}},
		"step alone":       {"step=3 of the installation", v1alpha1.Training{}},
		"hugging face":     {`{'loss': 0.3912, 'grad_norm': 2.1, 'learning_rate': 4e-05, 'epoch': 1.25}`, v1alpha1.Training{Epoch: "1.25", Loss: "0.3912"}},
		"keras's epoch":    {"Epoch 3/10", v1alpha1.Training{Epoch: "3/10"}},
		"keras's step":     {"118/469 [=====>......] - ETA: 1s - loss: 0.2561 - accuracy: 0.9251", v1alpha1.Training{Loss: "0.2561", Accuracy: "0.9251"}},
		"pytorch's":        {"Epoch: [3][ 10/500]\tTime 0.12 (0.15)\tLoss 2.5e-01 (3.1e-01)\tAcc@1 75.00 (70.1)", v1alpha1.Training{Epoch: "3", Loss: "2.5e-01"}},
		"horovod's":        {"Train Epoch: 3 [640/60000 (1%)]\tLoss: 0.512300", v1alpha1.Training{Epoch: "3", Loss: "0.512300"}},
		"lightning's":      {"Epoch 2:  45%|####5     | 45/100 [00:03<00:04, 12.50it/s, loss=0.251, v_num=0]", v1alpha1.Training{Epoch: "2", Loss: "0.251"}},
		"words only":       {"epoch 1 loss 2.31", v1alpha1.Training{Epoch: "1", Loss: "2.31"}},
		"three words":      {"[1,0]<stdout>:Epoch 4/9 loss 1e3 Loss 0.25 acc 0.91", v1alpha1.Training{Epoch: "4/9", Loss: "0.25", Accuracy: "0.91"}},
		"words and pairs":  {"epoch 2 step=40 loss 0.5 accuracy=0.9", v1alpha1.Training{Epoch: "2", Step: "40", Loss: "0.5", Accuracy: "0.9"}},
		"loss of packets":  {"4 packets, loss 3 of them", v1alpha1.Training{}},
		"other words":      {"lossless=3 epochs=10", v1alpha1.Training{}},
		"no training":      {"ssh: connect to host a port 22: Connection refused", v1alpha1.Training{}},
		"half json":        {`{"epoch": 3, "loss": `, v1alpha1.Training{}},
		"long value":       {"epoch=" + strings.Repeat("1", 100), v1alpha1.Training{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := logs.ParseTraining(test.line)
			if !found {
				got = v1alpha1.Training{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLastTrainingKeepsTheLastOfEach(t *testing.T) {
	var lines []string
	for i := range 5 {
		lines = append(lines, fmt.Sprintf("epoch=%d loss=0.%d", i, 9-i), "something else")
	}
	got, found := logs.LastTraining(append(lines, "eval accuracy=0.8"))
	if want := (v1alpha1.Training{Epoch: "4", Loss: "0.5", Accuracy: "0.8"}); !found || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestProgressAt: the time of progress is that of its line, and not that of what was printed afterwards.
func TestProgressAt(t *testing.T) {
	at := func(second int) string { return fmt.Sprintf("2026-11-21T10:00:%02d.5Z ", second) }
	for name, test := range map[string]struct {
		log  string
		most int
		want int
	}{
		"the last line":             {at(1) + "epoch=1 loss=0.5\n" + at(2) + "epoch=2 loss=0.4\n", 10, 2},
		"before others":             {at(1) + "epoch=1 loss=0.5\n" + at(2) + "saved\n" + at(3) + "\n", 10, 1},
		"before an agent's line":    {at(1) + "epoch=1 loss=0.5\n" + at(2) + "mpi-agent: no progress: 2 of 2 ranks wait\n", 10, 1},
		"before lines of ranks":     {at(1) + "[1,0]<stdout>: epoch=1 loss=0.5\n" + at(2) + "[1,1]<stdout>: epoch=1 loss=0.5\n", 10, 1},
		"in color":                  {at(1) + "\x1b[32mloss=0.5\x1b[0m\r\n" + at(2) + "\x1b[32mdone\x1b[0m\n", 10, 1},
		"before more lines":         {at(1) + "epoch=1 loss=0.5\n" + at(2) + "a\n" + at(3) + "b\n", 2, 0},
		"none":                      {at(1) + "a\n\n" + at(2) + "b\n", 10, 0},
		"of an unknown time":        {at(1) + "loss=0.5\n? loss=0.4\n", 10, 0},
		"a line without its end":    {at(1) + "loss=0.5", 10, 1},
		"nothing but ends of lines": {"\n\n\n", 10, 0},
	} {
		want := time.Time{}
		if test.want > 0 {
			want = time.Date(2026, 11, 21, 10, 0, test.want, 500_000_000, time.UTC)
		}
		if got := logs.ProgressAt(test.log, test.most); !got.Equal(want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
