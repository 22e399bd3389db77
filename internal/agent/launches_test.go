package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// loseFailure is an MPI launcher that loses a failure, as MPICH's does: it runs each argument on the worker, waits for all of
// them, and succeeds. With AGENT_TEST_HANG it hangs instead, as Open MPI's may if it loses its hosts.
func loseFailure(commands []string) int {
	self, err := os.Executable()
	if err != nil {
		return 99
	}
	var started []*exec.Cmd
	for _, command := range commands {
		cmd := exec.Command(self)
		cmd.Args = append(append([]string{"ssh"}, strings.Fields(os.Getenv("AGENT_TEST_WORKER"))...), command)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Start() != nil {
			return 98
		}
		started = append(started, cmd)
	}
	for _, cmd := range started {
		_ = cmd.Wait()
	}
	if os.Getenv("AGENT_TEST_HANG") != "" {
		select {}
	}
	return 0
}

// TestLostFailures: a launcher that does not notice that a rank failed is ended, or its success does not count.
func TestLostFailures(t *testing.T) {
	const survivor = "PMI_RANK=0 sleep 600"
	for name, test := range map[string]struct {
		// command is run with $M, the launcher.
		command string
		env     string
		code    int
		stderr  string
	}{
		"others wait":           {command: `exec $M "$CRASH" "$SURVIVOR"`, code: 139, stderr: "Rank 1 (sh) ended by signal 11 (SIGSEGV). mpiexec did not end the other ranks"},
		"others wait, script":   {command: `$M "$CRASH" "$SURVIVOR"; code=$?; echo continued; exit $code`, code: 143, stderr: "mpiexec did not end the other ranks"},
		"none is left":          {command: `exec $M "$CRASH"`, code: 139, stderr: "mpiexec did not notice, and reported success"},
		"none is left, script":  {command: `$M "$CRASH"; true`, code: 139, stderr: "mpiexec did not notice, and reported success"},
		"exit code":             {command: `exec $M "PMI_RANK=2 sh -c 'while [ ! -e $GO ]; do sleep 0.1; done; exit 42'"`, code: 42, stderr: "Rank 2 (sh) ended with code 42"},
		"told to continue":      {command: `exec $M "$CRASH" "PMI_RANK=0 sleep 4"`, env: "I_MPI_FAULT_CONTINUE=1"},
		"disabled by a setting": {command: `$M "$CRASH" "PMI_RANK=0 sleep 4"; exit 3`, env: agentapi.EnvEndAfter + "=never", code: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).serve()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			launcher := filepath.Join(t.TempDir(), "mpiexec")
			if err := os.Symlink(self, launcher); err != nil {
				t.Fatal(err)
			}
			started := filepath.Join(t.TempDir(), "started")
			address := strings.Split(w.address, ":")
			cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", test.command)
			cmd.Env = append(
				cmd.Env, agentapi.EnvEndAfter+"=1s", "M="+launcher, "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0],
				"GO="+started, "CRASH=PMI_RANK=1 sh -c 'while [ ! -e "+started+" ]; do sleep 0.1; done; kill -SEGV $$'", "SURVIVOR="+survivor, test.env,
			)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			start := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the rank is seen", func() bool {
				return strings.Contains(w.workerLog.String(), `"rank":1`) || strings.Contains(w.workerLog.String(), `"rank":2`)
			})
			if err := os.WriteFile(started, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("ended with %d after %s, want %d: %s", code, time.Since(start), test.code, &stderr)
			}
			// The worker ends what the launcher left behind.
			eventually(t, "no rank is left", func() bool {
				var metrics string
				w.get("/metrics", &metrics)
				return value(t, metrics, "mpi_agent_sessions_active") == 0
			})
		})
	}
}

// TestLostHost: a launcher that does not notice that a host was lost is ended.
func TestLostHost(t *testing.T) {
	w := newWorld(t).serve()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(t.TempDir(), "mpiexec")
	if err := os.Symlink(self, launcher); err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "started")
	address := strings.Split(w.address, ":")
	cmd := w.agent("mpi-agent", "launch", "--", launcher, "echo $$ > "+started+"; PMI_RANK=0 exec sleep 600")
	cmd.Env = append(cmd.Env, agentapi.EnvEndAfter+"=1s", "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0], "AGENT_TEST_HANG=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rank is known to the launcher", func() bool {
		return slices.ContainsFunc(records.Read(w.run), func(r records.Record) bool { return r.Worker != nil })
	})
	// A pod's processes end with its agent, which is their first process.
	pid, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	rank, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err := errors.Join(err, w.worker.Process.Kill(), unix.Kill(rank, unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	const want = "was lost: the connection to it was lost while its ranks ran"
	if code := cmd.ProcessState.ExitCode(); code != 128+15 || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "mpiexec did not end the other ranks") {
		t.Errorf("ended with %d: %s", code, &stderr)
	}
}

