package logstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// memBucket is a bucket in memory, whose lists have three objects a page.
type memBucket struct {
	mu       sync.Mutex
	objects  map[string]memObject
	down     bool
	modified time.Time
	// onPut is called before an object is written; it may be nil.
	onPut func(key string)
}

type memObject struct {
	data       []byte
	properties map[string]string
	modified   time.Time
}

var errDown = errors.New("connection refused")

func newMemBucket() *memBucket {
	return &memBucket{objects: map[string]memObject{}, modified: time.Now()}
}

func (b *memBucket) check() error {
	if b.down {
		return errDown
	}
	return nil
}

func (b *memBucket) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

func (b *memBucket) Put(_ context.Context, key string, data []byte, properties map[string]string) error {
	b.mu.Lock()
	onPut := b.onPut
	b.mu.Unlock()
	if onPut != nil {
		onPut(key)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = memObject{data, properties, b.modified}
	if b.down {
		delete(b.objects, key)
	}
	return b.check()
}

func (b *memBucket) Properties(_ context.Context, key string) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key].properties, b.check()
}

func (b *memBucket) List(_ context.Context, prefix, after string) (found []Object, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const page = 3
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if strings.HasPrefix(key, prefix) && key > after {
			if len(found) == page {
				return found, true, b.check()
			}
			found = append(found, Object{key, b.objects[key].modified, int64(len(b.objects[key].data))})
		}
	}
	return found, false, b.check()
}

func (b *memBucket) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, key)
	return b.check()
}

func (b *memBucket) Sign(_ context.Context, key string, life time.Duration) (string, error) {
	return fmt.Sprintf("%s?for=%s", key, life), nil
}

func (b *memBucket) fetch(_ context.Context, url string, _ int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, _, _ := strings.Cut(url, "?")
	object, has := b.objects[key]
	if !has {
		return nil, fmt.Errorf("%s is not in the bucket", key)
	}
	return object.data, nil
}

func (b *memBucket) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.objects))
}

// movedClock is the system's clock, moved.
type movedClock struct{ by atomic.Int64 }

func (c *movedClock) Now() time.Time                   { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *movedClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }
func (c *movedClock) move(by time.Duration)            { c.by.Add(int64(by)) }
func (c *movedClock) ago(by time.Duration) metav1.Time { return metav1.NewTime(c.Now().Add(-by)) }
func (c *movedClock) running() corev1.ContainerState   { return startedAt(c.ago(-2 * clockSkew)) }
func startedAt(at metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
}

func endedSince(state corev1.ContainerState) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: state.Running.StartedAt}}
}

// world is a job with pods, whose logs a keeper keeps.
type world struct {
	t        *testing.T
	server   *podserver.Server
	bucket   *memBucket
	clock    *movedClock
	settings Settings
	job      mpi.Job
	seen     jobstate.Observed
	keeper   *Keeper
	stop     func()
	// adjust changes a keeper before it starts; it may be nil.
	adjust func(*Keeper)
	// reported is what the job's report has about its complete logs, as an operator reads it that begins to lead.
	reported *v1alpha1.CompleteLogs

	mu        sync.Mutex
	published []v1alpha1.CompleteLogs
	// ends are those of the jobs with reports.
	ends map[jobID]time.Time
	// onPublish is called before something is published; it may be nil.
	onPublish func(v1alpha1.CompleteLogs)
}

func newWorld(t *testing.T, workers int32) *world {
	t.Helper()
	w := &world{
		t: t, server: podserver.New(t), bucket: newMemBucket(), clock: &movedClock{}, job: mpitest.Job(workers),
		settings: Settings{Bucket: "logs", Prefix: "p/", Region: "r", Retention: 24 * time.Hour, MaxBytes: 1 << 30},
	}
	w.start()
	running := w.clock.running()
	w.seen = jobstate.Observed{LauncherPods: []*corev1.Pod{mpitest.LauncherPod(w.job, 0, corev1.PodRunning)}, Workers: mpitest.Workers(w.job, corev1.PodRunning)}
	for _, pod := range w.seen.AllPods() {
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: running}}
		w.server.Put(pod)
	}
	return w
}

