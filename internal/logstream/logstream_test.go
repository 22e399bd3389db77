package logstream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpi"
)

const namespace = "team"

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func pods(t testing.TB, server *podserver.Server) typedcore.PodInterface {
	t.Helper()
	clients, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return clients.CoreV1().Pods(namespace)
}

// place reads the names of this file's pods.
func place(pod *corev1.Pod) (logstream.Place, bool) {
	if pod.Labels["role"] == "worker" {
		var p logstream.Place
		p.Role = mpi.RoleWorker
		_, err := fmt.Sscanf(pod.Name, "job-worker-%d", &p.Index)
		return p, err == nil
	}
	return logstream.Place{Role: mpi.RoleLauncher}, true
}

func pod(name string, state corev1.ContainerState, restarts int32) *corev1.Pod {
	role := "launcher"
	if strings.Contains(name, "worker") {
		role = "worker"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name), Labels: map[string]string{
			"job": "job", "role": role, mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "job", mpi.LabelRole: role,
		}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state, RestartCount: restarts}}},
	}
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}
}

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: metav1.NewTime(began)}}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// reader collects what comes.
type reader struct {
	mu      sync.Mutex
	lines   []string
	waits   []string
	said    []string
	changed chan struct{}
}

func newReader() *reader { return &reader{changed: make(chan struct{}, 1)} }

func (r *reader) note(add func()) {
	r.mu.Lock()
	add()
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *reader) sink(lines []logstream.Line) error {
	r.note(func() {
		for _, line := range lines {
			tag := line.Place.String()
			if line.Rank != logstream.NoRank {
				tag += fmt.Sprintf(" r%d", line.Rank)
			}
			r.lines = append(r.lines, fmt.Sprintf("[%s] %s", tag, line.Text))
		}
	})
	return nil
}

func (r *reader) options() logstream.Options {
	return logstream.Options{
		Selector: "job=job", Place: place,
		Waits: func(waiting []logstream.Waiting) {
			r.note(func() {
				var all []string
				for _, w := range waiting {
					all = append(all, w.Place.String()+" "+w.Reason)
				}
				r.waits = append(r.waits, strings.Join(all, ", "))
			})
		},
		Says: func(text string) { r.note(func() { r.said = append(r.said, text) }) },
	}
}

// follow follows the pods of a server in the background. The returned function reads what is left, as when the job is over.
func (r *reader) follow(t *testing.T, server *podserver.Server) (finish func()) {
	options := r.options()
	over := make(chan struct{})
	options.Follow, options.Over = true, over
	result := make(chan error, 1)
	go func() {
		_, err := logstream.Run(t.Context(), pods(t, server), options, r.sink)
		result <- err
	}()
	return func() {
		t.Helper()
		close(over)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for what was read to meet a check.
func (r *reader) until(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		r.mu.Lock()
		ok := check()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("waited in vain: %s; lines %q, waits %q, said %q", what, r.lines, r.waits, r.said)
		}
	}
}

