package dashboard

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestMessageOfAPod(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ended := func(code int32, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}
	}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"healthy":          {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: true}}}, ""},
		"an image":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "Back-off pulling image x: not found")}}, "Back-off pulling image x: not found"},
		"an init step":     {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(1, "no data")}}}, ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}, "no data"},
		"success":          {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(0, "done")}}}}, ""},
		"restarted":        {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{Terminated: ended(3, "")}}}}, "The run before ended with exit code 3 (Error)."},
		"evicted":          {corev1.PodStatus{Message: "The node was low on resource: memory."}, "The node was low on resource: memory."},
		"unschedulable":    {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}}, "0/3 nodes are available"},
		"a secret in it":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(1, "password=hunter2hunter2")}}}}, "password=****"},
		"terminal escapes": {corev1.PodStatus{Message: "\x1b[31mred"}, "[31mred"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podMessage(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := podMessage(&corev1.Pod{Status: corev1.PodStatus{Message: strings.Repeat("x", 1<<20)}}); len(got) > maxPodMessage {
		t.Errorf("a long message has %d bytes", len(got))
	}
}

// TestWhyPodsAreUnread: only a missing right is reported as one.
func TestWhyPodsAreUnread(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
	for want, err := range map[string]error{
		"You may not read pods in this namespace. The pods are those of the job's report.":                   forbidden,
		"The pods are those of the job's report, because others cannot be read: the API server is too slow.": errors.New("the API server is too slow"),
	} {
		if got := unreadPods(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
