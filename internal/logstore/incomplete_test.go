package logstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// hang has the log of a pod be a connection to a node that does not answer, or that ends with an error after lines.
func (w *world) hang(pod *corev1.Pod) {
	w.server.Log(pod.Name, false).Source = func(done <-chan struct{}) []byte {
		<-done
		return nil
	}
}

// writeIndex has the index be written as if its delay was over.
func (w *world) writeIndex() {
	w.keeper.tasks.Add(task{job: w.id()})
}

// newer returns a pod that has replaced another one, with its name.
func newer(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.UID += "-newer"
	return pod
}

// finishPartly ends a job whose worker's log is not read, and waits until the index is written without it.
func finishPartly(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.hang(w.seen.Workers[0].Pod)
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 5)
	w.end(w.seen.LauncherPods[0])
	w.finish()
	w.clock.move(indexTimeout + time.Second)
	w.writeIndex()
	w.check(w.seen.LauncherPods[0], w.lines(), 5)
	return w
}

// TestPartialIndex: an index that was written before all logs were read counts their pods, and the next leader completes it.
func TestPartialIndex(t *testing.T) {
	t.Parallel()
	w := finishPartly(t)
	if kept := w.last(); kept.Pods != 1 || kept.PodsUnread != 1 || !strings.Contains(kept.Message, "not read yet") {
		t.Errorf("published is %+v", kept)
	}
	w.stop()
	w.reported = new(w.last())
	worker := w.seen.Workers[0].Pod
	w.server.Log(worker.Name, false).Source = nil
	w.say(worker, 0, 5)
	w.end(worker)
	w.start()
	w.report()
	w.observe(&mpi.Finish{At: w.clock.Now()})
	w.eventually("the index is completed", func() bool { return w.last().Pods == 2 })
	w.check(worker, w.lines(), 5)
	if kept := w.last(); kept.PodsUnread != 0 || kept.Message != "" {
		t.Errorf("published is %+v", kept)
	}
}

// TestPartialIndexOfDeletedPods: what a leader could not read, and what is gone when the next one leads, remains counted.
func TestPartialIndexOfDeletedPods(t *testing.T) {
	t.Parallel()
	w := finishPartly(t)
	w.stop()
	w.reported = new(w.last())
	w.start()
	w.report()
	published := len(w.published)
	w.writeIndex()
	w.eventually("the index is final", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.published) > published
	})
	if kept := w.last(); kept.Pods != 1 || kept.PodsUnread != 1 || kept.Message == "" || strings.Contains(kept.Message, "not read yet") {
		t.Errorf("published is %+v", kept)
	}
}

// TestLogThatDisappears: a log that was being read when its node was lost is marked as cut.
func TestLogThatDisappears(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	launcher := w.seen.LauncherPods[0]
	lost, sent := make(chan struct{}), false
	w.server.Log(launcher.Name, false).Source = func(done <-chan struct{}) []byte {
		if !sent {
			sent = true
			// The server sends what fills its buffers.
			return fmt.Appendf(nil, "%s %s line 0\n%s %s\n", said(0).Format(time.RFC3339Nano), launcher.Name, said(1).Format(time.RFC3339Nano), strings.Repeat("x", 64<<10))
		}
		select {
		case <-lost:
		case <-done:
		}
		panic(http.ErrAbortHandler)
	}
	w.observe(nil)
	w.eventually("the log is followed", func() bool { return w.keeper.buffered.Load() > 0 })
	close(lost)
	w.server.Delete(launcher)
	w.keeper.SeePod(launcher, true)
	w.finish()
	w.check(launcher, w.lines(), 1)
	if kept := w.last(); kept.PodsCut != 1 || kept.PodsUnread != 0 {
		t.Errorf("published is %+v", kept)
	}
}

// TestBackOff: a run whose container waits for its restart is read, although the number of restarts is still that of the run.
func TestBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0].Pod
	status := &worker.Status.ContainerStatuses[0]
	ended := func(id string) {
		status.LastTerminationState = endedSince(w.clock.running())
		status.LastTerminationState.Terminated.ContainerID, status.ContainerID = id, id
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	for run := range 2 {
		w.say(worker, 5*run, 5*run+5)
		w.server.Log(worker.Name, false).End()
		w.server.Restart(worker.Name)
		ended(fmt.Sprint("containerd://", run))
		status.RestartCount = int32(run)
		w.observe(nil)
		w.keeper.SeePod(worker, false)
		w.eventually("the run is read", func() bool {
			return slices.ContainsFunc(w.bucket.keys(), func(key string) bool { return strings.Contains(key, fmt.Sprintf("/%04d/", run)) })
		})
	}
	w.end(w.seen.LauncherPods[0])
	w.finish()
	w.check(worker, w.lines(), 10)
}

