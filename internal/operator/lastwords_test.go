package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestLastWordsOutlivePods: what a launcher said that is being deleted is known after it is gone; what one says that
// goes on is not kept.
func TestLastWordsOutlivePods(t *testing.T) {
	job := mpitest.Job(1)
	launcher := mpitest.LauncherPod(job, 0, corev1.PodRunning)
	said := func() mpi.Evidence {
		return mpi.Evidence{Logs: map[string]mpi.Log{launcher.Name: {Lines: []string{"step 41"}}}}
	}
	words := newLastWords()
	gone := func() int {
		var evidence mpi.Evidence
		words.complete(job.UID, mpi.Observed{Now: mpitest.Now}, &evidence)
		return len(evidence.Logs[launcher.Name].Lines)
	}
	evidence := said()
	words.complete(job.UID, mpi.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{launcher}}, &evidence)
	if n := gone(); n != 0 {
		t.Errorf("%d lines of a pod that ran are kept", n)
	}
	mpitest.Leaving(launcher)
	evidence = said()
	words.complete(job.UID, mpi.Observed{Now: mpitest.Now, LauncherPods: []*corev1.Pod{launcher}}, &evidence)
	if n := gone(); n != 1 {
		t.Errorf("%d lines of a pod that left are kept, want 1", n)
	}
	other := mpi.Evidence{}
	words.complete("another", mpi.Observed{Now: mpitest.Now.Add(2 * keepWords), LauncherPods: []*corev1.Pod{launcher}}, &other)
	if len(other.Logs) != 0 {
		t.Errorf("another job has them: %v", other.Logs)
	}
}
