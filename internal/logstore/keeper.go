package logstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
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
	maxBuffered, leastPart = 24 << 20, 64 << 10
	// maxUnsent is how many bytes of compressed lines may wait for the bucket. If there are more, logs are not read.
	maxUnsent = 32 << 20
	// maxParts is how many objects with lines a job has: an index describes each of them with up to a kilobyte.
	maxParts = 12_000
	// clockSkew is by how much the clocks of nodes may be ahead of that of the operator.
	clockSkew = time.Minute
	// unseenDelay is how long the index of a finished job waits whose pods were not observed.
	unseenDelay = time.Minute
	// soonestRetry and latestRetry limit the growing delay before another try.
	soonestRetry, latestRetry = time.Second, time.Minute
	// followDelay is how long a log waits that is to be followed while too many are; it is read meanwhile.
	followDelay = 30 * time.Second
	// shareDelay is how long a log waits if its namespace has its share of the readers.
	shareDelay = 250 * time.Millisecond
	// stallTimeout is how long the reading of a log that is not followed waits for more of it.
	stallTimeout = 20 * time.Second
)

// ReceiveWindow is how many bytes the client may receive in advance of each log: as many logs are read at once as there are readers and
// followed logs. By default that is 4 MiB.
const ReceiveWindow = 64 << 10

// Pods reads the logs of the pods of all namespaces.
type Pods interface {
	Pods(namespace string) typedcore.PodInterface
}

// Reports are the JobReports of all jobs.
type Reports interface {
	// Publish writes to the report of a job where its complete logs are; an empty value removes that. It does not fail if the report does
	// not exist.
	Publish(ctx context.Context, namespace, report string, job types.UID, kept v1alpha1.CompleteLogs) error
	// End returns when a job has ended, zero if it has not, and whether it has a report.
	End(ctx context.Context, namespace string, job types.UID) (at time.Time, hasReport bool, err error)
}

// Keeper keeps the complete logs of jobs. Its methods are safe for concurrent use. Nil keeps none.
type Keeper struct {
	settings Settings
	bucket   Bucket
	pods     Pods
	reports  Reports
	masker   logs.Masker
	clock    clock.PassiveClock
	counters *counters
	// stallTimeout and followDelay are the constants, but in tests.
	stallTimeout, followDelay time.Duration

	tasks workqueue.TypedRateLimitingInterface[task]
	// buffered and unsent are how many bytes wait, of text and of compressed lines.
	buffered, unsent atomic.Int64
	// running is set while this process leads, since when it does.
	running atomic.Bool

	mu       sync.Mutex
	started  time.Time
	jobs     map[jobID]*job
	jobOfPod map[types.UID]jobID
	// kept is when the jobs were seen last whose logs are all kept.
	kept map[jobID]time.Time
	// follows are the logs that are followed, and reads those that are read otherwise.
	follows, reads *share
	// pause is for how long nothing is asked of a bucket that did not answer, pauseEnd until when, and problem what it answered.
	pause    time.Duration
	pauseEnd time.Time
	problem  error
}

// task is a run whose log is to be read, or with an empty run a finished job whose index is to be written.
type task struct {
	job jobID
	run runID
}

// job is a job whose logs are kept. Keeper.mu guards it.
type job struct {
	id     jobID
	report string
	runs   map[runID]*run
	// stored are the parts that the bucket had when this process began; isLoaded is set once they are known.
	stored   map[runID][]part
	isLoaded bool
	// text is the size of all lines that were kept, textOf that of each pod, and parts the number of their objects.
	text   int64
	textOf map[types.UID]int64
	parts  int
	// isEnding is set once the logs of all pods are to be read to their ends, isOver once the report has an end.
	isEnding, isOver bool
	// end is the end in the report, overSince when it was observed, and seen when the job was observed last.
	end, overSince, seen time.Time
	// changes counts what may change the index.
	changes int
	// wasIndexed is set once the report has an index, published is what it shows of it without its address, and problem is the one that the
	// report has.
	wasIndexed bool
	published  v1alpha1.CompleteLogs
	problem    string
	// before is the partial index of an earlier leader; nil if there is none.
	before *v1alpha1.CompleteLogs
}

// add adds bytes to the size of the lines that were kept of a pod. The caller holds the keeper's lock.
func (j *job) add(pod types.UID, bytes int64) {
	j.text += bytes
	j.textOf[pod] += bytes
}

