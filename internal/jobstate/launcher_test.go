package jobstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestLauncherMayStart(t *testing.T) {
	job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })
	notReady := mpitest.Worker(job, 1, corev1.PodRunning, func(p *corev1.Pod) { p.Status.Conditions = nil })
	if jobstate.Judge(job, jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodRunning), notReady}}).LauncherMayStart {
		t.Error("the launcher may start although a worker is not ready")
	}
	if !jobstate.Judge(job, jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)}).LauncherMayStart {
		t.Error("the launcher may not start although all workers are ready")
	}
	atOnce := mpitest.Job(2)
	if !jobstate.Judge(atOnce, jobstate.Observed{}).LauncherMayStart {
		t.Error("the launcher may not start although nothing is in its way")
	}
	leaving := jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(atOnce, 0, corev1.PodRunning, mpitest.Leaving)}}
	if jobstate.Judge(atOnce, leaving).LauncherMayStart {
		t.Error("the launcher may start although a worker's host name leads to a pod on its way out")
	}
	workersFirst := jobstate.Observed{Workers: mpitest.Workers(atOnce, corev1.PodPending), Gang: &jobstate.GangState{WorkersFirst: true, Wanted: 3, Starting: true}}
	if out := jobstate.Judge(atOnce, workersFirst); out.LauncherMayStart || !out.PodsMayStart {
		t.Error("the launcher may start although no node holds a worker, or workers may not")
	}
	workersFirst.Workers[0].Pod.Spec.NodeName = "node-1"
	if !jobstate.Judge(atOnce, workersFirst).LauncherMayStart {
		t.Error("the launcher may not start although a worker has found a node")
	}
	leaving.Workers[0].Index = 2
	if !jobstate.Judge(atOnce, leaving).LauncherMayStart {
		t.Error("the launcher waits for a worker that the job no longer wants")
	}
}
