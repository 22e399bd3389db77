package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/follow/podserver"
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
	server.Serve("/apis/kubeflow.org/v2beta1/namespaces/"+namespace+"/mpijobs/"+name, map[string]any{
		"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": map[string]any{"name": name, "namespace": namespace, "uid": "1"},
	})
	server.Serve("/apis/mpi.opendatahub.io/v1alpha1/namespaces/"+namespace+"/jobreports", map[string]any{
		"apiVersion": "mpi.opendatahub.io/v1alpha1", "kind": "JobReportList", "metadata": map[string]any{}, "items": []any{map[string]any{
			"metadata": map[string]any{"name": "train-1", "namespace": namespace},
			"spec":     map[string]any{"jobRef": map[string]any{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": name, "uid": "1"}},
			"status":   map[string]any{"phase": "Initializing", "workers": map[string]any{"summary": "1/2"}},
		}},
	})
	pod := func(index int, state corev1.ContainerState) *corev1.Pod {
		name := fmt.Sprintf("train-worker-%d", index)
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{
				mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "train", mpi.LabelRole: "worker",
			}},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}},
		}
	}
	server.Put(pod(0, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}))

	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(server.Kubeconfig(namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	term := inTerminal(t, "kubectl-odh-mpijob logs train -f; echo ended with $?; sleep 600", "KUBECONFIG="+config)

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
	term.shows(`(?m)^\^?C?detached: mpijob/train goes on; come back with kubectl odh mpijob logs train -f --since 1m -n team$`)
	term.shows(`(?m)^ended with 130$`)
}
