package podstatus_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/podstatus"
)

var since = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func pod(phase corev1.PodPhase, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: conditions}}
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &since
	return pod
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: "0/2 nodes are available", LastTransitionTime: since}
}

func TestPhases(t *testing.T) {
	suspended := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}
	ready := condition(corev1.PodReady, corev1.ConditionTrue, "")
	tests := map[string]struct {
		pod                                *corev1.Pod
		running, isReady, ended, isStopped bool
	}{
		"pending":             {pod: pod(corev1.PodPending), isStopped: true},
		"running":             {pod: pod(corev1.PodRunning), running: true, isStopped: true},
		"ready":               {pod: pod(corev1.PodRunning, ready), running: true, isReady: true, isStopped: true},
		"not ready":           {pod: pod(corev1.PodRunning, condition(corev1.PodReady, corev1.ConditionFalse, "")), running: true, isStopped: true},
		"ready and deleted":   {pod: deleted(pod(corev1.PodRunning, ready))},
		"succeeded":           {pod: pod(corev1.PodSucceeded), ended: true},
		"failed":              {pod: pod(corev1.PodFailed), ended: true},
		"failed, and deleted": {pod: deleted(pod(corev1.PodFailed)), ended: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podstatus.IsRunning(test.pod); got != test.running {
				t.Errorf("IsRunning is %v", got)
			}
			if got := podstatus.IsReady(test.pod); got != test.isReady {
				t.Errorf("IsReady is %v", got)
			}
			if got := podstatus.HasEnded(test.pod); got != test.ended {
				t.Errorf("HasEnded is %v", got)
			}
			if got := podstatus.IsStopped(suspended, test.pod); got != test.isStopped {
				t.Errorf("IsStopped is %v", got)
			}
			if podstatus.IsStopped(&batchv1.Job{}, test.pod) {
				t.Error("IsStopped is true for a Job that is not suspended")
			}
		})
	}
}

