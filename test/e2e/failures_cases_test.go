package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// failures are all of them but nodes'.
func failures() []failure {
	return slices.Concat(imageFailures(), placeFailures(), podFailures(), programFailures(), mpiFailures(), lossFailures(),
		startMistakes(), programMistakes(), mpiMistakes())
}

// made creates a job of two workers that runs a command, changed as given.
func made(command []string, change ...func(t *testing.T, job *kubeflow.MPIJob)) provocation {
	return func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
		t.Helper()
		job := openMPI(namespace, 2, command...)
		for _, c := range change {
			c(t, job)
		}
		submit(job)
		return job
	}
}

// mpirun is a command that starts four ranks, two on each worker.
func mpirun(program ...string) []string { return append([]string{"mpirun", "-n", "4"}, program...) }

var idle = mpirun("ranks", "--sleep", "600")

// workers changes the container of a job's workers.
func workers(change func(*corev1.Container)) func(*testing.T, *kubeflow.MPIJob) {
	return func(_ *testing.T, job *kubeflow.MPIJob) { change(worker(job)) }
}

// with takes another MPI's sample for both roles.
func with(sample string, implementation kubeflow.MPIImplementation) func(*testing.T, *kubeflow.MPIJob) {
	return func(_ *testing.T, job *kubeflow.MPIJob) {
		job.Spec.MPIImplementation = implementation
		launcher(job).Image, worker(job).Image = sampleImage(sample), sampleImage(sample)
	}
}

// imageFailures keep the workers' image away.
func imageFailures() []failure {
	pulled := func(image string) provocation {
		return made(idle, func(t *testing.T, job *kubeflow.MPIJob) { worker(job).Image = registry(t) + image })
	}
	return []failure{
		{
			name: "wrong image", trainJob: true, provoke: pulled("/team/trian:1"),
			want: explanation{code: codes.ImagePullFailed, pod: "job-worker-0", summary: "no image with this name and tag", remedy: "Check the image name and tag"},
		},
		{
			name: "missing pull secret", provoke: pulled("/private/train:1"),
			want: explanation{code: codes.ImagePullFailed, pod: "job-worker-0", summary: "authentication required", remedy: "Create a pull secret"},
		},
		{
			name: "registry away", provoke: made(idle, workers(func(c *corev1.Container) { c.Image = "registry.invalid/team/train:1" })),
			want: explanation{code: codes.ImagePullFailed, pod: "job-worker-0", summary: "is not reachable", remedy: "Check the registry's host name"},
		},
	}
}

// asks sets what a worker asks for of a resource.
func asks(name corev1.ResourceName, amount string) func(*testing.T, *kubeflow.MPIJob) {
	return workers(func(c *corev1.Container) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			list[name] = resource.MustParse(amount)
		}
	})
}

// placeFailures find no place for the workers.
func placeFailures() []failure {
	return []failure{
		{
			name: "too large for any node", provoke: provokeTooLarge,
			want: explanation{code: codes.InsufficientResources, pod: "job-worker-0", summary: "4 " + tooLargeSeat + " requested per pod", remedy: "no node is larger, so waiting does not help"},
		},
		{
			name: "GPU not available", provoke: made(idle, asks("example.com/gpu", "1")),
			want: explanation{code: codes.InsufficientResources, pod: "job-worker-0", summary: "no usable node has any example.com/gpu", remedy: "waiting does not help"},
		},
		{
			name: "no node with such a label", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.NodeSelector = map[string]string{"example.com/gpu-model": "h100"}
			}),
			want: explanation{code: codes.NoMatchingNode, pod: "job-worker-0", summary: "no node has the label example.com/gpu-model=h100", remedy: "Compare the pod's nodeSelector"},
		},
		{
			name: "PVC pending", provoke: func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
				create(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new("fast"),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				}})
				return made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}))(t, namespace, submit)
			},
			want: explanation{code: codes.VolumeClaimPending, pod: "job-worker-0", summary: `PersistentVolumeClaim "data" is not bound`, remedy: "Create the claim again with a storage class"},
		},
		{
			name: "NFS server that cannot be mounted", provoke: func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
				claimOf(t, namespace, corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "127.0.0.1", Path: "/data"}})
				return made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}))(t, namespace, submit)
			},
			// What mount prints depends on whether the machine has an NFS client.
			want: explanation{code: codes.MountFailed, pod: "job-worker-", summary: "cannot mount 127.0.0.1:/data: the ", remedy: "NFS"},
		},
	}
}

// tooLargeSeat is a resource of which nodes lose most.
const tooLargeSeat = "example.com/seat-shrinking"

