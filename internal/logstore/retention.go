package logstore

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// maxListed is how many objects are listed each time; the next time continues after them.
const maxListed = 100_000

// deleteOldPeriodically deletes the logs of jobs whose retention is over, until the context ends.
func (k *Keeper) deleteOldPeriodically(ctx context.Context) {
	interval := min(max(k.settings.Retention/24, time.Second), time.Hour)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	after := ""
	for {
		next, err := k.deleteOld(ctx, after)
		switch {
		case err == nil:
			after = next
		case ctx.Err() == nil && !errors.Is(err, errPaused):
			log.Log.Error(err, "old logs are not deleted from the log bucket; this is tried again later")
		}
		k.dropOld()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// deleteOld deletes the logs of jobs whose retention is over, of a bounded number of objects after a key. It returns the key after which to
// go on; empty if it has seen all objects.
//
// The retention begins with the last object of a job that was written, usually its index.
func (k *Keeper) deleteOld(ctx context.Context, after string) (string, error) {
	var group objectsOfJob
	done := after
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
			if prefix := k.prefixOf(object); prefix == "" || prefix != group.prefix {
				if err := k.deleteIfOld(ctx, group); err != nil {
					return "", err
				}
				group, done = objectsOfJob{prefix: prefix}, after
			}
			after = object.Key
			group.add(object)
		}
		if listed += len(objects); listed >= maxListed && more && done != "" {
			// The last job may have more objects.
			return done, nil
		}
	}
	return "", k.deleteIfOld(ctx, group)
}

// objectsOfJob are objects whose keys have the prefix of a job; the prefix is empty for those of no job.
type objectsOfJob struct {
	prefix string
	newest time.Time
	keys   []string
}

func (o *objectsOfJob) add(object Object) {
	if o.prefix == "" {
		return
	}
	o.keys = append(o.keys, object.Key)
	if object.Modified.After(o.newest) {
		o.newest = object.Modified
	}
}

// prefixOf returns the prefix of the job to which an object belongs; empty if the operator did not write it.
func (k *Keeper) prefixOf(object Object) string {
	namespace, uid, is := jobOf(k.settings.Prefix, object.Key)
	if !is {
		return ""
	}
	return jobPrefix(k.settings.Prefix, namespace, uid)
}

// deleteIfOld deletes the objects of a job whose retention is over, unless its logs are still being kept.
func (k *Keeper) deleteIfOld(ctx context.Context, objects objectsOfJob) error {
	if len(objects.keys) == 0 || k.clock.Since(objects.newest) < k.settings.Retention || k.isKnown(objects.prefix) {
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
func (k *Keeper) isKnown(prefix string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, j := range k.jobs {
		if strings.HasPrefix(prefix, jobPrefix(k.settings.Prefix, j.namespace, uid)) {
			return true
		}
	}
	return false
}

// dropOld forgets the jobs whose logs are kept and that were not seen since, and those whose logs could not be kept in time.
func (k *Keeper) dropOld() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kept, func(_ types.UID, seen time.Time) bool { return k.clock.Since(seen) > k.settings.Retention })
	for uid, j := range k.jobs {
		isBusy, isDone := false, true
		for _, r := range j.runs {
			isBusy, isDone = isBusy || r.isBusy, isDone && r.isDone
		}
		isOld := j.isOver && k.clock.Since(j.overSince) > k.settings.Retention
		// The report of a job may have been deleted before the job ended.
		isUnseen := isDone && k.clock.Since(j.seen) > k.settings.Retention
		if isBusy || !isOld && !isUnseen {
			continue
		}
		for id, r := range j.runs {
			for _, part := range r.unsent {
				k.unsent.Add(-int64(len(part.data)))
			}
			delete(k.jobOfPod, id.podUID)
		}
		delete(k.jobs, uid)
	}
}
