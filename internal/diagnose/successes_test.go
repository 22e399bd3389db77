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
	for name, log := range map[string]string{
		"another line follows":        loggedTraceback + "continuing with the next file",
		"what Python ignores":         "saved\nException ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/usr/lib/python3.11/a.py\", line 3, in __del__\n    x()\nTypeError: 'NoneType' object is not callable",
		"a thread":                    "saved\nException in thread Thread-1:\nTraceback (most recent call last):\n  File \"/app/a.py\", line 3, in run\n    x()\nConnectionError: closed",
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