func TestReadsAllThatIsThere(t *testing.T) {
	server := podserver.New(t)
	server.Put(pod("job-launcher-x", ended(0), 0))
	server.Put(pod("job-worker-0", running(), 0))
	server.Put(pod("job-worker-1", waiting("ImagePullBackOff"), 0))
	launcher, worker := server.Log("job-launcher-x", false), server.Log("job-worker-0", false)
	launcher.Say(began.Add(1*time.Second), "starting")
	worker.Say(began.Add(2*time.Second), `{"time":"x","level":"INFO","msg":"rank started","rank":1,"pid":3}`)
	launcher.Say(began.Add(3*time.Second), "[1,1]<stdout>:epoch 1")
	launcher.Say(began.Add(4*time.Second), "[1,3]<stdout>:epoch 1")
	launcher.Say(began.Add(5*time.Second), "[1,9]<stdout>:no rank of this job")
	worker.Say(began.Add(6*time.Second), "token=abcdefghijklmnopqrstuvwxyz")
	launcher.Say(began.Add(7*time.Second), "ValueError: bad")
	launcher.Say(began.Add(8*time.Second), "  at line 3")

	all := []string{
		"[launcher] starting", `[worker-0 r1] {"time":"x","level":"INFO","msg":"rank started","rank":1,"pid":3}`, "[worker-0 r1] epoch 1", "[worker-1 r3] epoch 1",
		"[launcher] [1,9]<stdout>:no rank of this job", "[worker-0] token=****", "[launcher] ValueError: bad", "[launcher]   at line 3",
	}
	tests := map[string]struct {
		change func(*logstream.Options)
		want   []string
	}{
		"all":          {func(*logstream.Options) {}, all},
		"a rank":       {func(o *logstream.Options) { o.Filter.Ranks = logstream.Set{{First: 3, Last: 3}} }, all[3:4]},
		"the launcher": {func(o *logstream.Options) { o.Filter.Launcher = true }, []string{all[0], all[2], all[3], all[4], all[6], all[7]}},
		"a worker":     {func(o *logstream.Options) { o.Filter.Workers = logstream.Set{{First: 0, Last: 0}} }, []string{all[1], all[2], all[5]}},
		"errors":       {func(o *logstream.Options) { o.Filter.Level = logs.LevelError }, all[6:8]},
		"a pattern":    {func(o *logstream.Options) { o.Filter.Grep = regexp.MustCompile("epoch") }, all[2:4]},
		"the last":     {func(o *logstream.Options) { o.Tail = new(int64(1)) }, []string{all[5], all[7]}},
		"since a time": {func(o *logstream.Options) { o.SinceTime = began.Add(7 * time.Second) }, all[6:]},
		"until a time": {func(o *logstream.Options) { o.Until = began.Add(3 * time.Second) }, all[:3]},
		"until before": {func(o *logstream.Options) { o.Until = began }, nil},
		"a time range": {func(o *logstream.Options) { o.SinceTime, o.Until = began.Add(3*time.Second), began.Add(6*time.Second) }, all[2:6]},
		"since long":   {func(o *logstream.Options) { o.Since = time.Nanosecond }, nil},
		"a container":  {func(o *logstream.Options) { o.Container = "main" }, all},
		"another one":  {func(o *logstream.Options) { o.Container = "sidecar" }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader := newReader()
			options := reader.options()
			options.Hosts = logstream.Hosts{Slots: 2, Ranks: 4}
			test.change(&options)
			stats, err := logstream.Run(t.Context(), pods(t, server), options, reader.sink)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, reader.lines); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if stats.Lines != len(test.want) {
				t.Errorf("%d lines are counted, want %d", stats.Lines, len(test.want))
			}
			if len(options.Filter.Ranks) > 0 && stats.WithoutRank != 5 {
				t.Errorf("%d lines without a rank, want 5", stats.WithoutRank)
			}
			if name == "all" && !slices.Equal(reader.waits, []string{"worker-1 ImagePullBackOff"}) {
				t.Errorf("waits: %q", reader.waits)
			}
		})
	}
}

