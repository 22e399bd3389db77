package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// said are a record's entries of some events, with their details.
func (h *history) said(events ...string) []string {
	var said []string
	for _, entry := range h.last.Status.Timeline {
		for _, event := range events {
			if entry.Event == event {
				said = append(said, strings.TrimSpace(event+" "+entry.Detail))
			}
		}
	}
	return said
}

func TestTimelineSaysWhoDidIt(t *testing.T) {
	h := &history{t: t, job: job(1)}
	h.job.Generation, h.job.Authors.Creator = 1, "ada"
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.job.Generation, h.job.Authors.Suspend = 2, mpi.Change{Generation: 2, User: "bob"}
	h.job.Lifecycle.Suspended = true
	h.pass(time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	h.job.Generation, h.job.Authors.Change = 3, mpi.Change{Generation: 3, User: "carol"}
	h.pass(2*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	h.pass(3*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	h.job.Generation, h.job.Authors.Suspend = 4, mpi.Change{Generation: 4, User: "ada"}
	h.job.Lifecycle.Suspended = false
	h.pass(4*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	// Nobody was recorded.
	h.job.Generation, h.job.Authors.Suspend = 5, mpi.Change{}
	h.job.Lifecycle.Suspended = true
	h.pass(5*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	const suspended = "Suspended by its own field spec.runPolicy.suspend. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume pi -n ns."
	want := []string{
		fmt.Sprintf("Created MPIJob %s with 1 worker. By ada.", h.job.Name), "Suspended By bob. " + suspended, "Changed By carol.", "Resumed By ada.", "Suspended " + suspended,
	}
	if diff := cmp.Diff(want, h.said("Created", "Suspended", "Changed", "Resumed")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestTimelineOfUnrecordedUsers: where no user was recorded, the timeline names the field manager, at the time of its last write.
func TestTimelineOfUnrecordedUsers(t *testing.T) {
	h := &history{t: t, job: job(1)}
	wrote := func(generation int64, manager string, after time.Duration, onlySuspend bool) {
		h.job.Generation, h.job.Authors.Unrecorded = generation, mpi.UnrecordedChange{}
		if manager != "" {
			h.job.Authors.Unrecorded = mpi.UnrecordedChange{Generation: generation, Manager: manager, At: mpitest.Now.Add(after), OnlySuspend: onlySuspend}
		}
	}
	h.job.Generation, h.job.Authors.CreatedWith = 1, `kubectl-create. By "ada"`
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	wrote(2, "kubectl-edit", 30*time.Second, false)
	h.pass(time.Minute, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	// The same change, and one of which nothing is known.
	h.pass(2*time.Minute, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	wrote(3, "", 0, false)
	h.pass(3*time.Minute, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	wrote(4, "kubectl-patch", 4*time.Minute, true)
	h.job.Lifecycle.Suspended = true
	h.pass(5*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	wrote(5, "argocd", 6*time.Minute, false)
	h.job.Lifecycle.Suspended = false
	h.pass(7*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	// A field is removed, which leaves no trace: the manager that is named wrote before.
	wrote(6, "argocd", 6*time.Minute, false)
	h.pass(8*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	const by = "The user was not recorded; field manager: "
	want := []string{
		fmt.Sprintf(`Created MPIJob %s with 1 worker. %s"kubectl-create. By \"ada\"".`, h.job.Name, by), `Changed ` + by + `"kubectl-edit".`,
		`Suspended ` + by + `"kubectl-patch". Suspended by its own field spec.runPolicy.suspend. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume pi -n ns.`, `Resumed ` + by + `"argocd".`,
	}
	if diff := cmp.Diff(want, h.said("Created", "Suspended", "Changed", "Resumed")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, entry := range h.last.Status.Timeline {
		if entry.Event == "Changed" && !entry.Time.Time.Equal(mpitest.Now.Add(30*time.Second)) {
			t.Errorf("the change happened at %s", entry.Time)
		}
	}
	if run := h.last.Status.Run; run.FieldManager != `kubectl-create. By "ada"` || run.Creator != "" {
		t.Errorf("it was created by %+v", run)
	}
	h.job.Authors.Creator, h.job.Authors.CreatedWith = "ada", ""
	h.pass(9*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	if run := h.last.Status.Run; run.FieldManager != "" || run.Creator != "ada" {
		t.Errorf("once the user is known it was created by %+v", run)
	}
}

// TestTimelineInAQueue: the queue switches a job's own field, also for whoever keeps the job out of it or lets it in again.
func TestTimelineInAQueue(t *testing.T) {
	kept, waits, in := jobstate.QueueState{Name: "team", Object: "mpijob-1", Never: true, Stopped: true}, jobstate.QueueState{Name: "team"}, jobstate.QueueState{Name: "team", Admitted: true}
	h := &history{t: t, job: job(1)}
	h.job.Queue, h.job.Generation, h.job.Authors.Suspend = "team", 2, mpi.Change{Generation: 2, User: "kueue"}
	h.job.Lifecycle.Suspended = true
	h.pass(0, jobstate.Observed{Queue: &kept}, jobstate.Evidence{})
	h.pass(time.Minute, jobstate.Observed{Queue: &waits}, jobstate.Evidence{})
	h.job.Lifecycle.Suspended = false
	running := pods(h.job, corev1.PodRunning, 0)
	running.Queue = &in
	h.pass(2*time.Minute, running, jobstate.Evidence{})
	want := []string{
		"Suspended Suspended: a user deactivated Workload mpijob-1. To wait in queue team again, run kubectl odh mpijob resume " + h.job.Name + ".",
		"Resumed", "Queued Waiting in queue team.",
	}
	if diff := cmp.Diff(want, h.said("Suspended", "Resumed", "Queued")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestTimelineOfUsersInAQueue: the users who suspend and resume a job in its queue are named, and not Kueue, nor one of an earlier time
// for a Workload that was changed by itself.
func TestTimelineOfUsersInAQueue(t *testing.T) {
	stopped, waits := jobstate.QueueState{Name: "team", Object: "w", Never: true, Stopped: true}, jobstate.QueueState{Name: "team"}
	h := &history{t: t, job: job(1)}
	at := time.Duration(0)
	pass := func(held, suspended bool, user string, queue jobstate.QueueState) {
		h.job.SuspendedInQueue, h.job.Lifecycle.Suspended, h.job.Authors.SuspendInQueue = held, suspended, user
		h.job.Generation++
		h.job.Authors.Suspend = mpi.Change{Generation: h.job.Generation, User: "kueue"}
		h.pass(at, jobstate.Observed{Queue: &queue}, jobstate.Evidence{})
		at += time.Minute
	}
	h.job.Queue = "team"
	admitted := waits
	admitted.Admitted = true
	pass(false, false, "", admitted)
	pass(true, true, "bob", admitted)
	pass(true, true, "bob", stopped)
	pass(false, true, "carol", stopped)
	pass(false, true, "carol", waits)
	pass(false, true, "carol", stopped) // another user deactivates the Workload
	pass(false, true, "carol", waits)
	want := []string{
		"Suspended By bob. Suspended: a user requested it. To wait in queue team again, run kubectl odh mpijob resume " + h.job.Name + ".", "Resumed By carol.",
		"Suspended Suspended: a user deactivated Workload w. To wait in queue team again, run kubectl odh mpijob resume " + h.job.Name + ".", "Resumed",
	}
	if diff := cmp.Diff(want, h.said("Suspended", "Resumed")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRecordOfADeletedJobSaysWhoDeletedIt(t *testing.T) {
	h := &history{t: t, job: job(1)}
	last := *h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	now := h.last.Status.StartTime.Time
	for i, user := range []string{"eve", "eve", "bob"} {
		next, news := report.DeletionRequested(last, user, now.Add(time.Duration(i)*time.Minute))
		if news != (i != 1) {
			t.Errorf("request %d is worth a write: %t", i, news)
		}
		last = next
	}
	closed := report.Closed(last, now.Add(time.Hour))
	h.last = &closed
	const message = "The job was deleted by bob before it ended (phase Running)."
	if diff := cmp.Diff([]string{"DeletionRequested By eve.", "DeletionRequested By bob.", "JobDeleted " + message}, h.said("DeletionRequested", "JobDeleted")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if closed.Status.Message != message {
		t.Errorf("it says %q", closed.Status.Message)
	}
}

// TestRequestsForDeletionAreBounded: names may be long, requests many, and the record full already.
func TestRequestsForDeletionAreBounded(t *testing.T) {
	h := &history{t: t, job: job(2000)}
	last := *h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	shown, omitted := len(last.Status.Pods), last.Status.PodsOmitted
	for i := range 200 {
		last, _ = report.DeletionRequested(last, fmt.Sprintf("%d-%s", i, strings.Repeat("é", 5000)), mpitest.Now)
	}
	last = report.Closed(last, mpitest.Now)
	bounded(t, &last)
	if got := len(last.Status.Pods) + int(last.Status.PodsOmitted); got != shown+int(omitted) {
		t.Errorf("of %d pods %d are told of", shown+int(omitted), got)
	}
}
