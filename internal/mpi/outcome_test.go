package mpi_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestJudge(t *testing.T) {
	job := mpitest.Job(2)
	afterWorkers := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })
	workers := func(phase corev1.PodPhase) []mpi.Worker { return mpitest.Workers(job, phase) }
	up := []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}
	failed := func(reason, message string) *batchv1.Job {
		l := mpitest.Launcher(job, batchv1.JobFailed)
		l.Status.Conditions[0].Reason, l.Status.Conditions[0].Message = reason, message
		return l
	}
	tests := map[string]struct {
		job     mpi.Job
		seen    mpi.Observed
		phase   mpi.Phase
		reason  string
		message string
		trouble bool
	}{
		"nothing exists": {
			job: job, phase: mpi.PhasePending, reason: mpi.ReasonPodsStarting,
			message: "0 of 2 workers run; the launcher has not started.",
		},
		"workers start": {
			job: job, seen: mpi.Observed{Workers: []mpi.Worker{mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodPending)}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonPodsStarting,
			message: "1 of 2 workers run; the launcher has not started.",
		},
		"launcher runs before the workers": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: workers(corev1.PodPending)},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonPodsStarting,
			message: "0 of 2 workers run; the launcher runs.",
		},
		"launcher waits for the workers": {
			job: afterWorkers, seen: mpi.Observed{Workers: workers(corev1.PodPending)},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonWaitingForWorker,
			message: "0 of 2 workers run, 0 of them ready; the launcher is started when all are.",
		},
		"all run": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: workers(corev1.PodRunning)},
			phase: mpi.PhaseRunning, reason: mpi.ReasonRunning, message: "The launcher and 2 workers run.",
		},
		"one of the workers is on its way out": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []mpi.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodRunning, mpitest.Leaving),
			}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonPodsStarting, message: "1 of 2 workers run; the launcher runs.",
		},
		"the launcher has ended well and its Job does not say so yet": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}, Workers: workers(corev1.PodRunning)},
			phase: mpi.PhaseRunning, reason: mpi.ReasonRunning, message: "The launcher and 2 workers run.",
		},
		"suspended": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true }),
			phase: mpi.PhaseSuspended, reason: mpi.ReasonSuspended, message: "The job is suspended; its pods are removed until it is resumed.",
		},
		"complete": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete), Workers: workers(corev1.PodRunning)},
			phase: mpi.PhaseSucceeded, reason: mpi.ReasonSucceeded, message: "MPIJob ns/pi successfully completed.",
		},
		"complete wins over suspended": {
			job: mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true }), seen: mpi.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete)},
			phase: mpi.PhaseSucceeded, reason: mpi.ReasonSucceeded, message: "MPIJob ns/pi successfully completed.",
		},
		"failed without a word": {
			job: job, seen: mpi.Observed{Launcher: failed("", "")},
			phase: mpi.PhaseFailed, reason: mpi.ReasonFailed, message: "MPIJob ns/pi has failed",
		},
		"failed for the last time": {
			job: job, seen: mpi.Observed{
				Launcher:     failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error")), mpitest.LauncherPod(job, 1, corev1.PodFailed, mpitest.Exited(13, "Error"))},
			},
			phase: mpi.PhaseFailed, reason: "BackoffLimitExceeded",
			message: "Job has reached the specified backoff limit: the launcher ended with code 13",
		},
		"failed for the last time with the pod's own reason": {
			job: job, seen: mpi.Observed{
				Launcher: failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, func(p *corev1.Pod) {
					p.Status.Reason, p.Status.Message = "Evicted", "The node was low on memory"
				})},
			},
			phase: mpi.PhaseFailed, reason: "BackoffLimitExceeded/Evicted",
			message: "Job has reached the specified backoff limit: The node was low on memory",
		},
		"what the record says of the end is final": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Past.Finish = &mpi.Finish{Reason: "Why", Message: "because", At: mpitest.Now} }),
			seen:  mpi.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete)},
			phase: mpi.PhaseFailed, reason: "Why", message: "because",
		},
		"an earlier job's pods are there": {
			job: job, seen: mpi.Observed{Earlier: []*corev1.Pod{
				mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Spec.NodeName = "node-7" }).Pod, mpitest.LauncherPod(job, 0, corev1.PodRunning),
			}},
			phase: mpi.PhasePending, reason: mpi.ReasonEarlierJob,
			message: "Waiting for 2 pods of an earlier job of the same name to be gone: pi-worker-1 on node node-7 and others.",
		},
		"image cannot be pulled": {
			job: job, seen: mpi.Observed{Workers: []mpi.Worker{
				mpitest.Worker(job, 0, corev1.PodPending, mpitest.Waiting("ErrImagePull", "not found")),
				mpitest.Worker(job, 1, corev1.PodPending, mpitest.Waiting("ImagePullBackOff", `Back-off pulling image "quay.io/nobody/nothing:1": ErrImagePull: not found`)),
			}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonImagePull, trouble: true,
			message: `Worker 0 cannot start: its image "quay.io/nobody/nothing:1" cannot be pulled: not found. Check the image's name, and that the namespace has a pull secret for its registry. (The same for 1 pod more.)`,
		},
		"no node for a worker": {
			job: job, seen: mpi.Observed{Workers: []mpi.Worker{mpitest.Worker(job, 0, corev1.PodPending, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu"}}
			})}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonUnschedulable, trouble: true,
			message: "Worker 0 finds no node: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
		},
		"a Secret is missing": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodPending, mpitest.Waiting("CreateContainerConfigError", `secret "token" not found`)),
			}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonContainerCreate, trouble: true,
			message: `The launcher cannot start: its container "main" cannot be created: secret "token" not found.`,
		},
		"the launcher does not stay up": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodPending, mpitest.Waiting("CrashLoopBackOff", "back-off 10s"), func(p *corev1.Pod) {
					c := &p.Status.ContainerStatuses[0]
					c.RestartCount, c.LastTerminationState.Terminated = 2, &corev1.ContainerStateTerminated{ExitCode: 139}
				}),
			}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonCrashLoop, trouble: true,
			message: `The launcher does not stay up: its container "main" ended with code 139, that is by signal 11, and was started 3 times. Its log says why.`,
		},
		"a worker was evicted": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []mpi.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			}},
			phase: mpi.PhaseFailed, reason: "MPIJobEvicted", message: "1/2 workers are evicted",
		},
		"a worker was evicted that the job no longer wants": {
			job: mpitest.Job(1), seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []mpi.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			}},
			phase: mpi.PhaseRunning, reason: mpi.ReasonRunning, message: "The launcher and 1 worker run.",
		},
		"a worker ran out of memory and the launcher failed after it": {
			job: job, seen: mpi.Observed{
				Launcher:     mpitest.Launcher(job),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, restarted(mpitest.Now))},
				Workers: []mpi.Worker{
					mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled"), endedOn(mpitest.Now)),
				},
			},
			phase: mpi.PhaseFailed, reason: mpi.ReasonWorkerFailed,
			message: "Worker 1 failed: it was killed because it used more memory than its limit (OOMKilled). Then the launcher failed too; trying again would not help, since a failed worker is not started again.",
		},
		"a worker failed after the launcher's last failure": {
			job: job, seen: mpi.Observed{
				Launcher:     mpitest.Launcher(job),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, restarted(mpitest.Now.Add(-time.Minute)))},
				Workers: []mpi.Worker{
					mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(1, "Error"), endedOn(mpitest.Now)),
				},
			},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonWorkerFailed, trouble: true, message: "Worker 1 failed: it ended with code 1.",
		},
		"a worker ran out of memory": {
			job: job, seen: mpi.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []mpi.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")),
			}},
			phase: mpi.PhaseInitializing, reason: mpi.ReasonWorkerFailed, trouble: true,
			message: "Worker 1 failed: it was killed because it used more memory than its limit (OOMKilled).",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.seen.Now = mpitest.Now
			out := mpi.Judge(test.job, test.seen)
			if out.Phase != test.phase || out.Reason != test.reason || out.Message != test.message || out.Trouble != test.trouble {
				t.Errorf("got  %s %s trouble=%v %q\nwant %s %s trouble=%v %q",
					out.Phase, out.Reason, out.Trouble, out.Message, test.phase, test.reason, test.trouble, test.message)
			}
			if ended := test.phase == mpi.PhaseSucceeded || test.phase == mpi.PhaseFailed; ended != (out.Finish != nil) {
				t.Errorf("finish is %v in phase %s", out.Finish, out.Phase)
			}
		})
	}
}

