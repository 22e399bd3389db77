package logstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/phrase"
)

const (
	// indexTimeout is how long the index of a finished job waits for logs that are not read yet, such as those on a node that does not
	// answer. It is written again when they are.
	indexTimeout = 2 * time.Minute
	// problemDelay is how long after the end of a job its report shows that its logs are not kept yet.
	problemDelay = 30 * time.Second
	// maxMessage is the length of the reason why logs are not kept.
	maxMessage = 400
)

// writeIndex writes the index of a finished job, if the logs of all of its pods were read, and publishes its address.
func (k *Keeper) writeIndex(ctx context.Context, uid types.UID) error {
	k.mu.Lock()
	j := k.jobs[uid]
	if j == nil || !j.isOver {
		k.mu.Unlock()
		return nil
	}
	if !j.isEnding {
		k.readToEnds(j)
	}
	areKept := j.areKept()
	wait := indexTimeout - k.clock.Since(j.overSince)
	var problem error
	if k.pause > 0 {
		problem = k.problem
	}
	k.mu.Unlock()
	if !areKept && wait > 0 {
		k.tasks.AddAfter(task{job: uid}, min(wait, problemDelay))
		return k.publishProblem(ctx, j, problem)
	}
	if err := k.publishIndex(ctx, j); err != nil {
		return errors.Join(err, k.publishProblem(ctx, j, err))
	}
	if areKept {
		k.forget(j)
	}
	return nil
}

// areKept reports whether the logs of all runs of a finished job were read and written. What a container prints after the end of its job
// is only read if its pod is being deleted. The caller holds the keeper's lock.
func (j *job) areKept() bool {
	for _, r := range j.runs {
		if len(r.unsent) > 0 || r.isBusy || !r.isDone && (!r.wasRead || r.isDeleting) {
			return false
		}
	}
	return true
}

// forget forgets a job whose logs are all kept.
func (k *Keeper) forget(j *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range j.runs {
		delete(k.jobOfPod, id.podUID)
	}
	delete(k.jobs, j.uid)
	k.kept[j.uid] = k.clock.Now()
}

// publishIndex writes the index of what the bucket has of a job, and publishes its address. It does nothing if no pod of the job has run.
func (k *Keeper) publishIndex(ctx context.Context, j *job) error {
	parts, size, err := k.partsOf(ctx, j)
	if err != nil {
		return err
	}
	kept := k.summarize(j, parts, size)
	if len(parts) == 0 && kept.PodsUnread == 0 {
		return nil
	}
	life := k.settings.Retention
	index, err := k.indexOf(ctx, parts, life)
	if err != nil {
		return err
	}
	key := jobPrefix(k.settings.Prefix, j.namespace, j.uid) + indexName
	if err := k.ask(func() error { return k.bucket.Put(ctx, key, index, nil) }); err != nil {
		return err
	}
	if kept.Index, err = k.bucket.Sign(ctx, key, life); err != nil {
		return err
	}
	kept.Expires = &metav1.Time{Time: k.clock.Now().Add(life).Truncate(time.Second)}
	if err := k.publish(ctx, j.namespace, j.report, j.uid, kept); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.wasIndexed = true
	return nil
}

// summarize returns what a report shows about a job's logs, without their address.
func (k *Keeper) summarize(j *job, parts []part, size int64) v1alpha1.CompleteLogs {
	kept := v1alpha1.CompleteLogs{Size: size}
	isCut, pods := map[types.UID]bool{}, map[types.UID]bool{}
	for _, p := range parts {
		kept.Lines += int64(p.lines)
		pods[p.run.podUID] = true
		if p.cut {
			isCut[p.run.podUID] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	unread := map[types.UID]bool{}
	for _, r := range j.sortedRuns() {
		if r.lost != "" {
			unread[r.id.podUID] = true
			if kept.Message == "" {
				kept.Message = phrase.Cut(phrase.OneLine(r.lost), maxMessage)
			}
		}
	}
	kept.Pods, kept.PodsCut, kept.PodsUnread = int32(len(pods)), int32(len(isCut)), int32(len(unread))
	return kept
}

// indexOf returns the index of parts, with addresses that are valid for a time.
func (k *Keeper) indexOf(ctx context.Context, parts []part, life time.Duration) ([]byte, error) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareRuns(a.run, b.run) })
	var index logs.Index
	for i, p := range parts {
		address, err := k.bucket.Sign(ctx, p.key(k.settings.Prefix), life)
		if err != nil {
			return nil, err
		}
		if i == 0 || parts[i-1].run.podUID != p.run.podUID {
			index.Pods = append(index.Pods, logs.IndexedPod{Name: p.run.pod})
		}
		pod := &index.Pods[len(index.Pods)-1]
		pod.Parts = append(pod.Parts, logs.IndexedPart{URL: address, First: p.first, Last: p.last, Lines: p.lines})
	}
	data, err := json.Marshal(index)
	if err != nil {
		return nil, fmt.Errorf("encode the index of complete logs: %w", err)
	}
	return data, nil
}

// publishProblem publishes why the logs of a finished job are not kept yet, once a problem lasts. It does nothing without an error.
func (k *Keeper) publishProblem(ctx context.Context, j *job, err error) error {
	if err == nil {
		return nil
	}
	k.mu.Lock()
	if errors.Is(err, errPaused) && k.problem != nil {
		err = k.problem
	}
	text := phrase.Cut(phrase.OneLine("The complete logs are not kept yet: "+k.masker.Text(err.Error())), maxMessage)
	isNew := j.problem == "" && !j.wasIndexed && k.clock.Since(j.overSince) > problemDelay
	k.mu.Unlock()
	if !isNew {
		return nil
	}
	if err := k.publish(ctx, j.namespace, j.report, j.uid, v1alpha1.CompleteLogs{Message: text}); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.problem = text
	return nil
}