// TestReplacedPod: the log of a pod that has the name of a deleted one is not taken for that of the deleted one.
func TestReplacedPod(t *testing.T) {
	t.Parallel()
	for name, sees := range map[string]bool{"its deletion was seen": true, "its deletion was not seen yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.observe(nil)
			old := w.seen.Workers[0].Pod
			next := newer(old)
			w.server.Delete(old)
			w.server.Put(next)
			w.say(next, 0, 5)
			w.end(w.seen.LauncherPods[0])
			if sees {
				w.keeper.SeePod(old, true)
				w.seen.Workers[0].Pod = next
			} else {
				w.observe(&mpi.Finish{At: w.clock.Now()})
				w.seen.Workers[0].Pod = next
				w.keeper.SeePod(old, true)
				w.observe(nil)
			}
			w.finish()
			w.check(next, w.lines(), 5)
			if kept := w.last(); kept.PodsUnread != 1 {
				t.Errorf("published is %+v", kept)
			}
		})
	}
}

// TestSkippedRun: a run that is neither the present nor the previous one cannot be read any more.
func TestSkippedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.observe(nil)
	worker := w.seen.Workers[0].Pod
	w.say(worker, 0, 5)
	w.server.Log(worker.Name, false).End()
	w.server.Restart(worker.Name)
	w.say(worker, 5, 10)
	status := &worker.Status.ContainerStatuses[0]
	status.LastTerminationState, status.RestartCount = endedSince(status.State), 2
	w.keeper.SeePod(worker, false)
	w.end(w.seen.LauncherPods[0])
	w.finish()
	w.check(worker, w.lines(), 10)
	if kept := w.last(); kept.PodsCut != 1 {
		t.Errorf("published is %+v", kept)
	}
}

// TestPreviousRunIsGone: the kubelet refuses the log of a previous run that it has deleted.
func TestPreviousRunIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0].Pod
	w.server.Mux.HandleFunc("GET /api/v1/namespaces/ns/pods/"+worker.Name+"/log", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") != "true" {
			_, _ = fmt.Fprintf(rw, "%s %s line 0\n", said(0).Format(time.RFC3339Nano), worker.Name)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(rw).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest, Code: http.StatusBadRequest,
			Message: `previous terminated container "main" in pod "pi-worker-0" not found`,
		})
	})
	status := &worker.Status.ContainerStatuses[0]
	status.LastTerminationState, status.RestartCount = endedSince(status.State), 1
	w.observe(nil)
	w.end(w.seen.LauncherPods[0])
	w.end(worker)
	w.finish()
	w.check(worker, w.lines(), 1)
	if kept := w.last(); kept.PodsCut != 1 || !strings.Contains(kept.Message, "previous terminated container") {
		t.Errorf("published is %+v", kept)
	}
}

// TestEndsWhileItIsWritten: what a container prints while the part before is written is read, too.
func TestEndsWhileItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0].Pod
	w.observe(nil)
	w.say(worker, 0, 5)
	var once sync.Once
	w.bucket.onPut = func(key string) {
		if strings.Contains(key, worker.Name) {
			once.Do(func() {
				w.say(worker, 5, 8)
				w.end(worker)
				w.keeper.SeePod(worker, false)
			})
		}
	}
	w.end(w.seen.LauncherPods[0])
	w.finish()
	w.check(worker, w.lines(), 8)
}

// TestProblemsNameNoOthers: the problem in a report does not contain the key of another job's object.
func TestProblemsNameNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	settings := w.settings
	settings.Endpoint, settings.Credentials = "http://127.0.0.1:1", t.TempDir()
	writeKeys(t, settings.Credentials)
	bucket, err := NewBucket(settings)
	if err != nil {
		t.Fatal(err)
	}
	err = w.keeper.ask(func() error { return bucket.Put(t.Context(), "p/other-team/uid-of-other/x", nil, nil) })
	if err == nil || !strings.Contains(err.Error(), "p/other-team/uid-of-other/x") {
		t.Fatalf("the error for the operator's log is %v", err)
	}
	w.clock.move(time.Hour)
	if err := w.keeper.publishProblem(t.Context(), &job{id: jobID{"ns", "uid"}}, errPaused); err != nil {
		t.Fatal(err)
	}
	if got := w.last().Message; strings.Contains(got, "other") || !strings.Contains(got, "connection refused") {
		t.Errorf("the report shows %q", got)
	}
}

