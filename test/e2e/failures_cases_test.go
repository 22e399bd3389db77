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

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

// failures are all of them but nodes'.
func failures() []failure {
	return slices.Concat(imageFailures(), placeFailures(), podFailures(), programFailures(), mpiFailures(), lossFailures())
}

// made creates a job of two workers that runs a command, changed as given.
func made(command []string, change ...func(t *testing.T, job *kubeflow.MPIJob)) func(*testing.T, string) *kubeflow.MPIJob {
	return func(t *testing.T, namespace string) *kubeflow.MPIJob {
		t.Helper()
		job := openMPI(namespace, 2, command...)
		for _, c := range change {
			c(t, job)
		}
		create(t, job)
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
	pulled := func(image string) func(*testing.T, string) *kubeflow.MPIJob {
		return made(idle, func(t *testing.T, job *kubeflow.MPIJob) { worker(job).Image = registry(t) + image })
	}
	return []failure{
		{
			name: "wrong image", provoke: pulled("/team/trian:1"),
			want: explanation{code: mpi.CodeImagePull, pod: "job-worker-0", summary: "has no image of that name and tag", remedy: "Check the image's name and tag letter by letter"},
		},
		{
			name: "missing pull secret", provoke: pulled("/private/train:1"),
			want: explanation{code: mpi.CodeImagePull, pod: "job-worker-0", summary: "wants a login", remedy: "Give the namespace a pull secret"},
		},
		{
			name: "registry away", provoke: made(idle, workers(func(c *corev1.Container) { c.Image = "registry.invalid/team/train:1" })),
			want: explanation{code: mpi.CodeImagePull, pod: "job-worker-0", summary: "cannot be reached", remedy: "Check the registry's part of the name"},
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
			name: "not enough CPU", provoke: made(idle, asks(corev1.ResourceCPU, "512")),
			want: explanation{code: mpi.CodeInsufficient, pod: "job-worker-0", summary: "each asks for 512 CPUs", remedy: "no machine is larger, so waiting does not help"},
		},
		{
			name: "GPU not available", provoke: made(idle, asks("example.com/gpu", "1")),
			want: explanation{code: mpi.CodeInsufficient, pod: "job-worker-0", summary: "no machine that can be used has any example.com/gpu", remedy: "waiting does not help"},
		},
		{
			name: "no node with such a label", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.NodeSelector = map[string]string{"example.com/gpu-model": "h100"}
			}),
			want: explanation{code: mpi.CodeNoMatchingNode, pod: "job-worker-0", summary: "none has the labels", remedy: "Check the pod's nodeSelector"},
		},
		{
			name: "PVC pending", provoke: func(t *testing.T, namespace string) *kubeflow.MPIJob {
				create(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new("fast"),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				}})
				return made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}))(t, namespace)
			},
			want: explanation{code: mpi.CodeClaimPending, pod: "job-worker-0", summary: `claim "data" is not bound`, remedy: "Look why the claim gets no volume"},
		},
	}
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
			name: "quota hit at pod creation", provoke: func(t *testing.T, namespace string) *kubeflow.MPIJob {
				// A job that does not fit has no pods; this one grows beyond its quota.
				job := openMPI(namespace, 1, idle...)
				create(t, job)
				waitFor(t, job, "the job runs", runs)
				quotaIn(t, namespace, "pods=2")
				edit(t, job, func(job *kubeflow.MPIJob) {
					job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(4))
				})
				return job
			},
			want: explanation{code: mpi.CodeQuotaExceeded, summary: "2 of 2 are in use", remedy: "Ask for less: fewer workers"},
		},
		{
			name: "Pod Security violation", provoke: made(idle, workers(func(c *corev1.Container) { c.SecurityContext = nil })),
			want: explanation{code: mpi.CodePodSecurity, summary: "allowPrivilegeEscalation", remedy: "Set what is named above"},
		},
		{
			name: "missing Secret in a variable", provoke: made(idle, workers(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "hub-token"}, Key: "token",
				}}}}
			})),
			want: explanation{code: mpi.CodeMissingReference, pod: "job-worker-0", summary: `a Secret "hub-token" that is not in the namespace`, remedy: "Create it"},
		},
		{
			name: "missing Secret in a volume", provoke: made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hub-token"}})),
			want: explanation{code: mpi.CodeMissingReference, pod: "job-worker-", summary: `a Secret "hub-token" that is not in the namespace`, remedy: "Create it"},
		},
		{
			name: "worker's command missing", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchSSHD}
				worker(job).Command = []string{"/usr/sbin/no-sshd", "-De"}
			}),
			want: explanation{code: mpi.CodeProgramMissing, pod: "job-worker-0", summary: "/usr/sbin/no-sshd", remedy: "Check its name and folder"},
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