func TestFollowsPodsAsTheyCome(t *testing.T) {
	server := podserver.New(t)
	reader := newReader()
	finish := reader.follow(t, server)
	worker := server.Log("job-worker-0", false)
	server.Put(pod("job-worker-0", waiting("ContainerCreating"), 0))
	reader.until(t, "the worker to be waited for", func() bool { return slices.Contains(reader.waits, "worker-0 ContainerCreating") })
	server.Put(pod("job-worker-0", running(), 0))
	worker.Say(time.Now(), "ready")
	reader.until(t, "a line of the worker", func() bool { return slices.Contains(reader.lines, "[worker-0] ready") })
	for try := range 2 {
		name := fmt.Sprintf("job-launcher-%d", try)
		server.Put(pod(name, running(), 0))
		server.Log(name, false).Say(time.Now(), "hello")
		reader.until(t, "a line of the launcher", func() bool {
			return slices.Contains(reader.lines, "["+logstream.Place{Role: mpi.RoleLauncher, Index: try}.String()+"] hello")
		})
		server.Log(name, false).Say(time.Now(), "bye")
		server.Log(name, false).End()
		server.Put(pod(name, ended(1), 0))
	}
	// The worker's container does not end by itself.
	worker.Say(time.Now(), "the last")
	finish()
	want := []string{"[worker-0] ready", "[launcher] hello", "[launcher] bye", "[launcher#2] hello", "[launcher#2] bye", "[worker-0] the last"}
	slices.Sort(want)
	slices.Sort(reader.lines)
	if diff := cmp.Diff(want, reader.lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRemovedLogs: a log that was removed after it was read to its end is no loss, and one of which nothing was read is.
func TestRemovedLogs(t *testing.T) {
	server := podserver.New(t)
	reader := newReader()
	removed := server.Log("job-worker-1", false)
	removed.Remove()
	finish := reader.follow(t, server)
	server.Put(pod("job-worker-0", running(), 0))
	server.Log("job-worker-0", false).Say(time.Now(), "done")
	reader.until(t, "the line", func() bool { return slices.Contains(reader.lines, "[worker-0] done") })
	server.Log("job-worker-0", false).Remove()
	server.Put(pod("job-worker-1", ended(0), 0))
	reader.until(t, "the loss", func() bool { return len(reader.said) > 0 })
	finish()
	if want := []string{"The log of worker-1 (pod job-worker-1) is gone."}; !slices.Equal(reader.said, want) {
		t.Errorf("it said %q, want %q", reader.said, want)
	}
}

func TestFollowsAContainerThatIsStartedAgain(t *testing.T) {
	server := podserver.New(t)
	server.Put(pod("job-launcher-x", running(), 0))
	reader := newReader()
	finish := reader.follow(t, server)
	server.Log("job-launcher-x", false).Say(began, "first run")
	reader.until(t, "the first run", func() bool { return len(reader.lines) == 1 })
	server.Log("job-launcher-x", false).Say(began.Add(time.Second), "its end")
	server.Log("job-launcher-x", false).End()
	server.Restart("job-launcher-x")
	again := pod("job-launcher-x", waiting("CrashLoopBackOff"), 1)
	again.Status.ContainerStatuses[0].LastTerminationState = ended(1)
	server.Put(again)
	server.Log("job-launcher-x", false).Say(began.Add(2*time.Second), "second run")
	again.Status.ContainerStatuses[0].State = running()
	server.Put(again)
	reader.until(t, "the second run", func() bool { return len(reader.lines) == 3 })
	finish()
	slices.Sort(reader.lines)
	if diff := cmp.Diff([]string{"[launcher] first run", "[launcher] its end", "[launcher] second run"}, reader.lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadsTheRunBefore(t *testing.T) {
	server := podserver.New(t)
	crashed := pod("job-launcher-x", running(), 1)
	crashed.Status.ContainerStatuses[0].LastTerminationState = ended(1)
	server.Put(crashed)
	server.Log("job-launcher-x", true).Say(began, "old")
	server.Log("job-launcher-x", false).Say(began, "new")
	waits := pod("job-worker-0", waiting("CrashLoopBackOff"), 1)
	waits.Status.ContainerStatuses[0].LastTerminationState = ended(1)
	server.Put(waits)
	server.Log("job-worker-0", true).Say(began, "crashed")
	for previous, want := range map[bool][]string{true: {"[launcher] old", "[worker-0] crashed"}, false: {"[launcher] new", "[worker-0] crashed"}} {
		reader := newReader()
		options := reader.options()
		options.Previous = previous
		if _, err := logstream.Run(t.Context(), pods(t, server), options, reader.sink); err != nil {
			t.Fatal(err)
		}
		slices.Sort(reader.lines)
		if diff := cmp.Diff(want, reader.lines); diff != "" {
			t.Errorf("previous %t (-want +got)\n%s", previous, diff)
		}
	}
}

// Connections break at any moment; pods write on, many lines in the same second.
func TestNoLineIsLostOrComesTwiceWhenConnectionsBreak(t *testing.T) {
	server := podserver.New(t)
	const workers, lines = 8, 400
	reader := newReader()
	for i := range workers {
		server.Put(pod(fmt.Sprintf("job-worker-%d", i), running(), 0))
	}
	finish := reader.follow(t, server)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		at := began
		for n := range lines {
			at = at.Add(time.Duration(rand.IntN(3)) * 100 * time.Millisecond)
			for i := range workers {
				server.Log(fmt.Sprintf("job-worker-%d", i), false).Say(at, fmt.Sprint(n))
			}
			if n%40 == 20 {
				server.Cut()
			}
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
	}()
	<-writing
	finish()
	next := map[string]int{}
	for _, line := range reader.lines {
		from, text, _ := strings.Cut(line, " ")
		if text != fmt.Sprint(next[from]) {
			t.Fatalf("%s says %s, and %d was to come", from, text, next[from])
		}
		next[from]++
	}
	for i := range workers {
		if got := next[fmt.Sprintf("[worker-%d]", i)]; got != lines {
			t.Errorf("worker %d: %d lines, want %d", i, got, lines)
		}
	}
	t.Logf("%d logs were asked for %d times", workers, server.Opened())
}

func TestErrorsEndIt(t *testing.T) {
	server := podserver.New(t)
	server.Put(pod("job-launcher-x", running(), 0))
	server.Log("job-launcher-x", false).Say(began, "x")
	t.Run("of the sink", func(t *testing.T) {
		options := newReader().options()
		options.Follow = true
		broken := errors.New("broken pipe")
		_, err := logstream.Run(t.Context(), pods(t, server), options, func([]logstream.Line) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
	t.Run("of the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		options := newReader().options()
		options.Follow = true
		_, err := logstream.Run(ctx, pods(t, server), options, func([]logstream.Line) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("of a server that is not there", func(t *testing.T) {
		config := server.Config()
		config.Host = "https://127.0.0.1:1"
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := logstream.Run(t.Context(), clients.CoreV1().Pods(namespace), newReader().options(), nil); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v", err)
		}
	})
}

func TestSets(t *testing.T) {
	set, err := logstream.ParseSet("0,4-7")
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]bool{0: true, 1: false, 3: false, 4: true, 7: true, 8: false} {
		if set.Has(number) != want {
			t.Errorf("%d: %t", number, !want)
		}
	}
	for _, bad := range []string{"", "x", "1-", "-1", "3-2", "1,,2", "99999999999"} {
		if _, err := logstream.ParseSet(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