// refusal is an answer of an S3 server as that of AWS.
type refusal struct{}

func (refusal) Error() string {
	return "AccessDenied: not authorized on arn:aws:s3:::logs/p/other-team/uid/x"
}
func (refusal) ErrorCode() string { return "AccessDenied" }

func TestCauses(t *testing.T) {
	t.Parallel()
	const key = "p/other-team/uid/x"
	for want, cause := range map[string]error{
		"the log bucket answers AccessDenied":                                 fmt.Errorf("operation error S3: PutObject, %w", refusal{}),
		"the server of the log bucket cannot be reached: connection refused":  fmt.Errorf("operation error S3: PutObject, %w", &url.Error{Op: "Put", URL: "http://s3/logs/" + key, Err: errDown}),
		"an object is damaged":                                                errors.New(key + " is damaged"),
		"read the credentials of the log bucket: open /etc/key: no such file": errors.New("read the credentials of the log bucket: open /etc/key: no such file"),
	} {
		if got := causeOf(describe("write", key, cause)); got != want {
			t.Errorf("the cause is %q, want %q", got, want)
		}
	}
}

// TestIndexIsWrittenOnce: an index that would contain the same is not written again, and its address ends with the retention after the job's
// end.
func TestIndexIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := finishPartly(t)
	before := len(w.published)
	for range 3 {
		if err := w.keeper.writeIndex(t.Context(), w.id()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(w.published); got != before {
		t.Errorf("it was published %d times more", got-before)
	}
	if left := w.last().Expires.Sub(w.clock.Now()); left > w.settings.Retention-indexTimeout {
		t.Errorf("the address is valid for %s", left)
	}
}

// TestPause: many requests that fail together are one outage.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	var all, began sync.WaitGroup
	began.Add(10)
	for range 10 {
		all.Go(func() {
			_ = w.keeper.ask(func() error {
				began.Done()
				began.Wait()
				return errDown
			})
		})
	}
	all.Wait()
	if w.keeper.pause != soonestRetry {
		t.Errorf("after the first outage nothing is asked for %s", w.keeper.pause)
	}
	w.clock.move(time.Minute)
	if err := w.keeper.ask(func() error { return errDown }); !errors.Is(err, errDown) || w.keeper.pause != 2*soonestRetry {
		t.Errorf("after the second, nothing is asked for %s: %v", w.keeper.pause, err)
	}
}

// keyLines are lines within a private key.
var keyLines = []string{strings.Repeat("aB3/", 16), strings.Repeat("Zy8+", 16), strings.Repeat("q0Qz", 16)}

// TestKeyAtAGap: the lines of a private key whose beginning is not in the log any more are masked: in a log that was not followed from its
// start, and after a gap in one that was.
func TestKeyAtAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	launcher, worker := w.seen.LauncherPods[0], w.seen.Workers[0].Pod
	w.observe(nil)
	w.say(launcher, 0, 5)
	w.eventually("the log is followed", func() bool { return w.keeper.buffered.Load() > 0 })
	w.server.Restart(launcher.Name)
	for i, line := range keyLines {
		w.server.Log(launcher.Name, false).Say(said(5000+i), line)
		w.server.Log(worker.Name, false).Say(said(i), line)
	}
	w.server.Cut()
	w.end(launcher)
	w.finish()
	got := w.lines()
	masked := 0
	for _, text := range got {
		if text == "****" {
			masked++
		}
		if slices.Contains(keyLines, text) {
			t.Errorf("a line of a key is kept: %s", text)
		}
	}
	if masked != 2*len(keyLines) || w.last().PodsCut != 1 {
		t.Errorf("%d lines are masked; published is %+v", masked, w.last())
	}
}

// TestWorkerAfterTheEnd: a worker that starts after the end of its job is read.
func TestWorkerAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0]
	w.seen.Workers = nil
	w.observe(nil)
	w.end(w.seen.LauncherPods[0])
	w.say(w.seen.LauncherPods[0], 0, 1)
	w.observe(&mpi.Finish{At: w.clock.Now()})
	w.seen.Workers = append(w.seen.Workers, worker)
	w.say(worker.Pod, 0, 5)
	w.finish()
	w.check(worker.Pod, w.lines(), 5)
}