// run is one run of a container.
type run struct {
	id        runID
	container string
	// isMain is set for the log that is worth following: the launcher's.
	isMain    bool
	startedAt time.Time

	// Keeper.mu guards what follows: what is known of the container, and what was read.
	isPrevious, hasEnded, isDeleting bool
	// restarts is how often the container was restarted by now.
	restarts int32
	// isGone is set once its log cannot be read any more.
	isGone bool
	// isBusy is set while the log is read, and stop ends the reading of a log that is followed; wasStopped is set once that was called.
	isBusy, wasStopped bool
	stop               context.CancelFunc
	// endedBefore is set if the container had ended when the reading of its log began.
	endedBefore bool
	// wasRead is set once the log was read to its end, after the job has ended if it has; isDone once nothing more is to be read.
	wasRead, isDone bool
	// atEnd is set if the last reading came to the end of the log, and isCut if lines after those that were read are lost.
	atEnd, isCut bool
	// lost is why the log could not be read; empty if it could.
	lost string
	// isRestored is set once it is known how far an operator before has read the log.
	isRestored bool

	// What follows belongs to the reader that has set isBusy.
	resume logstream.Resume
	mask   *logs.Stream
	// hasGap is set once lines were missing between those that were read.
	hasGap bool
	lines  builder
	number int
	unsent []packed
	isFull bool
}

// New returns a keeper for a bucket. Run it while the process leads.
func New(settings Settings, bucket Bucket, pods Pods, masker logs.Masker, reports Reports, clock clock.PassiveClock) *Keeper {
	k := &Keeper{
		settings: settings, bucket: bucket, pods: pods, masker: masker, reports: reports, clock: clock,
		tasks:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](soonestRetry, latestRetry)),
		follows: newShare(maxFollowed), reads: newShare(readers), jobs: map[jobID]*job{}, jobOfPod: map[types.UID]jobID{}, kept: map[jobID]time.Time{},
		stallTimeout: stallTimeout, followDelay: followDelay,
	}
	k.counters = newCounters(k)
	return k
}

// Observe takes note of the pods of a job, and has the logs be read of those that have ended or are being deleted. When the job ends, it
// waits until the logs of all pods were read, for 5 s at most and once. Call it before pods of the job are deleted.
//
// The report is the job's previous one; nil if it has none.
func (k *Keeper) Observe(ctx context.Context, of mpi.Job, seen jobstate.Observed, out jobstate.Outcome, report *v1alpha1.JobReport) {
	if k == nil || !k.running.Load() {
		return
	}
	var kept *v1alpha1.CompleteLogs
	if report != nil {
		kept = report.Status.CompleteLogs
	}
	if isFinal(kept) || out.Finish != nil && seen.Now.Sub(out.Finish.At) > k.settings.Retention {
		return
	}
	isEnd := out.Finish != nil || of.External && hasEndedLauncher(seen)
	id := jobID{of.Namespace, of.UID}
	k.mu.Lock()
	j := k.jobFor(id, of.ReportName(), kept)
	if j == nil {
		k.mu.Unlock()
		return
	}
	launcher, worker := mainContainer(of.Launcher.Template), mainContainer(of.Workers.Template)
	for _, pod := range seen.LauncherPods {
		k.update(j, pod, launcher, true)
	}
	for _, w := range seen.Workers {
		// Of jobs without a launcher, the first worker usually prints the most.
		k.update(j, w.Pod, worker, of.Launcher.None && w.Index == 0)
	}
	waits := isEnd && !j.isEnding && len(j.runs) > 0
	if waits {
		k.readToEnds(j)
	}
	// The pods of a TrainJob may be replaced after its launcher has ended.
	j.isEnding = isEnd
	k.mu.Unlock()
	if waits {
		k.awaitReads(ctx, id)
	}
}

// isFinal reports whether a report has an index that nothing is added to.
func isFinal(kept *v1alpha1.CompleteLogs) bool {
	return kept != nil && kept.Index != "" && !isPartial(kept)
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
func (k *Keeper) awaitReads(ctx context.Context, id jobID) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	const interval = 20 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		k.mu.Lock()
		j := k.jobs[id]
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
	var isMain bool
	for _, r := range j.runs {
		if r.id.podUID == pod.UID {
			container, isMain = r.container, r.isMain
			if isGone {
				k.loseRun(j, r)
			}
		}
	}
	if !isGone {
		k.update(j, pod, container, isMain)
	}
}