// provokeTooLarge creates a job that its nodes can hold, and resumes it when they cannot any more: admission refuses others.
func provokeTooLarge(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
	t.Helper()
	seats(t, tooLargeSeat, 4, 4)
	job := made(idle, asks(tooLargeSeat, "4"), func(_ *testing.T, job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })(t, namespace, submit)
	seats(t, tooLargeSeat, 1, 1)
	edit(t, job, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	return job
}

// mounts gives a role's pods a volume at /data.
func mounts(role kubeflow.MPIReplicaType, source corev1.VolumeSource) func(*testing.T, *kubeflow.MPIJob) {
	return func(_ *testing.T, job *kubeflow.MPIJob) {
		pod := &job.Spec.MPIReplicaSpecs[role].Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "data", VolumeSource: source})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	}
}

// podFailures keep pods from being made or from starting.
func podFailures() []failure {
	return []failure{
		{
			name: "quota hit at pod creation", provoke: func(t *testing.T, namespace string, _ submission) *kubeflow.MPIJob {
				// A job that does not fit has no pods; this one grows beyond its quota.
				job := openMPI(namespace, 1, "mpirun", "-n", "2", "ranks", "--sleep", "600")
				create(t, job)
				waitFor(t, job, "the job runs", runs)
				quotaIn(t, namespace, "pods=2")
				edit(t, job, func(job *kubeflow.MPIJob) {
					job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(4))
				})
				return job
			},
			want: explanation{code: codes.QuotaExceeded, summary: "2 of 2 pods used", remedy: "Request less: fewer workers"},
		},
		{
			name: "Pod Security violation", provoke: made(idle, workers(func(c *corev1.Container) { c.SecurityContext = nil })),
			want: explanation{code: codes.PodSecurityDenied, summary: "allowPrivilegeEscalation", remedy: "Set these fields"},
		},
		{
			name: "missing Secret in a variable", trainJob: true, provoke: made(idle, workers(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "hub-token"}, Key: "token",
				}}}}
			})),
			want: explanation{code: codes.MissingReference, pod: "job-worker-", summary: `Secret "hub-token" does not exist in namespace`, remedy: "Create it"},
		},
		{
			name: "missing Secret in a volume", provoke: made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hub-token"}})),
			want: explanation{code: codes.MissingReference, pod: "job-worker-", summary: `Secret "hub-token" does not exist in namespace`, remedy: "Create it"},
		},
		{
			name: "worker's command missing", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchSSHD}
				worker(job).Command = []string{"/usr/sbin/no-sshd", "-De"}
				// The image has no ssh, so that mpirun would fail as well.
				launcher(job).Command = []string{"sleep", "600"}
			}),
			want: explanation{code: codes.ProgramMissing, pod: "job-worker-", summary: "/usr/sbin/no-sshd", remedy: "Check its name and folder"},
		},
	}
}

// python is a rank's program whose rank 2 finds an error of its own.
const python = `from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
print("rank", rank, "loads its data", flush=True)
if rank == 2:
    raise ValueError("shard 2 has no rows")
MPI.COMM_WORLD.Barrier()`

// hanging is one whose rank 1 waits for what does not come while the others wait for it, without using a processor.
const hanging = `import time
from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
print("rank", rank, "begins step 1", flush=True)
if rank == 1:
    time.sleep(100000)
waiting = MPI.COMM_WORLD.Ibarrier()
while not waiting.Test():
    time.sleep(0.5)`

// receiving is a program whose rank 0 waits for a message that no rank sends.
const receiving = `from mpi4py import MPI
comm = MPI.COMM_WORLD
print("rank", comm.Get_rank(), "begins", flush=True)
if comm.Get_rank() == 0:
    comm.recv(source=1, tag=7)
comm.Barrier()`

// hangingInFunction is a program whose rank 1 loops in a function, or waits for a lock there, while the others wait for it.
const hangingInFunction = `import sys, threading
from mpi4py import MPI
comm = MPI.COMM_WORLD


def load_batch(how):
    while how == "loops": pass

    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def main():
    if comm.Get_rank() == 1:
        load_batch(sys.argv[1])
    comm.Barrier()

main()
`

// otherLibrary is a shell's command that runs ranks with one of its libraries called by another name, of the same length.
// It takes so long that the agent, which looks once a second, has seen the rank.
const otherLibrary = `train=/tmp/train.$OMPI_COMM_WORLD_RANK; sed s/libmpi.so.40/libhdf5.so.9/ "$(command -v ranks)" > $train; chmod +x $train; sleep 2; exec $train`