// TestNoLauncher: of a job without a launcher, the first worker is followed.
func TestNoLauncher(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.job.Launcher.None, w.job.External = true, true
	w.seen.LauncherPods = nil
	w.observe(nil)
	w.say(w.seen.Workers[0].Pod, 0, 5)
	w.say(w.seen.Workers[1].Pod, 0, 5)
	w.eventually("its log is followed", func() bool { return w.keeper.buffered.Load() > 0 })
	for _, worker := range w.seen.Workers {
		w.end(worker.Pod)
	}
	w.finish()
	got := w.lines()
	w.check(w.seen.Workers[0].Pod, got, 5)
	w.check(w.seen.Workers[1].Pod, got, 5)
}

// TestReportOfAnotherNamespace: a report with the UID of a job in another namespace ends nothing.
func TestReportOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	for name, isFirst := range map[string]bool{"seen before the job": true, "seen after the job": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 0)
			forged := w.reportOf(new(w.clock.ago(0)))
			forged.Namespace = "others"
			if isFirst {
				w.keeper.SeeReport(forged)
			}
			w.observe(nil)
			w.say(w.seen.LauncherPods[0], 0, 5)
			w.keeper.SeeReport(forged)
			w.writeIndex()
			w.say(w.seen.LauncherPods[0], 5, 10)
			w.end(w.seen.LauncherPods[0])
			w.finish()
			w.check(w.seen.LauncherPods[0], w.lines(), 10)
		})
	}
}

// TestRunThatBeginsMeanwhile: a pod that is observed while the index is published is read, and added to the index.
func TestRunThatBeginsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	worker := w.seen.Workers[0]
	w.seen.Workers = nil
	w.observe(nil)
	w.say(w.seen.LauncherPods[0], 0, 5)
	w.end(w.seen.LauncherPods[0])
	w.say(worker.Pod, 0, 5)
	w.end(worker.Pod)
	var once sync.Once
	w.onPublish = func(v1alpha1.CompleteLogs) {
		once.Do(func() {
			w.seen.Workers = append(w.seen.Workers, worker)
			w.observe(nil)
		})
	}
	w.finish()
	w.eventually("both pods are in the index", func() bool { return w.last().Pods == 2 })
	w.check(worker.Pod, w.lines(), 5)
}

func writeKeys(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("key"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStalledLog: a log that brings nothing does not occupy a reader for long.
func TestStalledLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.stop()
	w.adjust = func(k *Keeper) { k.stallTimeout = 50 * time.Millisecond }
	w.start()
	w.hang(w.seen.Workers[0].Pod)
	w.observe(nil)
	w.end(w.seen.LauncherPods[0])
	w.observe(&mpi.Finish{At: w.clock.Now()})
	w.eventually("it is read again", func() bool { return w.server.Opened() > 4 })
}

// TestTooManyAreFollowed: a launcher that is not followed since too many are is read from time to time.
func TestTooManyAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.stop()
	w.adjust = func(k *Keeper) {
		k.followDelay = 10 * time.Millisecond
		k.follows = newShare(0)
	}
	w.start()
	launcher := w.seen.LauncherPods[0]
	w.observe(nil)
	w.say(launcher, 0, 5)
	w.eventually("it is read", func() bool { return len(w.bucket.keys()) > 0 })
	w.say(launcher, 5, 10)
	w.eventually("it is read again", func() bool { return len(w.bucket.keys()) > 1 })
	w.keeper.mu.Lock()
	w.keeper.follows = newShare(1)
	w.keeper.mu.Unlock()
	w.eventually("it is followed", func() bool {
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		return w.keeper.follows.taken == 1
	})
	w.end(launcher)
	w.finish()
	w.check(launcher, w.lines(), 10)
}

// TestShare: one namespace does not take all places, and others find one.
func TestShare(t *testing.T) {
	t.Parallel()
	places := newShare(16)
	takeAll := func(namespace string) (taken int) {
		for places.take(namespace) {
			taken++
		}
		return taken
	}
	for _, step := range []struct {
		namespace string
		want      int
	}{{"greedy", 12}, {"small", 4}, {"late", 0}} {
		if got := takeAll(step.namespace); got != step.want {
			t.Errorf("%s takes %d places, want %d", step.namespace, got, step.want)
		}
	}
	places.free("greedy")
	if places.take("greedy") || !places.take("late") || places.of["greedy"] != 11 {
		t.Errorf("a place that is free again is not for those with less: %v", places.of)
	}
	for range 4 {
		places.free("small")
	}
	if _, has := places.of["small"]; has || places.taken != 12 {
		t.Errorf("%d places are taken: %v", places.taken, places.of)
	}
}

