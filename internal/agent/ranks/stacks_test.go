package ranks

import (
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestStacks: the stack of a rank is that of the first of its processes that runs Python.
func TestStacks(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("SKIPPED: this machine has no /usr/bin/python3")
	}
	r := New(slog.New(slog.DiscardHandler), "")
	started := func(rank int32, name string, args ...string) {
		command := exec.Command(name, args...)
		input, err := command.StdinPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		// What a shell started ends with its input.
		t.Cleanup(func() { input.Close(); _ = command.Process.Kill(); _ = command.Wait() })
		r.processes[command.Process.Pid] = &observed{rank: rank}
	}
	started(0, "/bin/sh", "-c", python+" -c 'import sys\ndef waits(): sys.stdin.read()\nwaits()'; true")
	started(1, "sleep", "60")
	r.activity = progress.Follower{Latest: &agentapi.Activity{Ranks: []agentapi.RankActivity{{Rank: 0, Doing: agentapi.Blocked, For: "input from a pipe"}}}}
	var all []agentapi.RankStack
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all = r.Stacks(nil)
		if len(all) == 2 && len(all[0].Threads) == 1 && all[0].Threads[0].Frames[0].String() == "waits (<string>:2)" && all[0].Inline == "import sys; def waits(): sys.stdin.read(); waits()" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the stacks are %+v", all)
		}
	}
	if source := all[0].Threads[0].Frames[0].Source; source != "def waits(): sys.stdin.read()" {
		t.Errorf("the line of rank 0 is %q", source)
	}
	if all[0].Doing != agentapi.Blocked || all[0].For == "" || all[0].Python == "" || r.processes[all[0].Process] != nil {
		t.Errorf("rank 0 is %+v", all[0])
	}
	if all[1].Rank != 1 || all[1].Error != "it is no Python program" || all[1].Threads != nil || all[1].Doing != "" {
		t.Errorf("rank 1 is %+v", all[1])
	}
	if one := r.Stacks(new(int32(1))); len(one) != 1 || one[0].Rank != 1 {
		t.Errorf("rank 1 alone is %+v", one)
	}
	if none := r.Stacks(new(int32(2))); len(none) > 0 {
		t.Errorf("rank 2 is %+v", none)
	}
}

// TestExplainNoCode: a program that only embeds Python has not ended because it runs no Python code.
func TestExplainNoCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ err, program, want string }{
		{agentapi.NoPythonCode, "/usr/bin/python3.11", agentapi.NoPythonCode},
		{agentapi.NoPythonCode, "/opt/conda/bin/python3 (deleted)", agentapi.NoPythonCode},
		{agentapi.NoPythonCode, "/app/solver", "it has Python as a library"},
		{"it is no Python program", "/app/solver", "it is no Python program"},
	} {
		if got := explainNoCode(errors.New(test.err), test.program).Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s of %s: %q, want %q", test.err, test.program, got, test.want)
		}
	}
}

func TestExplainRefusal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		scope string
		want  string
	}{
		{fs.ErrNotExist, "2", "it has ended"},
		{fs.ErrPermission, "2", "ptrace_scope is 2"},
		{fs.ErrPermission, "3", "ptrace_scope is 3"},
		{fs.ErrPermission, "1", "another user"},
		{fs.ErrPermission, "", "another user"},
	} {
		if err := explainRefusal(test.err, test.scope); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v with scope %q: %v, want %s", test.err, test.scope, err, test.want)
		}
	}
}
