package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilexec "k8s.io/client-go/util/exec"

	"opendatahub.io/mpijob/internal/jobs"
)

// TestPrintStacks: ranks with the same stacks are shown together, the few first, and what a pod answers cannot write to the terminal.
func TestPrintStacks(t *testing.T) {
	t.Parallel()
	const answer = `{"host": "train-worker-1", "ranks": [
 {"rank": 3, "process": 9, "doing": "polling", "python": "3.9", "threads": [{"thread": 9, "frames": [{"file": "/app/train.py", "line": 61, "function": "main"}]}]},
 {"rank": 2, "process": 8, "doing": "polling", "python": "3.9", "threads": [{"thread": 8, "frames": [{"file": "/app/train.py", "line": 61, "function": "main"}]}]}]}
{"host": "train-worker-2", "ranks": null, "error": "nothing listens\u001b[2J"}
{"host": "train-worker-0", "ranks": [
 {"rank": 0, "process": 7, "doing": "polling", "python": "3.9", "threads": [{"thread": 7, "frames": [{"file": "/app/train.py", "line": 61, "function": "main"}]}]},
 {"rank": 1, "process": 6, "doing": "busy", "python": "3.9", "threads": [
  {"thread": 6, "frames": [{"file": "/app/tr\u001b[1main.py", "line": 42, "function": "load_batch", "source": "batch = \u001b[1mnext(it)"}, {"file": "/app/train.py", "line": 60, "function": "main"}], "more": true},
  {"thread": 16, "frames": [{"file": "<string>", "function": "f"}]}]},
 {"rank": 4, "process": 5, "doing": "blocked", "for": "a file server", "error": "it is no Python program"}]}
`
	const want = `rank 1 on train-worker-0: busy, Python 3.9
  load_batch (/app/train.py:42)
      batch = next(it)
  main (/app/train.py:60)
  …
  thread 16
    f (<string>)

rank 4 on train-worker-0: blocked, waits for a file server, no stack: it is no Python program

ranks 0, 2, 3 on train-worker-0, train-worker-1: polling, Python 3.9
  main (/app/train.py:61)
`
	hosts, err := parseStacks([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	var out, notes strings.Builder
	printed := printStacks(&out, &notes, hosts)
	if diff := cmp.Diff(want, out.String()); diff != "" || !printed {
		t.Error(diff)
	}
	if got, want := notes.String(), "note: train-worker-2: nothing listens\n"; got != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	if hosts, err := parseStacks(nil); err != nil || printStacks(&out, &notes, hosts) {
		t.Errorf("without an answer: %v, %v", hosts, err)
	}
	if _, err := parseStacks([]byte("rank 1 hangs")); err == nil {
		t.Error("a text is taken for an answer")
	}
}

// TestExplainAgent: an error of the agent explains what the launcher lacks.
func TestExplainAgent(t *testing.T) {
	t.Parallel()
	exit := func(code int) error { return utilexec.CodeExitError{Err: errors.New("command terminated"), Code: code} }
	for name, test := range map[string]struct {
		err     error
		printed string
		want    string
	}{
		"no agent":          {errors.New(`exec: "/opt/mpi-agent/mpi-agent": stat /opt/mpi-agent/mpi-agent: no such file or directory: unknown`), "", "has no agent"},
		"an older agent":    {exit(2), "mpi-agent starts the ranks of an MPI job.\n\n  mpi-agent serve [ADDRESS", "is older than this command"},
		"a key is missing":  {exit(1), "mpi-agent: read the job's key: permission denied\n", "failed: mpi-agent: read the job's key: permission denied"},
		"a lost connection": {errors.New("unexpected EOF"), "", "unexpected EOF"},
	} {
		if got := explainAgent(jobs.Job{Name: "train"}, test.err, test.printed); !strings.Contains(got.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}
