package logstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Options say what to read.
type Options struct {
	// Selector picks the job's pods by their labels.
	Selector string
	// Place returns which of the job's pods a pod is; false for a pod that is not shown. Run numbers the launcher's attempts
	// in the order of their creation.
	Place func(*corev1.Pod) (Place, bool)
	// Container is the one to read; empty: each pod's main one.
	Container string
	Hosts     Hosts
	Filter    Filter
	// Levels asks for the level of each line, also where the filter needs none.
	Levels bool

	// Follow waits for what comes, until Over is closed, if it ever is, and all is read that was written by then.
	Follow bool
	Over   <-chan struct{}
	// Previous reads the runs before the present ones, and nothing else.
	Previous bool
	// Tail is how many of each log's last lines are read, before the filter; nil: all.
	Tail *int64
	// Since leaves out what is older, and so does SinceTime. Zero: nothing.
	Since     time.Duration
	SinceTime time.Time
	// Until leaves out what is newer, and ends the reading of a log there. Zero: nothing.
	Until time.Time

	// Kept are the lines in the report of a job that has ended. Run returns those of pods that do not exist any more, if some pods do.
	Kept Kept

	// Budget limits the lines that wait in this and other runs together; nil for no more than 32 MiB in this one. Open is called
	// before each log is read, and what it returns after that; an error ends the run. It may be nil.
	Budget *Budget
	Open   func() (func(), error)

	Masker logs.Masker
	// Waits is called with the pods that have not started, and why, whenever that changes; Says with what else people
	// should know. Both may be nil.
	Waits func([]Waiting)
	Says  func(string)
}

// Waiting is a pod that has not started.
type Waiting struct {
	Place  Place
	Pod    string
	Reason string
}

// Stats counts the lines that were read.
type Stats struct {
	// Runs is how many logs, Lines how many lines went to the sink.
	Runs, Lines int
	// WithoutRank is how many lines were left out because they have no rank and the filter selects ranks.
	WithoutRank int
}

// Run reads the logs of a job's pods and gives their lines to a sink, in the order of time, many at once. The sink may
// take its time: reading waits for it, and memory stays bounded (32 MiB of lines, or the budget, and for each pod 96 KiB and what
// the client receives in advance). It ends when all is read, with the
// first error that concerns more than one try to read one pod, with the sink's error, or with the context's.
func Run(ctx context.Context, pods typedcore.PodInterface, options Options, sink func([]Line) error) (Stats, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{
		pods: pods, options: options, merger: newMerger(options.Budget), atlas: atlas{hosts: options.Hosts},
		over: make(chan struct{}), tracked: map[types.UID]*tracked{}, cancel: cancel,
	}
	var directing sync.WaitGroup
	directing.Go(func() {
		if err := f.direct(ctx); err != nil {
			cancel(err)
		}
		close(f.over)
		f.streams.Wait()
		f.merger.close()
	})
	return f.deliver(ctx, sink, &directing)
}

// deliver gives the merged lines to a sink, until there are none any more, the sink fails, or the context ends. It returns once the readers
// have ended, with the first error.
func (f *follower) deliver(ctx context.Context, sink func([]Line) error, readers *sync.WaitGroup) (stats Stats, err error) {
	for {
		lines := f.merger.next(ctx)
		if len(lines) == 0 {
			break
		}
		if err := sink(lines); err != nil {
			f.cancel(err)
			break
		}
		stats.Lines += len(lines)
	}
	readers.Wait()
	f.merger.release()
	stats.Runs, stats.WithoutRank = f.runs, int(f.withoutRank.Load())
	return stats, context.Cause(ctx)
}

// wants reports whether a line of a pod is asked for, and counts those that are not because they have no rank.
func (f *follower) wants(from Place, line Line) bool {
	filter := f.options.Filter
	if filter.wants(from, line) {
		return true
	}
	if line.Rank == NoRank && len(filter.Ranks) > 0 {
		f.withoutRank.Add(1)
	}
	return false
}

// follower follows one job.
type follower struct {
	saying  sync.Mutex
	pods    typedcore.PodInterface
	options Options
	merger  *merger
	atlas   atlas
	cancel  context.CancelCauseFunc
	// over is closed when nothing is to be waited for any more.
	over        chan struct{}
	streams     sync.WaitGroup
	withoutRank atomic.Int64

	// The rest is the director's alone.
	tracked map[types.UID]*tracked
	// unread holds the readers of logs that have a queue and were not asked for yet.
	unread  []func()
	runs    int
	waiting string
}

