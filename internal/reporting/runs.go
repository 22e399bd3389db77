package reporting

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/waiting"
)

// runs keeps when the jobs that have not ended may end, and how long jobs ran that succeeded.
type runs struct {
	mu    sync.Mutex
	known map[mpi.ID]run
	past  waiting.History[similar]
}

// run is a job that has not ended.
type run struct {
	uid     types.UID
	similar similar
	pods    int32
	job     waiting.Job
}

// similar are the jobs whose durations are compared, if they also have about as many pods.
type similar struct{ kind, namespace, image string }

// eventHandler adds the durations of jobs that succeeded: those whose reports exist when the operator starts, and later each when
// it ends.
func (r *runs) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if report, is := object.(*v1alpha1.JobReport); is {
				r.addEnded(report)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*v1alpha1.JobReport)
			report, also := after.(*v1alpha1.JobReport)
			if is && also && was.Status.Phase != report.Status.Phase {
				r.addEnded(report)
			}
		},
	}
}

// addEnded adds how long a job ran that succeeded.
func (r *runs) addEnded(report *v1alpha1.JobReport) {
	ran := inPhase(report.Status, v1alpha1.PhaseRunning)
	if report.Status.Phase != v1alpha1.PhaseSucceeded || report.Status.CompletionTime == nil || ran == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.past.Add(similarTo(report), report.Spec.JobRef.UID, podsOf(report), time.Duration(ran.Seconds)*time.Second, report.Status.CompletionTime.Time)
}

// observe keeps what the job, its objects and its report have about its end.
func (r *runs) observe(job mpi.Job, seen jobstate.Observed, report *v1alpha1.JobReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if report.Status.CompletionTime != nil {
		r.forget(job.ID(), "")
		return
	}
	next := run{uid: job.UID, similar: similarTo(report), pods: podsOf(report), job: waiting.Job{Namespace: job.Namespace, Name: job.Name}}
	if ran := inPhase(report.Status, v1alpha1.PhaseRunning); ran != nil && report.Status.Phase == v1alpha1.PhaseRunning {
		next.job.Start = ran.Since.Time
	}
	if deadline := job.Lifecycle.Deadline; deadline != nil {
		next.job.Deadline, next.job.DeadlineFrom = time.Duration(*deadline)*time.Second, jobstate.DeadlineFrom(job, seen)
	}
	if !job.External && job.Lifecycle.CleanPods == mpi.CleanNone {
		next.job.Lingers = -1
		if job.Lifecycle.TTL != nil {
			next.job.Lingers = *job.Lifecycle.TTL
		}
	}
	if r.known == nil {
		r.known = map[mpi.ID]run{}
	}
	r.known[job.ID()] = next
}

// forgetJob drops a job that is gone, unless it has a UID.
func (r *runs) forgetJob(job mpi.ID, but types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(job, but)
}

func (r *runs) forget(job mpi.ID, but types.UID) {
	if but == "" || r.known[job].uid != but {
		delete(r.known, job)
	}
}

// describe returns what is known about the end of a job.
func (r *runs) describe(job mpi.ID) waiting.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.known[job]
	if !found {
		return waiting.Job{Namespace: job.Namespace, Name: job.Name}
	}
	described := known.job
	described.Usual = r.past.Similar(known.similar, known.pods)
	return described
}

// Run returns what is known about the end of a job that has not ended.
func (r *Reporter) Run(job mpi.ID) waiting.Job {
	if r == nil {
		return waiting.Job{Namespace: job.Namespace, Name: job.Name}
	}
	return r.runs.describe(job)
}

func similarTo(report *v1alpha1.JobReport) similar {
	is := similar{kind: report.Spec.JobRef.Kind, namespace: report.Namespace}
	if report.Status.Run != nil {
		is.image = report.Status.Run.Image
	}
	return is
}

// podsOf returns the number of a job's workers and its launcher.
func podsOf(report *v1alpha1.JobReport) int32 { return report.Status.Workers.Wanted + 1 }

// inPhase returns the time that a job spent in a phase; nil if it never was.
func inPhase(status v1alpha1.JobReportStatus, phase v1alpha1.Phase) *v1alpha1.PhaseTime {
	i := slices.IndexFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return t.Phase == phase })
	if i < 0 {
		return nil
	}
	return &status.PhaseTimes[i]
}
