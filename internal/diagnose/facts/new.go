package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// New gathers what is known of a job: its pods with the attempts that count, and what their logs show.
func New(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome) *Facts {
	f := &Facts{Job: job, Seen: seen, Evidence: evidence, Outcome: outcome}
	tries := seen.LauncherPods
	if len(tries) == 0 && (f.Failed() || jobstate.IsLauncherReplaced(job, seen)) {
		tries = evidence.Gone
	}
	for i, try := range slices.Backward(tries) {
		f.Pods = append(f.Pods, f.pod(try, mpi.RoleLauncher, i, i == len(tries)-1))
	}
	if launcher := f.Launcher(); launcher != nil && launcher.DeletionTimestamp != nil && f.StoppedByJob() {
		launcher.stopped = true
		launcher.Summary = launcher.lastSummary()
	}
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) {
			f.Pods = append(f.Pods, f.pod(worker.Pod, mpi.RoleWorker, worker.Index, true))
		}
	}
	for _, worker := range seen.Replaced {
		if worker.Index < int(job.Workers.Count) {
			f.replaced = append(f.replaced, f.pod(worker.Pod, mpi.RoleWorker, worker.Index, false))
		}
	}
	f.ignoreDeleted()
	f.findDeletedWorkers()
	f.forgetEarlierTries()
	f.Signs = f.readLogs()
	return f
}

func (f *Facts) pod(object *corev1.Pod, role mpi.Role, index int, latest bool) Pod {
	found := Pod{Pod: object, Role: role, Index: index, Latest: latest, Log: f.Evidence.Logs[object.Name]}
	found.messages = loglines.Messages(found.Log.Lines)
	if containers := f.Template(role).Containers; len(containers) > 0 {
		found.main = containers[0].Name
	}
	if summary, is := mpi.AgentSummary(object); is {
		found.Summary = &summary
	}
	return found
}