// tracked is a pod that was seen.
type tracked struct {
	pod   *corev1.Pod
	place Place
	waits string
	runs  map[string]*run
}

// direct finds the job's pods and starts to read their logs, as they come.
func (f *follower) direct(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		version, err := f.list(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (f.runs == 0 && pause == time.Second || isFinal(err) || !f.options.Follow):
			return err
		case err != nil:
			f.say("The API server does not answer; trying again: %v", err)
		case !f.options.Follow:
			f.tellWaiting()
			return nil
		default:
			pause = time.Second
			over, err := f.watch(ctx, version)
			switch {
			case over:
				// What has come since the last that was heard of.
				_, err := f.list(ctx)
				return err
			case isFinal(err):
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// list reads the pods that there are.
func (f *follower) list(ctx context.Context) (version string, err error) {
	list, err := f.pods.List(ctx, metav1.ListOptions{LabelSelector: f.options.Selector})
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	there := map[types.UID]bool{}
	for i := range list.Items {
		there[list.Items[i].UID] = true
		f.update(ctx, &list.Items[i])
	}
	f.recall(ctx, list.Items)
	// Only now: a line that is read before every log has its queue would not wait for an earlier one.
	f.read()
	for uid := range f.tracked {
		if !there[uid] {
			f.gone(uid)
		}
	}
	return list.ResourceVersion, nil
}

// watch follows changes of pods until the server ends that, and reports whether the job is over.
func (f *follower) watch(ctx context.Context, version string) (over bool, err error) {
	changes, err := f.pods.Watch(ctx, metav1.ListOptions{LabelSelector: f.options.Selector, ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	// Pods change many at a time.
	const settled = 500 * time.Millisecond
	tell := time.NewTimer(settled)
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-f.options.Over:
			return true, nil
		case <-tell.C:
			f.tellWaiting()
		case change, more := <-changes.ResultChan():
			if !more {
				return false, nil
			}
			pod, is := change.Object.(*corev1.Pod)
			switch {
			case change.Type == watch.Error:
				return false, apierrors.FromObject(change.Object)
			case change.Type == watch.Deleted && is:
				f.gone(pod.UID)
			case (change.Type == watch.Added || change.Type == watch.Modified) && is:
				f.update(ctx, pod)
				f.read()
			}
			tell.Reset(settled)
		}
	}
}

// update takes note of a pod, and makes queues for what of it has begun to run.
func (f *follower) update(ctx context.Context, pod *corev1.Pod) {
	place, ours := f.options.Place(pod)
	if !ours || !f.options.Filter.reads(place) {
		return
	}
	t := f.tracked[pod.UID]
	if t == nil {
		if place.Role == mpi.RoleLauncher {
			place.Index = f.launchers()
		}
		t = &tracked{place: place, runs: map[string]*run{}}
		f.tracked[pod.UID] = t
	}
	t.pod = pod
	container := containerOf(pod, f.options.Container)
	is := look(pod, container)
	t.waits = is.waits
	for key, r := range t.runs {
		r.become(key == is.before, key != is.now && key != is.before, key != is.now || is.ended)
	}
	// Until the next run begins, the previous one shows what happened.
	if is.before != "" && (f.options.Previous || is.now == "") {
		f.start(ctx, t, is.before, container, true, true)
	}
	if is.now != "" && !f.options.Previous {
		f.start(ctx, t, is.now, container, false, is.ended)
	}
}

// launchers is how many tries of the launcher were seen.
func (f *follower) launchers() (count int) {
	for _, t := range f.tracked {
		if t.place.Role == mpi.RoleLauncher {
			count++
		}
	}
	return count
}

// start makes a queue for the log of a run, which the next call of read reads.
func (f *follower) start(ctx context.Context, t *tracked, key, container string, previous, ended bool) {
	if t.runs[key] != nil {
		return
	}
	closed := func() {}
	if f.options.Open != nil {
		var err error
		if closed, err = f.options.Open(); err != nil {
			f.cancel(err)
			return
		}
	}
	r := &run{pod: t.pod.Name, container: container, place: t.place, over: make(chan struct{})}
	r.become(previous, false, ended)
	t.runs[key] = r
	f.runs++
	whole := !f.options.Follow
	q := f.merger.add(whole)
	fromStart := f.options.Tail == nil && f.options.Since == 0 && f.options.SinceTime.IsZero()
	s := &stream{follower: f, run: r, queue: q, mask: f.options.Masker.Stream(fromStart), resume: Resume{middle: !fromStart}}
	f.unread = append(f.unread, func() {
		defer closed()
		defer q.end()
		if err := f.follow(ctx, s); err != nil {
			f.cancel(err)
		}
	})
}

// read begins to read the logs that have a queue.
func (f *follower) read() {
	for _, read := range f.unread {
		f.streams.Go(read)
	}
	f.unread = nil
}

// gone takes note that a pod is no more.
func (f *follower) gone(uid types.UID) {
	if t := f.tracked[uid]; t != nil {
		t.waits = ""
		for _, r := range t.runs {
			r.become(r.isPrevious(), true, true)
		}
	}
}

// follow reads a run's log to its end, however often the connection breaks.
func (f *follower) follow(ctx context.Context, s *stream) error {
	const patience = 6
	const soonest, latest = 200 * time.Millisecond, 10 * time.Second
	pause, failures := soonest, 0
	ended := false // the kubelet has ended the log while it was followed: all of it was read
	for {
		follow := f.options.Follow && !s.run.isOver() && !isClosed(f.over)
		before := s.resume.Newest
		err := f.readWhile(ctx, s, follow)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && !follow, errors.Is(err, errUntil):
			return nil
		case isFinal(err):
			return fmt.Errorf("read the log of pod %s: %w", s.run.pod, err)
		case errors.Is(err, errGone), apierrors.IsNotFound(err), s.run.isLost():
			if !s.again || !s.run.isLost() && !ended {
				f.say("The log of %s (pod %s) is gone.", s.run.place, s.run.pod)
			}
			return nil
		}
		ended = err == nil
		if s.resume.Newest.After(before) {
			pause, failures = soonest, 0
		} else if err != nil {
			failures++
		}
		if !follow && failures >= patience {
			f.say("The log of %s (pod %s) could not be read to its end: %v", s.run.place, s.run.pod, err)
			return nil
		}
		if f.await(ctx, s.run, pause, follow); ctx.Err() != nil {
			return nil
		}
		pause = min(2*pause, latest)
	}
}

// readWhile reads a log; one that is followed, until nothing is to be waited for any more.
func (f *follower) readWhile(ctx context.Context, s *stream, follow bool) error {
	if !follow {
		return s.read(ctx, false)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		// A container that has ended ends its log, too, once all of it is read.
		const grace = 10 * time.Second
		select {
		case <-reading.Done():
			return
		case <-s.run.over:
			select {
			case <-reading.Done():
			case <-time.After(grace):
			}
		case <-f.over:
		}
		stop()
	}()
	return s.read(reading, true)
}

// await waits a little before a log is asked for again; not for long where a run that was followed has ended.
func (f *follower) await(ctx context.Context, r *run, pause time.Duration, followed bool) {
	over, jobOver := r.over, f.over
	if !followed {
		over, jobOver = nil, nil
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-jobOver:
	case <-time.After(pause):
	}
}

// tellWaiting says which pods have not started, if that has changed.
func (f *follower) tellWaiting() {
	if f.options.Waits == nil {
		return
	}
	var waiting []Waiting
	for _, t := range f.tracked {
		if t.waits != "" && len(t.runs) == 0 {
			waiting = append(waiting, Waiting{Place: t.place, Pod: t.pod.Name, Reason: t.waits})
		}
	}
	slices.SortFunc(waiting, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Place.Role, b.Place.Role), cmp.Compare(a.Place.Index, b.Place.Index), cmp.Compare(a.Pod, b.Pod))
	})
	if text := fmt.Sprint(waiting); text != f.waiting {
		f.waiting = text
		f.options.Waits(waiting)
	}
}

func (f *follower) say(format string, args ...any) {
	f.saying.Lock()
	defer f.saying.Unlock()
	if f.options.Says != nil {
		f.options.Says(fmt.Sprintf(format, args...))
	}
}

// isFinal reports whether an error persists without a change by the user.
func isFinal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
