package logstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

const (
	// finishTimeout is how long the end of a job waits at most until the logs of its pods are read.
	finishTimeout = 5 * time.Second
	// readers is how many logs are read to their ends at once, and maxFollowed how many are followed besides.
	readers, maxFollowed = 16, 256
	// maxBuffered is how many bytes of text may wait for their part to be full: if there are more, parts have leastPart bytes.
	maxBuffered, leastPart = 24 << 20, 32 << 10
	// maxUnsent is how many bytes of compressed lines may wait for the bucket. If there are more, logs are not read.
	maxUnsent = 32 << 20
	// clockSkew is by how much the clocks of nodes may be ahead of that of the operator.
	clockSkew = time.Minute
	// unseenDelay is how long the index of a finished job waits whose pods were not observed.
	unseenDelay = time.Minute
	// soonestRetry and latestRetry limit the growing delay before another try.
	soonestRetry, latestRetry = time.Second, time.Minute
)

// Pods reads the logs of the pods of all namespaces.
type Pods interface {
	Pods(namespace string) typedcore.PodInterface
}

// Publish writes to the report of a job where its complete logs are. It does not fail if the report does not exist.
type Publish func(ctx context.Context, namespace, report string, job types.UID, kept v1alpha1.CompleteLogs) error

// Keeper keeps the complete logs of jobs. Its methods are safe for concurrent use. Nil keeps none.
type Keeper struct {
	settings Settings
	bucket   Bucket
	pods     Pods
	publish  Publish
	masker   logs.Masker
	clock    clock.PassiveClock
	counters *counters

	tasks   workqueue.TypedRateLimitingInterface[task]
	follows chan struct{}
	// buffered and unsent are how many bytes wait, of text and of compressed lines.
	buffered, unsent atomic.Int64
	// running is set while this process leads, since when it does.
	running atomic.Bool

	mu       sync.Mutex
	started  time.Time
	jobs     map[types.UID]*job
	jobOfPod map[types.UID]types.UID
	// kept is when the jobs were seen last whose logs are all kept.
	kept map[types.UID]time.Time
	// pause is for how long nothing is asked of a bucket that did not answer, pauseEnd until when, and problem what it answered.
	pause    time.Duration
	pauseEnd time.Time
	problem  error
}

// task is a run whose log is to be read, or with an empty run a finished job whose index is to be written.
type task struct {
	job types.UID
	run runID
}

// job is a job whose logs are kept. Keeper.mu guards it.
type job struct {
	namespace, report string
	uid               types.UID
	runs              map[runID]*run
	// stored are the parts that the bucket had when this process began; isLoaded is set once they are known.
	stored   map[runID][]part
	isLoaded bool
	// text is the size of all lines that were kept.
	text int64
	// isEnding is set once the logs of all pods are to be read to their ends, isOver once the report has an end.
	isEnding, isOver bool
	// overSince is when the end in the report was observed, and seen when the job was observed last.
	overSince, seen time.Time
	// wasIndexed is set once the report has an index, and problem is the one that the report has.
	wasIndexed bool
	problem    string
}

// run is one run of a container.
type run struct {
	id         runID
	container  string
	isLauncher bool
	startedAt  time.Time

	// Keeper.mu guards what follows: what is known of the container, and what was read.
	isPrevious, hasEnded, isDeleting, isGone bool
	// isBusy is set while the log is read, and stop ends the reading of a log that is followed.
	isBusy bool
	stop   context.CancelFunc
	// wasRead is set once the log was read to its end, after the job has ended if it has; isDone once nothing more is to be read.
	wasRead, isDone bool
	// lost is why the log could not be read; empty if it could.
	lost string

	// What follows belongs to the reader that has set isBusy.
	isRestored bool
	resume     logstream.Resume
	mask       *logs.Stream
	lines      builder
	number     int
	unsent     []packed
	isFull     bool
}

