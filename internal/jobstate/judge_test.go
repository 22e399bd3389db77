package jobstate_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestJudge(t *testing.T) {
	job := mpitest.Job(2)
	since := mpitest.Job(2, func(j *mpi.Job) { j.Created = mpitest.Now.Add(-time.Minute) })
	createdAt := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(at) }
	}
	afterWorkers := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })
	never := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.RestartPolicy = corev1.RestartPolicyNever })
	workers := func(phase corev1.PodPhase) []jobstate.Worker { return mpitest.Workers(job, phase) }
	up := []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}
	failed := func(reason, message string) *batchv1.Job {
		l := mpitest.Launcher(job, batchv1.JobFailed)
		l.Status.Conditions[0].Reason, l.Status.Conditions[0].Message = reason, message
		return l
	}
	suspended := func(launcher *batchv1.Job) *batchv1.Job {
		launcher.Spec.Suspend = new(true)
		return launcher
	}
	failedTimes := func(n int32) *batchv1.Job {
		launcher := mpitest.Launcher(job)
		launcher.Status.Failed = n
		return launcher
	}
	failures := func(n int) (pods []*corev1.Pod) {
		for try := range n {
			pods = append(pods, mpitest.LauncherPod(job, try, corev1.PodFailed, mpitest.Exited(13, "Error")))
		}
		return pods
	}
	tests := map[string]struct {
		job     mpi.Job
		seen    jobstate.Observed
		phase   v1alpha1.Phase
		reason  string
		message string
		trouble bool
	}{
		"nothing exists": {
			job: job, phase: v1alpha1.PhasePending, reason: codes.PodsStarting,
			message: "0 of 2 workers running, launcher not started.",
		},
		"workers start": {
			job: job, seen: jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodPending)}},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting,
			message: "1 of 2 workers running, launcher not started.",
		},
		"launcher runs before the workers": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: workers(corev1.PodPending)},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting,
			message: "0 of 2 workers running, launcher running.",
		},
		"launcher waits for the workers": {
			job: afterWorkers, seen: jobstate.Observed{Workers: workers(corev1.PodPending)},
			phase: v1alpha1.PhaseInitializing, reason: codes.WaitingForWorkers,
			message: "0 of 2 workers running, 0 ready. The launcher starts when all are ready.",
		},
		"all run": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 2 workers running.",
		},
		"one of the workers is on its way out": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodRunning, mpitest.Leaving),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting, message: "1 of 2 workers running, launcher running.",
		},
		"the launcher's pod succeeded before its Job": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}, Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseSucceeded, reason: codes.Succeeded, message: "MPIJob ns/pi successfully completed.",
		},
		"the launcher's pod succeeded while it was deleted": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded, mpitest.Leaving)}, Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 2 workers running.",
		},
		"the launcher is between two attempts, and all pods have the phase Running": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), Workers: workers(corev1.PodRunning), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodRunning, mpitest.Waiting("CrashLoopBackOff", "back-off 10s restarting failed container"), func(p *corev1.Pod) {
					p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7}
				}),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.CrashLoop, trouble: true,
			message: `The launcher keeps crashing: container "main" exited with code 7 in attempt 1 of 6. Check its log.`,
		},
		"the launcher's next pod is not there yet": {
			job: never, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), Workers: workers(corev1.PodRunning), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error")), mpitest.LauncherPod(job, 1, corev1.PodFailed, mpitest.Exited(7, "Error")),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting,
			message: "2 of 2 workers running, launcher exited with code 7 in attempt 2 of 7.",
		},
		"the second attempt runs": {
			job: never, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), Workers: workers(corev1.PodRunning), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error")), mpitest.LauncherPod(job, 1, corev1.PodRunning),
			}},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 2 workers running. Attempt 2 of 7.",
		},
		"a job without workers runs": {
			job: mpitest.Job(0), seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher running.",
		},
		"the launcher's pod succeeded and its Job is suspended": {
			job: job, seen: jobstate.Observed{Launcher: suspended(mpitest.Launcher(job)), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}, Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 2 workers running.",
		},
		"another controller has to report the success": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.External = true }),
			seen:  jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}, Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 2 workers running.",
		},
		"the launcher's last pod failed before its Job": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(1)) }),
			seen:  jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: failures(2), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseFailed, reason: "BackoffLimitExceeded",
			message: "Job has reached the specified backoff limit: the launcher exited with code 13",
		},
		"the launcher's last pod failed, others are gone": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(2)) }),
			seen:  jobstate.Observed{Launcher: failedTimes(3), LauncherPods: failures(1), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseFailed, reason: "BackoffLimitExceeded",
			message: "Job has reached the specified backoff limit: the launcher exited with code 13",
		},
		"the launcher's pod failed and is started again": {
			job: mpitest.Job(2, func(j *mpi.Job) {
				j.Lifecycle.BackoffLimit, j.Launcher.RestartPolicy = new(int32(2)), corev1.RestartPolicyNever
			}),
			seen:  jobstate.Observed{Launcher: failedTimes(2), LauncherPods: failures(2), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting, message: "2 of 2 workers running, launcher exited with code 13 in attempt 2 of 3.",
		},
		"six retries are the default": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: failures(7), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseFailed, reason: "BackoffLimitExceeded",
			message: "Job has reached the specified backoff limit: the launcher exited with code 13",
		},
		"the sixth failure is not the last": {
			job: never, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: failures(6), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting, message: "2 of 2 workers running, launcher exited with code 13 in attempt 6 of 7.",
		},
		"suspended": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true }),
			phase: v1alpha1.PhaseSuspended, reason: codes.Suspended,
			message: "Suspended by its own field spec.runPolicy.suspend. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume pi -n ns.",
		},
		"created suspended": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Generation, j.Lifecycle.Suspended = 1, true }),
			phase: v1alpha1.PhaseSuspended, reason: codes.Suspended,
			message: "Suspended since its creation by its own field spec.runPolicy.suspend. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume pi -n ns.",
		},
		"suspended TrainJob": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Kind, j.Lifecycle.Suspended = mpi.KindTrainJob, true }),
			phase: v1alpha1.PhaseSuspended, reason: codes.Suspended,
			message: "Suspended by its own field spec.suspend. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume pi -n ns.",
		},
		"complete": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete), Workers: workers(corev1.PodRunning)},
			phase: v1alpha1.PhaseSucceeded, reason: codes.Succeeded, message: "MPIJob ns/pi successfully completed.",
		},
		"complete wins over suspended": {
			job: mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true }), seen: jobstate.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete)},
			phase: v1alpha1.PhaseSucceeded, reason: codes.Succeeded, message: "MPIJob ns/pi successfully completed.",
		},
		"failed without a word": {
			job: job, seen: jobstate.Observed{Launcher: failed("", "")},
			phase: v1alpha1.PhaseFailed, reason: codes.Failed, message: "MPIJob ns/pi has failed",
		},
		"failed for the last time": {
			job: job, seen: jobstate.Observed{
				Launcher:     failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error")), mpitest.LauncherPod(job, 1, corev1.PodFailed, mpitest.Exited(13, "Error"))},
			},
			phase: v1alpha1.PhaseFailed, reason: "BackoffLimitExceeded",
			message: "Job has reached the specified backoff limit: the launcher exited with code 13",
		},
		"failed for the last time with the pod's own reason": {
			job: job, seen: jobstate.Observed{
				Launcher: failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, func(p *corev1.Pod) {
					p.Status.Reason, p.Status.Message = "Evicted", "The node was low on memory"
				})},
			},
			phase: v1alpha1.PhaseFailed, reason: "BackoffLimitExceeded/Evicted",
			message: "Job has reached the specified backoff limit: The node was low on memory",
		},
		"what the record says of the end is final": {
			job:   mpitest.Job(2, func(j *mpi.Job) { j.Recorded.Finish = &mpi.Finish{Reason: "Why", Message: "because", At: mpitest.Now} }),
			seen:  jobstate.Observed{Launcher: mpitest.Launcher(job, batchv1.JobComplete)},
			phase: v1alpha1.PhaseFailed, reason: "Why", message: "because",
		},
		"an earlier job's pods are there": {
			job: job, seen: jobstate.Observed{Earlier: []*corev1.Pod{
				mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Spec.NodeName = "node-7" }).Pod, mpitest.LauncherPod(job, 0, corev1.PodRunning),
			}},
			phase: v1alpha1.PhasePending, reason: codes.WaitingForEarlierJob,
			message: "Waiting for 2 pods of an earlier job with the same name to be deleted: pi-worker-1 on node node-7 and 1 more.",
		},
		"pods of its earlier launcher are there": {
			job: since, seen: jobstate.Observed{Earlier: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, createdAt(mpitest.Now))}},
			phase: v1alpha1.PhasePending, reason: codes.WaitingForEarlierJob,
			message: "Waiting for 1 pod of an earlier attempt of the job to be deleted: pi-launcher-0.",
		},
		"it was put back, and its launcher's pod is there": {
			job: since, seen: jobstate.Observed{
				Earlier: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, createdAt(mpitest.Now))},
				Gang:    &jobstate.GangState{Wanted: 3, Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second)},
			},
			phase: v1alpha1.PhaseGangScheduling, reason: codes.WaitingForPlaces,
			message: "Waiting for capacity: 3 pods requested. Requeued once, last at 10:00:00 UTC, next attempt at 10:00:30 UTC.",
		},
		"it was put back, and an earlier job's pod is there": {
			job: since, seen: jobstate.Observed{
				Earlier: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, createdAt(mpitest.Now.Add(-time.Hour)))},
				Gang:    &jobstate.GangState{Wanted: 3, Hold: true, Attempts: 1, EvictedAt: mpitest.Now, NextTry: mpitest.Now.Add(30 * time.Second)},
			},
			phase: v1alpha1.PhasePending, reason: codes.WaitingForEarlierJob,
			message: "Waiting for 1 pod of an earlier job with the same name to be deleted: pi-launcher-0.",
		},
		"image cannot be pulled": {
			job: job, seen: jobstate.Observed{Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodPending, mpitest.Waiting("ErrImagePull", "not found")),
				mpitest.Worker(job, 1, corev1.PodPending, mpitest.Waiting("ImagePullBackOff", `Back-off pulling image "quay.io/nobody/nothing:1": ErrImagePull: not found`)),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.ImagePullFailed, trouble: true,
			message: `Worker 0 cannot start: image "quay.io/nobody/nothing:1" cannot be pulled: not found. Check the image name and the pull secret. (and 1 more pod)`,
		},
		"image of an initializer cannot be pulled": {
			job: job, seen: jobstate.Observed{Initializers: []*corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mpi.LabelJobSetJob: "model-initializer"}},
				Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
					Image: "quay.io/nobody/nothing:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
				}}},
			}}},
			phase: v1alpha1.PhasePending, reason: codes.ImagePullFailed, trouble: true,
			message: `The model-initializer cannot start: image "quay.io/nobody/nothing:1" cannot be pulled: not found. Check the image name and the pull secret.`,
		},
		"no node for a worker": {
			job: job, seen: jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodPending, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu"}}
			})}},
			phase: v1alpha1.PhaseInitializing, reason: codes.Unschedulable, trouble: true,
			message: "Worker 0 cannot be scheduled: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
		},
		"a Secret is missing": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodPending, mpitest.Waiting("CreateContainerConfigError", `secret "token" not found`)),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.ContainerCreateFailed, trouble: true,
			message: `The launcher cannot start: container "main" cannot be created: secret "token" not found.`,
		},
		"the launcher does not stay up": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{
				mpitest.LauncherPod(job, 0, corev1.PodPending, mpitest.Waiting("CrashLoopBackOff", "back-off 10s"), func(p *corev1.Pod) {
					c := &p.Status.ContainerStatuses[0]
					c.RestartCount, c.LastTerminationState.Terminated = 2, &corev1.ContainerStateTerminated{ExitCode: 139}
				}),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.CrashLoop, trouble: true,
			message: `The launcher keeps crashing: container "main" exited with code 139 (signal 11) in attempt 3 of 6. Check its log.`,
		},
		"a worker was evicted": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			}},
			phase: v1alpha1.PhaseFailed, reason: "MPIJobEvicted", message: "1/2 workers are evicted",
		},
		"a worker was evicted and is replaced": {
			job: mpitest.Job(2, func(j *mpi.Job) { j.Workers.RestartPolicy = corev1.RestartPolicyOnFailure }),
			seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.WorkerFailed, trouble: true, message: "Worker 1 failed (Evicted).",
		},
		"a worker was evicted that the job no longer wants": {
			job: mpitest.Job(1), seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			}},
			phase: v1alpha1.PhaseRunning, reason: codes.Running, message: "Launcher and 1 worker running.",
		},
		"a worker ran out of memory and the launcher failed after it": {
			job: job, seen: jobstate.Observed{
				Launcher:     mpitest.Launcher(job),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, restarted(mpitest.Now))},
				Workers: []jobstate.Worker{
					mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled"), endedOn(mpitest.Now)),
				},
			},
			phase: v1alpha1.PhaseFailed, reason: codes.WorkerFailed,
			message: "Worker 1 failed: it exceeded its memory limit (OOMKilled). The launcher then failed. Retries do not help, since failed workers are not replaced: their restartPolicy is not OnFailure.",
		},
		"a worker failed after the launcher's last failure": {
			job: job, seen: jobstate.Observed{
				Launcher:     mpitest.Launcher(job),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, restarted(mpitest.Now.Add(-time.Minute)))},
				Workers: []jobstate.Worker{
					mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(1, "Error"), endedOn(mpitest.Now)),
				},
			},
			phase: v1alpha1.PhaseInitializing, reason: codes.WorkerFailed, trouble: true, message: "Worker 1 failed: it exited with code 1.",
		},
		"a worker ran out of memory": {
			job: job, seen: jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: up, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")),
			}},
			phase: v1alpha1.PhaseInitializing, reason: codes.WorkerFailed, trouble: true,
			message: "Worker 1 failed: it exceeded its memory limit (OOMKilled).",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.seen.Now = mpitest.Now
			out := jobstate.Judge(test.job, test.seen)
			if out.Phase != test.phase || out.Reason != test.reason || out.Message != test.message || out.NeedsAction != test.trouble {
				t.Errorf("got  %s %s trouble=%v %q\nwant %s %s trouble=%v %q",
					out.Phase, out.Reason, out.NeedsAction, out.Message, test.phase, test.reason, test.trouble, test.message)
			}
			if ended := test.phase == v1alpha1.PhaseSucceeded || test.phase == v1alpha1.PhaseFailed; ended != (out.Finish != nil) {
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
	out := jobstate.Judge(job, jobstate.Observed{
		Launcher: launcher, LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 3, corev1.PodRunning)},
		Workers: []jobstate.Worker{
			mpitest.Worker(job, 0, corev1.PodRunning),
			mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Status.Conditions = nil }),
			mpitest.Worker(job, 2, corev1.PodRunning, mpitest.Leaving),
			mpitest.Worker(job, 3, corev1.PodFailed),
		},
	})
	if want := (jobstate.Tally{Wanted: 4, Active: 3, Running: 2, Ready: 1, Failed: 1}); out.Workers != want {
		t.Errorf("workers: got %+v, want %+v", out.Workers, want)
	}
	if want := (jobstate.Tally{Wanted: 1, Active: 1, Running: 1, Ready: 1, Failed: 3}); *out.Launcher != want {
		t.Errorf("launcher: got %+v, want %+v", *out.Launcher, want)
	}
}

