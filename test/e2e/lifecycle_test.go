package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// sleeping is a job whose ranks do nothing for so many seconds.
func sleeping(t *testing.T, namespace string, seconds int, change ...func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
	t.Helper()
	return sample(t, "pi", namespace, append([]func(*kubeflow.MPIJob){func(job *kubeflow.MPIJob) {
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(2))
		launcher(job).Command = []string{"mpirun", "-n", "2", "sleep", fmt.Sprint(seconds)}
	}}, change...)...)
}

// edit changes a job, again if somebody else wrote it meanwhile.
func edit(t *testing.T, job *kubeflow.MPIJob, change func(*kubeflow.MPIJob)) {
	t.Helper()
	eventually(t, "the job takes the change", 30*time.Second, func() error {
		var now kubeflow.MPIJob
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &now); err != nil {
			return err
		}
		change(&now)
		return api.Update(t.Context(), &now)
	})
}

func runs(job *kubeflow.MPIJob) error {
	if condition(job, kubeflow.JobRunning).Status == corev1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("conditions are %+v", job.Status.Conditions)
}

// failedWith waits until a job has failed, and returns why.
func failedWith(t *testing.T, job *kubeflow.MPIJob, within time.Duration) kubeflow.JobCondition {
	t.Helper()
	return failedAfter(t, job, 0, within)
}

// failedAfter is failedWith for a job that cannot have failed before some time has passed.
func failedAfter(t *testing.T, job *kubeflow.MPIJob, first, within time.Duration) kubeflow.JobCondition {
	t.Helper()
	var now kubeflow.MPIJob
	eventuallyAfter(t, "the job fails", first, within, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &now); err != nil {
			return err
		}
		if condition(&now, kubeflow.JobFailed).Status != corev1.ConditionTrue {
			return fmt.Errorf("conditions are %+v", now.Status.Conditions)
		}
		return nil
	})
	if now.Status.CompletionTime == nil {
		t.Error("a failed job has no completion time")
	}
	return condition(&now, kubeflow.JobFailed)
}

func noPods(t *testing.T, job *kubeflow.MPIJob, roles ...mpi.Role) {
	t.Helper()
	eventually(t, fmt.Sprintf("pods of %v are gone", roles), 90*time.Second, func() error {
		for _, role := range roles {
			if pods := podsOf(t, job, role); len(pods) > 0 {
				return fmt.Errorf("%s is there", pods[0].Name)
			}
		}
		return nil
	})
}