// start starts a keeper, as a replica that becomes the leader.
func (w *world) start() {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(w.server.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	w.keeper = New(w.settings, w.bucket, clients.CoreV1(), logs.Masker{}, w, w.clock)
	if w.adjust != nil {
		w.adjust(w.keeper)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = w.keeper.Run(ctx, nil)
	}()
	w.stop = func() {
		cancel()
		<-over
	}
	w.t.Cleanup(w.stop)
	w.eventually("the keeper runs", func() bool { return w.keeper.running.Load() })
}

func (w *world) Publish(_ context.Context, _, _ string, _ types.UID, kept v1alpha1.CompleteLogs) error {
	w.mu.Lock()
	onPublish := w.onPublish
	w.mu.Unlock()
	if onPublish != nil {
		onPublish(kept)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, kept)
	return nil
}

func (w *world) End(_ context.Context, namespace string, job types.UID) (time.Time, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, has := w.ends[jobID{namespace, job}]
	return end, has, nil
}

// last returns what was published last; empty if nothing was.
func (w *world) last() v1alpha1.CompleteLogs {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.published) == 0 {
		return v1alpha1.CompleteLogs{}
	}
	return w.published[len(w.published)-1]
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited 30 s: %s; the bucket has %v, published is %+v", what, w.bucket.keys(), w.last())
		}
	}
}

func (w *world) id() jobID { return jobID{w.job.Namespace, w.job.UID} }

func (w *world) observe(end *mpi.Finish) {
	w.seen.Now = w.clock.Now()
	w.keeper.Observe(w.t.Context(), w.job, w.seen, jobstate.Outcome{Finish: end}, w.reportOf(nil))
}

func (w *world) reportOf(end *metav1.Time) *v1alpha1.JobReport {
	report := &v1alpha1.JobReport{}
	report.Namespace, report.Name, report.Spec.JobRef.UID = w.job.Namespace, w.job.ReportName(), w.job.UID
	report.Status.CompletionTime, report.Status.CompleteLogs = end, w.reported
	return report
}

// finish ends the job: the operator observes the end, and writes the report.
func (w *world) finish() {
	w.observe(&mpi.Finish{At: w.clock.Now(), Succeeded: true})
	w.report()
}

func (w *world) report() {
	w.keeper.SeeReport(w.reportOf(new(w.clock.ago(0))))
}

// end ends the container of a pod.
func (w *world) end(pod *corev1.Pod) {
	status := &pod.Status.ContainerStatuses[0]
	status.State = endedSince(status.State)
	pod.Status.Phase = corev1.PodSucceeded
	w.server.Log(pod.Name, false).End()
	w.server.Put(pod)
}

// gone deletes a pod with its log.
func (w *world) gone(pod *corev1.Pod) {
	w.server.Log(pod.Name, false).Remove()
	w.server.Delete(pod)
	w.keeper.SeePod(pod, true)
}

// say writes lines from one number to another to the log of a pod, one each millisecond.
func (w *world) say(pod *corev1.Pod, from, to int) {
	for i := from; i < to; i++ {
		w.server.Log(pod.Name, false).Say(said(i), fmt.Sprintf("%s line %d", pod.Name, i))
	}
}

func said(i int) time.Time { return mpitest.Now.Add(time.Duration(i) * time.Millisecond) }

