package logstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

var (
	// errLogGone is returned if the log of a container was deleted.
	errLogGone = errors.New("its log was deleted")
	// errPaused is returned while nothing is asked of a bucket that did not answer.
	errPaused = errors.New("the log bucket did not answer; it is tried again later")
	// errForgotten is returned for a run of a job that was forgotten.
	errForgotten = errors.New("the job was forgotten")
	// errRestarted is returned if the log that was read may be that of a later run of the container.
	errRestarted = errors.New("the container was started again")
	// errStalled is returned if reading a log brings nothing.
	errStalled = errors.New("the node sends nothing")
	// errNoRoom is returned while too many lines wait for the bucket.
	errNoRoom = errors.New("too many lines wait for the log bucket")
)

// isLogGone reports whether no more can be read of a log.
func isLogGone(err error) bool {
	// The kubelet's answer if it has deleted the container of the previous run.
	isDeleted := apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "previous terminated container")
	return errors.Is(err, errLogGone) || apierrors.IsNotFound(err) || isDeleted
}

// read reads the log of a run from where it was left to its end, and writes its lines to the bucket. A log that is followed is read until
// its container ends, or the context does.
func (k *Keeper) read(ctx context.Context, r *run, follow bool) error {
	if err := k.restore(ctx, r, follow); err != nil {
		return err
	}
	// What is not sent is sent the next time, also if nothing more is read.
	_ = k.send(ctx, r)
	switch isFinished, isGone := k.stateOf(r); {
	case isFinished:
		return nil
	case isGone:
		return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, errLogGone)
	case k.unsent.Load() >= maxUnsent:
		return errNoRoom
	}
	err := k.readLines(ctx, r, follow)
	// What was read is kept also if the reading was stopped.
	k.pack(r)
	_ = k.send(context.WithoutCancel(ctx), r)
	return err
}

// stateOf returns whether nothing more is to be read of a run, and whether nothing more can.
func (k *Keeper) stateOf(r *run) (isFinished, isGone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.isDone || r.isFull, r.isGone
}

// restore finds out how far the log of a run was read by an operator before.
func (k *Keeper) restore(ctx context.Context, r *run, follow bool) error {
	k.mu.Lock()
	j := k.jobs[r.id.jobID()]
	isRestored, isNew := r.isRestored, r.startedAt.After(k.started.Add(clockSkew))
	k.mu.Unlock()
	switch {
	case isRestored:
		return nil
	case j == nil:
		return errForgotten
	case !isNew:
		// Another operator may have read it.
		if err := k.resume(ctx, j, r); err != nil {
			return err
		}
	}
	k.mu.Lock()
	// An operator before has cut it.
	r.isFull = r.number > 0 && k.hasNoRoom(j, r)
	k.mu.Unlock()
	// The kubelet may have deleted the first lines of a log that is not followed from its start.
	r.mask = k.masker.Stream(isNew && follow)
	k.mu.Lock()
	defer k.mu.Unlock()
	r.isRestored = true
	return nil
}

// resume reads from the last part of a run how far its log was read.
func (k *Keeper) resume(ctx context.Context, j *job, r *run) error {
	if err := k.load(ctx, j); err != nil {
		return err
	}
	k.mu.Lock()
	parts := j.stored[r.id]
	k.mu.Unlock()
	if len(parts) == 0 {
		return nil
	}
	last := parts[len(parts)-1]
	var properties map[string]string
	err := k.ask(func() (err error) {
		properties, err = k.bucket.Properties(ctx, last.key(k.settings.Prefix))
		return err
	})
	if err != nil {
		return err
	}
	read, err := resumed(properties)
	if err != nil {
		return err
	}
	r.resume, r.number = read, last.number
	return nil
}

// load reads which parts of a job the bucket has, once.
func (k *Keeper) load(ctx context.Context, j *job) error {
	k.mu.Lock()
	isLoaded := j.isLoaded
	k.mu.Unlock()
	if isLoaded {
		return nil
	}
	stored, _, err := k.partsOf(ctx, j.id)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if j.isLoaded {
		return nil
	}
	j.stored, j.isLoaded = map[runID][]part{}, true
	for _, p := range stored {
		if r := j.runs[p.run]; r != nil && r.isRestored {
			// This process has written and counted it.
			continue
		}
		j.stored[p.run] = append(j.stored[p.run], p)
		j.add(p.run.podUID, p.text)
		j.parts++
	}
	return nil
}

