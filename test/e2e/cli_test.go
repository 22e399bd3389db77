package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCommandLine runs, watches and repairs jobs as a user does, through kubectl.
func TestCommandLine(t *testing.T) {
	parallel(t, 2)
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	namespace := newNamespace(t)
	// call runs a command of the plug-in and checks how it ends, and what it prints: on standard output and error.
	call := func(code int, out, complaints []string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), "kubectl", append([]string{"odh", "mpijob", args[0], "-n", namespace}, args[1:]...)...)
		c.Stdout, c.Stderr = &stdout, &stderr
		got, exit := 0, new(exec.ExitError)
		if err := c.Run(); errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		t.Logf("$ %s\n%s%s(%d)", strings.Join(c.Args, " "), stdout.String(), stderr.String(), got)
		if got != code {
			t.Fatalf("%s ended with %d, want %d", strings.Join(args, " "), got, code)
		}
		for _, words := range []struct {
			have string
			want []string
		}{{stdout.String(), out}, {stderr.String(), complaints}} {
			for _, want := range words.want {
				if !strings.Contains(words.have, want) {
					t.Errorf("%s does not say %q", strings.Join(args, " "), want)
				}
			}
		}
	}
	job := []string{"--image", image, "--run-as-user", "1000", "--cpu", "50m", "--memory", "128Mi"}
	create := func(name string, more ...string) []string {
		return append(append([]string{"create", name}, job...), more...)
	}

	call(0, []string{"mpijob/pi created", "mpijob/pi: Succeeded"}, []string{"command: mpirun --tag-output -n 2 pi"}, create("pi", "--workers", "2", "--command", "pi", "--wait", "--timeout", "4m")...)
	call(0, []string{"pi is approximately 3.14159"}, nil, "logs", "pi")
	call(0, []string{"Succeeded", "OpenMPI"}, nil, "list", "-o", "wide")
	call(0, []string{"Succeeded", "TIMELINE", "LauncherStarted", "2 ranks: 1 each on 2 workers"}, nil, "describe", "pi", "--all")
	// Events come a little after what they tell of.
	eventually(t, "its end is an event", time.Minute, func() error {
		var events corev1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": "pi", "reason": "MPIJobSucceeded"}); err != nil || len(events.Items) == 0 {
			return fmt.Errorf("there is none: %w", err)
		}
		return nil
	})
	call(0, []string{"MPIJobSucceeded"}, nil, "events", "pi")

	call(0, []string{"mpijob/bad created"}, nil, create("bad", "--", "sh", "-c", "echo no such data >&2; exit 3")...)
	call(3, nil, []string{"mpijob/bad: Failed", "code 3", "WHAT TO DO"}, "wait", "bad", "--timeout", "4m")
	call(0, []string{"ApplicationFailed", "no such data"}, nil, "describe", "bad")

	quotaIn(t, namespace, "requests.cpu=2")
	call(1, nil, []string{"error:", "cpu"}, create("big", "--workers", "4", "--cpu", "1", "--command", "pi", "--dry-run=server")...)

	call(0, []string{"mpijob/bad deleted", "mpijob/pi is deleted"}, nil, "delete", "--all", "--yes", "--wait", "--timeout", "4m")
	call(0, []string{"the job is deleted, this is its report"}, nil, "describe", "pi")
	call(5, nil, []string{`job "pie" not found`}, "describe", "pie")
}
