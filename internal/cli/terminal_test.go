package cli_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpi"
)

// terminal is a terminal of tmux, in which a command runs.
type terminal struct {
	t      *testing.T
	socket string
}

// inTerminal runs a shell command in a terminal of its own, with some variables besides.
func inTerminal(t *testing.T, command string, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: there is no tmux")
	}
	term := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	start := exec.Command("tmux", "-S", term.socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", command)
	start.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("start tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

// screen is what the terminal shows, with the sequences of colours if wanted.
func (term *terminal) screen(colours bool) string {
	args := []string{"-S", term.socket, "capture-pane", "-p"}
	if colours {
		args = append(args, "-e")
	}
	out, err := exec.Command("tmux", args...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("read the screen: %v: %s", err, out)
	}
	return string(out)
}

// shows waits until the terminal shows something, and returns that.
func (term *terminal) shows(pattern string) []string {
	term.t.Helper()
	wanted := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		screen := term.screen(false)
		if found := wanted.FindStringSubmatch(screen); found != nil {
			return found
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("the terminal does not show %s:\n%s", pattern, screen)
		}
	}
}

func (term *terminal) press(key string) {
	term.t.Helper()
	if out, err := exec.Command("tmux", "-S", term.socket, "send-keys", key).CombinedOutput(); err != nil {
		term.t.Fatalf("press %s: %v: %s", key, err, out)
	}
}

func TestLogsOnATerminal(t *testing.T) {
	const namespace, name = "team", "train"
	server := podserver.New(t)
	serveJob(server, namespace, name)
	serveReport(server, namespace, name, map[string]any{"phase": "Initializing", "workers": map[string]any{"summary": "1/2"}})
	pod := func(index int, state corev1.ContainerState) *corev1.Pod {
		name := fmt.Sprintf("train-worker-%d", index)
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: "train", UID: "1", Controller: new(true)},
			}, Labels: map[string]string{
				mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "train", mpi.LabelRole: "worker",
			}},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}},
		}
	}
	server.Put(pod(0, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}))

	term := inTerminal(t, "kubectl-odh-mpijob logs train -f; echo ended with $?; sleep 600", "KUBECONFIG="+kubeconfigOf(t, server, namespace))

	const waits = `(?m)^Initializing 1/2 workers ready; waiting for worker-0 \(ContainerCreating\), (0:\d\d)$`
	first := term.shows(waits)[1]
	for next := first; next == first; next = term.shows(waits)[1] {
		time.Sleep(100 * time.Millisecond)
	}
	server.Put(pod(0, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))
	server.Log("train-worker-0", false).Say(time.Now(), "hello")
	term.shows(`(?m)^\[worker-0\] hello$`)
	if screen := term.screen(false); strings.Contains(screen, "waiting for") {
		t.Errorf("what was waited for still stands there:\n%s", screen)
	}
	if screen := term.screen(true); !strings.Contains(screen, "\x1b[36m[worker-0]\x1b[39m hello") && !strings.Contains(screen, "\x1b[36m[worker-0]\x1b[0m hello") {
		t.Errorf("the worker's name has no colour:\n%q", screen)
	}
	server.Log("train-worker-0", false).Say(time.Now(), "and more")
	term.shows(`(?m)^\[worker-0\] and more$`)

	term.press("C-c")
	term.shows(`(?m)^\^?C?detached: mpijob/train continues; run kubectl odh mpijob attach train -n team to follow it again$`)
	term.shows(`(?m)^ended with 130$`)
}

// TestWaitOnATerminal: while pods start, one line is replaced, also by lines that are longer than the terminal is wide.
func TestWaitOnATerminal(t *testing.T) {
	const namespace, name = "team", "train"
	server := podserver.New(t)
	serveJob(server, namespace, name)
	reason := strings.Repeat("VeryLong", 20)
	report := func(phase, workers string) {
		serveReport(server, namespace, name, map[string]any{
			"phase": phase, "workers": map[string]any{"summary": workers}, "findings": []any{map[string]any{"code": reason, "severity": "Warning", "summary": "x"}},
		})
	}
	report("Initializing", "1/2")
	term := inTerminal(t, "kubectl-odh-mpijob wait train --timeout 20s; echo ended with $?; sleep 600", "KUBECONFIG="+kubeconfigOf(t, server, namespace))

	const waits = `(?m)^Initializing 1/2 workers ready \((?:VeryLong)+\S*…, (0:\d\d)$`
	first := term.shows(waits)[1]
	for next := first; next == first; next = term.shows(waits)[1] {
		time.Sleep(100 * time.Millisecond)
	}
	if screen := term.screen(false); strings.Count(screen, "Initializing") != 1 {
		t.Errorf("progress is repeated:\n%s", screen)
	}
	term.shows(`(?m)^error: mpijob/train is not Succeeded after 20s: Initializing 1/2`)
	term.shows(`(?m)^ended with 4$`)
	if screen := term.screen(false); strings.Count(screen, "Initializing") != 1 {
		t.Errorf("progress is left on the screen:\n%s", screen)
	}
}

