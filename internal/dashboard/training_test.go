package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestCurvePoints(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		lines []logstream.Line
		want  []CurvePoint
	}{
		"pairs": {
			[]logstream.Line{{Time: at, Rank: 0, Text: "epoch=1 step=100 loss=2.5"}, {Rank: logstream.NoRank, Text: "starting"}, {Rank: logstream.NoRank, Text: "epoch=2 step=200 loss=1.25 accuracy=50%"}},
			[]CurvePoint{
				{Time: "2026-11-21T13:00:00Z", Epoch: new(1.0), Step: new(100.0), Loss: new(2.5)},
				{Epoch: new(2.0), Step: new(200.0), Loss: new(1.25), Accuracy: new(0.5)},
			},
		},
		"other ranks print the same": {
			[]logstream.Line{{Rank: 0, Text: "step=1 loss=2"}, {Rank: 1, Text: "step=1 loss=2"}},
			[]CurvePoint{{Step: new(1.0), Loss: new(2.0)}},
		},
		"an epoch on a line of its own": {
			[]logstream.Line{{Rank: logstream.NoRank, Text: "Epoch 3/10"}, {Rank: logstream.NoRank, Text: "loss: 0.5 - step: 1,200"}},
			[]CurvePoint{{Epoch: new(3.0), Step: nil, Loss: new(0.5)}},
		},
		"figures without a loss": {
			[]logstream.Line{{Rank: logstream.NoRank, Text: "step=4 bandwidth_gbps=80 latency_us=1.5"}, {Rank: 1, Text: "bandwidth_gbps=1"}},
			[]CurvePoint{{Step: new(4.0), Figures: map[string]float64{"bandwidth_gbps": 80, "latency_us": 1.5}}},
		},
		"not a number": {
			[]logstream.Line{{Rank: logstream.NoRank, Text: "step=7 loss=nan"}},
			[]CurvePoint{{Step: new(7.0), NotANumber: true}},
		},
		"no figures": {[]logstream.Line{{Text: "hello"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sampler{stride: 1}
			for _, line := range test.lines {
				s.line(line)
			}
			got := s.points()
			if name == "an epoch on a line of its own" && len(got) == 1 {
				got[0].Step = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongCurvesAreSampled(t *testing.T) {
	s := &sampler{stride: 1}
	const n = 100_000
	for i := range n {
		s.line(logstream.Line{Rank: logstream.NoRank, Text: fmt.Sprintf("step=%d loss=%d", i, i)})
	}
	points := s.points()
	if len(points) > maxPoints+1 || len(points) < maxPoints/2 {
		t.Fatalf("%d points", len(points))
	}
	if *points[0].Step != 0 || *points[len(points)-1].Step != n-1 {
		t.Errorf("the curve is from %v to %v", *points[0].Step, *points[len(points)-1].Step)
	}
	distance := *points[1].Step - *points[0].Step
	for i := 2; i < len(points)-1; i++ {
		if *points[i].Step-*points[i-1].Step != distance {
			t.Fatalf("point %d is at %v after %v, others are %v apart", i, *points[i].Step, *points[i-1].Step, distance)
		}
	}
	if s.skipped() != n-len(points) {
		t.Errorf("%d are skipped", s.skipped())
	}
}

// TestCurvesReadTheLauncher: the launcher of an MPI job prints the output of all ranks, so that the logs of its workers are not read.
func TestCurvesReadTheLauncher(t *testing.T) {
	b := newBackend(t)
	serveJob(b)
	serveReport(b, v1alpha1.JobReportStatus{MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI"}})
	launcher := jobPod("train-launcher-x", trainOwner)
	launcher.Labels[mpi.LabelRole] = string(mpi.RoleLauncher)
	for _, pod := range []*corev1.Pod{launcher, jobPod("train-worker-0", trainOwner), jobPod("train-worker-1", trainOwner)} {
		b.Put(pod)
		b.Log(pod.Name, false).Say(time.Now(), "step=1 loss=2.5")
	}
	w := request(t, newServerFor(t, b, Options{}), "user-ada", http.MethodGet, "/namespaces/team/jobs/mpijob/train/curves", "")
	var found Curves
	if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil || len(found.Points) != 1 || b.Opened() != 1 {
		t.Errorf("%d logs were read: %s", b.Opened(), w.Body)
	}
}