// New returns a keeper for a bucket. Run it while the process leads.
func New(settings Settings, bucket Bucket, pods Pods, masker logs.Masker, publish Publish, clock clock.PassiveClock) *Keeper {
	k := &Keeper{
		settings: settings, bucket: bucket, pods: pods, masker: masker, publish: publish, clock: clock,
		tasks:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](soonestRetry, latestRetry)),
		follows: make(chan struct{}, maxFollowed), jobs: map[types.UID]*job{}, jobOfPod: map[types.UID]types.UID{}, kept: map[types.UID]time.Time{},
	}
	k.counters = newCounters(k)
	return k
}

// Observe takes note of the pods of a job, and has the logs be read of those that have ended or are being deleted. When the job ends, it
// waits until the logs of all pods were read, for 5 s at most and once. Call it before pods of the job are deleted.
//
// The report is the job's previous one; nil if it has none.
func (k *Keeper) Observe(ctx context.Context, of mpi.Job, seen jobstate.Observed, out jobstate.Outcome, report *v1alpha1.JobReport) {
	if k == nil || !k.running.Load() || report != nil && report.Status.CompleteLogs != nil && report.Status.CompleteLogs.Index != "" {
		return
	}
	isEnd := out.Finish != nil || of.External && hasEndedLauncher(seen)
	if out.Finish != nil && seen.Now.Sub(out.Finish.At) > k.settings.Retention {
		return
	}
	k.mu.Lock()
	j := k.jobFor(of.Namespace, of.ReportName(), of.UID)
	if j == nil {
		k.mu.Unlock()
		return
	}
	launcher, worker := mainContainer(of.Launcher.Template), mainContainer(of.Workers.Template)
	for _, pod := range seen.LauncherPods {
		k.update(j, pod, launcher, true)
	}
	for _, w := range seen.Workers {
		k.update(j, w.Pod, worker, false)
	}
	waits := isEnd && !j.isEnding && len(j.runs) > 0
	if waits {
		k.readToEnds(j)
	}
	// The pods of a TrainJob may be replaced after its launcher has ended.
	j.isEnding = isEnd
	k.mu.Unlock()
	if waits {
		k.awaitReads(ctx, of.UID)
	}
}

// hasEndedLauncher reports whether the launcher's latest pod has ended: Kubeflow Trainer's JobSet deletes the workers right after that.
func hasEndedLauncher(seen jobstate.Observed) bool {
	n := len(seen.LauncherPods)
	return n > 0 && podstatus.HasEnded(seen.LauncherPods[n-1])
}

func mainContainer(template corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return ""
	}
	return template.Spec.Containers[0].Name
}