// TestTooManyParts: a job has a bounded number of objects, so that its index can be read.
func TestTooManyParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.observe(nil)
	w.keeper.mu.Lock()
	w.keeper.jobs[w.id()].parts = maxParts
	w.keeper.mu.Unlock()
	w.say(w.seen.LauncherPods[0], 0, 10)
	w.end(w.seen.LauncherPods[0])
	w.finish()
	w.check(w.seen.LauncherPods[0], w.lines(), 1)
	if kept := w.last(); kept.PodsCut != 1 {
		t.Errorf("published is %+v", kept)
	}
}

// TestLargestIndex: the index of a job with the most parts can be read.
func TestLargestIndex(t *testing.T) {
	t.Parallel()
	settings := Settings{Bucket: strings.Repeat("b", 63), Prefix: strings.Repeat("p", 100) + "/", Endpoint: "https://" + strings.Repeat("e", 100), Region: "us-east-1", Credentials: t.TempDir()}
	writeKeys(t, settings.Credentials)
	bucket, err := NewBucket(settings)
	if err != nil {
		t.Fatal(err)
	}
	uid := types.UID(strings.Repeat("u", 36))
	p := part{run: runID{strings.Repeat("n", 63), uid, strings.Repeat("w", 253), uid, 10}, number: 99_999, first: said(0), last: said(1), lines: 10_000, text: partText, cut: true}
	keeper := New(settings, bucket, nil, logs.Masker{}, nil, nil)
	const sample = 100
	index, err := keeper.indexOf(t.Context(), slices.Repeat([]part{p}, sample), maxRetention)
	if err != nil || len(index)/sample*maxParts > logs.MaxIndex {
		t.Errorf("%d parts have %d bytes in the index, %d at most: %v", maxParts, len(index)/sample*maxParts, logs.MaxIndex, err)
	}
}

// TestGivenUp: the report of a job shows when its logs cannot be kept any more.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.reported = &v1alpha1.CompleteLogs{Message: notKeptYet + "connection refused"}
	w.clock.move(w.settings.Retention + time.Minute)
	w.keeper.SeeReport(w.reportOf(new(metav1.Now())))
	w.keeper.dropOld(t.Context())
	if got := w.last().Message; got != "The complete logs could not be kept: connection refused" {
		t.Errorf("the report shows %q", got)
	}
	w.reported = new(w.last())
	w.keeper.SeeReport(w.reportOf(new(metav1.Now())))
	if len(w.keeper.jobs) != 0 {
		t.Error("the job is not forgotten")
	}
}

// TestProblemOfAJobWithoutLogs: the problem disappears from the report of a job of which no pod has run.
func TestProblemOfAJobWithoutLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.reported = &v1alpha1.CompleteLogs{Message: notKeptYet + "connection refused"}
	w.report()
	w.writeIndex()
	w.eventually("it is removed", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.published) == 1 && w.published[0] == v1alpha1.CompleteLogs{}
	})
}

// TestPartsAreCountedOnce: what this process has written counts once in the size of a job, also if the bucket is listed later.
func TestPartsAreCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	launcher, worker := w.seen.LauncherPods[0], w.seen.Workers[0].Pod
	// The worker may have been read by another operator.
	worker.Status.ContainerStatuses[0].State = startedAt(w.clock.ago(time.Hour))
	w.observe(nil)
	w.say(launcher, 0, 20_000)
	w.eventually("parts are written", func() bool { return len(w.bucket.keys()) > 1 })
	w.say(worker, 0, 1)
	w.end(worker)
	w.keeper.SeePod(worker, false)
	size := func() (text int64, parts int) {
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		j := w.keeper.jobs[w.id()]
		return j.text, j.parts
	}
	w.eventually("the worker is read", func() bool {
		return slices.ContainsFunc(w.bucket.keys(), func(key string) bool { return strings.Contains(key, worker.Name) })
	})
	var want int64
	for i := range 20_000 {
		want += int64(len(fmt.Sprintf("2026-11-21T10:00:00.000000000Z [%s] %s line %d\n", launcher.Name, launcher.Name, i)))
	}
	want += int64(len(fmt.Sprintf("2026-11-21T10:00:00.000000000Z [%s] %s line 0\n", worker.Name, worker.Name)))
	w.eventually("the launcher is read", func() bool { text, _ := size(); return text >= want })
	if text, parts := size(); text != want || parts != len(w.bucket.keys()) {
		t.Errorf("the job has %d bytes in %d parts, want %d in %d", text, parts, want, len(w.bucket.keys()))
	}
}
