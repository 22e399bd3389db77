package e2e

import (
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"opendatahub.io/mpijob/internal/codes"
)

// startMistakes are mistakes in YAML that keep pods from starting.
func startMistakes() []failure {
	denied := func(summary string) explanation {
		return explanation{code: codes.PodSecurityDenied, summary: summary, remedy: "Set these fields"}
	}
	absent := func(pod, summary string) explanation {
		return explanation{code: codes.MissingReference, pod: pod, summary: summary, remedy: "Create it"}
	}
	return []failure{
		{
			name: "image name in capitals", provoke: made(idle, workers(func(c *corev1.Container) { c.Image = "quay.io/Team/Train:1" })),
			want: explanation{code: codes.InvalidImageName, pod: "job-", summary: `"quay.io/Team/Train:1" is not a valid image name`, remedy: "in lower case"},
		},
		{
			name: "node that does not exist", cured: true, provoke: made(mpirun("ranks"), workerPods(func(pod *corev1.PodSpec) { pod.NodeName = "gpu-node-17" })),
			want: explanation{code: codes.NodeMissing, pod: "job-worker-0", summary: "there is no node named gpu-node-17", remedy: "Remove nodeName"},
		},
		{
			name: "hostPath", provoke: made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/data"}})),
			want: explanation{code: codes.PodSecurityDenied, summary: `"hostPath"`, remedy: "Use a PersistentVolumeClaim"},
		},
		{
			name: "missing ConfigMap in a volume", provoke: made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}})),
			want: absent("job-worker-", `ConfigMap "settings" does not exist`),
		},
		{
			name: "missing ConfigMap in envFrom", provoke: made(idle, workers(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
			})), want: absent("job-worker-0", `ConfigMap "settings" does not exist`),
		},
		{
			name: "missing key of a ConfigMap", provoke: func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
				create(t, configMap(namespace, "settings", "epochs", "3"))
				return made(idle, workers(func(c *corev1.Container) {
					c.Env = []corev1.EnvVar{{Name: "RATE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "rate",
					}}}}
				}))(t, namespace, submit)
			}, want: absent("job-worker-0", `key "rate" of ConfigMap "settings"`).advises("See which keys it has"),
		},
		{
			name: "PVC that does not exist", provoke: made(idle, mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})),
			want: explanation{code: codes.VolumeClaimPending, pod: "job-worker-0", summary: `PersistentVolumeClaim "data" does not exist`, remedy: "Create the claim"},
		},
		{
			name: "ServiceAccount that does not exist", provoke: made(idle, workerPods(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "trainer" })),
			want: explanation{code: codes.ObjectRefused, summary: "service account trainer does not exist", remedy: "Create it."},
		},
		{
			name: "image that may not be pulled", provoke: made(idle, workers(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = "quay.io/team/train:1", corev1.PullNever })),
			want: explanation{code: codes.ImagePullFailed, pod: "job-worker-0", summary: "its imagePullPolicy is Never", remedy: "Set imagePullPolicy to IfNotPresent"},
		},
		{
			name: "init container fails", provoke: made(idle, workerPods(func(pod *corev1.PodSpec) {
				first := *pod.Containers[0].DeepCopy()
				first.Name, first.Command = "fetch-data", []string{"sh", "-c", "echo 'ERROR: no such bucket'; exit 3"}
				pod.InitContainers = []corev1.Container{first}
			})),
			want: explanation{code: codes.ApplicationFailed, pod: "job-worker-0", exit: new(int32(3)), summary: "init container fetch-data failed with exit code 3", remedy: "Read the log of the init container"},
		},
		{
			name: "init container without its program", provoke: made(idle, workerPods(func(pod *corev1.PodSpec) {
				first := *pod.Containers[0].DeepCopy()
				first.Name, first.Command = "fetch-code", []string{"sh", "-c", "git clone https://git.example.com/model /tmp/model"}
				pod.InitContainers = []corev1.Container{first}
			})),
			want: explanation{code: codes.ProgramMissing, pod: "job-worker-", exit: new(int32(127)), summary: "init container fetch-code calls git", remedy: "Use an image that contains git"},
		},
		{
			name: "folder mounted onto a file", provoke: mountedAt("/usr/local/bin/ranks"),
			want: explanation{code: codes.ContainerCreateFailed, pod: "job-worker-", summary: "volume data (ConfigMap program) is mounted at /usr/local/bin/ranks", remedy: "add subPath: ranks"},
		},
		{
			name: "liveness probe that nothing answers", ranks: 4, provoke: made(idle, workers(func(c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}, InitialDelaySeconds: 5, PeriodSeconds: 2, FailureThreshold: 1,
				}
			})),
			want: explanation{code: codes.ProbeFailed, pod: "job-worker-", summary: "liveness probe failed", remedy: "Remove the probe"},
		},
		{
			name: "startup probe that is not in the image", provoke: made(idle, workers(func(c *corev1.Container) {
				c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/opt/ready"}}}, PeriodSeconds: 2}
			})),
			want: explanation{code: codes.ProbeFailed, pod: "job-worker-", summary: `the startup probe cannot be executed: "/opt/ready"`, remedy: "Remove the probe"},
		},
		{
			// Each rank of the four asks for 64 cores.
			name: "ranks bound to more cores than a node has", ranks: 4, provoke: made([]string{"mpirun", "--bind-to", "core", "--map-by", "slot:PE=64", "-np", "4", "hostname"}),
			want: explanation{code: codes.DaemonsNotStarted, pod: "job-worker-", summary: "ended before it started a rank", remedy: "--map-by slot:PE=64 asks for 64 cores for each rank"},
		},
		{
			name: "more on the local disk than allowed", ranks: 4, provoke: made(mpirun("sh", "-c", "head -c 100M /dev/zero >/tmp/scratch-$OMPI_COMM_WORLD_RANK && exec ranks --sleep 600"), workers(func(c *corev1.Container) {
				c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("50Mi")
			})),
			want: explanation{code: codes.Evicted, pod: "job-worker-", summary: "local disk", remedy: "write less to local disk"},
		},
		{name: "root user", provoke: made(idle, workers(func(c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(0)) })), want: denied("runAsUser=0")},
	}
}