// TestSuspendAndResume: an MPIJob that is suspended while it runs has no pods. When it is resumed, it runs a command that was changed
// meanwhile, and succeeds.
func TestSuspendAndResume(t *testing.T) {
	notQueued(t, "TestQueueKeepsSuspendedJobsOut")
	parallel(t, 2)
	job := sleeping(t, newNamespace(t), 600)
	create(t, job)
	waitFor(t, job, "it runs", runs)
	edit(t, job, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	noPods(t, job, mpi.RoleLauncher, mpi.RoleWorker)
	waitFor(t, job, "nothing is active", func(now *kubeflow.MPIJob) error {
		for role, status := range now.Status.ReplicaStatuses {
			if status.Active > 0 {
				return fmt.Errorf("%d of %s are", status.Active, role)
			}
		}
		if condition(now, kubeflow.JobSuspended).Status != corev1.ConditionTrue {
			return fmt.Errorf("conditions are %+v", now.Status.Conditions)
		}
		return nil
	})
	// What was changed meanwhile holds: a program that ends.
	edit(t, job, func(job *kubeflow.MPIJob) {
		launcher(job).Command = []string{"mpirun", "-n", "2", "pi"}
		job.Spec.RunPolicy.Suspend = new(false)
	})
	waitFor(t, job, "it succeeds after it was resumed", succeeded)
	if printed := output(t, job); !rankLine.MatchString(printed) {
		t.Errorf("it printed %q", printed)
	}
}

// TestResumedAtOnce: a job starts again while its pods from before are on their way out. Nobody has deleted its launcher.
func TestResumedAtOnce(t *testing.T) {
	parallel(t, 2)
	job := sleeping(t, newNamespace(t), 600)
	create(t, job)
	waitFor(t, job, "it runs", runs)
	edit(t, job, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	reported(t, kubeflow.Kind, job.Namespace, job.Name, "it is suspended", inPhase(v1alpha1.PhaseSuspended))
	edit(t, job, func(job *kubeflow.MPIJob) {
		launcher(job).Command = []string{"mpirun", "-n", "2", "pi"}
		job.Spec.RunPolicy.Suspend = new(false)
	})
	waitFor(t, job, "it succeeds after it was resumed", succeeded)
	report := reported(t, kubeflow.Kind, job.Namespace, job.Name, "its record tells of its end", inPhase(v1alpha1.PhaseSucceeded))
	for _, entry := range report.Status.Timeline {
		if entry.Event == codes.LauncherDeleted || entry.Event == "LauncherRestarted" {
			t.Errorf("the timeline tells of what did not happen: %s: %s", entry.Event, entry.Detail)
		}
	}
}

// TestScaleUnderARunningProgram: an elastic program sees workers come and go, and those that stay are not touched.
func TestScaleUnderARunningProgram(t *testing.T) {
	t.Parallel()
	job := sleeping(t, newNamespace(t), 0, func(job *kubeflow.MPIJob) {
		// Starts as many ranks as there are hosts, again and again, until it has seen 2, 4 and 2 hosts.
		launcher(job).Command = []string{"sh", "-c", `
			for want in 2 4 2; do
			  until hosts=$(/etc/mpi/discover_hosts.sh) && [ "$(echo "$hosts" | wc -l)" = $want ]; do sleep 1; done
			  mpirun -n $want --host "$(echo $hosts | tr ' ' ',')" sh -c 'echo "want '$want' rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"' || exit 1
			  echo "want $want done"
			done`}
	})
	create(t, job)
	running := waitFor(t, job, "it runs", runs)
	before := map[string]string{}
	for _, pod := range podsOf(t, running, mpi.RoleWorker) {
		before[pod.Name] = string(pod.UID)
	}
	printed := func(line string) {
		t.Helper()
		eventually(t, "it prints "+line, time.Minute, func() error {
			if text := output(t, job); !strings.Contains(text, line) {
				return fmt.Errorf("it has printed %q", text)
			}
			return nil
		})
	}
	scale := func(n int32) {
		edit(t, job, func(job *kubeflow.MPIJob) { job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = &n })
	}
	printed("want 2 rank 1 of 2 on pi-worker-1")
	scale(4)
	printed("want 4 rank 3 of 4 on pi-worker-3")
	// mpirun still uses the workers when their ranks have printed.
	printed("want 4 done")
	for _, pod := range podsOf(t, job, mpi.RoleWorker) {
		if uid, was := before[pod.Name]; was && uid != string(pod.UID) {
			t.Errorf("%s was made anew", pod.Name)
		}
	}
	scale(2)
	waitFor(t, job, "it succeeds", succeeded)
}

// secondTryEnds makes a job sleep at the launcher's first try and compute pi at its second.
func secondTryEnds(job *kubeflow.MPIJob) {
	pod := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "tries", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "tries", MountPath: "/tries"})
	pod.Containers[0].Command = []string{"sh", "-c", `[ -e /tries/1 ] && exec mpirun -n 2 pi; touch /tries/1; exec mpirun -n 2 sleep 600`}
}

// TestWorkerKilled: a worker that is deleted under the ranks comes back, and the launcher's next try succeeds.
func TestWorkerKilled(t *testing.T) {
	parallel(t, 2)
	job := sleeping(t, newNamespace(t), 600, secondTryEnds)
	create(t, job)
	running := waitFor(t, job, "it runs", runs)
	// A worker that is lost before its rank has started is waited for, and nothing fails.
	metricIs(t, job, 1, "mpi_agent_ranks_running", 1, time.Minute)
	var victim corev1.Pod
	for _, pod := range podsOf(t, running, mpi.RoleWorker) {
		if pod.Name == "pi-worker-1" {
			victim = pod
		}
	}
	if err := api.Delete(t.Context(), &victim, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, job, "it succeeds after its worker came back", succeeded)
}

func TestLauncherDeleted(t *testing.T) {
	t.Parallel()
	job := sleeping(t, newNamespace(t), 15)
	create(t, job)
	waitFor(t, job, "it runs", runs)
	first := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pi-launcher"}}
	if err := api.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, job, "it succeeds with a new launcher", succeeded)
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	job := sleeping(t, newNamespace(t), 600, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(8)) })
	create(t, job)
	if why := failedWith(t, job, time.Minute); why.Reason != "DeadlineExceeded" {
		t.Errorf("it says %s: %s", why.Reason, why.Message)
	}
	noPods(t, job, mpi.RoleLauncher, mpi.RoleWorker)
}

