package agent

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// printVersion is an MPI launcher that is asked for its version. It counts how often in the folder of LD_LIBRARY_PATH, where
// it also finds how it behaves.
func printVersion(name string) int {
	folder := os.Getenv("LD_LIBRARY_PATH")
	calls, err := os.OpenFile(filepath.Join(folder, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	input, _ := io.ReadAll(os.Stdin)
	fmt.Fprintf(calls, "%s %d %s\n", name, len(input), os.Getenv("SECRET"))
	switch behavior, _ := os.ReadFile(filepath.Join(folder, "behavior")); string(behavior) {
	case "hang":
		time.Sleep(time.Minute)
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return 1
			}
		}
	}
	fmt.Printf("%s (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/\n", name)
	return 0
}

// TestMPIVersion: the launcher's agent reports the version of the MPI launcher, which it asks once, and never a script. The job
// is not delayed.
func TestMPIVersion(t *testing.T) {
	for name, test := range map[string]struct {
		behavior string
		// launcher is the file that runs, with its content if it is a script; $M is its path.
		launcher, script string
		command          string
		calls            string
		want             []string
	}{
		"once":       {launcher: "mpiexec", command: `$M "sleep 1"; $M "sleep 0.2"`, calls: "mpiexec 0 \n", want: []string{"Open MPI 5.0.7"}},
		"as prterun": {launcher: "prterun", command: `exec $M "sleep 1"`, calls: "mpirun 0 \n", want: []string{"Open MPI 5.0.7"}},
		"hangs":      {behavior: "hang", launcher: "mpiexec", command: `exec $M "sleep 1"`, calls: "mpiexec 0 \n"},
		"floods":     {behavior: "flood", launcher: "mpiexec", command: `exec $M "sleep 1"`, calls: "mpiexec 0 \n"},
		"a script":   {launcher: "mpiexec", script: "#!/bin/sh\necho \"script $*\" >> $LD_LIBRARY_PATH/calls\nsleep 1\n", command: "$M work", calls: "script work\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).serve()
			folder := t.TempDir()
			launcher := filepath.Join(folder, test.launcher)
			if test.script != "" {
				if err := os.WriteFile(launcher, []byte(test.script), 0o700); err != nil {
					t.Fatal(err)
				}
			} else {
				linkSelf(t, launcher)
				if test.launcher == "prterun" {
					linkSelf(t, filepath.Join(folder, "mpirun"))
				}
			}
			if err := os.WriteFile(filepath.Join(folder, "behavior"), []byte(test.behavior), 0o600); err != nil {
				t.Fatal(err)
			}
			address := strings.Split(w.address, ":")
			termination := filepath.Join(t.TempDir(), "message")
			cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", test.command)
			cmd.Env = append(
				cmd.Env, "M="+launcher, "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0], "LD_LIBRARY_PATH="+folder, "SECRET=hunter2",
				agentapi.EnvTermination+"="+termination,
			)
			cmd.Stdin = strings.NewReader("the job's input")
			start := time.Now()
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if took := time.Since(start); test.behavior != "" && took > 5*time.Second {
				t.Errorf("the job was delayed: it took %s", took)
			}
			message, err := os.ReadFile(termination)
			if err != nil {
				t.Fatal(err)
			}
			summary, is := agentapi.ParseSummary(string(message))
			launches := int32(max(1, strings.Count(test.command, "$M")))
			if test.script != "" {
				launches = 0
			}
			if !is || !slices.Equal(summary.MPIVersions, test.want) || summary.Launches != launches || summary.RanksSeen != 0 {
				t.Errorf("reported %s, want the versions %q and %d launches", message, test.want, launches)
			}
			if calls, _ := os.ReadFile(filepath.Join(folder, "calls")); string(calls) != test.calls {
				t.Errorf("called %q, want %q", calls, test.calls)
			}
			eventually(t, "no query is left", func() bool { return len(runningFrom(t, folder)) == 0 })
		})
	}
}

// TestMPIVersionWithoutSupervisor: where no agent runs the launcher's program, one of the sessions asks for the version, and the
// summary has it when another one ends last.
func TestMPIVersionWithoutSupervisor(t *testing.T) {
	w := newWorld(t).serve()
	folder := t.TempDir()
	launcher := filepath.Join(folder, "mpiexec")
	linkSelf(t, launcher)
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hostile := "mpi-version." + process.ContainerRun() + "."
	for name, text := range map[string]string{hostile + "1": "Open MPI <b>", hostile + "2": strings.Repeat("1", 1000), "mpi-version." + "0.1": "MPICH 1.0"} {
		if err := os.WriteFile(filepath.Join(w.run, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := strings.Split(w.address, ":")
	cmd := exec.CommandContext(t.Context(), launcher, "sleep 1", "sleep 1.5", "sleep 2")
	cmd.Env = append(w.agent().Env, "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0], "LD_LIBRARY_PATH="+folder, agentapi.EnvTermination+"="+message)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	text, err := os.ReadFile(message)
	if err != nil {
		t.Fatal(err)
	}
	if summary, is := agentapi.ParseSummary(string(text)); !is || !slices.Equal(summary.MPIVersions, []string{"Open MPI 5.0.7"}) {
		t.Errorf("reported %s", text)
	}
	if calls, _ := os.ReadFile(filepath.Join(folder, "calls")); string(calls) != "mpiexec 0 \n" {
		t.Errorf("called %q", calls)
	}
}

// linkSelf copies the test's program: the name of its file counts, which a link does not change for the kernel.
func linkSelf(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// runningFrom returns the processes whose program is in a folder.
func runningFrom(t *testing.T, folder string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if path, err := os.Readlink(link); err == nil && filepath.Dir(path) == folder {
			paths = append(paths, path)
		}
	}
	return paths
}