// lines returns all lines that are kept, as users read them.
func (w *world) lines() (texts []string) {
	w.t.Helper()
	w.eventually("the index is published", func() bool { return w.last().Index != "" })
	data, err := w.bucket.fetch(w.t.Context(), w.last().Index, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	index, err := logs.ParseIndex(data)
	if err != nil {
		w.t.Fatal(err)
	}
	places := map[string]logstream.Place{}
	for _, worker := range w.seen.Workers {
		places[worker.Pod.Name] = logstream.Place{Role: mpi.RoleWorker, Index: worker.Index}
	}
	stored := logstream.Stored{Index: index, Places: places, Fetch: w.bucket.fetch}
	_, err = stored.Run(w.t.Context(), logstream.Options{Filter: logstream.Filter{Agent: true}}, func(some []logstream.Line) error {
		for _, line := range some {
			texts = append(texts, line.Text)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return texts
}

// check fails unless the lines of a pod are those of say, all of them and each once.
func (w *world) check(pod *corev1.Pod, got []string, want int) {
	w.t.Helper()
	next := 0
	for _, text := range got {
		if !strings.HasPrefix(text, pod.Name+" line ") {
			continue
		}
		if text != fmt.Sprintf("%s line %d", pod.Name, next) {
			w.t.Fatalf("after line %d of %s comes %q", next-1, pod.Name, text)
		}
		next++
	}
	if next != want {
		w.t.Errorf("%d lines of %s are kept, want %d", next, pod.Name, want)
	}
}

// TestLogsOfAllPods: the launcher's log is written while it runs, the workers' at the end; secrets are masked; users read all lines in the
// order of time, when all pods are gone.
func TestLogsOfAllPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	launcher, first, second := w.seen.LauncherPods[0], w.seen.Workers[0].Pod, w.seen.Workers[1].Pod
	w.observe(nil)
	w.say(launcher, 0, 20_000)
	w.server.Log(launcher.Name, false).Say(said(20_000), "API_TOKEN=0123456789abcdef0123")
	w.say(first, 0, 3)
	w.server.Log(second.Name, false).Say(said(1), `{"time":"2026-11-21T10:00:00Z","msg":"usage","logger":"mpi-agent","usage":{}}`)
	w.say(second, 0, 1)
	w.eventually("parts are written while the job runs", func() bool { return len(w.bucket.keys()) >= 2 })
	w.end(launcher)
	w.observe(&mpi.Finish{At: w.clock.Now(), Succeeded: true})
	// The workers are deleted right after the end was observed.
	w.gone(first)
	w.gone(second)
	w.report()
	got := w.lines()
	w.check(launcher, got, 20_000)
	w.check(first, got, 3)
	w.check(second, got, 1)
	if at := slices.Index(got, "API_TOKEN=****"); at < 20_000 || strings.Contains(strings.Join(got, "\n"), "0123456789abcdef0123") {
		t.Errorf("the masked line is at %d of %d", at, len(got))
	}
	if kept := w.last(); kept.Pods != 3 || kept.PodsCut != 0 || kept.PodsUnread != 0 || kept.Message != "" || kept.Expires == nil || kept.Lines != 20_005 || kept.Size == 0 {
		t.Errorf("published is %+v", kept)
	}
	for _, key := range w.bucket.keys() {
		if !strings.HasPrefix(key, "p/ns/uid-pi/") {
			t.Errorf("the key %s is not below the job", key)
		}
	}
	w.eventually("the job is forgotten", func() bool {
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		return len(w.keeper.jobs) == 0 && len(w.keeper.jobOfPod) == 0
	})
	// What is seen of it afterwards reads nothing again.
	opened := w.server.Opened()
	w.finish()
	if w.server.Opened() != opened || w.keeper.unsent.Load() != 0 || w.keeper.buffered.Load() != 0 {
		t.Errorf("logs are read again, or %d and %d bytes wait", w.keeper.unsent.Load(), w.keeper.buffered.Load())
	}
}

// TestAnotherOperatorContinues: the next leader reads on where the bucket ends, without losing or repeating a line, and knows the launcher's
// earlier parts.
func TestAnotherOperatorContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	launcher := w.seen.LauncherPods[0]
	w.observe(nil)
	w.say(launcher, 0, 9000)
	w.eventually("a part is written", func() bool { return len(w.bucket.keys()) > 0 })
	w.stop()
	w.say(launcher, 9000, 10_000)
	w.clock.move(time.Hour)
	w.start()
	w.observe(nil)
	w.say(launcher, 10_000, 19_000)
	// A restart of the API server in between.
	w.server.Cut()
	w.say(launcher, 19_000, 20_000)
	w.end(launcher)
	w.finish()
	got := w.lines()
	w.check(launcher, got, 20_000)
	if kept := w.last(); kept.PodsCut != 0 || kept.Lines != 20_000 {
		t.Errorf("published is %+v", kept)
	}
}

// TestFinishedBeforeTheOperatorStarted: a log that is not in the bucket when an operator starts is read then, if its pod is still there.
func TestFinishedBeforeTheOperatorStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.stop()
	for _, pod := range w.seen.AllPods() {
		w.say(pod, 0, 10)
		w.end(pod)
	}
	w.clock.move(time.Hour)
	w.start()
	// The report may be seen before the job's pods are observed.
	w.report()
	w.observe(&mpi.Finish{At: w.clock.Now(), Succeeded: true})
	got := w.lines()
	w.check(w.seen.LauncherPods[0], got, 10)
	w.check(w.seen.Workers[0].Pod, got, 10)
}

// TestBucketIsDown: the end of a job does not wait for a bucket that does not answer; lines that were read wait in memory, although the pods
// are gone, and the report shows the problem.
func TestBucketIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0].Pod
	w.bucket.set(true)
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 30_000)
	w.say(worker, 0, 10)
	w.end(w.seen.LauncherPods[0])
	began := time.Now()
	w.observe(&mpi.Finish{At: w.clock.Now()})
	if took := time.Since(began); took > finishTimeout+time.Second {
		t.Errorf("the end of the job took %s", took)
	}
	w.gone(worker)
	w.gone(w.seen.LauncherPods[0])
	w.report()
	w.eventually("the problem is published", func() bool {
		// Pauses and retries are over sooner.
		w.clock.move(20 * time.Second)
		time.Sleep(100 * time.Millisecond)
		return w.last().Message != ""
	})
	if kept := w.last(); kept.Index != "" || !strings.Contains(kept.Message, "The complete logs are not kept yet: connection refused") {
		t.Errorf("published is %+v", kept)
	}
	w.bucket.set(false)
	w.clock.move(2 * latestRetry)
	// The index is written again with what is written after it.
	w.eventually("the logs of both pods are kept", func() bool { return w.last().Pods == 2 })
	got := w.lines()
	w.check(w.seen.LauncherPods[0], got, 30_000)
	w.check(worker, got, 10)
	if kept := w.last(); kept.Message != "" || w.keeper.unsent.Load() != 0 {
		t.Errorf("published is %+v; %d bytes wait", kept, w.keeper.unsent.Load())
	}
}