// restarted makes a pod's container have failed at a time and run again.
func restarted(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(at)},
		}}}
	}
}

// endedOn sets the time at which a pod's container ended.
func endedOn(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(at) }
}

func TestJudgeCounts(t *testing.T) {
	job := mpitest.Job(4)
	launcher := mpitest.Launcher(job)
	launcher.Status.Failed = 3
	out := mpi.Judge(job, mpi.Observed{
		Launcher: launcher, LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 3, corev1.PodRunning)},
		Workers: []mpi.Worker{
			mpitest.Worker(job, 0, corev1.PodRunning),
			mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Status.Conditions = nil }),
			mpitest.Worker(job, 2, corev1.PodRunning, mpitest.Leaving),
			mpitest.Worker(job, 3, corev1.PodFailed),
		},
	})
	if want := (mpi.Tally{Wanted: 4, Active: 3, Running: 2, Ready: 1, Failed: 1}); out.Workers != want {
		t.Errorf("workers: got %+v, want %+v", out.Workers, want)
	}
	if want := (mpi.Tally{Wanted: 1, Active: 1, Running: 1, Ready: 1, Failed: 3}); *out.Launcher != want {
		t.Errorf("launcher: got %+v, want %+v", *out.Launcher, want)
	}
}

func TestJudgeFinishTime(t *testing.T) {
	job := mpitest.Job(1)
	completed := metav1.NewTime(mpitest.Now.Add(-time.Hour))
	launcher := mpitest.Launcher(job, batchv1.JobComplete)
	launcher.Status.CompletionTime = &completed
	if at := mpi.Judge(job, mpi.Observed{Now: mpitest.Now, Launcher: launcher}).Finish.At; !at.Equal(completed.Time) {
		t.Errorf("finished at %s, want the launcher's completion %s", at, completed)
	}
	bare := mpitest.Launcher(job, batchv1.JobFailed)
	bare.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	if at := mpi.Judge(job, mpi.Observed{Now: mpitest.Now, Launcher: bare}).Finish.At; !at.Equal(mpitest.Now) {
		t.Errorf("finished at %s, want now, %s: a finished job always has a time", at, mpitest.Now)
	}
}

