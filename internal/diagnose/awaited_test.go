package diagnose_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
)

const (
	childFailed = `Process Process-1:
Traceback (most recent call last):
  File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap
    self.run()
  File "/usr/lib/python3.12/multiprocessing/process.py", line 108, in run
    self._target(*self._args, **self._kwargs)
  File "/scripts/train.py", line 8, in decode
    out.put([int(n) for n in lines[3].split()])
             ^^^^^^
ValueError: invalid literal for int() with base 10: '2#'`
	waitsForQueue = `mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 0; rank 1 waits for input from a pipe
mpi-agent: stack of rank 0: <module> (/scripts/train.py:20) | comm.Barrier()
mpi-agent: stack of rank 1: <module> (/scripts/train.py:17) | pixels = queue.get()`
	waitsForLock = `mpi-agent: no progress: all 3 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 2, 0; rank 1 waits for the lock of /tmp/dataset.lock, which rank 0 holds
mpi-agent: stack of rank 1: prepare (<string>:8) < <module> (<string>:15) | fcntl.flock(lock, fcntl.LOCK_EX)
mpi-agent: stack of ranks 0, 2: prepare (<string>:13) < <module> (<string>:15) | comm.Barrier()`
	allReceive = `mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; polling: 1, 0
mpi-agent: stack of rank 0: <module> (<string>:17) | lib.MPI_Recv(ctypes.byref(value), 1, INT, 1, tag("loss"), world, None)
mpi-agent: stack of rank 1: <module> (<string>:20) | lib.MPI_Recv(ctypes.byref(value), 1, INT, 0, tag("weights"), world, None)`
	looksForFile = `mpi-agent: no progress: all 2 ranks are idle, since 10:00:00 UTC; sleeping: 1, 0
mpi-agent: stack of rank 0: wait_for (<string>:6) < <module> (<string>:12) | time.sleep(1)
mpi-agent: stack of rank 1: wait_for (<string>:6) < <module> (<string>:14) | time.sleep(1)`
)

// stuck is a running job with the lines of its launcher's log.
func stuck(log string) scene { return hanging(strings.Split(log, "\n")...) }

func launcherProgram(text string) func(*scene) {
	return func(s *scene) {
		s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", text}
	}
}

// emptyDirs mounts an emptyDir in the workers.
func emptyDirs(folder string) func(*scene) {
	return func(s *scene) {
		spec := &s.job.Workers.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: folder}}
	}
}

const waitsForFile = "def wait_for(path):\n    while not os.path.exists(path):\n        time.sleep(1)\nwait_for(\"/shared/vocabulary.txt\")"

// TestAwaited: what ranks wait for is named if their places in the code, the kernel or the log show it.
func TestAwaited(t *testing.T) {
	check(t, map[string]expect{
		"ranks-wait-for-a-failed-child":                {codes.RanksWaiting, stuck(childFailed + "\n" + waitsForQueue)},
		"ranks-wait-for-a-failed-child-tagged":         {codes.RanksWaiting, stuck("[1,1]<stderr>:" + strings.ReplaceAll(childFailed, "\n", "\n[1,1]<stderr>:") + "\n" + waitsForQueue)},
		"ranks-wait-for-a-failed-child-without-stacks": {codes.RanksWaiting, stuck(childFailed + "\n" + strings.Split(waitsForQueue, "\n")[0])},
		"ranks-idle-for-failed-children": {codes.RanksIdle, stuck(childFailed + "\n" + strings.ReplaceAll(childFailed, "Process-1", "loader") + `
mpi-agent: no progress: all 2 ranks are idle, since 10:00:00 UTC; blocked: 0, 1
mpi-agent: stack of ranks 0, 1: <module> (/scripts/train.py:17) | loader.join()`)},
		"ranks-wait-for-a-lock-of-a-rank":  {codes.RanksWaiting, stuck(waitsForLock)},
		"ranks-wait-each-for-a-message":    {codes.RanksWaiting, stuck(allReceive)},
		"ranks-wait-with-hashes-as-tags":   {codes.RanksWaiting, stuck(allReceive).with(launcherProgram("def tag(what):\n    return hash(what) & 0x7fff"))},
		"ranks-idle-with-separate-folders": {codes.RanksIdle, stuck(looksForFile).with(emptyDirs("/shared"), launcherProgram(waitsForFile))},
		"ranks-wait-for-a-file-of-another-pod": {codes.RanksWaiting, stuck(`mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0
mpi-agent: stack of rank 0: <module> (/code/stage.py:12) | print("total", comm.allreduce(rows), flush=True)
mpi-agent: stack of rank 1: <module> (/code/stage.py:10) | while not os.path.exists("/shared/part-0.npy"): time.sleep(1)`).with(emptyDirs("/shared"))},
		"ranks-wait-for-a-file-in-a-variable": {codes.RanksWaiting, stuck(`mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0
mpi-agent: stack of rank 0: <module> (/code/stage.py:12) | print("total", comm.allreduce(rows), flush=True)
mpi-agent: stack of rank 1: <module> (/code/stage.py:10) | while not os.path.exists(ready): time.sleep(1)  # ready = "/shared/ready.json"`).with(emptyDirs("/shared"))},
		"ranks-idle-and-write-that-they-wait": {codes.RanksIdle, stuck("rank 1 waits for /shared/vocabulary.txt\n" + looksForFile).with(emptyDirs("/shared/"))},
	})
}

