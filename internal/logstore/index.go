package logstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Messages of reports.
const (
	// notKeptYet and notKept begin the reason why there is no index, while that may change and when it cannot any more.
	notKeptYet, notKept = "The complete logs are not kept yet: ", "The complete logs could not be kept: "
	// notReadYet is the message with an index that lacks logs that may still be read, and deletedUnread with one that lacks logs that
	// cannot.
	notReadYet, deletedUnread = "some logs are not read yet; the operator tries again", "pods were deleted before their logs were read"
)

// isPartial reports whether an index is to be completed by the present leader, or the next.
func isPartial(kept *v1alpha1.CompleteLogs) bool {
	return kept != nil && kept.Index != "" && kept.Message == notReadYet
}

// writeIndex writes the index of a finished job, if the logs of all of its pods were read, and publishes its address.
func (k *Keeper) writeIndex(ctx context.Context, id jobID) error {
	k.mu.Lock()
	j := k.jobs[id]
	if j == nil || !j.isOver {
		k.mu.Unlock()
		return nil
	}
	if !j.isEnding {
		k.readToEnds(j)
	}
	areKept, changes := j.areKept(), j.changes
	wait := indexTimeout - k.clock.Since(j.overSince)
	var problem error
	if k.pause > 0 {
		problem = k.problem
	}
	k.mu.Unlock()
	if !areKept && wait > 0 {
		k.tasks.AddAfter(task{job: id}, min(wait, problemDelay))
		return k.publishProblem(ctx, j, problem)
	}
	if err := k.publishIndex(ctx, j); err != nil {
		return errors.Join(err, k.publishProblem(ctx, j, err))
	}
	if areKept {
		k.forget(j, changes)
	}
	return nil
}

// isKept reports whether the log of a run of a finished job was read and written. What a container prints after the end of its job is only
// read if its pod is being deleted. The caller holds the keeper's lock.
func (r *run) isKept() bool {
	return len(r.unsent) == 0 && !r.isBusy && (r.isDone || r.wasRead && !r.isDeleting)
}

// areKept reports whether the logs of all runs of a finished job were read and written. The caller holds the keeper's lock.
func (j *job) areKept() bool {
	for _, r := range j.runs {
		if !r.isKept() {
			return false
		}
	}
	return true
}

// forget forgets a job whose logs are all kept, unless something has changed since its index was made.
func (k *Keeper) forget(j *job, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j.changes != changes || !j.areKept() {
		k.tasks.Add(task{job: j.id})
		return
	}
	for id := range j.runs {
		delete(k.jobOfPod, id.podUID)
	}
	delete(k.jobs, j.id)
	k.kept[j.id] = k.clock.Now()
}

