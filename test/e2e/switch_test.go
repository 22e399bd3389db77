package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestSwitchFromMPIOperator takes over a cluster's jobs from mpi-operator, whose program is MPI_OPERATOR, and gives jobs back to it, as
// docs/mpi-operator.md says: jobs that run are not disturbed and end as they would have, jobs that wait or are suspended start later,
// and those that are over stay as they are.
func TestSwitchFromMPIOperator(t *testing.T) {
	program := os.Getenv("MPI_OPERATOR")
	if program == "" {
		t.Skip("SKIPPED: MPI_OPERATOR names no program; make e2e-switch builds mpi-operator and switches from it and back")
	}
	namespace := newNamespace(t)
	// Workers stay when their jobs have ended, and keep their seats.
	const seat, otherSeat = "example.com/seat-switch", "example.com/seat-back"
	ours := operatorSwitch(t)

	ours.stop()
	theirs := startMPIOperator(t, program, namespace)
	first := newSwitchJobs(t, namespace, "first", seat)
	old := first.pods(t)
	theirs()
	ours.start()
	first.reportedAs(t, map[string]v1alpha1.Phase{
		"ended": v1alpha1.PhaseSucceeded, "failed": v1alpha1.PhaseFailed, "running": v1alpha1.PhaseRunning, "suspended": v1alpha1.PhaseSuspended,
	})
	if now := first.pods(t); !maps.Equal(old, now) {
		t.Errorf("the pods of mpi-operator's jobs were %v, and are %v", old, now)
	}
	first.finish(t, seat)

	second := newSwitchJobs(t, namespace, "second", otherSeat)
	old = second.pods(t)
	edit(t, second["waiting"], func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	noPods(t, second["waiting"], mpi.RoleLauncher, mpi.RoleWorker)
	ours.stop()
	deleteSuspendedLaunchers(t, namespace)
	theirs = startMPIOperator(t, program, namespace)
	time.Sleep(10 * time.Second) // it reconciles each job
	if now := second.pods(t); !maps.Equal(old, now) {
		t.Errorf("the pods of our jobs were %v, and are %v", old, now)
	}
	second.finish(t, otherSeat)
	theirs()
	ours.start()
}

// switchJobs are jobs in every state, by the last part of their names.
type switchJobs map[string]*kubeflow.MPIJob

// newSwitchJobs creates jobs and waits until each is in its state.
func newSwitchJobs(t *testing.T, namespace, prefix, seat string) switchJobs {
	t.Helper()
	jobs := switchJobs{}
	add := func(name string, command string, change func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
		job := agentJob(namespace, prefix+"-"+name, "openmpi-sshd", kubeflow.MPIImplementationOpenMPI, 2, "sh", "-c", command)
		job.Spec.SlotsPerWorker = new(int32(1))
		job.Spec.SSHAuthMountPath = "/home/mpiuser/.ssh"
		// Without the agent, mpirun fails if it starts before sshd does.
		job.Spec.LauncherCreationPolicy, job.Spec.RunPolicy.BackoffLimit = kubeflow.LauncherCreationPolicyWaitForWorkersReady, nil
		for _, container := range []*corev1.Container{launcher(job), worker(job)} {
			container.SecurityContext.RunAsUser = new(int64(1000))
		}
		if change != nil {
			change(job)
		}
		create(t, job)
		jobs[name] = job
		return job
	}
	ended := add("ended", "mpirun -n 2 pi", nil)
	wrong := add("failed", "mpirun -n 2 sh -c 'exit 3'", func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.BackoffLimit = new(int32(0)) })
	running := add("running", "mpirun -n 2 sh -c 'until [ -e /tmp/go ]; do sleep 1; done' && mpirun -n 2 pi", nil)
	add("suspended", "mpirun -n 2 pi", func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	add("waiting", "mpirun -n 2 pi", func(job *kubeflow.MPIJob) {
		one := corev1.ResourceList{corev1.ResourceName(seat): resource.MustParse("1")}
		maps.Copy(worker(job).Resources.Requests, one)
		maps.Copy(worker(job).Resources.Limits, one)
	})
	waitFor(t, ended, "it succeeds", succeeded)
	failedWith(t, wrong, time.Minute)
	waitFor(t, running, "it runs", runs)
	return jobs
}

// pods are the pods of the job that runs.
func (j switchJobs) pods(t *testing.T) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, j["running"], role) {
			found[pod.Name] = pod.UID
			for _, container := range pod.Status.ContainerStatuses {
				if container.RestartCount > 0 {
					t.Errorf("%s of %s was restarted", container.Name, pod.Name)
				}
			}
		}
	}
	return found
}

