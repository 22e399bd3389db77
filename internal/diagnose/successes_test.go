package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

const loggedTraceback = `2026-11-29 03:08:09,102 INFO epoch=4 loss=0.2000
2026-11-29 03:08:09,105 ERROR training failed
Traceback (most recent call last):
  File "/app/train.py", line 25, in <module>
    train()
  File "/app/train.py", line 20, in train
    with open("/data/results/model.bin", "wb") as f:
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
FileNotFoundError: [Errno 2] No such file or directory: '/data/results/model.bin'
`

// threadEnded is what two ranks print at the same time of a thread that an exception ends.
const threadEnded = `Exception in thread checkpoint-writer:
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1038, in _bootstrap_inner
    self.run()
Exception in thread checkpoint-writer:
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1038, in _bootstrap_inner
    self.run()
  File "/usr/lib/python3.11/threading.py", line 975, in run
    self._target(*self._args, **self._kwargs)
  File "/code/train.py", line 14, in writer
    json.dump(state, f)
  File "/usr/lib/python3.11/json/__init__.py", line 179, in dump
    for chunk in iterable:
  File "/usr/lib/python3.11/json/encoder.py", line 439, in _iterencode
    o = _default(o)
        ^^^^^^^^^^^
  File "/usr/lib/python3.11/json/encoder.py", line 180, in default
    raise TypeError(f'Object of type {o.__class__.__name__} '
TypeError: Object of type set is not JSON serializable
  File "/usr/lib/python3.11/threading.py", line 975, in run
    self._target(*self._args, **self._kwargs)
  File "/code/train.py", line 14, in writer
    json.dump(state, f)
  File "/usr/lib/python3.11/json/encoder.py", line 180, in default
    raise TypeError(f'Object of type {o.__class__.__name__} '
TypeError: Object of type set is not JSON serializable
training finished
`

// taskEnded is what asyncio prints of a task of which nothing asked for the result.
const taskEnded = `epoch 1
Task exception was never retrieved
future: <Task finished name='Task-2' coro=<upload() done, defined at /code/serve.py:6> exception=ConnectionError('closed by the server')>
Traceback (most recent call last):
  File "/code/serve.py", line 8, in upload
    raise ConnectionError("closed by the server")
ConnectionError: closed by the server
epoch 2
`

// childEnded is what multiprocessing prints of a process that an exception ends.
const childEnded = `[1,1]<stderr>:Process ForkProcess-1:
[1,1]<stderr>:Traceback (most recent call last):
[1,1]<stderr>:  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap
[1,1]<stderr>:    self.run()
[1,1]<stderr>:  File "/usr/lib/python3.11/multiprocessing/process.py", line 108, in run
[1,1]<stderr>:    self._target(*self._args, **self._kwargs)
[1,1]<stderr>:  File "/code/load.py", line 5, in fetch
[1,1]<stderr>:    rows = int(text)
[1,1]<stderr>:           ^^^^^^^^^
[1,1]<stderr>:ValueError: invalid literal for int() with base 10: 'n/a'
[1,0]<stdout>:done
`

// retried are tracebacks that a program prints and handles.
const retried = `Traceback (most recent call last):
  File "/code/fetch.py", line 14, in <module>
    data = fetch(attempt)
           ^^^^^^^^^^^^^^
  File "/code/fetch.py", line 9, in fetch
    raise ConnectionResetError(104, "Connection reset by peer")
ConnectionResetError: [Errno 104] Connection reset by peer
ERROR: rank 0: attempt 1 failed, retrying
all data read, total 30
`

// reportedSuccess is a job that succeeded, with its launcher's log and command.
func reportedSuccess(log string, command ...string) scene {
	return running(2).with(succeededLauncher, func(s *scene) {
		s.job.Launcher.Template.Spec.Containers[0].Command = command
		s.evidence.Logs = map[string]jobstate.Log{s.seen.LauncherPods[0].Name: {Lines: strings.Split(strings.TrimSpace(log), "\n"), LastAt: mpitest.Now}}
	})
}