// TestWorkersAreAskedOfSilentHosts: the rank that failed is known although MPI has killed the rsh that would have reported it.
func TestWorkersAreAskedOfSilentHosts(t *testing.T) {
	for name, test := range map[string]struct {
		rank string
		want int
	}{
		"a rank has failed": {"PMI_RANK=2 sh -c 'sleep 0.2; exit 42'", 42},
		"none has failed":   {"PMI_RANK=2 sh -c 'sleep 0.2; exit 0'", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).serve()
			folder := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(self, filepath.Join(folder, "ssh")); err != nil {
				t.Fatal(err)
			}
			host, port, _ := net.SplitHostPort(w.address)
			// A stopped rsh hears nothing; what it has started goes on.
			script := fmt.Sprintf(`cd %s
./ssh -x -p %s %s "echo > %s/begun; %s; echo > %s/ended; sleep 60" & rsh=$!
until [ -e begun ]; do sleep 0.05; done
kill -STOP $rsh
until [ -e ended ]; do sleep 0.05; done
sleep 0.3
kill -KILL $rsh
exit 15`, folder, port, host, folder, test.rank, folder)
			cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", script)
			message := filepath.Join(folder, "message")
			cmd.Env = append(cmd.Env, agentapi.EnvTermination+"="+message)
			if err := os.WriteFile(message, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 15 {
				t.Errorf("ended with %d: %s", code, out)
			}
			data, err := os.ReadFile(message)
			if err != nil {
				t.Fatal(err)
			}
			summary, _ := agentapi.ParseSummary(string(data))
			switch {
			case test.want == 0 && len(summary.Ranks) > 0:
				t.Errorf("it says %s", data)
			case test.want > 0 && (len(summary.Ranks) == 0 || summary.Ranks[0].Rank != 2 || int(summary.Ranks[0].ExitCode) != test.want || summary.Code != agentapi.RankFailed):
				t.Errorf("it says %s, want rank 2 with exit code %d", data, test.want)
			}
		})
	}
}

// TestOwnExitCodeIsNoDisruption: a command that ends with the code for disruptions is not taken for one, and the summary keeps its code.
func TestOwnExitCodeIsNoDisruption(t *testing.T) {
	w := newWorld(t)
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", "exit 75")
	cmd.Env = append(cmd.Env, agentapi.EnvTermination+"="+message, agentapi.EnvExitDisrupted+"=75")
	out, _ := cmd.CombinedOutput()
	const line = "mpi-agent: The launcher's command ended with exit code 75. The launcher ends with 1"
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), line) {
		t.Errorf("ended with %d: %s", code, out)
	}
	data, err := os.ReadFile(message)
	if err != nil {
		t.Fatal(err)
	}
	if summary, _ := agentapi.ParseSummary(string(data)); summary.ExitCode == nil || *summary.ExitCode != 75 {
		t.Errorf("the summary is %s", data)
	}
}

// TestRunsOfRanks: ranks of profiled jobs know to which run of a launcher they belong.
func TestRunsOfRanks(t *testing.T) {
	w := newWorld(t).serve()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(t.TempDir(), "mpiexec")
	if err := os.Symlink(self, launcher); err != nil {
		t.Fatal(err)
	}
	address := strings.Split(w.address, ":")
	cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", `$M "$R" "$R"; $M "$R"`)
	cmd.Env = append(
		cmd.Env, "M="+launcher, "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0], agentapi.EnvProfile+"="+t.TempDir(), "R=echo $"+agentapi.EnvLaunch,
	)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	runs := strings.Fields(string(out))
	if len(runs) != 3 || runs[0] != runs[1] || runs[1] == runs[2] || strings.Trim(runs[0]+runs[2], "0123456789.") != "" {
		t.Errorf("two ranks of a run and one of the next belong to %q", runs)
	}
}
