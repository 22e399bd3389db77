package report

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Phases of pods that Kubernetes has no word for.
const (
	terminating = "Terminating"
	gone        = "Gone"
)

// pods are the launcher's last tries and the workers. A finished job's that have been removed stay in its record.
func (m maker) pods() []v1alpha1.PodStatus {
	const mostTries = 3
	var pods []v1alpha1.PodStatus
	tries := m.seen.LauncherPods
	if len(tries) == 0 {
		// The Job controller deletes the launcher's pod when it gives up, before the job has failed.
		tries = m.evidence.Gone
	}
	first := max(0, len(tries)-mostTries)
	for i, pod := range tries[first:] {
		status := m.pod(pod, mpi.RoleLauncher, first+i)
		if len(m.seen.LauncherPods) == 0 && !podstatus.HasEnded(pod) {
			status.Phase, status.Ready = gone, false
		}
		pods = append(pods, status)
	}
	for _, worker := range m.seen.Workers {
		pods = append(pods, m.pod(worker.Pod, mpi.RoleWorker, worker.Index))
	}
	if m.outcome.Finish == nil {
		return pods
	}
	there := map[string]bool{}
	for _, pod := range pods {
		there[pod.Name] = true
	}
	for _, old := range m.before.Pods {
		if there[old.Name] {
			continue
		}
		if old.Phase == string(corev1.PodRunning) || old.Phase == string(corev1.PodPending) || old.Phase == terminating {
			old.Phase, old.Ready = gone, false
		}
		pods = append(pods, old)
	}
	slices.SortStableFunc(pods, func(a, b v1alpha1.PodStatus) int {
		if a.Role != b.Role {
			return byRole(a.Role) - byRole(b.Role)
		}
		return int(a.Index - b.Index)
	})
	return pods
}

// lasting returns the names of the pods that exist and will: a job is reported as finished before its workers are deleted, and users
// run the commands of its remedies later.
func (m maker) lasting() map[string]bool {
	names := map[string]bool{}
	for _, pod := range staying(m.seen.LauncherPods) {
		names[pod.Name] = m.outcome.Finish == nil || !m.job.External || podstatus.HasEnded(pod)
	}
	for _, worker := range m.seen.Workers {
		if pod := worker.Pod; pod.DeletionTimestamp == nil {
			names[pod.Name] = m.outcome.Finish == nil || !m.job.DeletesWhenFinished(podstatus.HasEnded(pod))
		}
	}
	return names
}

func byRole(role string) int {
	if role == string(mpi.RoleLauncher) {
		return 0
	}
	return 1
}

func (m maker) pod(pod *corev1.Pod, role mpi.Role, index int) v1alpha1.PodStatus {
	status := v1alpha1.PodStatus{
		Role: string(role), Index: int32(index), Name: pod.Name, Node: pod.Spec.NodeName,
		Phase: string(pod.Status.Phase), Ready: podstatus.IsReady(pod), Ranks: m.ranks(role, index),
	}
	if pod.DeletionTimestamp != nil && !podstatus.HasEnded(pod) {
		status.Phase = terminating
	}
	status.Reason = pod.Status.Reason
	for _, c := range []*corev1.PodCondition{podstatus.Removal(pod), podstatus.NotScheduled(pod)} {
		if status.Reason == "" && c != nil {
			status.Reason = c.Reason
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			status.Restarts = max(status.Restarts, c.RestartCount)
			readContainer(&status, c)
		}
	}
	status.Reason = phrase.Limit(status.Reason, maxPodReason)
	return status
}

// readContainer adds why a container of a pod waits, or how it ended.
func readContainer(status *v1alpha1.PodStatus, c corev1.ContainerStatus) {
	if waiting := c.State.Waiting; waiting != nil && status.Reason == "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
		status.Reason = waiting.Reason
	}
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	if ended == nil || ended.ExitCode == 0 || status.ExitCode != nil {
		return
	}
	status.ExitCode = &ended.ExitCode
	if status.Reason == "" && ended.Reason != "Error" {
		status.Reason = ended.Reason
	}
}

// ranks are those that have their slots on a pod, as MPI fills hosts one after another: "8-15", "3".
func (m maker) ranks(role mpi.Role, index int) string {
	slots := int64(m.job.SlotsPerWorker)
	host := int64(index)
	switch {
	case slots <= 0 || role == mpi.RoleLauncher && !m.job.Launcher.RunsRanks || role == mpi.RoleWorker && index >= int(m.job.Workers.Count):
		return ""
	case role == mpi.RoleLauncher:
		host = 0
	case m.job.Launcher.RunsRanks:
		host++
	}
	if slots == 1 {
		return fmt.Sprint(host)
	}
	return fmt.Sprintf("%d-%d", host*slots, (host+1)*slots-1)
}
