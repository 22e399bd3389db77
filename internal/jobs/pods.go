package jobs

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/logstream"
)

// PodLabels select the job's pods, and those of earlier jobs of its name.
func (j Job) PodLabels() map[string]string { return editorFor(j.Kind).PodLabels(j.Name) }

// Place returns the place of a pod in the job; false if the pod belongs to an earlier job of the same name.
func (j Job) Place(pod *corev1.Pod) (logstream.Place, bool) {
	role, index, ok := editorFor(j.Kind).PodRole(pod)
	older := j.Object != nil && pod.CreationTimestamp.Time.Before(j.Object.GetCreationTimestamp().Time)
	return logstream.Place{Role: role, Index: index}, ok && !older
}

// Hosts returns on which pods the job's ranks run, from its report or, without one, from its fields.
func (j Job) Hosts() logstream.Hosts {
	if status := j.Status(); status.MPI.Ranks > 0 {
		hosts := logstream.Hosts{Slots: int(status.MPI.SlotsPerWorker), Ranks: int(status.MPI.Ranks)}
		hosts.LauncherRuns = hosts.Ranks == hosts.Slots*(int(status.Workers.Wanted)+1)
		return hosts
	}
	if j.Object == nil {
		return logstream.Hosts{}
	}
	layout := editorFor(j.Kind).RankLayout(j.Object)
	return logstream.Hosts{Slots: layout.SlotsPerWorker, Ranks: layout.Ranks, LauncherRuns: layout.LauncherRunsRanks}
}