// otherLibrary is a shell's command that runs ranks with one of its libraries called by another name, of the same length.
// It takes so long that the agent, which looks once a second, has seen the rank.
const otherLibrary = `train=/tmp/train.$OMPI_COMM_WORLD_RANK; sed s/libmpi.so.40/libcuda.so.1/ "$(command -v ranks)" > $train; chmod +x $train; sleep 2; exec $train`

// programFailures are those of the program itself.
func programFailures() []failure {
	memory := workers(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi") })
	outOfMemory := explanation{code: mpi.CodeOutOfMemory, pod: "job-worker-1", summary: "256 MiB", remedy: "Give each worker more memory", fails: true}
	segfault := explanation{code: mpi.CodeSegfault, pod: "job-worker-0", rank: new(int32(1)), exit: new(int32(139)), summary: "rank 1", remedy: "stack trace", fails: true}
	exit := explanation{code: mpi.CodeApplicationFailed, pod: "job-worker-1", rank: new(int32(2)), exit: new(int32(42)), summary: "code 42", remedy: "Read what that rank said", fails: true}
	return []failure{
		{name: "worker out of memory", ranks: 4, provoke: made(mpirun("ranks", "--memory", "3:600", "--sleep", "1"), memory), want: outOfMemory},
		{name: "worker out of memory, Intel MPI", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--memory", "3:600", "--sleep", "1"}, memory, with("intelmpi", kubeflow.MPIImplementationIntel)), want: outOfMemory},
		{name: "rank segfault", ranks: 4, provoke: made(mpirun("ranks", "--segv", "1")), want: segfault},
		{name: "rank segfault, MPICH", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--segv", "1"}, with("mpich", kubeflow.MPIImplementationMPICH)), want: segfault},
		{name: "rank segfault, Open MPI 5", ranks: 4, provoke: made(mpirun("ranks", "--segv", "1"), with("openmpi5", kubeflow.MPIImplementationOpenMPI)), want: segfault},
		{
			name: "exception on one rank", ranks: 4, provoke: made(mpirun("python3", "-m", "mpi4py", "-c", python)),
			want: explanation{code: mpi.CodeApplicationFailed, pod: "job-worker-1", rank: new(int32(2)), exit: new(int32(1)), summary: "ValueError: shard 2 has no rows", remedy: "Read what that rank said", fails: true},
		},
		{name: "exit code", ranks: 4, provoke: made(mpirun("ranks", "--exit", "2:42")), want: exit},
		{name: "exit code, Intel MPI", ranks: 4, provoke: made([]string{"mpiexec", "-n", "4", "ranks", "--exit", "2:42"}, with("intelmpi", kubeflow.MPIImplementationIntel)), want: exit},
		{
			name: "program missing on workers", provoke: func(t *testing.T, namespace string) *kubeflow.MPIJob {
				create(t, configMap(namespace, "program", "train", "#!/bin/sh\nexec ranks\n"))
				return made(mpirun("/data/train"), mounts(kubeflow.MPIReplicaTypeLauncher, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "program"}, DefaultMode: new(int32(0o755)),
				}}))(t, namespace)
			},
			want: explanation{code: mpi.CodeProgramMissing, pod: "job-worker-", summary: "/data/train", remedy: "Check its name and folder", fails: true},
		},
		{
			name: "launcher's command missing", provoke: made([]string{"mpirum", "-n", "4", "ranks"}),
			want: explanation{code: mpi.CodeProgramMissing, pod: "job-launcher-", exit: new(int32(127)), summary: `"mpirum"`, remedy: "Check its name and folder", fails: true},
		},
		{
			name: "missing library", provoke: made(mpirun("sh", "-c", otherLibrary)),
			want: explanation{code: mpi.CodeLibraryMissing, pod: "job-worker-", exit: new(int32(127)), summary: "libcuda.so.1", remedy: "Pass the folder on to all ranks", fails: true},
		},
		{
			name: "hang of one rank", provoke: made(mpirun("python3", "-c", hanging), func(_ *testing.T, job *kubeflow.MPIJob) {
				job.Annotations = map[string]string{mpi.AnnotationSilence: "20s"}
			}),
			want: explanation{code: mpi.CodeNoOutput, pod: "job-launcher-", summary: "has said nothing since", remedy: "See whether the ranks still compute"},
		},
		{
			name: "deadline exceeded", provoke: made(idle, func(_ *testing.T, job *kubeflow.MPIJob) { job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(15)) }),
			want: explanation{code: mpi.CodeDeadline, pod: "job-launcher-", summary: "it may take 15 seconds", remedy: "give the job more time", removed: true, fails: true},
		},
	}
}

