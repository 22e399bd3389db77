package operator

import (
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

// waits remembers how long jobs waited until they were let in, as their records tell: all that there are when the
// operator starts, and from then on each that comes to tell it.
type waits struct {
	mu    sync.Mutex
	known gang.Waits
}

// listener has the waits follow what becomes of records.
func (w *waits) listener() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if job, ok := object.(*v1alpha1.JobReport); ok {
				w.learn(job)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*v1alpha1.JobReport)
			job, also := after.(*v1alpha1.JobReport)
			if ok && also && was.Status.Waited == nil {
				w.learn(job)
			}
		},
	}
}

func (w *waits) learn(job *v1alpha1.JobReport) {
	waited := job.Status.Waited
	if waited == nil {
		return
	}
	line := gang.Line{Backend: waited.Backend, Namespace: job.Namespace, Queue: waited.Queue}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known.Add(line, job.Spec.JobRef.UID, waited.Pods, time.Duration(waited.Seconds)*time.Second, waited.Until.Time)
}

// of is how long others waited that compare with a job that waits; nothing for any other.
func (w *waits) of(job mpi.Job, seen mpi.Observed, out mpi.Outcome) mpi.Wait {
	line, waits := gang.LineOf(job, seen)
	if !waits || out.Phase != mpi.PhaseQueued && out.Phase != mpi.PhaseGangScheduling {
		return mpi.Wait{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known.Of(line, job.Pods())
}