// TestTopOnATerminal: top --watch replaces its table, and ends with the job.
func TestTopOnATerminal(t *testing.T) {
	const namespace, name = "team", "train"
	server := podserver.New(t)
	serveJob(server, namespace, name)
	status := map[string]any{"phase": "Running", "pods": []any{map[string]any{"role": "worker", "index": 0, "name": "train-worker-0", "node": "node-1", "phase": "Running", "ranks": "0"}}}
	serveReport(server, namespace, name, status)
	measure := func(cpu string) {
		server.Serve("/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods", map[string]any{
			"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "metadata": map[string]any{}, "items": []any{map[string]any{
				"metadata": map[string]any{"name": "train-worker-0", "namespace": namespace}, "containers": []any{map[string]any{"name": "w", "usage": map[string]any{"cpu": cpu, "memory": "1Gi"}}},
			}},
		})
	}
	measure("1500m")
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	server.Put(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-worker-0", UID: "w", Labels: map[string]string{mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: name, mpi.LabelRole: "worker"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "w", Resources: corev1.ResourceRequirements{Limits: gpus}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	})
	term := inTerminal(t, "kubectl-odh-mpijob top train --watch --interval 1s; echo ended with $?; sleep 600", "KUBECONFIG="+kubeconfigOf(t, server, namespace))
	term.shows(`train-worker-0 +0 +node-1 +1500m +1024Mi +2\s`)
	term.shows(`note: GPU is the number of requested GPUs`)

	server.Serve("/apis/custom.metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods/*/DCGM_FI_DEV_GPU_UTIL", map[string]any{
		"kind": "MetricValueList", "items": []any{map[string]any{"describedObject": map[string]any{"namespace": namespace, "name": "train-worker-0"}, "value": "150"}},
	})
	measure("250m")
	term.shows(`train-worker-0 +0 +node-1 +250m +1024Mi +2 \(75%\)`)
	if screen := term.screen(false); strings.Count(screen, "train-worker-0") != 1 || strings.Contains(screen, "note:") {
		t.Errorf("the table is not replaced:\n%s", screen)
	}
	ended := maps.Clone(status)
	ended["phase"], ended["completionTime"] = "Succeeded", time.Now().UTC().Format(time.RFC3339)
	serveReport(server, namespace, name, ended)
	term.shows(`(?m)^ended with 0$`)
}

// TestExplainOnATerminal: wrapped texts are coloured, and show no codes of colours.
func TestExplainOnATerminal(t *testing.T) {
	const namespace, name = "team", "train"
	server := podserver.New(t)
	serveJob(server, namespace, name)
	summary := strings.TrimSpace(strings.Repeat("words of the cause ", 12))
	serveReport(server, namespace, name, map[string]any{
		"phase": "Failed", "completionTime": "2026-01-02T10:00:00Z", "findings": []any{map[string]any{"code": "RankFailed", "severity": "Error", "summary": summary}},
	})
	for _, command := range []string{"explain", "describe"} {
		term := inTerminal(t, "kubectl-odh-mpijob "+command+" train; echo ended with $?; sleep 600", "KUBECONFIG="+kubeconfigOf(t, server, namespace))
		term.shows(`(?m)^ended with 0$`)
		term.shows(`(?m)^  RankFailed: words of the cause (?:\w+ )+\w+\n  \w+ `)
		term.shows(`(?m)^(?:mpijob/train: )?Failed \d+`)
		if screen := term.screen(true); !strings.Contains(screen, "\x1b[31mRankFailed\x1b[") {
			t.Errorf("the code of %s has no colour:\n%q", command, screen)
		}
	}
}

// serveJob serves an MPIJob.
func serveJob(server *podserver.Server, namespace, name string) {
	server.Serve("/apis/kubeflow.org/v2beta1/namespaces/"+namespace+"/mpijobs/"+name, map[string]any{
		"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": map[string]any{"name": name, "namespace": namespace, "uid": "1"},
	})
}

// serveReport serves the report of an MPIJob.
func serveReport(server *podserver.Server, namespace, name string, status map[string]any) {
	server.Serve("/apis/mpi.opendatahub.io/v1alpha1/namespaces/"+namespace+"/jobreports", map[string]any{
		"apiVersion": "mpi.opendatahub.io/v1alpha1", "kind": "JobReportList", "metadata": map[string]any{}, "items": []any{map[string]any{
			"metadata": map[string]any{"name": name + "-1", "namespace": namespace},
			"spec":     map[string]any{"jobRef": map[string]any{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": name, "uid": "1"}},
			"status":   status,
		}},
	})
}

// kubeconfigOf writes a kubeconfig for a server.
func kubeconfigOf(t *testing.T, server *podserver.Server, namespace string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(server.Kubeconfig(namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}