// TestSucceededOnlyByItsExitCode: the log of a job that counts as succeeded shows that it did not do its work.
func TestSucceededOnlyByItsExitCode(t *testing.T) {
	const openMPI = `epoch=3 loss=0.2500
rank 0 the loss is not plausible, giving up
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 0.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
You may or may not see output from other processes, depending on
exactly when Open MPI kills them.
--------------------------------------------------------------------------`
	const openMPI5 = `--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
  Proc: [[27143,1],1]
  Errorcode: 0

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
--------------------------------------------------------------------------`
	check(t, map[string]expect{
		"abort-with-zero":            {codes.RankFailed, reportedSuccess(openMPI, "mpirun", "train")},
		"abort-with-zero-openmpi-5":  {codes.RankFailed, reportedSuccess(openMPI5, "mpirun", "train")},
		"abort-with-zero-mpich":      {codes.RankFailed, reportedSuccess("epoch 3\napplication called MPI_Abort(MPI_COMM_WORLD, 0) - process 2", "mpirun", "train")},
		"pipe-closed-by-head":        {codes.RankFailed, reportedSuccess("epoch=4 loss=0.2000\n[pi-launcher:00012] mpirun: SIGPIPE detected on fd 13 - aborting", "sh", "-c", "mpirun -n 2 python3 /app/train.py | head -5")},
		"pipe-closed-in-a-script":    {codes.RankFailed, reportedSuccess("mpirun: SIGPIPE detected on fd 13 - aborting\nmpirun: abort is already in progress", "sh", "/app/run.sh")},
		"exception-logged-last":      {codes.RankFailed, reportedSuccess(loggedTraceback+loggedTraceback[strings.Index(loggedTraceback, "Trace"):], "mpirun", "train")},
		"exception-logged-last-tags": {codes.RankFailed, reportedSuccess("[1,0]<stdout>:done\n[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"/app/a.py\", line 3, in <module>\n[1,1]<stderr>:    main()\n[1,1]<stderr>:ValueError: no rows\nmpi-agent: all ranks ended", "mpirun", "train")},
		"exception-logged-by-ranks":  {codes.RankFailed, reportedSuccess("done\nTraceback (most recent call last):\nTraceback (most recent call last):\n  File \"/app/a.py\", line 3, in <module>\n  File \"/app/a.py\", line 3, in <module>\nValueError: no rows\nValueError: no rows", "mpirun", "train")},
	})
	check(t, map[string]expect{
		"thread-ended":        {codes.RankFailed, reportedSuccess(threadEnded, "mpirun", "train")},
		"task-ended":          {codes.RankFailed, reportedSuccess(taskEnded, "mpirun", "serve")},
		"child-process-ended": {codes.RankFailed, reportedSuccess(childEnded, "mpirun", "load")},
	})
	for name, log := range map[string]string{
		"tracebacks of retries":       retried,
		"a thread at Python's end":    "saved\nException in thread Thread-1 (most likely raised during interpreter shutdown):\nTraceback (most recent call last):\n  File \"/app/a.py\", line 3, in run\n    x()\nConnectionError: closed\nsaved again",
		"a thread of Java":            "Exception in thread \"main\" java.lang.IllegalStateException: closed\n\tat Main.main(Main.java:3)\nsaved",
		"another line follows":        loggedTraceback + "continuing with the next file",
		"what Python ignores":         "saved\nException ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/usr/lib/python3.11/a.py\", line 3, in __del__\n    x()\nTypeError: 'NoneType' object is not callable",
		"a thread of a library":       "saved\nException in thread Thread-1:\nTraceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/tqdm/_monitor.py\", line 3, in run\n    x()\nConnectionError: closed",
		"a helper that is stopped":    strings.Replace(childEnded, "ValueError: invalid literal for int() with base 10: 'n/a'", "KeyboardInterrupt", 1),
		"a queue that is closed":      strings.Replace(childEnded, "ValueError: invalid literal for int() with base 10: 'n/a'", "BrokenPipeError: [Errno 32] Broken pipe", 1),
		"a message without traceback": "ValueError: expected in this test",
		"an abort with a code":        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 3.",
		"a figure":                    "MeanSquaredError: 0.01",
	} {
		if found := reportedSuccess(log, "mpirun", "train").findings(); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLaterRunSucceeded: a rank that failed is no warning if the command ran MPI again with success, and no finding before the job has ended.
func TestLaterRunSucceeded(t *testing.T) {
	summary := agentapi.Summary{
		HostsExpected: 2, SlotsExpected: 4, HostsReached: 2, SlotsFound: 4, Launches: 3, ExitCode: new(int32(0)), LaterSucceeded: true,
		Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 3, Program: "sh"}},
	}
	check(t, map[string]expect{
		"earlier-run-failed": {codes.RankFailed, running(2).with(launcherLeft(summary, 0), succeededLauncher)},
	})
	for _, f := range running(2).with(launcherLeft(summary, 0)).findings() {
		if f.Code != codes.RankFailed && f.Severity != v1alpha1.SeverityInfo {
			t.Errorf("before the job has ended: %+v", f)
		}
	}
}

// TestLostInPipe: the exit code of MPI is lost only in a pipe that its launcher writes to, of a shell that ignores it.
func TestLostInPipe(t *testing.T) {
	t.Parallel()
	for script, isLost := range map[string]bool{
		"mpirun -n 8 train | tee log":                        true,
		"mpirun -n 8 train | tee log # no pipefail":          true,
		"mpirun -n 8 train; sort log | head":                 false,
		"mpirun -n 8 train && cat out | sort; true":          false,
		"set -o pipefail; mpirun -n 8 train | tee log; true": false,
	} {
		found := reportedSuccess("", "bash", "-c", script).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 2, SlotsExpected: 4, HostsReached: 2, SlotsFound: 4, RanksSeen: 4,
			Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
		}, 0)).findings()
		if len(found) == 0 || found[0].Code != codes.RankFailed {
			t.Fatalf("%s: %+v", script, found)
		}
		if is := strings.HasPrefix(found[0].Remedies[0].Text, "Let the shell return the exit code of mpirun"); is != isLost {
			t.Errorf("%s: the first remedy is %q", script, found[0].Remedies[0].Text)
		}
	}
}