// reportedAs waits until the jobs have reports with these phases, by the last part of their names.
func (j switchJobs) reportedAs(t *testing.T, phases map[string]v1alpha1.Phase) {
	t.Helper()
	for name, phase := range phases {
		job := j[name]
		eventually(t, fmt.Sprintf("the report of %s says %s", job.Name, phase), time.Minute, func() error {
			report, err := record(t, job)
			if err != nil {
				return err
			}
			return inPhase(phase)(report.Status)
		})
	}
}

// finish lets all jobs go on, and expects that they succeed.
func (j switchJobs) finish(t *testing.T, seat corev1.ResourceName) {
	t.Helper()
	seats(t, seat, 2, 1)
	for _, name := range []string{"suspended", "waiting"} {
		edit(t, j[name], func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	}
	for _, pod := range podsOf(t, j["running"], mpi.RoleWorker) {
		if text, err := exec.CommandContext(t.Context(), "kubectl", "exec", "-n", pod.Namespace, pod.Name, "--", "touch", "/tmp/go").CombinedOutput(); err != nil { //nolint:gosec // names of our own
			t.Fatalf("%s: %v %s", pod.Name, err, text)
		}
	}
	for _, name := range []string{"running", "suspended", "waiting"} {
		waitFor(t, j[name], "it succeeds", succeeded)
	}
	// The others are as they were.
	for name, kind := range map[string]kubeflow.JobConditionType{"ended": kubeflow.JobSucceeded, "failed": kubeflow.JobFailed} {
		now := &kubeflow.MPIJob{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(j[name]), now); err != nil || condition(now, kind).Status != corev1.ConditionTrue {
			t.Errorf("%s: %v, %+v", name, err, now.Status.Conditions)
		}
	}
}

// deleteSuspendedLaunchers runs the command of docs/mpi-operator.md, in one namespace.
func deleteSuspendedLaunchers(t *testing.T, namespace string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mpi-operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "kubectl get jobs -A ")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatal("docs/mpi-operator.md has no command that deletes the launchers of suspended jobs")
	}
	text, err := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", "kubectl get jobs -n "+namespace+" "+block).CombinedOutput() //nolint:gosec // The command is our document's.
	if err != nil || !strings.Contains(string(text), "-suspended-launcher") {
		t.Fatalf("%v: %s", err, text)
	}
}

// switchable stops and starts our operator.
type switchable struct{ stop, start func() }

func operatorSwitch(t *testing.T) switchable {
	t.Helper()
	var start func()
	pods := func() int {
		var list corev1.PodList
		if err := api.List(context.Background(), &list, client.InNamespace(operatorKey.Namespace), client.MatchingLabels{"app.kubernetes.io/name": operatorKey.Name}); err != nil {
			t.Error(err)
		}
		return len(list.Items)
	}
	s := switchable{
		stop: func() {
			t.Helper()
			start = stopOperator(t)
			eventually(t, "our operator has stopped", time.Minute, func() error {
				if left := pods(); left > 0 {
					return fmt.Errorf("%d pods are left", left)
				}
				return nil
			})
		},
		start: func() {
			if start != nil {
				start()
				start = nil
			}
		},
	}
	t.Cleanup(s.start)
	return s
}

// startMPIOperator runs mpi-operator for a namespace until the returned function is called or the test ends.
func startMPIOperator(t *testing.T, program, namespace string) (stop func()) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "mpi-operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(context.Background(), program, "-kubeConfig", os.Getenv("KUBECONFIG"), "-namespace", namespace, "-lock-namespace", namespace) //nolint:gosec // The program is the tester's own.
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	isRunning := true
	stop = func() {
		if !isRunning {
			return
		}
		isRunning = false
		_ = command.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = command.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			<-done
		}
		_ = log.Close()
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("mpi-operator:\n%s", text[max(0, len(text)-4000):])
		}
	})
	return stop
}