// awaitReads waits until the logs of a job were read, for a bounded time.
func (k *Keeper) awaitReads(ctx context.Context, uid types.UID) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	const interval = 20 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		k.mu.Lock()
		j := k.jobs[uid]
		areRead := j == nil || !slices.ContainsFunc(slices.Collect(maps.Values(j.runs)), func(r *run) bool { return !r.wasRead && !r.isDone })
		k.mu.Unlock()
		if areRead {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// SeePod takes note of a change of a pod that Observe has shown before, or of its deletion.
func (k *Keeper) SeePod(pod *corev1.Pod, isGone bool) {
	if k == nil || !k.running.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j := k.jobs[k.jobOfPod[pod.UID]]
	if j == nil {
		return
	}
	var container string
	var isLauncher bool
	for _, r := range j.runs {
		if r.id.podUID == pod.UID {
			container, isLauncher = r.container, r.isLauncher
			r.isGone = r.isGone || isGone
			if isGone && !r.isDone {
				k.tasks.Add(task{j.uid, r.id})
			}
		}
	}
	if !isGone {
		k.update(j, pod, container, isLauncher)
	}
}

// SeeReport has the index of a job be written whose report has an end.
func (k *Keeper) SeeReport(report *v1alpha1.JobReport) {
	end := report.Status.CompletionTime
	if k == nil || !k.running.Load() || end == nil || k.clock.Since(end.Time) > k.settings.Retention {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	uid := report.Spec.JobRef.UID
	if kept := report.Status.CompleteLogs; kept != nil && kept.Index != "" && k.jobs[uid] == nil {
		return
	}
	j := k.jobFor(report.Namespace, report.Name, uid)
	if j == nil || j.isOver {
		return
	}
	j.isOver, j.overSince = true, k.clock.Now()
	if len(j.runs) > 0 {
		k.tasks.Add(task{job: uid})
	} else {
		// This process may lead since a moment, and observe the job's pods soon.
		k.tasks.AddAfter(task{job: uid}, unseenDelay)
	}
}

// jobFor returns what is known of a job; nil if all of its logs are kept. The caller holds the lock.
func (k *Keeper) jobFor(namespace, report string, uid types.UID) *job {
	j := k.jobs[uid]
	if _, isKept := k.kept[uid]; isKept {
		k.kept[uid] = k.clock.Now()
		return nil
	}
	if j == nil {
		j = &job{namespace: namespace, report: report, uid: uid, runs: map[runID]*run{}}
		k.jobs[uid] = j
	}
	j.seen = k.clock.Now()
	return j
}

// update takes note of the runs of a pod, and has those be read that are to be read now. The caller holds the lock.
func (k *Keeper) update(j *job, pod *corev1.Pod, container string, isLauncher bool) {
	for _, status := range pod.Status.ContainerStatuses {
		// The template of a job whose runtime is gone is unknown.
		if status.Name != container && (container != "" || len(pod.Status.ContainerStatuses) > 1) {
			continue
		}
		add := func(restarts int32, isPrevious, hasEnded bool, startedAt time.Time) {
			id := runID{namespace: pod.Namespace, job: j.uid, pod: pod.Name, podUID: pod.UID, restarts: restarts}
			seen := &run{id: id, container: status.Name, isLauncher: isLauncher, startedAt: startedAt}
			k.updateRun(j, seen, isPrevious, hasEnded, pod.DeletionTimestamp != nil)
		}
		if last := status.LastTerminationState.Terminated; last != nil && status.RestartCount > 0 {
			add(status.RestartCount-1, true, true, last.StartedAt.Time)
		}
		switch state := status.State; {
		case state.Running != nil:
			add(status.RestartCount, false, false, state.Running.StartedAt.Time)
		case state.Terminated != nil:
			add(status.RestartCount, false, true, state.Terminated.StartedAt.Time)
		}
	}
}

// updateRun takes note of a run, or of how it has changed, and has it be read if it is new and a launcher's, has ended, or is being
// deleted. The caller holds the lock.
func (k *Keeper) updateRun(j *job, seen *run, isPrevious, hasEnded, isDeleting bool) {
	r := j.runs[seen.id]
	wakes := r == nil && seen.isLauncher
	if r == nil {
		r = seen
		j.runs[r.id] = r
		k.jobOfPod[r.id.podUID] = j.uid
	}
	wakes = wakes || !r.hasEnded && hasEnded || !r.isDeleting && isDeleting
	r.isPrevious, r.hasEnded, r.isDeleting = isPrevious, r.hasEnded || hasEnded, isDeleting
	if wakes && !r.isDone {
		k.tasks.Add(task{j.uid, r.id})
	}
}

// readToEnds has the logs of a job be read to their present ends, also those that are followed. The caller holds the lock.
func (k *Keeper) readToEnds(j *job) {
	j.isEnding = true
	for id, r := range j.runs {
		if r.isDone {
			continue
		}
		r.wasRead = false
		if r.stop != nil && !r.hasEnded && !r.isDeleting {
			r.stop()
		}
		k.tasks.Add(task{j.uid, id})
	}
}

// Run reads logs and writes indexes until the context ends. The reports are those of all jobs.
func (k *Keeper) Run(ctx context.Context, reports []v1alpha1.JobReport) error {
	k.mu.Lock()
	k.started = k.clock.Now()
	k.mu.Unlock()
	k.running.Store(true)
	defer k.running.Store(false)
	for i := range reports {
		k.SeeReport(&reports[i])
	}
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for k.next(ctx, &all) {
			}
		})
	}
	all.Go(func() { k.deleteOldPeriodically(ctx) })
	<-ctx.Done()
	k.tasks.ShutDown()
	all.Wait()
	return nil
}