// publishIndex writes the index of what the bucket has of a job, and publishes its address. It does nothing if the same was published
// before, or if no pod of the job has run.
func (k *Keeper) publishIndex(ctx context.Context, j *job) error {
	parts, size, err := k.partsOf(ctx, j.id)
	if err != nil {
		return err
	}
	kept := k.summarize(j, parts, size)
	k.mu.Lock()
	life := k.settings.Retention - k.clock.Since(j.end)
	isSame := j.published == kept
	k.mu.Unlock()
	summary := kept
	switch {
	case life < time.Second:
		return k.giveUp(ctx, j)
	case len(parts) == 0 && kept.PodsUnread == 0:
		return k.publishNone(ctx, j)
	case isSame:
		return nil
	}
	index, err := k.indexOf(ctx, parts, life)
	if err != nil {
		return err
	}
	key := j.id.prefix(k.settings.Prefix) + indexName
	if err := k.ask(func() error { return k.bucket.Put(ctx, key, index, nil) }); err != nil {
		return err
	}
	if kept.Index, err = k.bucket.Sign(ctx, key, life); err != nil {
		return err
	}
	kept.Expires = &metav1.Time{Time: k.clock.Now().Add(life).Truncate(time.Second)}
	if err := k.reports.Publish(ctx, j.id.namespace, j.report, j.id.uid, kept); err != nil {
		return err //nolint:wrapcheck // it names the report
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.wasIndexed, j.problem, j.published = true, "", summary
	return nil
}

// publishNone removes the problem from the report of a job of which no pod has run.
func (k *Keeper) publishNone(ctx context.Context, j *job) error {
	k.mu.Lock()
	hasProblem := j.problem != ""
	k.mu.Unlock()
	if !hasProblem {
		return nil
	}
	if err := k.reports.Publish(ctx, j.id.namespace, j.report, j.id.uid, v1alpha1.CompleteLogs{}); err != nil {
		return err //nolint:wrapcheck // it names the report
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.problem = ""
	return nil
}

// summarize returns what a report shows about a job's logs, without their address. A pod with logs of which some are missing is cut; one
// without any is unread.
func (k *Keeper) summarize(j *job, parts []part, size int64) v1alpha1.CompleteLogs {
	kept := v1alpha1.CompleteLogs{Size: size}
	hasParts, isCut, isUnread, hasRun := map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	for _, p := range parts {
		kept.Lines += int64(p.lines)
		hasParts[p.run.podUID] = true
		if p.cut {
			isCut[p.run.podUID] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	isPartial, isFull := false, false
	for _, r := range j.sortedRuns() {
		pod := r.id.podUID
		hasRun[pod] = true
		isPartial, isFull = isPartial || !r.isKept(), isFull || r.isFull
		if r.lost != "" && kept.Message == "" {
			kept.Message = phrase.Cut(phrase.OneLine(r.lost), maxMessage)
		}
		switch isMissing := r.lost != "" || !r.isKept(); {
		case isMissing && !hasParts[pod]:
			isUnread[pod] = true
		case isMissing || r.isCut || r.isFull:
			isCut[pod] = true
		}
	}
	if isFull {
		kept.Message = cmp.Or(kept.Message, cutText(k.settings.MaxBytes))
	}
	kept.Pods, kept.PodsCut, kept.PodsUnread = int32(len(hasParts)), int32(len(isCut)), int32(len(isUnread))
	if j.before != nil {
		addBefore(&kept, j.before, hasParts, isCut, hasRun)
	}
	if isPartial {
		kept.Message = notReadYet
	}
	return kept
}

// addBefore adds the pods whose logs were missing in a partial index of an earlier leader, and that are gone since.
func addBefore(kept, before *v1alpha1.CompleteLogs, hasParts, isCut, hasRun map[types.UID]bool) {
	seen, uncertain := len(hasParts), 0
	for pod := range hasRun {
		if !hasParts[pod] {
			seen++
		}
	}
	for pod := range hasParts {
		if !hasRun[pod] && !isCut[pod] {
			uncertain++
		}
	}
	unread := min(before.PodsUnread, before.Pods+before.PodsUnread-int32(seen))
	cut := min(before.PodsCut-kept.PodsCut, int32(uncertain))
	kept.PodsUnread += max(0, unread)
	kept.PodsCut += max(0, cut)
	if kept.Message == "" && max(unread, cut) > 0 {
		kept.Message = deletedUnread
	}
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
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	// Addresses contain many &.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(index); err != nil {
		return nil, fmt.Errorf("encode the index of complete logs: %w", err)
	}
	return data.Bytes(), nil
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
	text := phrase.Cut(phrase.OneLine(notKeptYet+k.masker.Text(causeOf(err))), maxMessage)
	isNew := j.problem == "" && !j.wasIndexed && k.clock.Since(j.overSince) > problemDelay
	k.mu.Unlock()
	if !isNew {
		return nil
	}
	if err := k.reports.Publish(ctx, j.id.namespace, j.report, j.id.uid, v1alpha1.CompleteLogs{Message: text}); err != nil {
		return err //nolint:wrapcheck // it names the report
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.problem = text
	return nil
}

// giveUp publishes that the logs of a finished job could not be kept, if its report shows that they are not kept yet.
func (k *Keeper) giveUp(ctx context.Context, j *job) error {
	k.mu.Lock()
	cause, hasProblem := strings.CutPrefix(j.problem, notKeptYet)
	k.mu.Unlock()
	if !hasProblem {
		return nil
	}
	return k.reports.Publish(ctx, j.id.namespace, j.report, j.id.uid, v1alpha1.CompleteLogs{Message: notKept + cause}) //nolint:wrapcheck // it names the report
}