// workerPods changes the pods of a job's workers.
func workerPods(change func(*corev1.PodSpec)) func(*testing.T, *kubeflow.MPIJob) {
	return func(_ *testing.T, job *kubeflow.MPIJob) {
		change(&job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec)
	}
}

// script is the text of a program in Python; rank 2 does what follows, and the others wait for it.
func script(text string) []string {
	return mpirun("python3", "-m", "mpi4py", "-c", "from mpi4py import MPI\nif MPI.COMM_WORLD.Get_rank() == 2:\n    "+text+"\nMPI.COMM_WORLD.Barrier()")
}

// programMistakes are mistakes in programs and in what they need.
func programMistakes() []failure {
	own := func(summary string, exit int32) explanation {
		return explanation{code: codes.ApplicationFailed, pod: "job-worker-1", rank: new(int32(2)), exit: &exit, summary: summary, remedy: "Read its output", fails: true}
	}
	// All ranks fail at once: any may be the first.
	all := func(summary string, exit int32) explanation {
		return explanation{code: codes.ApplicationFailed, pod: "job-worker-", exit: &exit, summary: summary, remedy: "Read its output", fails: true}
	}
	signal := func(code codes.Code, number int32, remedy string) explanation {
		return explanation{code: code, pod: "job-worker-1", rank: new(int32(2)), exit: new(128 + number), remedy: remedy, fails: true}
	}
	return []failure{
		{name: "package missing", trainJob: true, ranks: 4, provoke: made(mpirun("python3", "-c", "import torch")), want: all("ModuleNotFoundError: No module named 'torch'", 1).advises("Install torch")},
		{name: "syntax error", ranks: 4, provoke: made(mpirun("python3", "-c", "print('epoch'")), want: all("SyntaxError", 1).advises("Correct the script")},
		{name: "data missing", trainJob: true, ranks: 4, provoke: made(script("open('/data/train.csv')")), want: own("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'", 1).advises("Check the path of /data/train.csv")},
		{name: "folder not writable", ranks: 4, provoke: made(script("open('/etc/model.pt', 'w')")), want: own("PermissionError: [Errno 13] Permission denied: '/etc/model.pt'", 1).advises("Write to a folder")},
		{name: "host that does not exist", ranks: 4, provoke: made(script("import urllib.request; urllib.request.urlopen('http://datasets.invalid/train')")), want: own("URLError", 1).advises("Correct the host's name")},
		{name: "message too long for its buffer", ranks: 4, provoke: made(mpirun("python3", "-m", "mpi4py", "-c", `from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.Get_rank() == 1:
    comm.Send(bytearray(64), dest=2)
if comm.Get_rank() == 2:
    comm.Recv(bytearray(8), source=1)
comm.Barrier()`)), want: own("MPI_ERR_TRUNCATE", 1).advises("Make the buffer of the receive at least as long as the message")},
		{name: "variable not set", ranks: 4, provoke: made(script("import os; os.environ['DATA']")), want: own("KeyError: 'DATA'", 1).advises("Set DATA: no pod template sets DATA")},
		{name: "server that refuses connections", ranks: 4, provoke: made(script("import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')")), want: own("Connection refused", 1).advises("Nothing listens at 127.0.0.1:9 in this pod")},
		{name: "disk full", ranks: 4, provoke: made(script("open('/data/model.pt', 'wb').write(bytes(1 << 24))"), mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(1<<22, resource.BinarySI),
		}})), want: own("No space left on device", 1).advises("is full: /data/model.pt is on it, an emptyDir in memory of 4Mi")},
		{name: "arguments that the program does not know", ranks: 4, provoke: made(mpirun("python3", "-c", "import argparse; argparse.ArgumentParser(prog='train.py').parse_args()", "--epochz", "3")), want: all("train.py: error: unrecognized arguments: --epochz 3", 2).advises("Correct the arguments")},
		{name: "MPI_Abort", ranks: 4, provoke: made(script("MPI.COMM_WORLD.Abort(5)")), want: own("code 5", 5)},
		{name: "arithmetic error", ranks: 4, provoke: made(script("import os, signal; os.kill(os.getpid(), signal.SIGFPE)")), want: own("SIGFPE", 136).advises("Correct the calculation")},
		{name: "killed by somebody", ranks: 4, provoke: made(script("import os; os.kill(os.getpid(), 9)")), want: signal(codes.Killed, 9, "Give each worker more memory")},
		{name: "missing library in Python", ranks: 4, provoke: made(script("import ctypes; ctypes.CDLL('libsolver.so.2')")), want: explanation{
			code: codes.LibraryMissing, pod: "job-worker-1", rank: new(int32(2)), exit: new(int32(1)), summary: "libsolver.so.2", remedy: "Pass the library path to all ranks", fails: true,
		}},
		{name: "Windows line ends", ranks: 4, provoke: inFolder("train.sh", "#!/usr/bin/env sh\r\nexec ranks\r\n", 0o755), want: explanation{code: codes.WindowsLineEnds, pod: "job-", summary: "carriage return", remedy: "Convert", fails: true}},
		{name: "abort", ranks: 4, provoke: made(script("import os; os.abort()")), want: signal(codes.Aborted, 6, "Read the last lines of the log")},
		{name: "illegal instruction", ranks: 4, provoke: made(script("import os, signal; os.kill(os.getpid(), signal.SIGILL)")), want: signal(codes.IllegalInstruction, 4, "Build the program for a more common CPU")},
		{name: "shared memory full", ranks: 4, provoke: made(script("import mmap, os; f = open('/dev/shm/batch', 'w+b'); f.truncate(1 << 28); m = mmap.mmap(f.fileno(), 1 << 28); [m.write(bytes(1 << 20)) for _ in range(256)]")), want: signal(codes.BusError, 7, "Give the pods more shared memory")},
		{name: "memory limit a little too low", ranks: 4, cured: true, provoke: made(mpirun("ranks", "--memory", "3:250", "--sleep", "1"), func(_ *testing.T, job *kubeflow.MPIJob) {
			worker(job).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
		}), want: explanation{code: codes.OutOfMemory, pod: "job-worker-1", summary: "256 MiB", remedy: "Increase the memory limit of each worker", fails: true}},
		{name: "command after MPI", provoke: made([]string{"sh", "-ec", "mpirun -n 4 ranks; grep -q accuracy /etc/hostname"}), want: explanation{
			code: codes.ApplicationFailed, pod: "job-launcher", summary: "after its MPI program had succeeded", remedy: "what the command does after mpirun", fails: true,
		}},
		{name: "launcher in a rank", provoke: made([]string{"mpirun", "-n", "2", "mpirun", "-n", "1", "ranks"}), want: explanation{
			// Open MPI 4 can crash when it ends because of that, so that the exit code is 1 or 139.
			code: codes.ApplicationFailed, pod: "job-worker-", summary: "does not support recursive calls", remedy: "Call mpirun once", fails: true,
		}},
		{name: "rankfile with places of hosts", provoke: withFile("ranks", "rank 0=+n0 slot=0\nrank 1=+n4 slot=0\n", 0o644, []string{"mpirun", "-n", "2", "--rankfile", "/data/ranks", "ranks"}), want: explanation{
			code: codes.LaunchRefused, pod: "job-launcher", summary: "its rankfile names a host by its place (+n0)", remedy: "Remove the rankfile", fails: true,
		}},
		{name: "script in many words", cured: true, provoke: made([]string{"sh", "-c", "mpirun", "-n", "4", "ranks"}), want: explanation{
			code: codes.LaunchRefused, pod: "job-launcher", summary: "only the first word after -c", remedy: "Remove the shell", fails: true,
		}},
		{name: "volume over the image's programs", provoke: mountedAt("/usr/local/bin"), want: explanation{code: codes.ProgramMissing, pod: "job-worker-", summary: "is mounted at /usr/local/bin and hides", remedy: "mount the volume at a folder of its own", fails: true}},
		{name: "script not executable", provoke: inFolder("train.sh", "#!/bin/sh\nexec ranks\n", 0o644), want: explanation{code: codes.ProgramMissing, pod: "job-", summary: "/data/train.sh", remedy: "Check its name", fails: true}},
	}
}

