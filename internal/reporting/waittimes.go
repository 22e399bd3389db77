package reporting

import (
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// waitTimes keeps how long jobs waited until they were admitted, from their reports: all that exist when the operator starts,
// and later each that gets a waiting time.
type waitTimes struct {
	mu    sync.Mutex
	known kueue.Waits
}

// eventHandler has the waits follow what becomes of records.
func (w *waitTimes) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if job, ok := object.(*v1alpha1.JobReport); ok {
				w.add(job)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*v1alpha1.JobReport)
			job, also := after.(*v1alpha1.JobReport)
			if ok && also && was.Status.Waited == nil {
				w.add(job)
			}
		},
	}
}

func (w *waitTimes) add(job *v1alpha1.JobReport) {
	waited := job.Status.Waited
	if waited == nil {
		return
	}
	line := kueue.Line{Backend: waited.Backend, Namespace: job.Namespace, Queue: waited.Queue}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known.Add(line, job.Spec.JobRef.UID, waited.Pods, time.Duration(waited.Seconds)*time.Second, waited.Until.Time)
}

// waitFor is how long others waited that compare with a job that waits; nothing for any other.
func (w *waitTimes) waitFor(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome) jobstate.Wait {
	line, waits := kueue.LineOf(job, seen)
	if !waits || out.Phase != v1alpha1.PhaseQueued && out.Phase != v1alpha1.PhaseGangScheduling {
		return jobstate.Wait{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known.Of(line, job.Pods())
}