// loseRun takes note that the log of a run cannot be read any more. The caller holds the lock.
func (k *Keeper) loseRun(j *job, r *run) {
	if r.isGone {
		return
	}
	r.isGone = true
	if !r.isDone {
		j.changes++
		k.tasks.Add(task{j.id, r.id})
	}
}

// SeeReport has the index of a job be written whose report has an end.
func (k *Keeper) SeeReport(report *v1alpha1.JobReport) {
	end, kept := report.Status.CompletionTime, report.Status.CompleteLogs
	if k == nil || !k.running.Load() || end == nil || k.clock.Since(end.Time) > k.settings.Retention && !showsNotKeptYet(kept) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	id := jobID{report.Namespace, report.Spec.JobRef.UID}
	known := k.jobs[id]
	if known == nil && isFinal(kept) || known != nil && known.report != report.Name {
		return
	}
	j := k.jobFor(id, report.Name, kept)
	if j == nil || j.isOver {
		return
	}
	j.isOver, j.end, j.overSince = true, end.Time, k.clock.Now()
	if len(j.runs) > 0 {
		k.tasks.Add(task{job: id})
	} else {
		// This process may lead since a moment, and observe the job's pods soon.
		k.tasks.AddAfter(task{job: id}, unseenDelay)
	}
}

// showsNotKeptYet reports whether a report shows that the complete logs are not kept yet.
func showsNotKeptYet(kept *v1alpha1.CompleteLogs) bool {
	return kept != nil && strings.HasPrefix(kept.Message, notKeptYet)
}

// jobFor returns what is known of a job; nil if all of its logs are kept. What its report has about them may be nil. The caller holds the
// lock.
func (k *Keeper) jobFor(id jobID, report string, kept *v1alpha1.CompleteLogs) *job {
	if _, isKept := k.kept[id]; isKept {
		k.kept[id] = k.clock.Now()
		return nil
	}
	j := k.jobs[id]
	if j == nil {
		j = &job{id: id, report: report, runs: map[runID]*run{}, textOf: map[types.UID]int64{}}
		k.jobs[id] = j
	}
	switch {
	case isPartial(kept) && !j.wasIndexed:
		j.before, j.wasIndexed = kept.DeepCopy(), true
	case showsNotKeptYet(kept) && j.problem == "" && !j.wasIndexed:
		j.problem = kept.Message
	}
	j.seen = k.clock.Now()
	return j
}

// update takes note of the runs of a pod, and has those be read that are to be read now. The caller holds the lock.
func (k *Keeper) update(j *job, pod *corev1.Pod, container string, isMain bool) {
	for _, status := range pod.Status.ContainerStatuses {
		// The template of a job whose runtime is gone is unknown.
		if status.Name == container || container == "" && len(pod.Status.ContainerStatuses) == 1 {
			k.updateContainer(j, pod, status, isMain)
		}
	}
}

// updateContainer takes note of the runs of a container. The caller holds the lock.
func (k *Keeper) updateContainer(j *job, pod *corev1.Pod, status corev1.ContainerStatus, isMain bool) {
	add := func(restarts int32, isPrevious, hasEnded bool, startedAt time.Time) {
		id := runID{namespace: pod.Namespace, job: j.id.uid, pod: pod.Name, podUID: pod.UID, restarts: restarts}
		seen := &run{id: id, container: status.Name, isMain: isMain, startedAt: startedAt}
		k.updateRun(j, seen, isPrevious, hasEnded, pod.DeletionTimestamp != nil)
	}
	// The kubelet has the logs of the last two runs, and only one while the container waits to be restarted.
	oldest := status.RestartCount - 1
	if last := status.LastTerminationState.Terminated; last != nil {
		if isInBackOff(status) {
			oldest = status.RestartCount
		}
		add(max(0, oldest), true, true, last.StartedAt.Time)
	}
	switch state := status.State; {
	case state.Running != nil:
		add(status.RestartCount, false, false, state.Running.StartedAt.Time)
	case state.Terminated != nil:
		add(status.RestartCount, false, true, state.Terminated.StartedAt.Time)
	}
	for id, r := range j.runs {
		if id.podUID != pod.UID || r.container != status.Name {
			continue
		}
		if r.restarts = status.RestartCount; id.restarts < oldest {
			k.loseRun(j, r)
		}
	}
}