// TestNoRoom: if too much waits for the bucket, logs are not read until there is room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	launcher := w.seen.LauncherPods[0]
	w.bucket.set(true)
	w.keeper.unsent.Add(maxUnsent)
	w.observe(nil)
	w.say(launcher, 0, 20_000)
	w.end(launcher)
	w.finish()
	w.keeper.mu.Lock()
	waiting := 0
	for _, r := range w.keeper.jobs[w.id()].runs {
		waiting += len(r.unsent)
	}
	w.keeper.mu.Unlock()
	if waiting > 0 {
		t.Errorf("%d parts wait, want none", waiting)
	}
	w.bucket.set(false)
	w.keeper.unsent.Add(-maxUnsent)
	w.clock.move(2 * latestRetry)
	w.eventually("all lines are kept", func() bool { return w.last().Lines == 20_000 })
	w.check(launcher, w.lines(), 20_000)
}

// TestLimit: of a job that prints too much, the first lines are kept, and the report shows that others are missing.
func TestLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.stop()
	w.settings.MaxBytes = partText
	w.start()
	w.seen.LauncherPods[0].Status.ContainerStatuses[0].State = w.clock.running()
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 20_000)
	w.end(w.seen.LauncherPods[0])
	w.finish()
	got := w.lines()
	if len(got) < 5000 || len(got) > 10_000 || got[0] != "pi-launcher-0 line 0" {
		t.Errorf("%d lines are kept", len(got))
	}
	const reason = "the logs of a job are limited to 512Ki in 12000 objects, and those of one of its pods to 384Ki (--log-bucket-job-bytes of the operator)"
	if last := got[len(got)-1]; last != "mpijob-operator: the log is cut here: "+reason {
		t.Errorf("the last line is %q", last)
	}
	if kept := w.last(); kept.PodsCut != 1 || kept.Pods != 1 || kept.Message != reason {
		t.Errorf("published is %+v", kept)
	}
}

// TestLimitOfOnePod: a launcher that prints too much leaves room for the logs of the workers.
func TestLimitOfOnePod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.stop()
	w.settings.MaxBytes = partText
	w.start()
	launcher, worker := w.seen.LauncherPods[0], w.seen.Workers[0].Pod
	launcher.Status.ContainerStatuses[0].State = w.clock.running()
	w.observe(nil)
	w.say(launcher, 0, 20_000)
	w.say(worker, 0, 1000)
	w.end(launcher)
	w.finish()
	w.check(worker, w.lines(), 1000)
	if kept := w.last(); kept.PodsCut != 1 || kept.Pods != 2 {
		t.Errorf("published is %+v", kept)
	}
}

