package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// inQueue is what is seen of a job that is not admitted, since its queue put it out at a time after the start of the test.
func inQueue(evicted time.Duration) jobstate.Observed {
	return jobstate.Observed{Queue: &jobstate.QueueState{
		Backend: "kueue", Name: "team", Reason: "GangTimeout", Requeues: 1, EvictedAt: mpitest.Now.Add(evicted), Message: "Not all pods were scheduled in time",
	}}
}

// unschedulable is what is seen of an admitted job whose scheduler finds no node for a pod.
func unschedulable(job mpi.Job, message string) jobstate.Observed {
	seen := pods(job, corev1.PodPending, 0, func(pod *corev1.Pod) { pod.Spec.NodeName = "" })
	seen.Queue = &jobstate.QueueState{Backend: "kueue", Name: "team", Admitted: true}
	seen.Workers[0].Pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
	}}
	return seen
}

func codesOf(findings []v1alpha1.Finding) (list []string) {
	for _, f := range findings {
		list = append(list, f.Code)
	}
	return list
}

// TestCauseOfAnAttemptInAQueue: the report of a job that is back in its queue names what kept its pods from starting, and when that was
// seen. A new attempt that gets further takes it back. A job that fails in the end names it in its root cause.
func TestCauseOfAnAttemptInAQueue(t *testing.T) {
	impossible := func(mpi.Job) jobstate.Observed {
		return jobstate.Observed{
			Queue: &jobstate.QueueState{Backend: "kueue", Name: "team", Admitted: true},
			Gang:  &jobstate.GangState{Backend: "podgroup", Wanted: 3, Hold: true, Never: true, Reason: codes.GangImpossible, Message: "the cluster has no API of PodGroups"},
		}
	}
	withoutNode := func(message string) func(mpi.Job) jobstate.Observed {
		return func(job mpi.Job) jobstate.Observed { return unschedulable(job, message) }
	}
	for name, test := range map[string]struct {
		attempt func(mpi.Job) jobstate.Observed
		code    codes.Code
		says    string
	}{
		"taint":            {withoutNode("0/2 nodes are available: 2 node(s) had untolerated taint {pool: other}."), codes.NoMatchingNode, "taints that the pod does not tolerate"},
		"affinity":         {withoutNode("0/2 nodes are available: 2 node(s) didn't match pod affinity rules."), codes.NoMatchingNode, "the pod's affinity to other pods"},
		"zone of a volume": {withoutNode("0/2 nodes are available: 2 node(s) had volume node affinity conflict."), codes.NoMatchingNode, "volume is in another zone"},
		"claim":            {withoutNode("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."), codes.VolumeClaimPending, "not bound"},
		"capacity":         {withoutNode("0/2 nodes are available: 2 Insufficient cpu."), codes.InsufficientResources, "2 CPUs requested per pod"},
		"no PodGroups":     {impossible, codes.GangImpossible, "the cluster has no API of PodGroups"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Queue = "team" })}
			has := func(what string, status v1alpha1.JobReportStatus, seenAt string, want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, codesOf(status.Findings)); diff != "" {
					t.Fatalf("%s (-want +got)\n%s", what, diff)
				}
				of := status.Findings[len(status.Findings)-1]
				at := slices.IndexFunc(of.Evidence, func(line string) bool { return strings.HasPrefix(line, "Last seen") })
				if seenAt == "" && at >= 0 || seenAt != "" && (at < 0 || !strings.Contains(of.Evidence[at], seenAt)) {
					t.Errorf("%s: the evidence is %q", what, of.Evidence)
				}
				if !strings.Contains(of.Summary, test.says) || len(of.Remedies) == 0 {
					t.Errorf("%s: %s\n%+v", what, of.Summary, of.Remedies)
				}
				if !strings.Contains(status.Message, test.says) {
					t.Errorf("%s: the message is %q", what, status.Message)
				}
			}
			suspended := func(is bool) { h.job.Lifecycle.Suspended = is }
			has("in its attempt", h.pass(0, test.attempt(h.job), jobstate.Evidence{}).Status, "", test.code)

			suspended(true)
			rests := h.pass(61*time.Second, inQueue(time.Minute), jobstate.Evidence{}).Status
			first := mpitest.Now.Add(time.Minute).UTC().Format(time.DateTime)
			has("in its queue", rests, first, test.code)
			if !strings.HasPrefix(rests.Message, "Waiting in queue team.") {
				t.Errorf("the message is %q", rests.Message)
			}
			before := h.last
			if h.pass(80*time.Second, inQueue(time.Minute), jobstate.Evidence{}); report.Changed(before, *h.last) {
				t.Errorf("the report changes while nothing happens\n%s", cmp.Diff(before.Status, h.last.Status))
			}

			suspended(false)
			starts := jobstate.Observed{Queue: &jobstate.QueueState{Backend: "kueue", Name: "team", Admitted: true}}
			has("admitted again", h.pass(2*time.Minute, starts, jobstate.Evidence{}).Status, first, test.code)
			has("in its next attempt", h.pass(2*time.Minute+time.Second, test.attempt(h.job), jobstate.Evidence{}).Status, "", test.code)

			suspended(true)
			has("in its queue again", h.pass(4*time.Minute, inQueue(3*time.Minute), jobstate.Evidence{}).Status, mpitest.Now.Add(3*time.Minute).UTC().Format(time.DateTime), test.code)
			again := *h

			suspended(false)
			h.pass(5*time.Minute, starts, jobstate.Evidence{})
			further := pods(h.job, corev1.PodPending, 5*time.Minute)
			further.Queue = starts.Queue
			if got := h.pass(6*time.Minute, further, jobstate.Evidence{}).Status; len(got.Findings) > 0 {
				t.Errorf("all pods have nodes, and its report has %v", codesOf(got.Findings))
			}

			h = &again
			suspended(true)
			gaveUp := inQueue(3 * time.Minute)
			gaveUp.Gang = &jobstate.GangState{Backend: "kueue", Wanted: 3, GaveUp: true, Attempts: 2, EvictedAt: mpitest.Now.Add(3 * time.Minute), Message: report.Obstacle(h.last)}
			failed := h.pass(5*time.Minute, gaveUp, jobstate.Evidence{}).Status
			has("failed", failed, mpitest.Now.Add(3*time.Minute).UTC().Format(time.DateTime), codes.GangTimeout, test.code)
			if root := failed.Findings[0]; failed.Failure.Code != codes.GangTimeout || !strings.Contains(root.Summary, test.says) || failed.Findings[1].Severity != v1alpha1.SeverityInfo {
				t.Errorf("it failed with %+v\n%+v", failed.Failure, failed.Findings)
			}
			has("failed for some time", h.pass(6*time.Minute, gaveUp, jobstate.Evidence{}).Status, mpitest.Now.Add(3*time.Minute).UTC().Format(time.DateTime), codes.GangTimeout, test.code)
		})
	}
}

