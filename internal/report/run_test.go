package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestRunIsKept: a record contains what the job ran, and keeps it when the job has ended, whatever changes then.
func TestRunIsKept(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) {
		j.Authors.Creator, j.Runtime = "ada", "mpi-openmpi"
		launcher, worker := &j.Launcher.Template.Spec.Containers[0], &j.Workers.Template.Spec.Containers[0]
		launcher.Image, worker.Image = "launch:1", "train:1"
		launcher.Command, launcher.Args = []string{"mpirun", "-n", "8"}, []string{"python", "-c", "print(1)"}
		worker.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	})}
	want := &v1alpha1.Run{
		Image: "train:1", LauncherImage: "launch:1", Command: "mpirun -n 8 python -c 'print(1)'", Runtime: "mpi-openmpi", Creator: "ada",
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "nvidia.com/gpu": resource.MustParse("1")},
	}
	check := func(when string, attempts int32) {
		t.Helper()
		want.Attempts = attempts
		if diff := cmp.Diff(want, h.last.Status.Run); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
	check("before it starts", 0)
	restarted := func(n int32) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *pod.Status.StartTime}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: n, State: running}}
		}
	}
	h.pass(time.Minute, pods(h.job, corev1.PodRunning, 0, restarted(2)), jobstate.Evidence{})
	check("after two restarts", 3)
	h.pass(2*time.Minute, pods(h.job, corev1.PodRunning, 0, restarted(0)), jobstate.Evidence{})
	check("without the restarted pod", 3)

	h.job.Recorded.Finish = &mpi.Finish{Succeeded: true, At: mpitest.Now.Add(3 * time.Minute)}
	h.job.Workers.Template.Spec.Containers[0].Image, h.job.Runtime, h.job.Authors.Creator = "other:2", "another", "mallory"
	h.pass(4*time.Minute, jobstate.Observed{}, jobstate.Evidence{})
	check("after its end", 3)
}

// TestMPIVersionsAreKept: a record names the MPI libraries that the launcher's agent reported, of each attempt, and nothing else
// that an image makes it report.
func TestMPIVersionsAreKept(t *testing.T) {
	h := &history{t: t, job: job(2)}
	ended := func(message string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state}}
		}
	}
	check := func(after time.Duration, summary agentapi.Summary, want ...string) {
		t.Helper()
		got := h.pass(after, pods(h.job, corev1.PodFailed, 0, ended(said(t, summary))), jobstate.Evidence{}).Status.Run.MPIVersions
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(0, agentapi.Summary{Role: agentapi.RoleWorker, MPIVersions: []string{"MPICH 1"}})
	check(time.Minute, agentapi.Summary{Role: agentapi.RoleLauncher, MPIVersions: []string{"Open MPI 5.0.7", "Open MPI <script>", "train 1", "Open MPI 5." + strings.Repeat("0", 99)}}, "Open MPI 5.0.7")
	h.job.Recorded.Finish = &mpi.Finish{Succeeded: true, At: mpitest.Now.Add(2 * time.Minute)}
	check(2*time.Minute, agentapi.Summary{Role: agentapi.RoleLauncher, MPIVersions: []string{"MPICH 4.2.1"}}, "Open MPI 5.0.7", "MPICH 4.2.1")
	check(3*time.Minute, agentapi.Summary{Role: agentapi.RoleLauncher, MPIVersions: []string{"MPICH 4.2.1", "MPICH 1", "MPICH 2", "MPICH 3"}}, "Open MPI 5.0.7", "MPICH 4.2.1", "MPICH 1", "MPICH 2")
}

// TestRunOfOtherJobs: jobs without a launcher, and without workers.
func TestRunOfOtherJobs(t *testing.T) {
	nodes := &history{t: t, job: job(2, func(j *mpi.Job) {
		j.Launcher = mpi.Launcher{None: true}
		j.Workers.Template.Spec.Containers[0].Image, j.Workers.Template.Spec.Containers[0].Command = "torch:1", []string{"torchrun", "train.py"}
	})}
	if run := nodes.pass(0, jobstate.Observed{}, jobstate.Evidence{}).Status.Run; run.Image != "torch:1" || run.LauncherImage != "" || run.Command != "torchrun train.py" || run.Attempts != 0 {
		t.Errorf("without a launcher: %+v", run)
	}
	alone := &history{t: t, job: job(0, func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Image = "alone:1" })}
	if run := alone.pass(0, jobstate.Observed{}, jobstate.Evidence{}).Status.Run; run.Image != "alone:1" || run.LauncherImage != "" || run.Requests.Cpu().String() != "500m" {
		t.Errorf("without workers: %+v", run)
	}
}

// TestCommandIsMasked: a command is masked before it is cut, so that no part of a secret is left at its end.
func TestCommandIsMasked(t *testing.T) {
	mask := func(text string) string { return strings.ReplaceAll(text, "TOKEN=hunter2hunter2", "TOKEN=***") }
	for _, padding := range []int{10, 3980, 3985, 3990} {
		h := &history{t: t, job: job(1, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"sh", "-c", strings.Repeat("a", padding) + " TOKEN=hunter2hunter2 " + strings.Repeat("b", 300<<10)}
		})}
		next := h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
		report.MaskCommand(&next.Status, mask)
		if command := next.Status.Run.Command; strings.Contains(command, "hunter") || len(command) > 4096 || !strings.HasPrefix(command, "sh -c 'aaaaaaaaaa") {
			t.Errorf("after %d characters: %d bytes, %q", padding, len(command), command[max(0, len(command)-60):])
		}
	}
}
