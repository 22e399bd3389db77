package logstore

import (
	"context"
	"errors"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// maxListed is how many objects are listed each time; the next time continues after them.
const maxListed = 100_000

// deleteOldPeriodically deletes the logs of jobs whose retention is over, until the context ends.
func (k *Keeper) deleteOldPeriodically(ctx context.Context) {
	interval := min(max(k.settings.Retention/24, time.Second), time.Hour)
	after := ""
	// Most jobs are observed before the first time.
	for timer := time.NewTimer(unseenDelay); ; timer.Reset(interval) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		next, err := k.deleteOld(ctx, after, maxListed)
		switch {
		case err == nil:
			after = next
		case ctx.Err() == nil && !errors.Is(err, errPaused):
			log.Log.Error(err, "old logs are not deleted from the log bucket; this is tried again later")
		}
		k.dropOld(ctx)
	}
}

// deleteOld deletes the logs of jobs whose retention is over, of a number of objects after a key. It returns the key after which to go on;
// empty if it has seen all objects.
//
// The retention begins with the end of the job, and for a job without a report with its last object that was written, usually its index.
func (k *Keeper) deleteOld(ctx context.Context, after string, most int) (string, error) {
	var group objectsOfJob
	start, done := after, after
	for listed, more := 0, true; more; {
		var objects []Object
		err := k.ask(func() (err error) {
			objects, more, err = k.bucket.List(ctx, k.settings.Prefix, after)
			return err
		})
		if err != nil {
			return "", err
		}
		for _, object := range objects {
			if job, is := jobOf(k.settings.Prefix, object.Key); !is || job != group.job {
				if err := k.deleteIfOld(ctx, group); err != nil {
					return "", err
				}
				group, done = objectsOfJob{job: job}, after
			}
			after = object.Key
			group.add(object)
		}
		if listed += len(objects); listed >= most && more && done != start {
			// The last job may have more objects.
			return done, nil
		}
	}
	return "", k.deleteIfOld(ctx, group)
}

// objectsOfJob are objects of a job; job is empty for those of no job.
type objectsOfJob struct {
	job    jobID
	newest time.Time
	keys   []string
}

func (o *objectsOfJob) add(object Object) {
	if o.job == (jobID{}) {
		return
	}
	o.keys = append(o.keys, object.Key)
	if object.Modified.After(o.newest) {
		o.newest = object.Modified
	}
}

// deleteIfOld deletes the objects of a job whose retention is over, unless its logs are still being kept.
func (k *Keeper) deleteIfOld(ctx context.Context, objects objectsOfJob) error {
	if len(objects.keys) == 0 || k.isKnown(objects.job) {
		return nil
	}
	begins := objects.newest
	switch end, hasReport, err := k.reports.End(ctx, objects.job.namespace, objects.job.uid); {
	case err != nil:
		return err //nolint:wrapcheck // it names the report
	case hasReport && end.IsZero():
		// It may be suspended since long.
		return nil
	case hasReport:
		begins = end
	}
	if k.clock.Since(begins) < k.settings.Retention {
		return nil
	}
	for _, key := range objects.keys {
		if err := k.ask(func() error { return k.bucket.Delete(ctx, key) }); err != nil {
			return err
		}
		k.counters.deleted.Inc()
	}
	return nil
}

// isKnown reports whether the logs of a job are being kept.
func (k *Keeper) isKnown(id jobID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.jobs[id] != nil
}

// dropOld forgets the jobs whose logs are kept and that were not seen since, and those whose logs could not be kept in time.
func (k *Keeper) dropOld(ctx context.Context) {
	k.mu.Lock()
	maps.DeleteFunc(k.kept, func(_ jobID, seen time.Time) bool { return k.clock.Since(seen) > k.settings.Retention })
	var old, unseen []*job
	for _, j := range k.jobs {
		switch {
		case j.isOver && k.clock.Since(j.end) > k.settings.Retention:
			old = append(old, j)
		case !j.isOver && k.clock.Since(j.seen) > k.settings.Retention:
			unseen = append(unseen, j)
		}
	}
	k.mu.Unlock()
	for _, j := range unseen {
		// A suspended job is not observed. The report of another one may have been deleted before the job ended.
		if end, hasReport, err := k.reports.End(ctx, j.id.namespace, j.id.uid); err == nil && (!hasReport || !end.IsZero()) {
			k.drop(j, func(r *run) bool { return r.isDone })
		}
	}
	for _, j := range old {
		if err := k.giveUp(ctx, j); err != nil {
			log.Log.Error(err, "a report does not show that complete logs could not be kept; this is tried again later")
			continue
		}
		k.drop(j, func(*run) bool { return true })
	}
}

// drop forgets a job, and what waits for the bucket of it, unless a log is being read or a run is not such that it may be dropped.
func (k *Keeper) drop(j *job, may func(*run) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range j.runs {
		if r.isBusy || !may(r) {
			return
		}
	}
	for id, r := range j.runs {
		k.release(r)
		delete(k.jobOfPod, id.podUID)
	}
	delete(k.jobs, j.id)
}

// release drops what waits of a run. The caller holds the lock.
func (k *Keeper) release(r *run) {
	for _, part := range r.unsent {
		k.unsent.Add(-int64(len(part.data)))
	}
	r.unsent = nil
}