// partsOf lists the parts of a job in the bucket, in the order of their keys, and their size.
func (k *Keeper) partsOf(ctx context.Context, id jobID) (parts []part, size int64, err error) {
	prefix := id.prefix(k.settings.Prefix)
	for after, more := "", true; more; {
		var objects []Object
		err := k.ask(func() (err error) {
			objects, more, err = k.bucket.List(ctx, prefix, after)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		for _, object := range objects {
			after = object.Key
			if p, is := parsePart(k.settings.Prefix, object.Key); is {
				parts, size = append(parts, p), size+object.Size
			}
		}
	}
	return parts, size, nil
}

// readLines reads lines until the end of the log.
func (k *Keeper) readLines(ctx context.Context, r *run, follow bool) error {
	k.mu.Lock()
	isPrevious, restarts := r.isPrevious, r.restarts
	k.mu.Unlock()
	options := &corev1.PodLogOptions{Container: r.container, Previous: isPrevious, Follow: follow && !isPrevious, Timestamps: true}
	since := r.readOn()
	if !since.IsZero() {
		options.SinceTime = &metav1.Time{Time: since}
	}
	before := r.position()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A log that is followed brings nothing until its program prints.
	stall := time.AfterFunc(k.stallTimeout, func() {
		if !follow {
			cancel(errStalled)
		}
	})
	defer stall.Stop()
	fail := func(err error) error {
		if errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
		return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, err)
	}
	stream, err := k.pods.Pods(r.id.namespace).GetLogs(r.id.pod, options).Stream(ctx)
	if err != nil {
		return fail(err)
	}
	defer stream.Close()
	if err := k.checkPod(ctx, r, isPrevious); err != nil {
		return fail(err)
	}
	const buffer = 32 << 10
	reader := bufio.NewReaderSize(stream, buffer)
	for {
		stall.Reset(k.stallTimeout)
		raw, err := logstream.ReadLine(reader, logs.MaxStoredLine+logs.CutMargin)
		stall.Stop()
		// A followed log that ends within a line was cut; it is read again.
		if err == nil || errors.Is(err, io.EOF) && !follow && len(raw) > 0 {
			if taken := k.take(ctx, r, raw, since); taken != nil {
				return taken
			}
		}
		isFinished, _ := k.stateOf(r)
		switch {
		case isFinished:
			return nil
		case errors.Is(err, io.EOF) && !follow && k.wasRestarted(r, restarts):
			k.discard(r, before)
			return fail(errRestarted)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fail(err)
		}
	}
}

// checkPod fails unless the log that was just opened is that of a run: logs are asked for by the name of a pod, which a later pod may have,
// and not by the number of the run. If the pod still is the same, it was when the log was opened.
func (k *Keeper) checkPod(ctx context.Context, r *run, isPrevious bool) error {
	pod, err := k.pods.Pods(r.id.namespace).Get(ctx, r.id.pod, metav1.GetOptions{})
	switch {
	case err != nil:
		return err //nolint:wrapcheck // the caller names the pod
	case pod.UID != r.id.podUID:
		return errLogGone
	}
	newest := r.id.restarts
	if isPrevious {
		newest++
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == r.container && status.RestartCount > newest {
			return errRestarted
		}
	}
	return nil
}

// wasRestarted reports whether the container of a run was restarted since it had been a number of times: the run was asked for as the
// present or the previous one.
func (k *Keeper) wasRestarted(r *run, since int32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.restarts > since
}

// position is how far the log of a run was read.
type position struct {
	resume logstream.Resume
	number int
}

func (r *run) position() position { return position{r.resume, r.number} }

// discard drops the lines that were read since a position, which may be those of a later run. If a part of them is written, the position
// remains.
func (k *Keeper) discard(r *run, to position) {
	if r.number != to.number {
		return
	}
	size := int64(len(r.lines.text))
	r.resume, r.lines = to.resume, builder{}
	k.buffered.Add(-size)
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[r.id.jobID()]; j != nil {
		j.add(r.id.podUID, -size)
	}
}

// readOn prepares to read the lines after those that were read, and returns from when; zero for all.
func (r *run) readOn() (since time.Time) {
	if r.resume.Missed() {
		// The next gap is to be noticed as well.
		r.resume = logstream.Resume{Newest: r.resume.Newest, Second: r.resume.Second, Last: r.resume.Last, Before: r.resume.Before}
	}
	r.resume.Again()
	if r.resume.Begun() {
		return r.resume.From()
	}
	return time.Time{}
}

// take adds a line as the kubelet sends it, its time first, to the next part. Lines before a time were not asked for.
func (k *Keeper) take(ctx context.Context, r *run, raw []byte, since time.Time) error {
	stamp, text, _ := bytes.Cut(raw, []byte(" "))
	var at time.Time
	switch err := at.UnmarshalText(stamp); {
	case err == nil:
		hadGap := r.resume.Missed()
		if at.Before(since) || !r.resume.IsNew(at) {
			return nil
		}
		if r.resume.Missed() && !hadGap {
			// A private key may have begun within it.
			r.hasGap, r.mask = true, k.masker.Stream(false)
		}
	case bytes.HasPrefix(raw, []byte(logstream.LogGone)):
		return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, errLogGone)
	default:
		at, text = r.resume.Newest, raw
	}
	if _, is := agentapi.ParseUsageLine(string(bytes.TrimSpace(text))); is {
		return nil
	}
	isFull := k.keep(r, logs.PodLine{Pod: r.id.pod, Time: at, Text: r.mask.LineWithin(string(text), logs.MaxStoredLine)})
	if isFull {
		k.keep(r, logs.PodLine{Pod: r.id.pod, Time: at, Text: cutLine(k.settings.MaxBytes)})
	}
	if size := len(r.lines.text); isFull || size >= partText || size >= leastPart && k.buffered.Load() > maxBuffered {
		return k.flush(ctx, r)
	}
	return nil
}