// programFailures are those of the program itself.
func programFailures() []failure {
	memory := workers(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi") })
	outOfMemory := explanation{code: codes.OutOfMemory, pod: "job-worker-1", summary: "256 MiB", remedy: "Increase the memory limit of each worker", fails: true}
	segfault := explanation{code: codes.SegmentationFault, pod: "job-worker-0", rank: new(int32(1)), exit: new(int32(139)), summary: "rank 1", remedy: "stack trace", fails: true}
	exit := explanation{code: codes.ApplicationFailed, pod: "job-worker-1", rank: new(int32(2)), exit: new(int32(42)), summary: "code 42", remedy: "Read its output", fails: true}
	return []failure{
		{name: "worker out of memory", trainJob: true, ranks: 4, provoke: made(mpirun("ranks", "--memory", "3:600", "--sleep", "1"), memory), want: outOfMemory},
		{name: "worker out of memory, Intel MPI", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--memory", "3:600", "--sleep", "1"}, memory, with("intelmpi", kubeflow.MPIImplementationIntel)), want: outOfMemory},
		{name: "rank segfault", trainJob: true, ranks: 4, provoke: made(mpirun("ranks", "--segv", "1")), want: segfault},
		{name: "rank segfault, MPICH", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--segv", "1"}, with("mpich", kubeflow.MPIImplementationMPICH)), want: segfault},
		{name: "rank segfault, Open MPI 5", ranks: 4, provoke: made(mpirun("ranks", "--segv", "1"), with("openmpi5", kubeflow.MPIImplementationOpenMPI)), want: segfault},
		{
			name: "exception on one rank", ranks: 4, provoke: made(mpirun("python3", "-m", "mpi4py", "-c", python)),
			want: explanation{code: codes.ApplicationFailed, pod: "job-worker-1", rank: new(int32(2)), exit: new(int32(1)), summary: "ValueError: shard 2 has no rows", remedy: "an error of the program itself", fails: true},
		},
		{name: "exit code", trainJob: true, ranks: 4, provoke: made(mpirun("ranks", "--exit", "2:42")), want: exit},
		{name: "exit code, Intel MPI", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--exit", "2:42"}, with("intelmpi", kubeflow.MPIImplementationIntel)), want: exit},
		// Its mpiexec does not end the ranks of the other worker; the agent does.
		{name: "exit code, MPICH", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--exit", "2:42"}, with("mpich", kubeflow.MPIImplementationMPICH)), want: exit},
		{
			name: "program missing on workers", provoke: func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
				create(t, configMap(namespace, "program", "train", "#!/bin/sh\nexec ranks\n"))
				return made(mpirun("/data/train"), mounts(kubeflow.MPIReplicaTypeLauncher, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "program"}, DefaultMode: new(int32(0o755)),
				}}))(t, namespace, submit)
			},
			want: explanation{code: codes.ProgramMissing, pod: "job-worker-", summary: "/data/train not found in worker", remedy: "Mount volume", fails: true},
		},
		{
			name: "launcher's command missing", trainJob: true, provoke: made([]string{"mpirum", "-n", "4", "ranks"}),
			want: explanation{code: codes.ProgramMissing, pod: "job-launcher-", exit: new(int32(127)), summary: "Program mpirum not found in the image of the launcher", remedy: "Correct the program's name", fails: true},
		},
		{
			name: "missing library", trainJob: true, provoke: made(mpirun("sh", "-c", otherLibrary)),
			want: explanation{code: codes.LibraryMissing, pod: "job-worker-", exit: new(int32(127)), summary: "libhdf5.so.9", remedy: "Pass the library path to all ranks", fails: true},
		},
		{
			name: "hang of one rank", provoke: made(mpirun("python3", "-c", hanging), func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Annotations = map[string]string{mpi.AnnotationSilence: "20s"}
			}),
			want: explanation{code: codes.NoOutput, pod: "job-launcher-", summary: "No output since", remedy: "Check the CPU usage of the ranks"},
		},
		{
			name: "receive without a send", trainJob: true, ranks: 4, provoke: made(mpirun("python3", "-c", receiving)),
			want: explanation{code: codes.RanksWaiting, pod: "job-launcher-", summary: "All 4 ranks wait since", remedy: "Make the call that matches the one of rank 0"},
		},
		{
			name: "a loop in a function of one rank", trainJob: true, ranks: 4, provoke: withFile("train.py", hangingInFunction, 0o644, mpirun("python3", "/data/train.py", "loops")),
			want: explanation{
				code: codes.Straggler, pod: "job-worker-0", rank: new(int32(1)), summary: "Rank 1 is in load_batch (train.py:7, `while how == \"loops\": pass`), called from main (train.py:15); the others are in main (train.py:16, `comm.Barrier()`).",
				remedy: "in which function and line each rank is", after: time.Minute,
			},
		},
		{
			name: "a lock in a function of one rank", trainJob: true, ranks: 4, provoke: withFile("train.py", hangingInFunction, 0o644, mpirun("python3", "/data/train.py", "locks")),
			want: explanation{
				code: codes.RanksWaiting, pod: "job-worker-0", rank: new(int32(1)), summary: "Rank 1 is in load_batch (train.py:11, `lock.acquire()`), called from main (train.py:15); the others are in main (train.py:16, `comm.Barrier()`).",
				remedy: "See which thread holds the lock", after: 30 * time.Second,
			},
		},
		{
			// Two ranks of one worker look for messages in shared memory, without a system call.
			name: "receive without a send, MPICH", ranks: 2, provoke: made([]string{"mpiexec", "-n", "2", "ranks", "--wait", "1"}, with("mpich", kubeflow.MPIImplementationMPICH)),
			want: explanation{code: codes.RanksWaiting, pod: "job-launcher-", summary: "All 2 ranks wait since", remedy: "See what the kernel reports of each rank"},
		},
		{
			name: "endless loop of one rank", ranks: 4, provoke: made(mpirun("ranks", "--loop", "1")),
			want: explanation{code: codes.Straggler, pod: "job-worker-0", rank: new(int32(1)), summary: "3 of 4 ranks wait since", remedy: "between two messages", after: time.Minute},
		},
		{
			name: "endless loop of one rank, MPICH", ranks: 6, provoke: made([]string{"mpiexec", "-n", "2", "ranks", "--loop", "1"}, with("mpich", kubeflow.MPIImplementationMPICH)),
			want: explanation{code: codes.Straggler, pod: "job-worker-0", rank: new(int32(1)), summary: "1 of 2 ranks wait since", remedy: "between two messages", after: time.Minute},
		},
		{
			name: "all ranks wait for a file", provoke: made(mpirun("sh", "-c", "until [ -e /tmp/go ]; do sleep 1; done; ranks")),
			want: explanation{code: codes.RanksIdle, pod: "job-launcher-", summary: "All 4 ranks are idle since", remedy: "what the script waits for", after: 2 * time.Minute},
		},
		{
			name: "exception on one rank while others wait", ranks: 4, provoke: made(mpirun("python3", "-c", python)),
			want: explanation{code: codes.RankGone, pod: "job-worker-1", rank: new(int32(2)), summary: "on job-worker-1 failed: ValueError: shard 2 has no rows", remedy: "an error of the program itself"},
		},
		{
			name: "exit code of the launcher's shell", ranks: 2, provoke: made([]string{"sh", "-c", "mpirun -n 2 hostname; sleep 2; exit 7"}),
			want: explanation{code: codes.ApplicationFailed, pod: "job-launcher-", exit: new(int32(7)), summary: "exit code 7 after its MPI program had succeeded", remedy: "what the command does after mpirun", fails: true},
		},
		{
			name: "deadline exceeded", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(15)) }),
			want: explanation{code: codes.DeadlineExceeded, pod: "job-launcher-", summary: "deadline of 15 seconds", remedy: "increase the deadline", removed: true, fails: true},
		},
	}
}