// TestLimitIsKept: the next leader adds nothing to a log that was cut.
func TestLimitIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.stop()
	w.settings.MaxBytes = partText
	w.start()
	launcher := w.seen.LauncherPods[0]
	launcher.Status.ContainerStatuses[0].State = w.clock.running()
	w.observe(nil)
	w.say(launcher, 0, 20_000)
	w.eventually("the log is cut", func() bool {
		return slices.ContainsFunc(w.bucket.keys(), func(key string) bool { return strings.HasSuffix(key, cut+partSuffix) })
	})
	w.stop()
	w.start()
	w.observe(nil)
	w.say(launcher, 20_000, 20_100)
	w.end(launcher)
	w.finish()
	notes := 0
	for _, line := range w.lines() {
		if strings.Contains(line, "the log is cut here") {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("the log is cut at %d places", notes)
	}
	if kept := w.last(); kept.PodsCut != 1 || !strings.Contains(kept.Message, "limited to 512Ki") {
		t.Errorf("published is %+v", kept)
	}
}

// TestLostLogs: logs that were gone before they could be read are counted, with the reason.
func TestLostLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 5)
	w.end(w.seen.LauncherPods[0])
	w.say(w.seen.Workers[0].Pod, 0, 5)
	w.server.Log(w.seen.Workers[0].Pod.Name, false).Remove()
	w.server.Delete(w.seen.Workers[1].Pod)
	w.finish()
	w.check(w.seen.LauncherPods[0], w.lines(), 5)
	if kept := w.last(); kept.Pods != 1 || kept.PodsUnread < 1 || !strings.Contains(kept.Message, "the log of pod pi-worker-") {
		t.Errorf("published is %+v", kept)
	}
}

// TestDeletedWhileItRuns: the logs of a job that is deleted while it runs are read until its containers end.
func TestDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	launcher, worker := w.seen.LauncherPods[0], w.seen.Workers[0].Pod
	w.observe(nil)
	w.say(launcher, 0, 5)
	w.say(worker, 0, 5)
	for _, pod := range w.seen.AllPods() {
		pod.DeletionTimestamp = new(w.clock.ago(0))
		w.server.Put(pod)
		w.keeper.SeePod(pod, false)
	}
	w.report()
	// Five lines of 68 bytes, and five of 64.
	w.eventually("both logs are followed", func() bool { return w.keeper.buffered.Load() == 5*(68+64) })
	w.say(launcher, 5, 8)
	w.say(worker, 5, 8)
	w.gone(launcher)
	w.gone(worker)
	got := w.lines()
	w.check(launcher, got, 8)
	w.check(worker, got, 8)
	if kept := w.last(); kept.PodsUnread != 0 || kept.PodsCut != 0 {
		t.Errorf("published is %+v", kept)
	}
}

// TestRestartedContainer: both runs of a container are kept, in their order.
func TestRestartedContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0].Pod
	w.say(worker, 0, 5)
	w.server.Log(worker.Name, false).End()
	w.server.Restart(worker.Name)
	status := &worker.Status.ContainerStatuses[0]
	status.LastTerminationState, status.RestartCount = endedSince(status.State), 1
	status.State = w.clock.running()
	w.observe(nil)
	w.say(worker, 5, 10)
	w.say(w.seen.LauncherPods[0], 0, 1)
	w.end(w.seen.LauncherPods[0])
	w.finish()
	got := w.lines()
	w.check(worker, got, 10)
	if kept := w.last(); kept.Pods != 2 || kept.PodsCut != 0 {
		t.Errorf("published is %+v", kept)
	}
}

// TestTrainJob: JobSet deletes the workers of a TrainJob as soon as its launcher has ended, before the job has.
func TestTrainJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.job.External = true
	worker := w.seen.Workers[0].Pod
	w.observe(nil)
	w.say(worker, 0, 5)
	w.end(w.seen.LauncherPods[0])
	w.observe(nil)
	w.gone(worker)
	w.finish()
	w.check(worker, w.lines(), 5)
}

// TestNotLeading: a replica that does not lead reads nothing, and neither does an operator without a bucket.
func TestNotLeading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.stop()
	w.finish()
	w.keeper.SeePod(w.seen.Workers[0].Pod, true)
	if len(w.keeper.jobs) != 0 || w.server.Opened() != 0 {
		t.Errorf("%d jobs are kept, %d logs were read", len(w.keeper.jobs), w.server.Opened())
	}
	w.keeper = nil
	w.finish()
	w.keeper.SeePod(w.seen.Workers[0].Pod, true)
}

