package rsh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestLaunchOf: what a launcher of MPI starts on hosts belongs to its run, also if it starts others by a daemon on a worker, and without a
// launcher to that of what calls ssh. A job that is not profiled has no runs.
func TestLaunchOf(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("sleep is not installed")
	}
	mpirun := filepath.Join(t.TempDir(), "mpirun")
	if err := os.Symlink(sleep, mpirun); err != nil {
		t.Fatal(err)
	}
	launcher := exec.CommandContext(t.Context(), mpirun, "60")
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = launcher.Process.Kill(); _ = launcher.Wait() }()
	self, started := os.Getpid(), launcher.Process.Pid
	// The process has its command line a moment after Start returns.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", started))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it has no command line: %v", err)
		}
		if len(command) > 0 {
			break
		}
	}
	for name, test := range map[string]struct {
		profile, outer string
		ancestors      []int
		// want is the process of the run, or its name.
		want string
	}{
		"by a launcher":                {"/p", "", []int{self, started}, strconv.Itoa(started)},
		"by one that has called one":   {"/p", "", []int{started, self, started}, strconv.Itoa(started)},
		"a launcher on a worker":       {"/p", "1.2.3", []int{self, started}, strconv.Itoa(started)},
		"by a daemon on a worker":      {"/p", "1.2.3", []int{self}, "1.2.3"},
		"by a script":                  {"/p", "", []int{self, os.Getppid()}, strconv.Itoa(self)},
		"without a parent":             {"/p", "", nil, ""},
		"the job asks for no profiles": {"", "", []int{started}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(agentapi.EnvProfile, test.profile)
			t.Setenv(agentapi.EnvLaunch, test.outer)
			got := launchOf(test.ancestors)
			if of := strings.Split(got, "."); len(of) == 3 && got != test.want {
				got = of[1]
			}
			if got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}

// TestBindingWithoutLauncher: ranks that another program starts are not bound, since nobody knows whether each has a core, unless MPI decides.
func TestBindingWithoutLauncher(t *testing.T) {
	for name, test := range map[string]struct{ decided, session, want agentapi.BindingPolicy }{
		"to be bound":                 {agentapi.BindCore, "", agentapi.BindSeveral},
		"to be bound, on a worker":    {agentapi.BindCore, "1", agentapi.BindCore},
		"nothing decided":             {"", "", ""},
		"nothing decided on a worker": {"", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(agentapi.EnvBind, string(test.decided))
			t.Setenv(process.EnvSession, string(test.session))
			if policy, by := binding([]int{os.Getpid()}); policy != test.want || by != "" {
				t.Errorf("got %q, %q; want %q", policy, by, test.want)
			}
		})
	}
}