// mpiFailures are those of the way from the launcher to the ranks.
func mpiFailures() []failure {
	slots := explanation{code: codes.NotEnoughSlots, pod: "job-launcher-", summary: "requested 8 ranks, but the job has room for 4", remedy: "Request 4 ranks", fails: true}
	ignored := explanation{code: codes.HostfileIgnored, pod: "job-launcher-", summary: "0 of 4 slots", remedy: "Remove --host, --hostfile", fails: true}
	alone := []string{"mpirun", "--host", "localhost:4", "-n", "4", "ranks", "--sleep", "1"}
	five := with("openmpi5", kubeflow.MPIImplementationOpenMPI)
	return []failure{
		{name: "too many slots asked", trainJob: true, provoke: made([]string{"mpirun", "-n", "8", "ranks"}), want: slots},
		{name: "too many slots asked, Open MPI 5", provoke: made([]string{"mpirun", "-n", "8", "ranks"}, five), want: slots},
		{
			name: "launcher without ssh", provoke: made(mpirun("ranks"), workers(func(c *corev1.Container) { c.Command = []string{"sleep", "600"} })),
			want: explanation{code: codes.SSHMissing, pod: "job-launcher-", exit: new(int32(243)), summary: "The workers run sleep 600", remedy: "Remove the command of the workers", fails: true},
		},
		{name: "hostfile ignored", ranks: 4, provoke: made(alone), want: ignored},
		{name: "hostfile ignored, Open MPI 5", ranks: 4, provoke: made([]string{"mpirun", "--host", "localhost:4", "--bind-to", "none", "-n", "4", "ranks", "--sleep", "1"}, five), want: ignored},
		{
			name: "connection blocked", provoke: provokeBlocked,
			want: explanation{code: codes.ConnectionTimedOut, pod: "job-worker-", summary: "timed out", remedy: "Allow all traffic between the job's own pods", fails: true},
		},
	}
}