func TestLauncherMayStart(t *testing.T) {
	job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })
	notReady := mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Status.Conditions = nil })
	if mpi.Judge(job, mpi.Observed{Workers: []mpi.Worker{mpitest.Worker(job, 0, corev1.PodRunning), notReady}}).LauncherMayStart {
		t.Error("the launcher may start although a worker is not ready")
	}
	if !mpi.Judge(job, mpi.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)}).LauncherMayStart {
		t.Error("the launcher may not start although all workers are ready")
	}
	atOnce := mpitest.Job(2)
	if !mpi.Judge(atOnce, mpi.Observed{}).LauncherMayStart {
		t.Error("the launcher may not start although nothing is in its way")
	}
	leaving := mpi.Observed{Workers: []mpi.Worker{mpitest.Worker(atOnce, 0, corev1.PodRunning, mpitest.Leaving)}}
	if mpi.Judge(atOnce, leaving).LauncherMayStart {
		t.Error("the launcher may start although a worker's host name leads to a pod on its way out")
	}
	leaving.Workers[0].Index = 2
	if !mpi.Judge(atOnce, leaving).LauncherMayStart {
		t.Error("the launcher waits for a worker that the job no longer wants")
	}
}

func TestRefused(t *testing.T) {
	out := mpi.Judge(mpitest.Job(1), mpi.Observed{})
	tests := map[string]struct {
		refusals []mpi.Refusal
		reason   string
		message  string
		trouble  bool
	}{
		"none": {reason: mpi.ReasonPodsStarting, message: out.Message},
		"a stranger's object": {
			refusals: []mpi.Refusal{{Kind: "Service", Name: "pi", Taken: true}}, reason: mpi.ReasonNameTaken, trouble: true,
			message: `Resource "pi" of Kind "Service" already exists and is not managed by MPIJob. It was left as it is; delete or rename it, or give the job another name.`,
		},
		"an earlier job's object": {
			refusals: []mpi.Refusal{{Kind: "Pod", Name: "pi-worker-0", Taken: true, Leaving: true}, {Kind: "Pod", Name: "pi-worker-1", Taken: true, Leaving: true}},
			reason:   mpi.ReasonNameTaken, message: `Waiting for Pod "pi-worker-0" of an earlier job to be gone. (And 1 object more.)`,
		},
		"quota": {
			refusals: []mpi.Refusal{{Kind: "Pod", Name: "pi-worker-3", Message: "exceeded quota: pods"}}, reason: mpi.ReasonRefused, trouble: true,
			message: `The API server refuses Pod "pi-worker-3": exceeded quota: pods`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := out.Refused(test.refusals)
			if got.Reason != test.reason || got.Message != test.message || got.Trouble != test.trouble {
				t.Errorf("got %s trouble=%v %q\nwant %s trouble=%v %q", got.Reason, got.Trouble, got.Message, test.reason, test.trouble, test.message)
			}
		})
	}
	done := mpi.Judge(mpitest.Job(1), mpi.Observed{Launcher: mpitest.Launcher(mpitest.Job(1), batchv1.JobComplete)})
	if got := done.Refused([]mpi.Refusal{{Kind: "Pod"}}); got.Phase != mpi.PhaseSucceeded {
		t.Errorf("a refusal turned a finished job %s", got.Phase)
	}
}

func TestInvalid(t *testing.T) {
	out := mpi.Invalid(field.ErrorList{
		field.Invalid(field.NewPath("spec", "slotsPerWorker"), -1, "must be 0 or more"),
		field.Required(field.NewPath("spec", "mpiReplicaSpecs"), "must have a launcher"),
	})
	for _, want := range []string{"(2 errors)", "spec.slotsPerWorker: Invalid value: -1", "spec.mpiReplicaSpecs: Required"} {
		if !strings.Contains(out.Message, want) {
			t.Errorf("message %q lacks %q", out.Message, want)
		}
	}
}