func TestRefused(t *testing.T) {
	out := jobstate.Judge(mpitest.Job(1), jobstate.Observed{})
	tests := map[string]struct {
		refusals []jobstate.Refusal
		reason   string
		message  string
		trouble  bool
	}{
		"none": {reason: codes.PodsStarting, message: out.Message},
		"a stranger's object": {
			refusals: []jobstate.Refusal{{Kind: "Service", Name: "pi", Taken: true}}, reason: codes.ErrResourceExists, trouble: true,
			message: `Resource "pi" of Kind "Service" already exists and is not managed by MPIJob. Delete or rename it, or rename the job.`,
		},
		"an earlier job's object": {
			refusals: []jobstate.Refusal{{Kind: "Pod", Name: "pi-worker-0", Taken: true, Leaving: true}, {Kind: "Pod", Name: "pi-worker-1", Taken: true, Leaving: true}},
			reason:   codes.ErrResourceExists, message: `Waiting for Pod "pi-worker-0" of an earlier job to be deleted. (and 1 more object)`,
		},
		"quota": {
			refusals: []jobstate.Refusal{{Kind: "Pod", Name: "pi-worker-3", Message: "exceeded quota: pods"}}, reason: codes.ObjectRefused, trouble: true,
			message: `The API server rejected Pod "pi-worker-3": exceeded quota: pods`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := out.Refused(mpitest.Job(1), test.refusals)
			if got.Reason != test.reason || got.Message != test.message || got.NeedsAction != test.trouble {
				t.Errorf("got %s trouble=%v %q\nwant %s trouble=%v %q", got.Reason, got.NeedsAction, got.Message, test.reason, test.trouble, test.message)
			}
		})
	}
	done := jobstate.Judge(mpitest.Job(1), jobstate.Observed{Launcher: mpitest.Launcher(mpitest.Job(1), batchv1.JobComplete)})
	if got := done.Refused(mpitest.Job(1), []jobstate.Refusal{{Kind: "Pod"}}); got.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("a refusal turned a finished job %s", got.Phase)
	}
}

func TestInvalid(t *testing.T) {
	out := jobstate.Invalid(field.ErrorList{
		field.Invalid(field.NewPath("spec", "slotsPerWorker"), -1, "must be 0 or more"),
		field.Required(field.NewPath("spec", "mpiReplicaSpecs"), "must have a launcher"),
	})
	for _, want := range []string{"(2 errors)", "spec.slotsPerWorker: Invalid value: -1", "spec.mpiReplicaSpecs: Required"} {
		if !strings.Contains(out.Message, want) {
			t.Errorf("message %q lacks %q", out.Message, want)
		}
	}
}