// keep adds a line to the next part of a run, and reports whether there is no room for more lines of it.
func (k *Keeper) keep(r *run, line logs.PodLine) (isFull bool) {
	before := len(r.lines.text)
	r.lines.add(line)
	added := int64(len(r.lines.text) - before)
	k.buffered.Add(added)
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[r.id.jobID()]; j != nil {
		j.add(r.id.podUID, added)
		r.isFull = r.isFull || k.hasNoRoom(j, r)
	}
	return r.isFull
}

// hasNoRoom reports whether no more lines of a run are kept. Of one pod, three quarters of what a job may have are kept: a launcher that
// prints too much leaves room for workers, whose logs are read when they end. The caller holds the lock.
func (k *Keeper) hasNoRoom(j *job, r *run) bool {
	return j.text >= k.settings.MaxBytes || j.textOf[r.id.podUID] >= maxOfPod(k.settings.MaxBytes) || j.parts >= maxParts
}

// maxOfPod returns how many bytes of the logs of one pod are kept.
func maxOfPod(ofJob int64) int64 {
	const parts, most = 4, 3
	return ofJob / parts * most
}

// cutLine is the line in a log after which there is no room for more.
func cutLine(most int64) string {
	return "mpijob-operator: the log is cut here: " + cutText(most)
}

// cutText is why a log is cut.
func cutText(most int64) string {
	size := func(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }
	return fmt.Sprintf("the logs of a job are limited to %s in %d objects, and those of one of its pods to %s (--log-bucket-job-bytes of the operator)", size(most), maxParts, size(maxOfPod(most)))
}

// flush makes a part of the lines of a run, and sends it. It fails if there is no room for more lines.
func (k *Keeper) flush(ctx context.Context, r *run) error {
	k.pack(r)
	_ = k.send(ctx, r)
	if k.unsent.Load() >= maxUnsent {
		return errNoRoom
	}
	return nil
}

// pack makes a part of the lines of a run.
func (k *Keeper) pack(r *run) {
	if r.lines.lines == 0 {
		return
	}
	k.buffered.Add(-int64(len(r.lines.text)))
	r.number++
	next := r.lines.pack(r.id, r.number, r.isFull || r.hasGap, r.resume)
	k.unsent.Add(int64(len(next.data)))
	k.mu.Lock()
	defer k.mu.Unlock()
	r.unsent = append(r.unsent, next)
	if j := k.jobs[r.id.jobID()]; j != nil {
		j.parts++
	}
}

// send writes the parts of a run that wait.
func (k *Keeper) send(ctx context.Context, r *run) error {
	for len(r.unsent) > 0 {
		next := r.unsent[0]
		err := k.ask(func() error {
			return k.bucket.Put(ctx, next.part.key(k.settings.Prefix), next.data, next.properties)
		})
		if err != nil {
			return err
		}
		k.unsent.Add(-int64(len(next.data)))
		k.counters.bytes.Add(float64(len(next.data)))
		k.mu.Lock()
		r.unsent = r.unsent[1:]
		k.mu.Unlock()
	}
	return nil
}

// ask sends a request to the bucket, unless it did not answer just before.
func (k *Keeper) ask(request func() error) error {
	began := k.clock.Now()
	k.mu.Lock()
	isPaused := began.Before(k.pauseEnd)
	k.mu.Unlock()
	if isPaused {
		return errPaused
	}
	err := request()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.pause = 0
	case errors.Is(err, context.Canceled):
	default:
		k.counters.errors.Inc()
		k.problem = err
		if k.pause == 0 {
			log.Log.Error(err, "the log bucket does not answer; complete logs wait in memory, and it is tried again")
		}
		// Requests that began before fail for the same reason.
		if k.pause == 0 || !began.Before(k.pauseEnd) {
			k.pause = min(max(2*k.pause, soonestRetry), latestRetry)
			k.pauseEnd = k.clock.Now().Add(k.pause)
		}
	}
	return err
}
