package gang_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// ago is so long before the time at which tests happen.
func ago(d time.Duration) time.Time { return mpitest.Now.Add(-d) }

// made gives a pod its age, and a node if it is said to have one since.
func made(before time.Duration, placed ...time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(ago(before))
		for _, since := range placed {
			pod.Spec.NodeName = "node-1"
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(since))}}
		}
	}
}

// startedAt sets when the containers of a pod started last.
func startedAt(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}}
	}
}

func TestClock(t *testing.T) {
	const wait = 10 * time.Minute
	job := mpitest.Job(2)
	named := mpitest.Job(2, func(j *mpi.Job) { j.Gang.Timeout, j.Gang.TimeoutSet = time.Minute, true })
	pending := func(changes ...func(*corev1.Pod)) jobstate.Observed {
		seen := jobstate.Observed{Now: mpitest.Now, Launcher: mpitest.Launcher(job)}
		for i, change := range changes {
			seen.Workers = append(seen.Workers, mpitest.Worker(job, i, corev1.PodPending, change))
		}
		return seen
	}
	admitted := func(seen jobstate.Observed, at time.Time) jobstate.Observed {
		seen.Queue = &jobstate.QueueState{Admitted: true, AdmittedAt: at}
		return seen
	}
	suspended := mpitest.Launcher(job)
	suspended.Spec.Suspend = new(true)
	tests := map[string]struct {
		job     mpi.Job
		seen    jobstate.Observed
		backend string
		wrong   string
		// free is set if the job's pods were created although they never fit, turn if others are to make room for them.
		free, turn bool
		past       gang.Past
		want       jobstate.GangState
	}{
		"half placed during its turn": {
			job: job, seen: pending(made(time.Hour, time.Hour), made(time.Hour)), past: gang.Past{Since: ago(time.Hour)}, turn: true,
			want: jobstate.GangState{Placed: 1, Turn: true, Since: ago(time.Hour)},
		},
		"half placed during its turn for longer than its user lets it": {
			job: named, seen: pending(made(time.Hour, time.Hour), made(time.Hour)), past: gang.Past{Since: ago(time.Hour)}, turn: true,
			want: jobstate.GangState{
				Placed: 1, Turn: true, Since: ago(time.Hour), Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second), Again: time.Millisecond,
			},
		},
		"it begins to wait": {job: job, seen: pending(), want: jobstate.GangState{Since: mpitest.Now}},
		"while no pod has a place it may wait": {
			job: job, seen: pending(made(24*time.Hour), made(24*time.Hour)), past: gang.Past{Since: ago(24 * time.Hour)},
			want: jobstate.GangState{Since: ago(24 * time.Hour)},
		},
		"as long as its user lets it": {
			job: named, seen: pending(made(50 * time.Second)), past: gang.Past{Since: ago(50 * time.Second)},
			want: jobstate.GangState{Since: ago(50 * time.Second), Again: 10 * time.Second},
		},
		"and then is put back": {
			job: named, seen: pending(made(time.Hour)), past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Since: ago(time.Hour), Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second), Again: time.Millisecond},
		},
		"while some have a place it may wait for ten minutes": {
			job: job, seen: pending(made(time.Hour, 4*time.Minute), made(time.Hour)), past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour), Again: 6 * time.Minute},
		},
		"and then is put back, each time for longer": {
			job: job, seen: pending(made(time.Hour, wait), made(time.Hour)), past: gang.Past{Since: ago(time.Hour), Attempts: 2, EvictedAt: ago(2 * time.Hour), NextTry: ago(time.Hour)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour), Hold: true, Attempts: 3, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(2 * time.Minute), Again: time.Millisecond},
		},
		"its pods have to go": {
			job: job, seen: pending(made(time.Hour, wait), made(time.Hour)), past: gang.Past{Since: ago(time.Hour), Attempts: 1, EvictedAt: ago(time.Second), NextTry: ago(-29 * time.Second)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour), Hold: true, Evict: true, Attempts: 1, EvictedAt: ago(time.Second), NextTry: ago(-29 * time.Second), Again: 29 * time.Second},
		},
		"an operator that was away removes them later": {
			job: job, seen: pending(made(2 * time.Hour)), past: gang.Past{Since: ago(2 * time.Hour), Attempts: 1, EvictedAt: ago(time.Hour), NextTry: ago(59 * time.Minute)},
			want: jobstate.GangState{Since: ago(2 * time.Hour), Hold: true, Evict: true, Attempts: 1, EvictedAt: ago(time.Hour), NextTry: ago(59 * time.Minute), Again: -59 * time.Minute},
		},
		"it rests": {
			job: job, seen: jobstate.Observed{Now: mpitest.Now, Launcher: suspended}, past: gang.Past{Since: ago(time.Hour), Attempts: 1, EvictedAt: ago(20 * time.Second), NextTry: ago(-10 * time.Second)},
			want: jobstate.GangState{Since: ago(time.Hour), Hold: true, Attempts: 1, EvictedAt: ago(20 * time.Second), NextTry: ago(-10 * time.Second), Again: 10 * time.Second},
		},
		"and is tried again": {
			job: named, seen: pending(made(10*time.Second), made(10*time.Second)), past: gang.Past{Since: ago(time.Hour), Attempts: 1, EvictedAt: ago(time.Minute), NextTry: ago(30 * time.Second)},
			want: jobstate.GangState{Since: ago(time.Hour), Attempts: 1, EvictedAt: ago(time.Minute), NextTry: ago(30 * time.Second), Again: 30 * time.Second},
		},
		"once too often: its pods have to go first": {
			job: job, seen: pending(made(time.Hour)), past: gang.Past{Since: ago(time.Hour), Attempts: 6, EvictedAt: ago(time.Second), NextTry: ago(-time.Hour)},
			want: jobstate.GangState{Since: ago(time.Hour), Hold: true, Evict: true, Attempts: 6, EvictedAt: ago(time.Second), NextTry: ago(-time.Hour), Again: time.Hour},
		},
		"and then it fails": {
			job: job, seen: jobstate.Observed{Now: mpitest.Now, Launcher: suspended}, past: gang.Past{Since: ago(time.Hour), Attempts: 6, EvictedAt: ago(time.Second), NextTry: ago(-time.Hour)},
			want: jobstate.GangState{Since: ago(time.Hour), Hold: true, GaveUp: true, Attempts: 6, EvictedAt: ago(time.Second), NextTry: ago(-time.Hour), Again: time.Hour},
		},
		"pods that were created although none fits have ten minutes in all": {
			job: job, seen: pending(made(wait, wait), made(wait)), free: true,
			want: jobstate.GangState{Placed: 1, Free: true, Since: mpitest.Now, Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second), Again: time.Millisecond},
		},
		"a launcher that runs may do without a worker": {
			job: job, seen: func() jobstate.Observed {
				seen := pending(made(time.Hour, time.Hour), made(time.Hour))
				seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, made(time.Hour, time.Hour), startedAt(ago(time.Hour)))}
				return seen
			}(), past: gang.Past{Since: ago(time.Hour), RanSince: ago(59 * time.Minute)},
			want: jobstate.GangState{Placed: 2, Since: ago(time.Hour)},
		},
		"a launcher's next attempt waits for workers that only ran before it": {
			job: job, seen: func() jobstate.Observed {
				seen := pending(made(4*time.Minute, 4*time.Minute), made(4*time.Minute))
				seen.LauncherPods = []*corev1.Pod{
					mpitest.LauncherPod(job, 0, corev1.PodFailed, made(time.Hour, time.Hour)),
					mpitest.LauncherPod(job, 1, corev1.PodRunning, made(4*time.Minute, 4*time.Minute), startedAt(ago(3*time.Minute))),
				}
				return seen
			}(), past: gang.Past{Since: ago(4 * time.Minute), RanSince: ago(59 * time.Minute)},
			want: jobstate.GangState{Placed: 2, Since: ago(4 * time.Minute), Again: 6 * time.Minute},
		},
		"a launcher that runs waits for workers that never were there": {
			job: job, seen: func() jobstate.Observed {
				seen := pending(made(5*time.Minute, 5*time.Minute), made(5*time.Minute))
				seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, made(5*time.Minute, 5*time.Minute))}
				return seen
			}(), past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Placed: 2, Since: ago(time.Hour), Again: 5 * time.Minute},
		},
		"a queue has its own clock": {
			job: job, seen: admitted(pending(made(time.Hour, time.Hour), made(time.Hour)), ago(time.Hour)), past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour)},
		},
		"a queue has none for a half placed job": {
			job: job, seen: admitted(pending(made(time.Hour, time.Hour), made(time.Hour)), ago(time.Hour)), backend: gang.Embedded, past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour), Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second), Again: time.Millisecond},
		},
		"a queue has the clock of its user's time until it has run": {
			job: named, seen: admitted(pending(made(time.Hour, time.Hour), made(time.Hour)), ago(time.Hour)), backend: gang.Embedded,
			past: gang.Past{Since: ago(time.Hour), RanSince: ago(2 * time.Hour)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Hour)},
		},
		"and none after that": {
			job: named, seen: admitted(pending(made(20*time.Second, 20*time.Second), made(20*time.Second)), ago(time.Hour)), backend: gang.Embedded,
			past: gang.Past{Since: ago(20 * time.Second), RanSince: ago(30 * time.Minute)},
			want: jobstate.GangState{Placed: 1, Since: ago(20 * time.Second), Again: 40 * time.Second},
		},
		"with any back end": {
			job: job, seen: admitted(pending(made(time.Minute, time.Minute), made(time.Minute)), ago(time.Hour)),
			past: gang.Past{Since: ago(time.Minute), RanSince: ago(30 * time.Minute)},
			want: jobstate.GangState{Placed: 1, Since: ago(time.Minute), Again: 9 * time.Minute},
		},
		"a job that can never be placed waits": {
			job: job, seen: jobstate.Observed{Now: mpitest.Now}, wrong: "not here", past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Since: ago(time.Hour), Hold: true, Never: true, Reason: codes.GangImpossible, Message: "not here"},
		},
		"as long as its user lets it wait": {
			job: named, seen: jobstate.Observed{Now: mpitest.Now}, wrong: "not here", past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{
				Since: ago(time.Hour), Hold: true, Never: true, Reason: codes.GangImpossible, Message: "not here",
				Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second), Again: time.Millisecond,
			},
		},
		"all have a place": {
			job: job, seen: func() jobstate.Observed {
				seen := pending(made(time.Hour, time.Hour), made(time.Hour, time.Hour))
				seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodPending, made(time.Hour, time.Hour))}
				return seen
			}(), past: gang.Past{Since: ago(time.Hour)},
			want: jobstate.GangState{Placed: 3},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			choice := gang.Choice{Backend: cmp.Or(test.backend, gang.PodGroup), Wrong: test.wrong}
			state := gang.State(choice, test.job, test.seen)
			state.Turn = test.turn
			if test.free {
				state.Free = true
				gang.Settle(test.job, test.seen, &state)
			}
			got := gang.Clock(test.job, test.seen, test.past, state)
			test.want.Backend, test.want.Wanted = choice.Backend, 3
			if diff := diff(test.want, got); diff != "" {
				t.Errorf("the state differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRest(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{1: 30 * time.Second, 2: time.Minute, 3: 2 * time.Minute, 5: 8 * time.Minute, 6: 10 * time.Minute, 100: 10 * time.Minute} {
		if got := gang.Rest(attempts); got != want {
			t.Errorf("after %d times it rests %s, want %s", attempts, got, want)
		}
	}
}

// TestGaveUp: a job that was put back too often has failed.
func TestGaveUp(t *testing.T) {
	job := mpitest.Job(2)
	seen := jobstate.Observed{Now: mpitest.Now, Gang: &jobstate.GangState{Hold: true, GaveUp: true, Wanted: 3, Attempts: 6, EvictedAt: mpitest.Now}}
	out := jobstate.Judge(job, seen)
	if out.Phase != v1alpha1.PhaseFailed || out.Reason != codes.GangTimeout {
		t.Errorf("it is %s of %s: %s", out.Phase, out.Reason, out.Message)
	}
	seen.Gang.Never, seen.Gang.Message = true, "Only 2 of 3 pods fit"
	if out := jobstate.Judge(job, seen); out.Reason != codes.GangNeverFits || !strings.Contains(out.Message, "Only 2 of 3 pods fit.") {
		t.Errorf("one that never fits fails with %s: %s", out.Reason, out.Message)
	}
	seen.Launcher = mpitest.Launcher(job, batchv1.JobComplete)
	if out := jobstate.Judge(job, seen); out.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("one that has succeeded is %s", out.Phase)
	}
}
