package logstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// errNoRoom is returned while too many lines wait for the bucket.
	errNoRoom = errors.New("too many lines wait for the log bucket")
)

// isLogGone reports whether no more can be read of a log.
func isLogGone(err error) bool { return errors.Is(err, errLogGone) || apierrors.IsNotFound(err) }

// read reads the log of a run from where it was left to its end, and writes its lines to the bucket. A log that is followed is read until
// its container ends, or the context does.
func (k *Keeper) read(ctx context.Context, r *run, follow bool) error {
	if err := k.restore(ctx, r); err != nil {
		return err
	}
	if err := k.send(ctx, r); err != nil && k.unsent.Load() >= maxUnsent {
		return errNoRoom
	}
	if k.isFinished(r) {
		return nil
	}
	err := k.readLines(ctx, r, follow)
	// What was read is kept also if the reading was stopped.
	if flushed := k.flush(context.WithoutCancel(ctx), r); err == nil {
		err = flushed
	}
	return err
}

// isFinished reports whether nothing more is read of a run.
func (k *Keeper) isFinished(r *run) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.isDone || r.isFull
}

// restore finds out how far the log of a run was read by an operator before.
func (k *Keeper) restore(ctx context.Context, r *run) error {
	if r.isRestored {
		return nil
	}
	k.mu.Lock()
	j := k.jobs[r.id.job]
	isNew := r.startedAt.After(k.started.Add(clockSkew))
	k.mu.Unlock()
	if j == nil {
		return nil
	}
	if isNew {
		// No other operator can have read it.
		r.isRestored, r.mask = true, k.masker.Stream(true)
		return nil
	}
	if err := k.load(ctx, j); err != nil {
		return err
	}
	k.mu.Lock()
	parts := j.stored[r.id]
	k.mu.Unlock()
	if len(parts) > 0 {
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
	}
	r.isRestored, r.mask = true, k.masker.Stream(len(parts) == 0)
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
	stored, _, err := k.partsOf(ctx, j)
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
		j.stored[p.run] = append(j.stored[p.run], p)
		j.text += p.text
	}
	return nil
}

// partsOf lists the parts of a job in the bucket, in the order of their keys, and their size.
func (k *Keeper) partsOf(ctx context.Context, j *job) (parts []part, size int64, err error) {
	prefix := jobPrefix(k.settings.Prefix, j.namespace, j.uid)
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
	options := &corev1.PodLogOptions{Container: r.container, Previous: r.isPrevious, Follow: follow && !r.isPrevious, Timestamps: true}
	k.mu.Unlock()
	r.resume.Again()
	var since time.Time
	if r.resume.Begun() {
		since = r.resume.From()
		options.SinceTime = &metav1.Time{Time: since}
	}
	stream, err := k.pods.Pods(r.id.namespace).GetLogs(r.id.pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, err)
	}
	defer stream.Close()
	const buffer = 32 << 10
	reader := bufio.NewReaderSize(stream, buffer)
	for {
		raw, err := logstream.ReadLine(reader, logs.MaxStoredLine)
		// A followed log that ends within a line was cut; it is read again.
		if err == nil || errors.Is(err, io.EOF) && !follow && len(raw) > 0 {
			if taken := k.take(ctx, r, raw, since); taken != nil {
				return taken
			}
		}
		switch {
		case errors.Is(err, io.EOF) || k.isFinished(r):
			return nil
		case err != nil:
			return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, err)
		}
	}
}

// take adds a line as the kubelet sends it, its time first, to the next part. Lines before a time were not asked for.
func (k *Keeper) take(ctx context.Context, r *run, raw []byte, since time.Time) error {
	stamp, text, _ := bytes.Cut(raw, []byte(" "))
	var at time.Time
	switch err := at.UnmarshalText(stamp); {
	case err == nil:
		if at.Before(since) || !r.resume.IsNew(at) {
			return nil
		}
	case bytes.HasPrefix(raw, []byte(logstream.LogGone)):
		return fmt.Errorf("the log of pod %s cannot be read: %w", r.id.pod, errLogGone)
	default:
		at, text = r.resume.Newest, raw
	}
	if _, is := agentapi.ParseUsageLine(string(bytes.TrimSpace(text))); is {
		return nil
	}
	before := len(r.lines.text)
	// What replaces a secret may be longer.
	masked := r.mask.Line(logs.CleanWithin(string(text), logs.MaxStoredLine))
	r.lines.add(logs.PodLine{Pod: r.id.pod, Time: at, Text: logs.CleanWithin(masked, logs.MaxStoredLine)})
	added := int64(len(r.lines.text) - before)
	k.buffered.Add(added)
	k.mu.Lock()
	if j := k.jobs[r.id.job]; j != nil {
		j.text += added
		r.isFull = j.text >= k.settings.MaxBytes
	}
	isFull := r.isFull
	k.mu.Unlock()
	if size := len(r.lines.text); isFull || size >= partText || size >= leastPart && k.buffered.Load() > maxBuffered {
		return k.flush(ctx, r)
	}
	return nil
}

// flush makes a part of the lines of a run, and sends it. It fails if there is no room for more lines.
func (k *Keeper) flush(ctx context.Context, r *run) error {
	if r.lines.lines > 0 {
		k.buffered.Add(-int64(len(r.lines.text)))
		r.number++
		next := r.lines.pack(r.id, r.number, r.isFull || r.resume.Missed(), r.resume)
		k.unsent.Add(int64(len(next.data)))
		k.mu.Lock()
		r.unsent = append(r.unsent, next)
		k.mu.Unlock()
	}
	if err := k.send(ctx, r); err != nil && k.unsent.Load() >= maxUnsent {
		return errNoRoom
	}
	return nil
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
	k.mu.Lock()
	isPaused := k.clock.Now().Before(k.pauseEnd)
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
		if k.pause == 0 {
			log.Log.Error(err, "the log bucket does not answer; complete logs wait in memory, and it is tried again")
		}
		k.pause = min(max(2*k.pause, soonestRetry), latestRetry)
		k.pauseEnd = k.clock.Now().Add(k.pause)
		k.problem = err
	}
	return err
}