// next does one task. It returns false when there will be no more.
func (k *Keeper) next(ctx context.Context, all *sync.WaitGroup) bool {
	t, isOver := k.tasks.Get()
	if isOver {
		return false
	}
	defer k.tasks.Done(t)
	if t.run == (runID{}) {
		k.retry(ctx, t, k.writeIndex(ctx, t.job))
		return true
	}
	r, followed := k.begin(ctx, t)
	switch {
	case r == nil:
	case followed != nil:
		all.Go(func() {
			defer func() { <-k.follows }()
			err := k.read(followed, r, true)
			k.end(ctx, t, r, true, err)
		})
	default:
		k.end(ctx, t, r, false, k.read(ctx, r, false))
	}
	return true
}

// retry has a task be done again later if it has failed.
func (k *Keeper) retry(ctx context.Context, t task, err error) {
	if err == nil || ctx.Err() != nil {
		k.tasks.Forget(t)
		return
	}
	k.tasks.AddRateLimited(t)
}

// begin returns the run of a task, and if it is to be followed the context for that; nil if there is nothing to read, or it is being read.
func (k *Keeper) begin(ctx context.Context, t task) (r *run, followed context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	j := k.jobs[t.job]
	if j == nil {
		return nil, nil
	}
	r = j.runs[t.run]
	if r == nil || r.isDone && len(r.unsent) == 0 || r.isBusy {
		return nil, nil
	}
	if isWorth := r.isDeleting || r.isLauncher && !j.isEnding; isWorth && !r.hasEnded && !r.isGone && !r.isDone {
		select {
		case k.follows <- struct{}{}:
			followed, r.stop = context.WithCancel(ctx)
		default:
		}
	}
	r.isBusy = true
	return r, followed
}

// end takes note of how far the log of a run was read.
func (k *Keeper) end(ctx context.Context, t task, r *run, followed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	j := k.jobs[t.job]
	r.isBusy = false
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	again := false
	switch {
	case ctx.Err() != nil || j == nil:
		return
	case r.isFull:
		r.wasRead, r.isDone = true, true
	case followed && !r.isDone && !isLogGone(err):
		// What ended the log, or this reading of it, is known soon. The rest is read then.
		again = true
	case err == nil:
		r.wasRead = true
		r.isDone = r.isDone || r.hasEnded || r.isGone
	case isLogGone(err) || r.isGone:
		if !r.wasRead && r.lost == "" && !r.resume.Begun() {
			r.lost = k.masker.Text(err.Error())
			k.counters.lost.Inc()
		}
		r.isDone = true
	default:
		again = true
	}
	switch {
	case again && followed && j.isEnding:
		k.tasks.Forget(t)
		k.tasks.Add(t)
	case again || len(r.unsent) > 0:
		k.tasks.AddRateLimited(t)
		if err == nil {
			k.tasks.Forget(t)
		}
	default:
		k.tasks.Forget(t)
	}
	if j.isOver {
		k.tasks.Add(task{job: t.job})
	}
}

// sortedRuns returns the runs of a job in the order of pods and time.
func (j *job) sortedRuns() []*run {
	return slices.SortedFunc(maps.Values(j.runs), func(a, b *run) int { return compareRuns(a.id, b.id) })
}

func compareRuns(a, b runID) int {
	return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.podUID, b.podUID), cmp.Compare(a.restarts, b.restarts))
}
