package mpijob

import (
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// step is an outcome and the time at which it was judged, in seconds after the first.
type step struct {
	at  time.Duration
	out mpi.Outcome
}

var (
	launcherUp = &mpi.Tally{Wanted: 1, Active: 1}
	starting   = mpi.Outcome{Phase: mpi.PhaseInitializing, Reason: mpi.ReasonPodsStarting, Message: "0 of 2 workers run; the launcher has not started.", Launcher: &mpi.Tally{Wanted: 1}, Workers: mpi.Tally{Wanted: 2}}
	running    = mpi.Outcome{Phase: mpi.PhaseRunning, Reason: mpi.ReasonRunning, Launcher: launcherUp, Workers: mpi.Tally{Wanted: 2, Active: 2}}
	suspended  = mpi.Outcome{Phase: mpi.PhaseSuspended, Reason: mpi.ReasonSuspended, Launcher: &mpi.Tally{}, Workers: mpi.Tally{Wanted: 2}}
	noImage    = mpi.Outcome{Phase: mpi.PhaseInitializing, Reason: mpi.ReasonImagePull, Message: "Worker 0 cannot start.", Trouble: true, Workers: mpi.Tally{Wanted: 2}}
	invalid    = mpi.Outcome{Phase: mpi.PhasePending, Reason: mpi.ReasonInvalid, Message: "spec: no", Trouble: true}
)

func ended(succeeded bool, reason string, after time.Duration) mpi.Outcome {
	phase := mpi.PhaseFailed
	if succeeded {
		phase = mpi.PhaseSucceeded
	}
	return mpi.Outcome{
		Phase: phase, Reason: reason, Message: "The end.", Launcher: &mpi.Tally{Succeeded: 1}, Workers: mpi.Tally{Wanted: 2},
		Finish: &mpi.Finish{Succeeded: succeeded, Reason: reason, Message: "The end.", At: mpitest.Now.Add(after)},
	}
}

// TestStatus takes jobs through their lives; golden files show the status at the end and every event.
func TestStatus(t *testing.T) {
	tests := map[string][]step{
		"succeeds":               {{0, starting}, {10, running}, {70, ended(true, mpi.ReasonSucceeded, 70*time.Second)}},
		"succeeds-unseen":        {{0, starting}, {70, ended(true, mpi.ReasonSucceeded, 65*time.Second)}},
		"fails":                  {{0, starting}, {10, running}, {70, ended(false, mpi.ReasonFailed, 70*time.Second)}},
		"fails-with-reason":      {{0, starting}, {10, running}, {70, ended(false, "BackoffLimitExceeded/Evicted", 70*time.Second)}},
		"suspended-from-start":   {{0, suspended}},
		"suspended-and-resumed":  {{0, starting}, {10, running}, {20, suspended}, {50, starting}, {60, running}},
		"image-cannot-be-pulled": {{0, starting}, {5, noImage}, {6, noImage}, {40, running}},
		"invalid":                {{0, invalid}, {5, invalid}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			object := mpitest.MPIJob("ns", 2)
			var told []string
			for _, s := range steps {
				next, events := Kind{}.Status(object, s.out, mpitest.Now.Add(s.at*time.Second))
				for _, e := range events {
					kind := "Normal"
					if e.Warning {
						kind = "Warning"
					}
					told = append(told, strings.Join([]string{kind, e.Reason, e.Message}, " "))
				}
				if next != nil {
					object = next.(*kubeflow.MPIJob)
				}
			}
			mpitest.Golden(t, name, map[string]any{"status": object.Status, "events": told})
		})
	}
}

func TestStatusUnchanged(t *testing.T) {
	object := mpitest.MPIJob("ns", 2)
	next, _ := Kind{}.Status(object, running, mpitest.Now)
	if again, events := (Kind{}).Status(next, running, mpitest.Now.Add(time.Hour)); again != nil || events != nil {
		t.Errorf("the same outcome changed the status to %+v with events %v", again, events)
	}
	if len(object.Status.Conditions) > 0 {
		t.Error("the object itself was changed; it may be shared with a cache")
	}
}

func TestStatusIsFinal(t *testing.T) {
	done, _ := Kind{}.Status(mpitest.MPIJob("ns", 2), ended(true, mpi.ReasonSucceeded, 0), mpitest.Now)
	if again, _ := (Kind{}).Status(done, running, mpitest.Now); again != nil {
		t.Errorf("a finished job's status changed to %+v", again)
	}
}