func TestScheduling(t *testing.T) {
	tests := map[string]struct {
		condition                   corev1.PodCondition
		notScheduled, unschedulable bool
	}{
		"no condition":    {},
		"scheduled":       {condition: condition(corev1.PodScheduled, corev1.ConditionTrue, "")},
		"fits on no node": {condition: condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable), notScheduled: true, unschedulable: true},
		"gated":           {condition: condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated), notScheduled: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := pod(corev1.PodPending, test.condition)
			if got := podstatus.NotScheduled(pod); (got != nil) != test.notScheduled {
				t.Errorf("NotScheduled is %v", got)
			}
			message, is := podstatus.Unschedulable(pod)
			if is != test.unschedulable || is && message != test.condition.Message {
				t.Errorf("Unschedulable is %q, %v", message, is)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	pod := pod(corev1.PodRunning, condition(corev1.PodScheduled, corev1.ConditionTrue, ""), condition(corev1.PodReady, corev1.ConditionFalse, ""))
	if got := podstatus.ScheduledAt(pod); !got.Equal(since.Time) {
		t.Errorf("ScheduledAt is %v", got)
	}
	if got := podstatus.ReadyAt(pod); !got.IsZero() {
		t.Errorf("ReadyAt of a pod that is not ready is %v", got)
	}
}

func TestEffectivePhase(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	of := func(phase corev1.PodPhase, policy corev1.RestartPolicy, containers int, codes ...int32) *corev1.Pod {
		p := pod(phase)
		p.Spec.RestartPolicy, p.Spec.Containers = policy, make([]corev1.Container, containers)
		for _, code := range codes {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: since}},
			})
		}
		return p
	}
	restarted := of(corev1.PodRunning, corev1.RestartPolicyNever, 1, 0)
	restarted.Spec.Containers[0].RestartPolicy = &always
	one := of(corev1.PodRunning, corev1.RestartPolicyNever, 2, 0, 0)
	one.Status.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want corev1.PodPhase
	}{
		"runs":                             {of(corev1.PodRunning, corev1.RestartPolicyNever, 1), corev1.PodRunning},
		"starts":                           {of(corev1.PodPending, corev1.RestartPolicyNever, 1), corev1.PodPending},
		"one of two containers runs":       {one, corev1.PodRunning},
		"one of two containers is missing": {of(corev1.PodRunning, corev1.RestartPolicyNever, 2, 0), corev1.PodRunning},
		"all succeeded":                    {of(corev1.PodRunning, corev1.RestartPolicyOnFailure, 2, 0, 0), corev1.PodSucceeded},
		"one failed":                       {of(corev1.PodRunning, corev1.RestartPolicyNever, 2, 0, 1), corev1.PodFailed},
		"one failed and is restarted":      {of(corev1.PodRunning, corev1.RestartPolicyOnFailure, 2, 0, 1), corev1.PodRunning},
		"always restarted":                 {of(corev1.PodRunning, corev1.RestartPolicyAlways, 1, 0), corev1.PodRunning},
		"a container is always restarted":  {restarted, corev1.PodRunning},
		"deleted":                          {deleted(of(corev1.PodRunning, corev1.RestartPolicyNever, 1, 0)), corev1.PodRunning},
		"the kubelet has written it":       {of(corev1.PodFailed, corev1.RestartPolicyNever, 1, 0), corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podstatus.EffectivePhase(test.pod); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if at := podstatus.EndedAt(of(corev1.PodRunning, corev1.RestartPolicyNever, 1, 0)); !at.Equal(since.Time) {
		t.Errorf("it ended at %s", at)
	}
	if at := podstatus.EndedAt(pod(corev1.PodRunning)); !at.IsZero() {
		t.Errorf("a running pod ended at %s", at)
	}
}

func TestTimesOfAStart(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: since}}
	with := func(restarts int32, state corev1.ContainerState) *corev1.Pod {
		p := pod(corev1.PodRunning)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: state, RestartCount: restarts}}
		return p
	}
	has := func(kind corev1.PodConditionType, status corev1.ConditionStatus) *corev1.Pod {
		return pod(corev1.PodPending, condition(kind, status, ""))
	}
	for name, test := range map[string]struct {
		got  time.Time
		want bool
	}{
		"networked":          {podstatus.NetworkedAt(has(corev1.PodReadyToStartContainers, corev1.ConditionTrue)), true},
		"not networked":      {podstatus.NetworkedAt(has(corev1.PodReadyToStartContainers, corev1.ConditionFalse)), false},
		"initialized":        {podstatus.InitializedAt(has(corev1.PodInitialized, corev1.ConditionTrue)), true},
		"only networked":     {podstatus.InitializedAt(has(corev1.PodReadyToStartContainers, corev1.ConditionTrue)), false},
		"started":            {podstatus.StartedAt(with(0, running)), true},
		"ended":              {podstatus.StartedAt(with(0, ended)), true},
		"restarted":          {podstatus.StartedAt(with(1, running)), false},
		"waiting":            {podstatus.StartedAt(with(0, corev1.ContainerState{})), false},
		"without containers": {podstatus.StartedAt(pod(corev1.PodPending)), false},
	} {
		if test.want != test.got.Equal(since.Time) || !test.want && !test.got.IsZero() {
			t.Errorf("%s: %s", name, test.got)
		}
	}
}

// TestFirstAndLatestStart: a container that was restarted started first before that, and one that waits for its next start is not one that
// started. Those of other containers do not count.
func TestFirstAndLatestStart(t *testing.T) {
	t.Parallel()
	after := func(seconds int) metav1.Time { return metav1.NewTime(since.Add(time.Duration(seconds) * time.Second)) }
	running := func(seconds int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(seconds)}}
	}
	ended := func(seconds int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: after(seconds)}}
	}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, test := range map[string]struct {
		main          corev1.ContainerStatus
		first, latest metav1.Time
	}{
		"not started":                 {main: corev1.ContainerStatus{State: waits}},
		"started":                     {corev1.ContainerStatus{State: running(1)}, after(1), after(1)},
		"ended":                       {corev1.ContainerStatus{State: ended(1)}, after(1), after(1)},
		"restarted":                   {corev1.ContainerStatus{State: running(5), LastTerminationState: ended(1)}, after(1), after(5)},
		"waits for its next start":    {corev1.ContainerStatus{State: waits, LastTerminationState: ended(1)}, after(1), metav1.Time{}},
		"restarted after one unknown": {corev1.ContainerStatus{State: running(5), LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, after(5), after(5)},
	} {
		p := pod(corev1.PodRunning)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{test.main, {Name: "sidecar", State: running(3)}}
		if first, latest := podstatus.FirstStart(p), podstatus.LatestStart(p); !first.Equal(test.first.Time) || !latest.Equal(test.latest.Time) {
			t.Errorf("%s: it started first at %s and last at %s", name, first, latest)
		}
	}
}