// provokeBlocked lets no packet pass from the launcher's node to the workers, on another one, from before the launcher's
// command starts: it waits for a ConfigMap.
func provokeBlocked(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
	t.Helper()
	if _, err := exec.LookPath("iptables"); err != nil || !isOurs() {
		t.Skip("SKIPPED: no iptables here to cut a network with, or no node's")
	}
	nodes := machines(t)
	job := openMPI(namespace, 2, mpirun("ranks")...)
	on(job, kubeflow.MPIReplicaTypeLauncher, nodes[0])
	on(job, kubeflow.MPIReplicaTypeWorker, nodes[1])
	launcher(job).Env = []corev1.EnvVar{{Name: agentapi.EnvWait, Value: "20s"}}
	launcher(job).EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "go"}}}}
	submit(job)
	addresses := func() (found []string) {
		for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
			for _, pod := range podsOf(t, job, role) {
				if pod.Status.PodIP != "" {
					found = append(found, pod.Status.PodIP)
				}
			}
		}
		return found
	}
	eventually(t, "all pods have addresses", time.Minute, func() error {
		if found := addresses(); len(found) != 3 {
			return fmt.Errorf("there are %v", found)
		}
		return nil
	})
	found := addresses()
	for _, worker := range found[1:] {
		cut(t, found[0], worker, 4*time.Minute)
	}
	create(t, configMap(namespace, "go", "GO", "1"))
	return job
}

// lossFailures take pods away from a job that runs.
func lossFailures() []failure {
	deleted := func(tries int32) provocation {
		return func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
			job := made(idle, func(_ *testing.T, job *kubeflow.MPIJob) { job.Spec.RunPolicy.BackoffLimit = &tries })(t, namespace, submit)
			ranksRun(t, job)
			if err := logs.CoreV1().Pods(namespace).Delete(t.Context(), podsOf(t, job, mpi.RoleLauncher)[0].Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			return job
		}
	}
	launcherDeleted := explanation{code: codes.LauncherDeleted, pod: "job-launcher-", summary: "was deleted by something else", remedy: "Find out who deleted it", removed: true}
	forGood := launcherDeleted
	forGood.fails = true
	return []failure{
		{name: "launcher deleted", ranks: 4, provoke: deleted(3), want: launcherDeleted},
		{name: "launcher deleted, no more tries", ranks: 4, provoke: deleted(0), want: forGood},
		{
			name: "worker evicted", ranks: 4, provoke: func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
				job := made(idle)(t, namespace, submit)
				ranksRun(t, job)
				err := logs.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job-worker-1"}})
				if err != nil {
					t.Fatal(err)
				}
				return job
			},
			// Its attempt does not count: the job goes on with the next one.
			want: explanation{code: codes.Evicted, pod: "job-worker-1", summary: "evicted", remedy: "Start the job again", removed: true},
		},
	}
}

// nodeFailures take a node away from everybody.
func nodeFailures() []failure {
	return []failure{{
		name: "node lost", provoke: provokeNodeLost,
		want: explanation{code: codes.NodeLost, pod: "job-worker-", summary: "lost with node-", remedy: "Start the job again", fails: true},
	}}
}

// provokeNodeLost stops the workers' node as a power cut would, and starts it again after the test.
func provokeNodeLost(t *testing.T, namespace string, _ submission) *kubeflow.MPIJob {
	t.Helper()
	cluster := ownCluster(t)
	nodes := machines(t)
	stopped := nodes[len(nodes)-1]
	job := openMPI(namespace, 2, idle...)
	on(job, kubeflow.MPIReplicaTypeLauncher, nodes[0])
	on(job, kubeflow.MPIReplicaTypeWorker, stopped)
	create(t, job)
	ranksRun(t, job)
	t.Cleanup(func() { cluster("start-node", stopped.Name) })
	cluster("stop-node", stopped.Name)
	return job
}
