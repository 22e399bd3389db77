package logs_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/logs"
)

func TestPoints(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	figures := func(all ...any) (list []curves.Figure) {
		for i := 0; i < len(all); i += 2 {
			list = append(list, curves.Figure{Name: all[i].(string), Value: all[i+1].(float64)})
		}
		return list
	}
	for name, test := range map[string]struct {
		text        string
		step, epoch float64
		figures     []curves.Figure
	}{
		"pairs":                  {"epoch=3 step=1,200 loss=0.41 accuracy=87% throughput=512", 1200, 3, figures("loss", 0.41, "accuracy", 0.87, "throughput", 512.0)},
		"JSON":                   {`{"step": 5, "loss": 0.5, "seed": 42}`, 5, none, figures("loss", 0.5)},
		"NaN in JSON":            {`{"step": 5, "loss": NaN}`, 5, none, figures("loss", none)},
		"the helper":             {`{"training": {"step": 5, "loss": 0.5, "val_loss": 0.75, "Bad": 1, "text": "x", "list": [1]}}`, 5, none, figures("loss", 0.5, "val_loss", 0.75)},
		"not finite":             {`{"training": {"step": 5, "loss": "nan", "grad_norm": "-inf"}}`, 5, none, figures("loss", none, "grad_norm", math.Inf(-1))},
		"of rank 0":              {`[1,0]<stdout>:{"training": {"step": 5, "loss": 0.5}}`, 5, none, figures("loss", 0.5)},
		"too large":              {`step=5 loss=1e999`, 5, none, figures("loss", math.Inf(1))},
		"an epoch by itself":     {"Epoch 3/10", none, 3, nil},
		"a fraction of epoch":    {"{'loss': 0.25, 'learning_rate': 5e-05, 'epoch': 0.5}", none, 0.5, figures("loss", 0.25, "learning_rate", 5e-05)},
		"a solver":               {"iteration 12 residual 4.76837158203125e-07", 12, none, figures("residual", 4.76837158203125e-07)},
		"a solver that diverged": {"step 5 residual nan", 5, none, figures("residual", math.NaN())},
		"an infinite error":      {"it=5 rel_error=-inf", 5, none, figures("rel_error", math.Inf(-1))},
		"a solver, by pairs":     {"step=3 energy=-76.026 rel_error: 1e-5", 3, none, figures("energy", -76.026, "rel_error", 1e-5)},
		"a solver's loss":        {"iter 3/100 loss=0.5 residual=0.25", 3, none, figures("loss", 0.5, "residual", 0.25)},
		"many":                   {`{"training": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9}}`, none, none, figures("a", 1.0, "b", 2.0, "c", 3.0, "d", 4.0, "e", 5.0, "f", 6.0, "g", 7.0, "h", 8.0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := logs.Points("2026-11-26T12:00:00.5Z hello\n2026-11-26T12:00:01.123456789Z " + test.text + "\nno time: loss=1\n")
			if len(got) != 1 || got[0].Time.Nanosecond() != 123456789 {
				t.Fatalf("lines %+v", got)
			}
			want := curves.Line{Time: got[0].Time, Step: test.step, Epoch: test.epoch, Figures: test.figures}
			if diff := cmp.Diff(want, got[0], cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{"hello", "[1,3]<stdout>:loss=1", `{"training": 5}`, "step=4", "", "residual 1.5e-7", "step 5 failed with error 3", "error: 1.5", "[1,3]<stdout>:iteration 1 residual 0.5", "iteration 5 residuals are fine", "step 5 error 404.html", "step 5 error: infinite loop", "step 5 error: nanoseconds"} {
		if got := logs.Points("2026-11-26T12:00:00Z " + text + "\n"); len(got) > 0 {
			t.Errorf("%q has figures: %+v", text, got)
		}
	}
}
