package diagnose_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// lossOf gives a job the curve of a loss that was printed every ten steps.
func lossOf(count int, loss func(i int) float64) func(*scene) {
	return func(s *scene) {
		var lines []curves.Line
		for i := range count {
			lines = append(lines, curves.Line{
				Time: mpitest.Now.Add(time.Duration(i-count) * time.Second), Step: float64(10 * i), Epoch: math.NaN(), Figures: []curves.Figure{{Name: "loss", Value: loss(i)}},
			})
		}
		s.evidence.Curves = curves.Add(nil, lines)
	}
}

// of gives the figure another name.
func of(figure string) func(*scene) {
	return func(s *scene) { s.evidence.Curves.Figures[0].Name = figure }
}

func TestTrainingDiverged(t *testing.T) {
	falling := func(i int) float64 { return 2 / (1 + float64(i)/10) }
	notANumber := lossOf(60, func(i int) float64 {
		if i >= 50 {
			return math.NaN()
		}
		return falling(i)
	})
	grown := lossOf(80, func(i int) float64 { return falling(min(i, 60)) * math.Pow(1.25, float64(max(0, i-60))) })
	check(t, map[string]expect{
		"loss-not-a-number":     {codes.TrainingDiverged, running(2).with(notANumber)},
		"loss-grows":            {codes.TrainingDiverged, running(2).with(grown)},
		"residual-not-a-number": {codes.TrainingDiverged, running(2).with(notANumber, of("residual"))},
		"residual-of-a-division-by-zero": {codes.TrainingDiverged, running(2).with(notANumber, of("residual"), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{
				"/code/solve.py:13: RuntimeWarning: invalid value encountered in divide", "  change = values / weights / 10.0**step", "step 500 residual nan",
			}}}
		})},
		"loss-not-a-number-succeeded": {codes.TrainingDiverged, running(2).with(succeededLauncher, notANumber)},
	})
	started := func(s *scene) {
		s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-100 * time.Second))}},
		}}
	}
	stuck := lossOf(90, func(i int) float64 { return falling(min(i, 12)) })
	check(t, map[string]expect{
		"loss-constant": {codes.FigureConstant, running(2).with(stuck, started)},
	})
	for _, f := range running(2).with(succeededLauncher, stuck, started).findings() {
		t.Errorf("succeeded with a constant loss: %+v", f)
	}
	for name, s := range map[string]scene{"falls": running(2).with(lossOf(80, falling)), "failed": failed(1, "no").with(notANumber)} {
		for _, f := range s.findings() {
			if f.Code == codes.TrainingDiverged {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