// TestRetention: the logs of a job are deleted when its last object is old enough, or its end by its report, unless they are
// still being kept or the job has not ended; other objects stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.stop()
	now := w.bucket.modified
	add := func(key string, ago time.Duration) {
		w.bucket.modified = now.Add(-ago)
		_ = w.bucket.Put(t.Context(), key, nil, nil)
	}
	named := func(namespace string, job types.UID, number int) string {
		return part{run: runID{namespace, job, "pod", "uid", 0}, number: number}.key("p/")
	}
	const old, recent = 25 * time.Hour, 23 * time.Hour
	for i := range 10 {
		add(named("a", "old", i), old)
		add(named("b", "goes-on", i), old)
		add(named("c", "running", i), old)
		add(named("d", "suspended", i), old)
		add(named("e", "ended", i), recent)
	}
	w.ends = map[jobID]time.Time{{"d", "suspended"}: {}, {"e", "ended"}: w.clock.Now().Add(-old), {"a", "old"}: w.clock.Now().Add(-old)}
	add("p/a/old/index.json", old)
	add("p/b/goes-on/index.json", recent)
	add("p/notes/README.md", old)
	add("p/data/set/train.csv.gz", old)
	add("others/x.gz", old)
	w.keeper.jobs[jobID{"c", "running"}] = &job{id: jobID{"c", "running"}}
	if after, err := w.keeper.deleteOld(t.Context(), "", maxListed); err != nil || after != "" {
		t.Fatalf("the pass ends after %q: %v", after, err)
	}
	var left []string
	for _, key := range w.bucket.keys() {
		path := strings.Split(key, "/")
		left = append(left, strings.Join(path[:min(len(path), 3)], "/"))
	}
	if got, want := strings.Join(slices.Compact(left), " "), "others/x.gz p/b/goes-on p/c/running p/d/suspended p/data/set p/notes/README.md"; got != want || len(left) != 34 {
		t.Errorf("%d objects are left, of %s", len(left), got)
	}
	// An error ends the pass.
	w.bucket.set(true)
	if _, err := w.keeper.deleteOld(t.Context(), "", maxListed); !errors.Is(err, errDown) {
		t.Errorf("a pass with a bucket that does not answer ends with %v", err)
	}
	if _, err := w.keeper.deleteOld(t.Context(), "", maxListed); !errors.Is(err, errPaused) {
		t.Errorf("the next pass ends with %v", err)
	}
}

// TestRetentionInSteps: each pass goes on where the one before ended, also if a job has more objects than a pass lists.
func TestRetentionInSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.stop()
	for i := range 30 {
		for _, job := range []types.UID{"a", "b", "c"} {
			w.bucket.modified = w.clock.Now().Add(-25 * time.Hour)
			_ = w.bucket.Put(t.Context(), part{run: runID{"ns", job, "pod", "uid", 0}, number: i}.key("p/"), nil, nil)
		}
	}
	after, passes := "", 0
	for passes = range 10 {
		var err error
		if after, err = w.keeper.deleteOld(t.Context(), after, 10); err != nil {
			t.Fatal(err)
		}
		if after == "" {
			break
		}
	}
	if left := w.bucket.keys(); len(left) != 0 || passes != 2 {
		t.Errorf("%d objects are left after %d passes", len(left), passes+1)
	}
}

// TestForgotten: what is known of jobs is dropped when nobody asks for it any more: of jobs that are kept, of those that could not be kept in
// time, and of those without a report.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.bucket.set(true)
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 10)
	w.end(w.seen.LauncherPods[0])
	w.observe(&mpi.Finish{At: w.clock.Now()})
	w.keeper.mu.Lock()
	w.keeper.kept[jobID{"ns", "other"}] = w.clock.Now()
	w.keeper.mu.Unlock()
	known := func() int {
		w.keeper.dropOld(w.t.Context())
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		return len(w.keeper.jobs) + len(w.keeper.kept) + len(w.keeper.jobOfPod)
	}
	if got := known(); got != 3 {
		t.Errorf("%d entries are known, want 3", got)
	}
	w.ends = map[jobID]time.Time{w.id(): {}}
	w.clock.move(w.settings.Retention + time.Minute)
	w.eventually("its log is read to its end", func() bool {
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		return slices.ContainsFunc(slices.Collect(maps.Values(w.keeper.jobs[w.id()].runs)), func(r *run) bool { return r.isDone && !r.isBusy })
	})
	if got := known(); got != 2 {
		t.Errorf("%d entries are known of a job that has not ended, want 2", got)
	}
	w.mu.Lock()
	w.ends = nil
	w.mu.Unlock()
	w.eventually("everything is forgotten", func() bool { return known() == 0 && w.keeper.unsent.Load() == 0 })
}