// mpiFailures are those of the way from the launcher to the ranks.
func mpiFailures() []failure {
	slots := explanation{code: mpi.CodeNotEnoughSlots, pod: "job-launcher-", summary: "asked for 8 ranks (processes of the program) and the job has 4 slots", remedy: "Ask mpirun for 4 ranks", fails: true}
	ignored := explanation{code: mpi.CodeHostfileIgnored, pod: "job-launcher-", summary: "0 of 4 slots", remedy: "Take --host, --hostfile", fails: true}
	alone := []string{"mpirun", "--host", "localhost:4", "-n", "4", "ranks", "--sleep", "1"}
	five := with("openmpi5", kubeflow.MPIImplementationOpenMPI)
	return []failure{
		{name: "too many slots asked", provoke: made([]string{"mpirun", "-n", "8", "ranks"}), want: slots},
		{name: "too many slots asked, Open MPI 5", provoke: made([]string{"mpirun", "-n", "8", "ranks"}, five), want: slots},
		{name: "hostfile ignored", ranks: 4, provoke: made(alone), want: ignored},
		{name: "hostfile ignored, Open MPI 5", ranks: 4, provoke: made([]string{"mpirun", "--host", "localhost:4", "--bind-to", "none", "-n", "4", "ranks", "--sleep", "1"}, five), want: ignored},
		{
			name: "connection blocked", provoke: provokeBlocked,
			want: explanation{code: mpi.CodeConnectionTimeout, pod: "job-worker-", summary: "its packets get no answer", remedy: "Allow all traffic among the job's own pods", fails: true},
		},
	}
}

// provokeBlocked lets no packet pass from the launcher's node to the workers, on another one, from before the launcher's
// command starts: it waits for a ConfigMap.
func provokeBlocked(t *testing.T, namespace string) *kubeflow.MPIJob {
	t.Helper()
	if _, err := exec.LookPath("iptables"); err != nil || !isOurs() {
		t.Skip("SKIPPED: no iptables here to cut a network with, or no node's")
	}
	nodes := machines(t)
	job := openMPI(namespace, 2, mpirun("ranks")...)
	on(job, kubeflow.MPIReplicaTypeLauncher, nodes[0])
	on(job, kubeflow.MPIReplicaTypeWorker, nodes[1])
	launcher(job).Env = []corev1.EnvVar{{Name: launch.EnvWait, Value: "20s"}}
	launcher(job).EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "go"}}}}
	create(t, job)
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
	eventually(t, "all pods have addresses", 3*time.Minute, func() error {
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
	deleted := func(tries int32) func(*testing.T, string) *kubeflow.MPIJob {
		return func(t *testing.T, namespace string) *kubeflow.MPIJob {
			job := made(idle, func(_ *testing.T, job *kubeflow.MPIJob) { job.Spec.RunPolicy.BackoffLimit = &tries })(t, namespace)
			ranksRun(t, job)
			if err := logs.CoreV1().Pods(namespace).Delete(t.Context(), podsOf(t, job, mpi.RoleLauncher)[0].Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			return job
		}
	}
	launcherDeleted := explanation{code: mpi.CodeLauncherDeleted, pod: "job-launcher-", summary: "was deleted while the job ran", remedy: "Ask who has deleted it", removed: true}
	forGood := launcherDeleted
	forGood.fails = true
	return []failure{
		{name: "launcher deleted", ranks: 4, provoke: deleted(3), want: launcherDeleted},
		{name: "launcher deleted, no more tries", ranks: 4, provoke: deleted(0), want: forGood},
		{
			name: "worker evicted", ranks: 4, provoke: func(t *testing.T, namespace string) *kubeflow.MPIJob {
				job := made(idle)(t, namespace)
				ranksRun(t, job)
				err := logs.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job-worker-1"}})
				if err != nil {
					t.Fatal(err)
				}
				return job
			},
			want: explanation{code: mpi.CodeEvicted, pod: "job-worker-1", summary: "had to leave its machine", remedy: "Start the job again", fails: true},
		},
	}
}

// nodeFailures take a node away from everybody.
func nodeFailures() []failure {
	return []failure{{
		name: "node lost", provoke: provokeNodeLost,
		want: explanation{code: mpi.CodeNodeLost, pod: "job-worker-", summary: "was lost", remedy: "Start the job again", fails: true},
	}}
}

// provokeNodeLost stops the workers' node as a power cut would, and starts it again after the test.
func provokeNodeLost(t *testing.T, namespace string) *kubeflow.MPIJob {
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
