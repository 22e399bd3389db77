package mpijob

import (
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// step is an outcome and the time at which it was judged, in seconds after the first.
type step struct {
	at  time.Duration
	out jobstate.Outcome
}

var (
	launcherUp = &jobstate.Tally{Wanted: 1, Active: 1}
	starting   = jobstate.Outcome{Phase: v1alpha1.PhaseInitializing, Reason: codes.PodsStarting, Message: "0 of 2 workers running, launcher not started.", Launcher: &jobstate.Tally{Wanted: 1}, Workers: jobstate.Tally{Wanted: 2}}
	waiting    = jobstate.Outcome{Phase: v1alpha1.PhaseGangScheduling, Reason: codes.WaitingForPlaces, Message: "Waiting for capacity.", Workers: jobstate.Tally{Wanted: 2}}
	running    = jobstate.Outcome{Phase: v1alpha1.PhaseRunning, Reason: codes.Running, Launcher: launcherUp, Workers: jobstate.Tally{Wanted: 2, Active: 2}}
	suspended  = jobstate.Outcome{Phase: v1alpha1.PhaseSuspended, Reason: codes.Suspended, Launcher: &jobstate.Tally{}, Workers: jobstate.Tally{Wanted: 2}}
	noImage    = jobstate.Outcome{Phase: v1alpha1.PhaseInitializing, Reason: codes.ImagePullFailed, Message: "Worker 0 cannot start.", NeedsAction: true, Workers: jobstate.Tally{Wanted: 2}}
	invalid    = jobstate.Outcome{Phase: v1alpha1.PhasePending, Reason: codes.ValidationError, Message: "spec: no", NeedsAction: true}
)

func ended(succeeded bool, reason string, after time.Duration) jobstate.Outcome {
	phase := v1alpha1.PhaseFailed
	if succeeded {
		phase = v1alpha1.PhaseSucceeded
	}
	return jobstate.Outcome{
		Phase: phase, Reason: reason, Message: "The end.", Launcher: &jobstate.Tally{Succeeded: 1}, Workers: jobstate.Tally{Wanted: 2},
		Finish: &mpi.Finish{Succeeded: succeeded, Reason: reason, Message: "The end.", At: mpitest.Now.Add(after)},
	}
}

// TestStatus takes jobs through their lives; golden files show the status at the end and every event.
func TestStatus(t *testing.T) {
	tests := map[string][]step{
		"succeeds":               {{0, starting}, {10, running}, {70, ended(true, codes.Succeeded, 70*time.Second)}},
		"succeeds-unseen":        {{0, starting}, {70, ended(true, codes.Succeeded, 65*time.Second)}},
		"fails":                  {{0, starting}, {10, running}, {70, ended(false, codes.Failed, 70*time.Second)}},
		"fails-with-reason":      {{0, starting}, {10, running}, {70, ended(false, "BackoffLimitExceeded/Evicted", 70*time.Second)}},
		"suspended-from-start":   {{0, suspended}},
		"suspended-and-resumed":  {{0, starting}, {10, running}, {20, suspended}, {50, starting}, {60, running}},
		"image-cannot-be-pulled": {{0, starting}, {5, noImage}, {6, noImage}, {40, running}},
		"waits-for-places":       {{0, waiting}},
		"invalid":                {{0, invalid}, {5, invalid}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			object := mpitest.MPIJob("ns", 2)
			var told []string
			for _, s := range steps {
				next, events := status(object, s.out, mpitest.Now.Add(s.at*time.Second))
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
	next, _ := status(object, running, mpitest.Now)
	if again, events := status(next.(*kubeflow.MPIJob), running, mpitest.Now.Add(time.Hour)); again != nil || events != nil {
		t.Errorf("the same outcome changed the status to %+v with events %v", again, events)
	}
	if len(object.Status.Conditions) > 0 {
		t.Error("the object itself was changed; it may be shared with a cache")
	}
}

func TestStatusIsFinal(t *testing.T) {
	done, _ := status(mpitest.MPIJob("ns", 2), ended(true, codes.Succeeded, 0), mpitest.Now)
	if again, _ := status(done.(*kubeflow.MPIJob), running, mpitest.Now); again != nil {
		t.Errorf("a finished job's status changed to %+v", again)
	}
}
