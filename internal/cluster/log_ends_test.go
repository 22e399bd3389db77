package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
)

// logServer returns a Gatherer of an API server with the logs of pods: that of a container's previous run has the name of the pod
// and "#". A log without an entry cannot be read.
func logServer(t *testing.T, texts map[string]string) *cluster.Gatherer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Split(r.URL.Path, "/")[6]
		if r.URL.Query().Get("previous") == "true" {
			name += "#"
		}
		text, has := texts[name]
		if !has {
			http.Error(w, "the kubelet does not answer", http.StatusInternalServerError)
			return
		}
		// As a kubelet: the first bytes of the last lines.
		lines, _ := strconv.Atoi(r.URL.Query().Get("tailLines"))
		most, _ := strconv.Atoi(r.URL.Query().Get("limitBytes"))
		all := strings.SplitAfter(text, "\n")
		text = strings.Join(all[max(0, len(all)-1-lines):], "")
		_, _ = w.Write([]byte(text[:min(len(text), most)]))
	}))
	t.Cleanup(server.Close)
	core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return cluster.NewGatherer(nil, core, logs.Masker{}, clock.RealClock{})
}

// stampedLines returns lines of a log as the kubelet sends them.
func stampedLines(texts ...string) string {
	var log strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&log, "2026-11-21T10:%02d:%02d.5Z %s\n", i/60%60, i%60, text)
	}
	return log.String()
}

// endedJob returns a job with a launcher and workers that have ended.
func endedJob(workers int32) jobstate.Observed {
	job := mpitest.Job(workers)
	seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodRunning), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}}
	for _, pod := range seen.AllPods() {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return seen
}

func unpacked(t *testing.T, kept *v1alpha1.Logs) (texts []string) {
	t.Helper()
	lines, err := logs.Unpack(kept.Data)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		texts = append(texts, line.Pod+": "+line.Text)
	}
	return texts
}

// TestLogEnds reads the logs of all pods, of a container that was started again both runs, and hides what may not be stored.
func TestLogEnds(t *testing.T) {
	t.Parallel()
	seen := endedJob(4)
	again := &seen.Workers[1].Pod.Status.ContainerStatuses[0]
	again.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	seen.Workers[3].Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	gatherer := logServer(t, map[string]string{
		"pi-launcher-0": stampedLines("starting", "API_TOKEN=0123456789abcdef0123", "\x1b[31mred\x1b[0m\u202e", "done"),
		"pi-worker-0":   stampedLines("-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA", "-----END RSA PRIVATE KEY-----"),
		"pi-worker-1#":  stampedLines("first run"),
		"pi-worker-1":   stampedLines("a", "second run"),
		"pi-worker-2":   "unable to retrieve container logs for containerd://abc",
	})
	kept := gatherer.LogEnds(t.Context(), mpitest.Job(4), seen, 64<<10)
	if kept == nil {
		t.Fatal("no logs are kept")
	}
	got := strings.Join(unpacked(t, kept), "\n")
	for _, secret := range []string{"0123456789abcdef0123", "MIIEpAIBAAKCAQEA", "\x1b", "\u202e"} {
		if strings.Contains(got, secret) {
			t.Errorf("the logs contain %q:\n%s", secret, got)
		}
	}
	for _, want := range []string{"pi-launcher-0: starting", "pi-launcher-0: red", "pi-launcher-0: done", "pi-worker-1: first run", "pi-worker-1: second run"} {
		if !strings.Contains(got, want) {
			t.Errorf("the logs lack %q:\n%s", want, got)
		}
	}
	if kept.Pods != 3 || kept.PodsUnread != 1 || kept.PodsCut != 0 || !strings.Contains(kept.Omitted, "pod pi-worker-2: its log was deleted") || int(kept.Size) != len(kept.Data) {
		t.Errorf("of pods, %d are read, %d are unread and %d are cut (%s)", kept.Pods, kept.PodsUnread, kept.PodsCut, kept.Omitted)
	}
	if none := gatherer.LogEnds(t.Context(), mpitest.Job(0), jobstate.Observed{Now: mpitest.Now}, 64<<10); none != nil {
		t.Errorf("a job without pods has logs: %+v", none)
	}
}

