package reporting

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestLastWordsOutlivePods: what a launcher said that is being deleted is known after it is gone; what one says that
// goes on is not kept.
func TestLastWordsOutlivePods(t *testing.T) {
	job := mpitest.Job(1)
	restarted, another := job, job
	restarted.UID, another.UID = "restarted", "another"
	launcher := mpitest.LauncherPod(job, 0, corev1.PodRunning)
	said := func() jobstate.Evidence {
		return jobstate.Evidence{Logs: map[string]jobstate.Log{launcher.Name: {Lines: []string{"step 41"}}}}
	}
	words := newLastLogs()
	gone := func() int {
		var evidence jobstate.Evidence
		words.complete(job, jobstate.Observed{Now: mpitest.Now}, &evidence)
		return len(evidence.Logs[launcher.Name].Lines)
	}
	evidence := said()
	words.complete(job, jobstate.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{launcher}}, &evidence)
	if n := gone(); n != 0 {
		t.Errorf("%d lines of a pod that ran are kept", n)
	}
	again := launcher.DeepCopy()
	again.Name = "pi-launcher-again"
	again.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}
	evidence = jobstate.Evidence{Logs: map[string]jobstate.Log{again.Name: {Lines: []string{"KeyError: 'x'"}}}}
	words.complete(restarted, jobstate.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{again}}, &evidence)
	evidence = jobstate.Evidence{}
	words.complete(restarted, jobstate.Observed{Now: mpitest.Now}, &evidence)
	if len(evidence.Logs[again.Name].Lines) != 1 {
		t.Error("the log of a run that was restarted in place is not kept")
	}
	mpitest.Leaving(again)
	again.Status.ContainerStatuses[0].RestartCount = 6
	evidence = jobstate.Evidence{Logs: map[string]jobstate.Log{again.Name: {Lines: []string{"starting"}}}}
	words.complete(restarted, jobstate.Observed{Now: mpitest.Now, Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{again}}, &evidence)
	if got := evidence.Logs[again.Name].Lines; len(got) != 1 || got[0] != "KeyError: 'x'" {
		t.Errorf("the log of the run that the Job controller stopped is %q", got)
	}
	mpitest.Leaving(launcher)
	evidence = said()
	words.complete(job, jobstate.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{launcher}}, &evidence)
	if n := gone(); n != 1 {
		t.Errorf("%d lines of a pod that left are kept, want 1", n)
	}
	other := jobstate.Evidence{}
	words.complete(another, jobstate.Observed{Now: mpitest.Now.Add(2 * keepLastLogs), LauncherPods: []*corev1.Pod{launcher}}, &other)
	if len(other.Logs) != 0 {
		t.Errorf("another job has them: %v", other.Logs)
	}
}

// TestLastLogsAreBounded: the logs of many verbose jobs that fail take no more memory than those of a few; the latest are
// kept.
func TestLastLogsAreBounded(t *testing.T) {
	const jobs = 300
	words := newLastLogs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	job := func(i int) mpi.Job {
		return mpitest.Job(1, func(j *mpi.Job) { j.UID = types.UID(fmt.Sprintf("uid-%03d", i)) })
	}
	for i := range jobs {
		evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{}}
		var pods []*corev1.Pod
		for n := range jobstate.MaxLogPods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pi-launcher-%d", n)}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
			pods = append(pods, pod)
			lines := make([]string, jobstate.MaxLogLines)
			for l := range lines {
				lines[l] = strings.Repeat(string(rune('a'+l%26)), 1000)
			}
			evidence.Logs[pod.Name] = jobstate.Log{Lines: lines}
		}
		words.complete(job(i), jobstate.Observed{Now: mpitest.Now.Add(time.Duration(i) * time.Second), LauncherPods: pods}, &evidence)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d jobs with 1.8 MB of logs each: %d kept, %d MiB of logs, %d MiB of heap", jobs, len(words.jobs), words.bytes>>20, used>>20)
	if words.bytes > maxLastLogs || used > 2*maxLastLogs {
		t.Errorf("%d bytes of logs are kept, %d bytes of heap; want at most %d", words.bytes, used, maxLastLogs)
	}
	latest := jobstate.Evidence{}
	words.complete(job(jobs-1), jobstate.Observed{Now: mpitest.Now.Add(jobs * time.Second)}, &latest)
	if len(latest.Logs) != jobstate.MaxLogPods {
		t.Errorf("the logs of the latest job are gone: %d of %d are left", len(latest.Logs), jobstate.MaxLogPods)
	}
}