// inFolder starts a file of a ConfigMap as each rank's program.
func inFolder(file, content string, mode int32) provocation {
	return withFile(file, content, mode, mpirun("/data/"+file))
}

// withFile runs a command in pods that have a file in /data.
func withFile(file, content string, mode int32, command []string) provocation {
	return func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
		create(t, configMap(namespace, "program", file, content))
		source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "program"}, DefaultMode: &mode}}
		return made(command, mounts(kubeflow.MPIReplicaTypeLauncher, source), mounts(kubeflow.MPIReplicaTypeWorker, source))(t, namespace, submit)
	}
}

// mountedAt mounts a ConfigMap in the workers at a path at which their image has programs.
func mountedAt(path string) provocation {
	return func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob {
		create(t, configMap(namespace, "program", "settings.json", "{}"))
		source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "program"}}}
		return made(mpirun("ranks"), mounts(kubeflow.MPIReplicaTypeWorker, source), func(_ *testing.T, job *kubeflow.MPIJob) {
			worker(job).VolumeMounts[len(worker(job).VolumeMounts)-1].MountPath = path
		})(t, namespace, submit)
	}
}

// mpiMistakes are mistakes in the command that calls MPI.
func mpiMistakes() []failure {
	mpich := with("mpich", kubeflow.MPIImplementationMPICH)
	missing := func(summary string) explanation {
		return explanation{code: codes.ProgramMissing, pod: "job-", summary: summary, remedy: "Check its name", fails: true}
	}
	own := func(summary string, exit int32) explanation {
		return explanation{code: codes.ApplicationFailed, pod: "job-launcher-", exit: &exit, summary: summary, remedy: "Read its output", fails: true}
	}
	refused := func(summary string, exit int32) explanation {
		return explanation{code: codes.LaunchRefused, pod: "job-launcher-", exit: &exit, summary: summary, remedy: "Correct the option", fails: true}
	}
	shell := func(command string) provocation { return made([]string{"sh", "-c", command}) }
	limited := func(_ *testing.T, job *kubeflow.MPIJob) {
		launcher(job).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("128Mi")
	}
	return []failure{
		{
			name: "command in one word", cured: true, provoke: made([]string{"mpirun -n 4 ranks"}),
			want: explanation{code: codes.ProgramMissing, pod: "job-launcher-", summary: "is one word", remedy: "Write each word", fails: true},
		},
		{name: "unknown option", provoke: made([]string{"mpirun", "--alow-run-as-root", "-n", "4", "ranks"}), want: refused("does not accept --alow-run-as-root", 1)},
		{name: "unknown option, MPICH", provoke: made([]string{"mpiexec", "-alow-run", "-n", "4", "ranks"}, mpich), want: refused("does not accept alow-run", 255)},
		{name: "folder that does not exist", provoke: shell("cd /workspace/run && mpirun -n 4 ranks"), want: own("can't cd to /workspace/run", 2).advises("Check the path of /workspace/run")},
		{name: "quote that is not closed", provoke: shell("mpirun -n 4 'ranks"), want: own("Unterminated quoted string", 2).advises("Correct the shell script")},
		{
			name: "launcher's script with Windows line ends", provoke: withFile("run.sh", "#!/bin/sh\r\nmpirun -n 4 ranks\r\n", 0o755, []string{"/data/run.sh"}),
			want: explanation{code: codes.WindowsLineEnds, pod: "job-launcher-", exit: new(int32(126)), summary: "Script /data/run.sh has Windows line ends", remedy: "Convert", fails: true},
		},
		{
			name: "launcher's script not executable", provoke: withFile("run.sh", "#!/bin/sh\nmpirun -n 4 ranks\n", 0o644, []string{"/data/run.sh"}),
			want: explanation{code: codes.ProgramMissing, pod: "job-launcher-", exit: new(int32(126)), summary: "the file is not executable", remedy: "Start a script by its interpreter", fails: true},
		},
		{
			name: "launcher out of memory", provoke: made([]string{"python3", "-c", "print('loading', flush=True); x = bytearray(600 << 20)"}, limited),
			want: explanation{code: codes.OutOfMemory, pod: "job-launcher-", exit: new(int32(137)), summary: "128 MiB", remedy: "Increase the memory limit of each launcher", fails: true},
		},
		{
			name: "launcher segfault", provoke: made([]string{"python3", "-c", "import os; print('loading', flush=True); os.kill(os.getpid(), 11)"}),
			want: explanation{code: codes.SegmentationFault, pod: "job-launcher-", exit: new(int32(139)), summary: "segmentation fault", remedy: "stack trace", fails: true},
		},
		{
			name: "options in one word", trainJob: true, cured: true, provoke: made([]string{"mpirun", "-n 4", "ranks"}),
			want: explanation{code: codes.LaunchRefused, pod: "job-launcher-", exit: new(int32(1)), summary: `"-n 4" is one word of its command`, remedy: "Write each as an element", fails: true},
		},
		{
			name: "reference that nothing replaces", provoke: made([]string{"mpirun", "-n", "$(RANKS)", "ranks"}),
			want: explanation{code: codes.LaunchRefused, pod: "job-launcher-", exit: new(int32(1)), summary: `its command contains "$(RANKS)"`, remedy: "Define RANKS in env", fails: true},
		},
		{
			name: "cores without a binding, Open MPI 5", provoke: made([]string{"mpirun", "--bind-to", "none", "--map-by", "slot:PE=2", "-n", "2", "ranks"}, with("openmpi5", kubeflow.MPIImplementationOpenMPI)),
			want: explanation{code: codes.LaunchRefused, pod: "job-launcher-", exit: new(int32(213)), summary: "several cores (PE=N)", remedy: "Bind the ranks to cores", fails: true},
		},
		{name: "program misspelled", trainJob: true, provoke: made(mpirun("pyhton3", "train.py")), want: missing("pyhton3")},
		{name: "program misspelled, MPICH", provoke: made([]string{"mpiexec", "-n", "4", "pyhton3", "train.py"}, mpich), want: missing("pyhton3")},
		{
			name: "hostfile that does not exist", provoke: made([]string{"mpirun", "--hostfile", "/workspace/hosts", "-n", "4", "ranks"}),
			want: explanation{code: codes.HostfileMissing, pod: "job-launcher-", summary: "/workspace/hosts", remedy: "Remove --hostfile", fails: true},
		},
	}
}