// TestLogEndsThatMaskingLengthens: a line with many short secrets is kept up to the length of others, and can be read.
func TestLogEndsThatMaskingLengthens(t *testing.T) {
	t.Parallel()
	gatherer := logServer(t, map[string]string{"pi-launcher-0": stampedLines("starting", strings.Repeat("pwd=a ", logs.MaxPackedLine/6), "done")})
	texts := unpacked(t, gatherer.LogEnds(t.Context(), mpitest.Job(0), endedJob(0), 64<<10))
	if len(texts) != 3 || texts[2] != "pi-launcher-0: done" || strings.Contains(texts[1], "pwd=a") || len(texts[1]) < logs.MaxPackedLine {
		t.Errorf("the lines are %q", texts)
	}
}

// TestFirstLine: the first line of a log is that of the program, and not one of the agent that started it.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	pod := endedJob(0).LauncherPods[0]
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"the program's":         {[]string{"step 1", "mpi-agent: no progress: over"}, "10:00:00"},
		"after the agent's":     {[]string{"mpi-agent: waiting for 1 of 2 hosts for 10 s; connecting: w", "mpi-agent: x", "", "step 1"}, "10:00:02"},
		"only those of agents":  {[]string{"mpi-agent: waiting for 1 of 2 hosts for 10 s; connecting: w"}, "00:00:00"},
		"a program names agent": {[]string{"the mpi-agent: starts"}, "10:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := logServer(t, map[string]string{pod.Name: stampedLines(test.lines...)}).LastRun(t.Context(), pod)
			if got := log.FirstAt.Format(time.TimeOnly); err != nil || got != test.want {
				t.Errorf("the first line is of %s, want %s: %v", got, test.want, err)
			}
		})
	}
}

// TestLogEndsOfVerbosePods: a pod with a huge log has its last lines, and leaves room to the others.
func TestLogEndsOfVerbosePods(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("step %d", i))
	}
	gatherer := logServer(t, map[string]string{
		"pi-launcher-0": stampedLines(many...),
		"pi-worker-0":   stampedLines(append([]string{long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long}, "the end")...),
		"pi-worker-1":   stampedLines("one line"),
	})
	kept := gatherer.LogEnds(t.Context(), mpitest.Job(2), endedJob(2), 128<<10)
	texts := unpacked(t, kept)
	got := strings.Join(texts, "\n")
	for _, want := range []string{"pi-launcher-0: step 19999", "pi-worker-0: the end", "pi-worker-1: one line"} {
		if !strings.Contains(got, want) {
			t.Errorf("the logs lack %q", want)
		}
	}
	if kept.PodsCut < 1 || len(kept.Data) > 128<<10 {
		t.Errorf("%d pods are cut, %d bytes are kept", kept.PodsCut, len(kept.Data))
	}
	t.Logf("%d lines in %d bytes", kept.Lines, kept.Size)
}

// TestTimeOfProgress: the time of training progress is when its line was written. Lines that follow do not count.
func TestTimeOfProgress(t *testing.T) {
	job := mpitest.Job(1)
	pod := mpitest.LauncherPod(job, 0, corev1.PodRunning)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: job.Launcher.Template.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	gatherer := logServer(t, map[string]string{pod.Name: stampedLines("start", "epoch=1 loss=0.5", "epoch=2 loss=0.4", "saved", "waits")})
	evidence := gatherer.Listen(t.Context(), job, jobstate.Observed{LauncherPods: []*corev1.Pod{pod}})
	if got, want := evidence.Training.At.Time, time.Date(2026, 11, 21, 10, 0, 2, 500_000_000, time.UTC); evidence.Training.Epoch != "2" || !got.Equal(want) {
		t.Errorf("%+v, want %s", evidence.Training, want)
	}
	if got, want := evidence.Logs[pod.Name].LastAt, time.Date(2026, 11, 21, 10, 0, 4, 500_000_000, time.UTC); !got.Equal(want) {
		t.Errorf("the last line is of %s, want %s", got, want)
	}
}
