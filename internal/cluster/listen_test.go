package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestListening reads the end of one log, that of the pod which speaks for the program, and no more than is asked for.
func TestListening(t *testing.T) {
	t.Parallel()
	const line = `2026-11-21T10:00:01.5Z {"epoch": 3, "step": 12, "loss": 0.5}` + "\n"
	want := v1alpha1.Training{Epoch: "3", Step: "12", Loss: "0.5", At: metav1.NewTime(mpitest.Now.Add(1500 * time.Millisecond))}
	tests := map[string]struct {
		text string
		none bool
		pod  string
		want v1alpha1.Training
	}{
		"a launcher":                  {text: line, pod: "pi-launcher-0", want: want},
		"rank 0":                      {text: line, none: true, pod: "pi-worker-0", want: want},
		"an enormous line before it":  {text: "2026-11-21T10:00:00Z " + strings.Repeat("x", 3<<20) + "\n" + line, pod: "pi-launcher-0", want: want},
		"a server that does not stop": {text: strings.Repeat(strings.Repeat("y", 1<<20)+"\n", 64), pod: "pi-launcher-0"},
		"silence":                     {pod: "pi-launcher-0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
				_, _ = w.Write([]byte(test.text))
			}))
			t.Cleanup(server.Close)
			core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.None = test.none })
			seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodRunning)}
			if !test.none {
				seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}
			}
			for _, pod := range append([]*corev1.Pod{seen.Workers[0].Pod}, seen.LauncherPods...) {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			}
			evidence := cluster.NewGatherer(nil, core, logs.Masker{}, clock.RealClock{}).Listen(t.Context(), job, seen)
			if diff := cmp.Diff(test.want, evidence.Training); diff != "" {
				t.Errorf("training differs (-want +got):\n%s", diff)
			}
			if got := len(evidence.CurveLines); got != 0 != (test.want.Loss != "") || got > 0 && evidence.CurveLines[0].Figures[0].Value != 0.5 {
				t.Errorf("the lines with figures are %+v", evidence.CurveLines)
			}
			request := fmt.Sprintf("[/api/v1/namespaces/ns/pods/%s/log?container=main&limitBytes=4194304&tailLines=100&timestamps=true]", test.pod)
			if fmt.Sprint(asked) != request {
				t.Errorf("it was asked for %v, want %s", asked, request)
			}
			if _, read := evidence.Logs[test.pod]; !read || len(evidence.Logs) != 1 {
				t.Errorf("%d logs were read", len(evidence.Logs))
			}
		})
	}
}

// TestListeningToAnInitContainer reads the log of an init container that a pod waits for, of the first such pod, and of no sidecar.
func TestListeningToAnInitContainer(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.URL.Query().Get("container")
	}))
	t.Cleanup(server.Close)
	core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	job := mpitest.Job(3)
	seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodPending)}
	for i, worker := range seen.Workers {
		name := "wait-for-data"
		if i == 0 {
			name = "proxy"
			worker.Pod.Spec.InitContainers = []corev1.Container{{Name: name, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		}
		// Also while the pod is being deleted, since the launcher has given up.
		worker.Pod.DeletionTimestamp = new(metav1.NewTime(mpitest.Now))
		worker.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	cluster.NewGatherer(nil, core, logs.Masker{}, clock.RealClock{}).Listen(t.Context(), job, seen)
	server.Close()
	close(asked)
	var all []string
	for one := range asked {
		all = append(all, one)
	}
	if diff := cmp.Diff([]string{"/api/v1/namespaces/ns/pods/pi-worker-1/log wait-for-data"}, all); diff != "" {
		t.Errorf("the logs that were read differ (-want +got):\n%s", diff)
	}
}

// TestLogsOfInitializers: of the jobs that prepare a TrainJob's data and model, the logs of those that failed are read.
func TestLogsOfInitializers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("2026-01-01T00:00:00Z " + r.URL.Path + " " + r.URL.Query().Get("container")))
	}))
	t.Cleanup(server.Close)
	core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	seen := jobstate.Observed{Now: mpitest.Now}
	for name, code := range map[string]int32{"pi-dataset-initializer": 1, "pi-model-initializer": 0} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mpitest.Exited(code, "")(pod)
		seen.Initializers = append(seen.Initializers, pod)
	}
	evidence := cluster.NewGatherer(nil, core, logs.Masker{}, clock.RealClock{}).Listen(t.Context(), mpitest.Job(1), seen)
	if lines := evidence.Logs["pi-dataset-initializer"].Lines; len(evidence.Logs) != 1 || len(lines) != 1 || lines[0] != "/api/v1/namespaces/ns/pods/pi-dataset-initializer/log main" {
		t.Errorf("the logs are %v", evidence.Logs)
	}
}

// TestLogOfARemovedContainerIsNone: what a kubelet says instead is no word of the program's.
func TestLogOfARemovedContainerIsNone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("unable to retrieve container logs for containerd://17d2387efde4"))
	}))
	t.Cleanup(server.Close)
	core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	job := mpitest.Job(1)
	launcher := mpitest.LauncherPod(job, 0, corev1.PodRunning)
	launcher.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	seen := jobstate.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{launcher}}
	if evidence := cluster.NewGatherer(nil, core, logs.Masker{}, clock.RealClock{}).Listen(t.Context(), job, seen); len(evidence.Logs) > 0 {
		t.Errorf("it is taken for a log: %v", evidence.Logs)
	}
}
