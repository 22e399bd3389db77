package reporting

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/report"
)

const (
	// lateLogs is how long after its end the logs of a job are still read: the operator that saw the end may have been replaced.
	lateLogs = 2 * time.Minute
	// maxJobLogs is how many bytes of logs wait to be written, of all jobs.
	maxJobLogs = 32 << 20
)

// jobLogs reads the logs of jobs that end before their pods are deleted, and keeps them until they are written. It is safe for concurrent
// use.
type jobLogs struct {
	// most is how many bytes are kept of a job, compressed; 0 keeps none.
	most int
	read func(ctx context.Context, job mpi.Job, seen jobstate.Observed, most int) *v1alpha1.Logs

	mu    sync.Mutex
	jobs  map[types.UID]readLogs
	bytes int
}

// CheckLogBytes returns an error if a limit of the logs in reports is not allowed.
func CheckLogBytes(most int) error {
	if most < 0 || most > report.MaxLogs {
		return fmt.Errorf("--max-log-bytes: %d is not allowed; use 0 to %d", most, report.MaxLogs)
	}
	return nil
}

// readLogs are the logs of a job, and when they were read.
type readLogs struct {
	logs *v1alpha1.Logs
	at   time.Time
	// launcher is the UID of the launcher's pod that had ended; empty if there was none.
	launcher types.UID
}

func newJobLogs(most int, read func(context.Context, mpi.Job, jobstate.Observed, int) *v1alpha1.Logs) *jobLogs {
	return &jobLogs{most: most, read: read, jobs: map[types.UID]readLogs{}}
}

// ReadLogs reads the logs of a job that has ended, for its report, and what it used. Call it before the job's pods are deleted. It takes 5 s
// at most, and does nothing if the report has them. Those of a TrainJob are read when its launcher has ended: JobSet deletes the workers right
// after that. The keeper of complete logs observes the job at the same time.
func (r *Reporter) ReadLogs(ctx context.Context, job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, previous *v1alpha1.JobReport) {
	if r == nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	if r.keeper != nil {
		all.Go(func() { r.keeper.Observe(ctx, job, seen, out, previous) })
	}
	launcher := endedLauncher(seen)
	if out.Finish == nil && (!job.External || launcher == "") {
		return
	}
	all.Go(func() { r.usage.readLast(ctx, job, seen, launcher, previous) })
	if previous == nil || !isTooLateForLogs(previous, seen.Now) {
		r.jobLogs.readOnce(ctx, job, seen, launcher)
	}
}

// endedLauncher returns the UID of the launcher's latest pod if it has ended, else an empty one.
func endedLauncher(seen jobstate.Observed) types.UID {
	if n := len(seen.LauncherPods); n > 0 && podstatus.HasEnded(seen.LauncherPods[n-1]) {
		return seen.LauncherPods[n-1].UID
	}
	return ""
}

// isTooLateForLogs reports whether a report has the logs of its job, or will not have them.
func isTooLateForLogs(report *v1alpha1.JobReport, now time.Time) bool {
	end := report.Status.CompletionTime
	return report.Status.Logs != nil || end != nil && now.Sub(end.Time) > lateLogs
}

// readOnce reads the logs of a job unless they wait to be written, and no other pod of the launcher has ended since.
func (k *jobLogs) readOnce(ctx context.Context, job mpi.Job, seen jobstate.Observed, launcher types.UID) {
	if k.most == 0 || len(seen.LauncherPods)+len(seen.Workers) == 0 || k.has(job.UID, launcher) {
		return
	}
	read := k.read(ctx, job, seen, k.most)
	if read == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, other := range k.jobs {
		if seen.Now.Sub(other.at) > lateLogs {
			k.drop(uid)
		}
	}
	if k.bytes+int(read.Size) > maxJobLogs {
		read.Data, read.Size, read.Omitted = nil, 0, "The reports of too many jobs could not be written when the job ended."
	}
	k.drop(job.UID)
	k.jobs[job.UID] = readLogs{logs: read, at: seen.Now, launcher: launcher}
	k.bytes += int(read.Size)
}

// has reports whether logs of a job wait to be written that were read after the end of its launcher.
func (k *jobLogs) has(job, launcher types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, is := k.jobs[job]
	return is && (launcher == "" || kept.launcher == launcher)
}

// of returns the logs of a job that wait to be written; nil if there are none, or the job has not ended.
func (k *jobLogs) of(job types.UID, out jobstate.Outcome) *v1alpha1.Logs {
	if out.Finish == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.jobs[job].logs
}

// forget drops the logs of a job that has ended.
func (k *jobLogs) forget(job types.UID, out jobstate.Outcome) {
	if out.Finish == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(job)
}

func (k *jobLogs) drop(job types.UID) {
	if kept, is := k.jobs[job]; is {
		k.bytes -= int(kept.logs.Size)
		delete(k.jobs, job)
	}
}