// TestNotAwaited: lines that only resemble such signs lead to nothing.
func TestNotAwaited(t *testing.T) {
	child, lock, receives, folder := "child process", "Release the lock", "Compare the source", "emptyDir"
	for name, test := range map[string]struct {
		in  scene
		not string
	}{
		"a traceback of the program's own":          {stuck("Process Process-1:\nTraceback (most recent call last):\n  File \"/scripts/train.py\", line 8, in decode\nValueError: no\n" + waitsForQueue), child},
		"a line of the program":                     {stuck("Process 1:\n" + waitsForQueue), child},
		"the child of another rank":                 {stuck("[1,0]<stderr>:" + strings.ReplaceAll(childFailed, "\n", "\n[1,0]<stderr>:") + "\n" + waitsForQueue), child},
		"the parent goes on, and ranks wait in MPI": {stuck(childFailed + "\n" + allReceive), child},
		"the parent sleeps":                         {stuck(childFailed + "\n" + looksForFile), child},
		"a line of the log about a lock":            {stuck("rank 1 waits for the lock of /a, which rank 0 holds\n" + waitsForQueue), lock},
		"a socket":                                  {stuck(strings.ReplaceAll(strings.ReplaceAll(allReceive, "lib.MPI_Recv", "connection.recv"), "polling", "blocked")), receives},
		"one rank sends":                            {stuck(strings.Replace(allReceive, "lib.MPI_Recv", "lib.MPI_Send", 1)), receives},
		"pauses between messages": {stuck(`mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; polling: 1, 0
mpi-agent: stack of ranks 0, 1: <module> (/a.py:7) | while comm.recv(source=other): time.sleep(1)`), receives},
		"a pause between items of a queue": {stuck(childFailed + `
mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0
mpi-agent: stack of rank 0: <module> (/scripts/train.py:20) | comm.Barrier()
mpi-agent: stack of rank 1: <module> (/scripts/train.py:17) | for item in queue.get(): time.sleep(1)`), child},
		"one rank is not shown": {stuck(strings.ReplaceAll(allReceive, "polling: 1, 0", "polling: 1, 0, 2")), receives},
		"one pod":               {stuck(looksForFile).with(emptyDirs("/shared"), launcherProgram(waitsForFile), func(s *scene) { s.job.Workers.Count = 1 }), folder},
		"a claim": {stuck(looksForFile).with(emptyDirs("/shared"), launcherProgram(waitsForFile), func(s *scene) {
			s.job.Workers.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}
		}), folder},
		"another folder":                   {stuck(looksForFile).with(emptyDirs("/shared"), launcherProgram(strings.ReplaceAll(waitsForFile, "/shared", "/data/shared"))), folder},
		"a program that looks for no file": {stuck(looksForFile).with(emptyDirs("/shared"), launcherProgram("open(\"/shared/log\", \"w\"); time.sleep(600)")), folder},
		"shared memory":                    {stuck(looksForFile).with(emptyDirs("/dev/shm"), launcherProgram(strings.ReplaceAll(waitsForFile, "/shared", "/dev/shm"))), folder},
		"ranks compute":                    {stuck("mpi-agent: no progress: 1 of 2 ranks wait for rank 1, since 10:00:00 UTC; busy: 1; polling: 0").with(emptyDirs("/shared"), launcherProgram(waitsForFile)), folder},
	} {
		for _, f := range test.in.findings() {
			if strings.Contains(f.Summary, test.not) {
				t.Errorf("%s: %s", name, f.Summary)
			}
			for _, r := range f.Remedies {
				if strings.Contains(r.Text, test.not) {
					t.Errorf("%s: %s", name, r.Text)
				}
			}
		}
	}
}

// TestThreadFailedEarlier: the exception of a thread is no cause of ranks that wait for a program, which may take long.
func TestThreadFailedEarlier(t *testing.T) {
	t.Parallel()
	const thread = "OSError: x\nException in thread heartbeat:\nTraceback (most recent call last):\n  File \"/code/train.py\", line 14, in heartbeat\n    ping()\nOSError: no route\nstep 1\nstep 2\n"
	for source, want := range map[string]codes.Code{
		"proc.wait()": codes.RanksIdle, "self.process.wait(60)": codes.RanksIdle, "out, _ = workers[0].communicate()": codes.RanksIdle, "p.join()": codes.RanksIdle,
		"subprocess.Popen(words).wait()": codes.RanksIdle, "results = pool.map(f, xs)": codes.RanksIdle,
		"done.get()": codes.RankGone, "writer.join()": codes.RankGone, "ready.wait()": codes.RankGone, "self.processed.wait()": codes.RankGone,
	} {
		found := stuck(thread + "mpi-agent: no progress: all 2 ranks are idle, since 10:00:00 UTC; sleeping: 0, 1\nmpi-agent: stack of ranks 0, 1: main (/code/t.py:16) < <module> (/code/t.py:80) | " + source).findings()
		if len(found) == 0 || found[0].Code != want {
			t.Errorf("%s: found %+v", source, found)
			continue
		}
		sound(t, found[0])
	}
}