// isInBackOff reports whether a container waits to be restarted: the number of its restarts is still that of the run that has ended.
func isInBackOff(status corev1.ContainerStatus) bool {
	last := status.LastTerminationState.Terminated
	return last != nil && status.State.Running == nil && status.State.Terminated == nil && last.ContainerID == status.ContainerID
}

// updateRun takes note of a run, or of how it has changed, and has it be read if it is new and is to be followed or of a job that ends, has
// ended, or is being deleted. The caller holds the lock.
func (k *Keeper) updateRun(j *job, seen *run, isPrevious, hasEnded, isDeleting bool) {
	r := j.runs[seen.id]
	wakes := r == nil && (seen.isMain || j.isEnding)
	if r == nil {
		r = seen
		j.runs[r.id] = r
		k.jobOfPod[r.id.podUID] = j.id
		j.changes++
	}
	wakes = wakes || !r.hasEnded && hasEnded || !r.isDeleting && isDeleting
	r.isPrevious, r.hasEnded, r.isDeleting = r.isPrevious || isPrevious, r.hasEnded || hasEnded, isDeleting
	if wakes && !r.isDone {
		j.changes++
		k.tasks.Add(task{j.id, r.id})
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
			r.wasStopped = true
			r.stop()
		}
		k.tasks.Add(task{j.id, id})
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

// begin returns the run of a task, and if it is to be followed the context for that; nil if there is nothing to read, it is being read, or
// it has to wait for other namespaces.
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
	switch {
	case k.isWorthFollowing(j, r) && k.follows.take(t.job.namespace):
		followed, r.stop = context.WithCancel(ctx)
	case k.reads.take(t.job.namespace):
	default:
		k.tasks.AddAfter(t, shareDelay)
		return nil, nil
	}
	r.isBusy, r.endedBefore, r.wasStopped = true, r.hasEnded, false
	return r, followed
}

// isWorthFollowing reports whether the log of a run is to be followed. The caller holds the lock.
func (k *Keeper) isWorthFollowing(j *job, r *run) bool {
	return (r.isDeleting || r.isMain && !j.isEnding) && !r.hasEnded && !r.isGone && !r.isDone
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
	if followed {
		k.follows.free(t.job.namespace)
	} else {
		k.reads.free(t.job.namespace)
	}
	switch {
	case j == nil:
		k.release(r)
		return
	case ctx.Err() != nil:
		return
	}
	j.changes++
	again := false
	switch {
	case r.isFull:
		r.wasRead, r.isDone = true, true
	case isLogGone(err):
		k.endGone(r, err)
	case err != nil:
		again, r.atEnd = true, false
	case followed:
		// What ended the log, or this reading of it, is known soon. The rest is read then.
		again, r.atEnd = true, true
	default:
		r.wasRead, r.atEnd = true, true
		r.isDone = r.isDone || r.endedBefore
		again = r.hasEnded && !r.isDone
	}
	isFailed := err != nil && !isLogGone(err) && !r.wasStopped
	switch {
	case again && !isFailed && (r.hasEnded || r.wasStopped):
		k.tasks.Forget(t)
		k.tasks.Add(t)
	case again || len(r.unsent) > 0:
		k.tasks.AddRateLimited(t)
		if !isFailed {
			k.tasks.Forget(t)
		}
	default:
		k.tasks.Forget(t)
		if k.isWorthFollowing(j, r) {
			k.tasks.AddAfter(t, k.followDelay)
		}
	}
	if j.isOver && !again {
		k.tasks.Add(task{job: t.job})
	}
}

// endGone takes note that no more can be read of the log of a run. The caller holds the lock.
func (k *Keeper) endGone(r *run, err error) {
	r.isDone = true
	switch isRead := r.wasRead || r.atEnd; {
	case isRead || r.lost != "" || r.isCut:
	case r.resume.Begun():
		r.isCut = true
	default:
		r.lost = k.masker.Text(err.Error())
		k.counters.lost.Inc()
	}
}

// sortedRuns returns the runs of a job in the order of pods and time.
func (j *job) sortedRuns() []*run {
	return slices.SortedFunc(maps.Values(j.runs), func(a, b *run) int { return compareRuns(a.id, b.id) })
}

func compareRuns(a, b runID) int {
	return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.podUID, b.podUID), cmp.Compare(a.restarts, b.restarts))
}