func TestTTL(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := sleeping(t, namespace, 1, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(3)) })
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	eventually(t, "nothing is left of it", 90*time.Second, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &kubeflow.MPIJob{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the job is there: %w", err)
		}
		if left := children(t, namespace); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// TestWorkerEvicted: a worker that is evicted through the eviction API, as by a drain of its node, is created again, and its MPIJob
// succeeds, although it allows no second attempt.
func TestWorkerEvicted(t *testing.T) {
	parallel(t, 2)
	job := sleeping(t, newNamespace(t), 600, secondTryEnds)
	job.Spec.RunPolicy.BackoffLimit = new(int32)
	create(t, job)
	waitFor(t, job, "it runs", runs)
	// As in TestWorkerKilled.
	metricIs(t, job, 1, "mpi_agent_ranks_running", 1, time.Minute)
	err := logs.CoreV1().Pods(job.Namespace).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pi-worker-1"}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))},
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, job, "it succeeds after its worker came back", succeeded)
}

// TestWorkerOutOfMemory: the job says which worker used too much memory, and ends instead of trying again for
// minutes.
func TestWorkerOutOfMemory(t *testing.T) {
	t.Parallel()
	job := sleeping(t, newNamespace(t), 0, func(job *kubeflow.MPIJob) {
		// The container's own process is the one that is killed, and the container ends with it. The agent runs beside.
		job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchAgent}
		worker(job).Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		worker(job).Command = []string{"sh", "-c", `
			/opt/mpi-agent/mpi-agent serve & until [ -e /tmp/grow ]; do sleep 0.2; done
			exec python3 -c 'x = []
while True: x.append(bytearray(1 << 20))'`}
		launcher(job).Command = []string{"mpirun", "-n", "2", "sh", "-c", `[ $OMPI_COMM_WORLD_RANK = 0 ] || touch /tmp/grow; sleep 600`}
	})
	create(t, job)
	why := failedWith(t, job, time.Minute)
	t.Log(why.Message)
	if why.Reason != codes.WorkerFailed || !strings.Contains(why.Message, "Worker 1 failed: it exceeded its memory limit") {
		t.Errorf("it says %s: %s", why.Reason, why.Message)
	}
	noPods(t, job, mpi.RoleLauncher)
}

// TestRootImage runs ranks as root, by the agent and by the image's own sshd with keys under /root/.ssh.
func TestRootImage(t *testing.T) {
	t.Parallel()
	for launch, image := range map[string]string{mpi.LaunchAgent: "openmpi", mpi.LaunchSSHD: "openmpi-sshd"} {
		t.Run(launch, func(t *testing.T) {
			parallel(t, 2)
			job := sleeping(t, openNamespace(t), 0, func(job *kubeflow.MPIJob) {
				job.Annotations = map[string]string{mpi.AnnotationLaunch: launch}
				launcher(job).Command = []string{"mpirun", "--allow-run-as-root", "-n", "2", "pi"}
				for _, container := range []*corev1.Container{launcher(job), worker(job)} {
					container.Image = sampleImage(image)
					container.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))}
				}
			})
			create(t, job)
			waitFor(t, job, "it succeeds", succeeded)
		})
	}
}

// openNamespace makes a namespace without Pod Security.
func openNamespace(t *testing.T) string {
	t.Helper()
	name := newNamespace(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`))
	if err := api.Patch(context.Background(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestRunningJobHoldsStill: what a running job was started with cannot change under it.
func TestRunningJobHoldsStill(t *testing.T) {
	t.Parallel()
	job := sleeping(t, newNamespace(t), 600)
	create(t, job)
	now := waitFor(t, job, "it runs", runs)
	launcher(now).Command = []string{"mpirun", "-n", "2", "pi"}
	err := api.Update(t.Context(), now)
	if err == nil {
		t.Fatal("the change was taken")
	}
	t.Log(err)
	for _, want := range []string{"spec.mpiReplicaSpecs[Launcher].template", "suspend the job first"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q", want)
		}
	}
}