// TestFindingsOfAnAttemptInAQueue has which findings of an attempt a job keeps in its queue, and how they stand with others.
func TestFindingsOfAnAttemptInAQueue(t *testing.T) {
	outOfMemory := func(job mpi.Job) jobstate.Observed {
		seen := pods(job, corev1.PodRunning, 0)
		seen.LauncherPods[0].Status.Phase = corev1.PodFailed
		mpitest.Exited(137, "OOMKilled")(seen.LauncherPods[0])
		return seen
	}
	running := func(job mpi.Job) jobstate.Observed { return pods(job, corev1.PodRunning, 0) }
	taint := func(job mpi.Job) jobstate.Observed {
		return unschedulable(job, "0/2 nodes are available: 2 node(s) had untolerated taint {pool: other}.")
	}
	gaveUp := func() jobstate.Observed {
		seen := inQueue(time.Minute)
		seen.Queue.Never, seen.Queue.Reason, seen.Queue.Message = true, "Deactivated", "too many requeues"
		return seen
	}
	tooLarge := func(mpi.Job) jobstate.Observed {
		seen := inQueue(0)
		seen.Queue.Never, seen.Queue.Reason, seen.Queue.Message = true, "ExceedsMaxQuota", "the quota is smaller"
		return seen
	}
	byUser := func() jobstate.Observed {
		seen := inQueue(time.Minute)
		seen.Queue.Stopped = true
		return seen
	}
	waits := func() jobstate.Observed { return inQueue(time.Minute) }
	for name, test := range map[string]struct {
		first, second func(mpi.Job) jobstate.Observed
		queue         func() jobstate.Observed
		want          []string
	}{
		"an attempt ended before a preemption":        {first: running, second: outOfMemory, queue: waits, want: []string{codes.OutOfMemory}},
		"a preemption of a healthy job":               {first: running, second: running, queue: waits},
		"its queue has given it up":                   {first: taint, second: taint, queue: gaveUp, want: []string{codes.QueueGaveUp, codes.NoMatchingNode}},
		"its queue has given up one that ended":       {first: running, second: outOfMemory, queue: gaveUp, want: []string{codes.QueueGaveUp, codes.OutOfMemory}},
		"it was too large for its queue, which grew":  {first: tooLarge, second: tooLarge, queue: waits},
		"its user suspends it":                        {first: taint, second: taint, queue: byUser},
		"the pods of its last attempt had found none": {first: taint, second: running, queue: waits},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Queue = "team" })}
			for i, attempt := range []func(mpi.Job) jobstate.Observed{test.first, test.second} {
				seen := attempt(h.job)
				h.job.Lifecycle.Suspended = seen.Queue != nil && !seen.Queue.Admitted
				h.pass(time.Duration(i)*time.Second, seen, jobstate.Evidence{})
			}
			h.job.Lifecycle.Suspended = true
			for i := range 2 {
				if got := h.pass(time.Minute+time.Duration(i)*time.Second, test.queue(), jobstate.Evidence{}).Status; !slices.Equal(codesOf(got.Findings), test.want) {
					t.Errorf("it is %s with %v: %s", got.Phase, codesOf(got.Findings), got.Message)
				}
			}
		})
	}
}

// TestEndOfAnAttemptBeforeAPreemption: a job whose launcher ended before it was preempted keeps why until the next attempt runs.
func TestEndOfAnAttemptBeforeAPreemption(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Queue = "team" })}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(0, seen, jobstate.Evidence{})
	seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	mpitest.Exited(137, "OOMKilled")(seen.LauncherPods[0])
	h.pass(time.Second, seen, jobstate.Evidence{})
	h.job.Lifecycle.Suspended = true
	h.pass(time.Minute, inQueue(time.Minute), jobstate.Evidence{})
	h.job.Lifecycle.Suspended = false
	starts := pods(h.job, corev1.PodPending, 2*time.Minute)
	if got := h.pass(2*time.Minute, starts, jobstate.Evidence{}).Status; !slices.Equal(codesOf(got.Findings), []string{codes.OutOfMemory}) {
		t.Errorf("it starts with %v", codesOf(got.Findings))
	}
	next := pods(h.job, corev1.PodRunning, 3*time.Minute)
	next.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(3 * time.Minute))}}}}
	if got := h.pass(3*time.Minute, next, jobstate.Evidence{}).Status; len(got.Findings) > 0 {
		t.Errorf("it runs with %v", codesOf(got.Findings))
	}
}
