package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/codes"
)

// mutant is a correct job in which one thing was broken.
type mutant struct {
	// family is the kind of mistake, and what is what was done.
	family, what string
	// sample is the image of the job's MPI.
	sample   string
	trainJob bool
	job      *kubeflow.MPIJob
	// objects are others that the job needs; they are created first.
	objects []client.Object
	truth   truth
}

func (m mutant) String() string {
	kind := "MPIJob"
	if m.trainJob {
		kind = "TrainJob"
	}
	return fmt.Sprintf("%s, %s, %s: %s", m.family, kind, m.sample, m.what)
}

// truth is what a mutant must be told, known by how it was made.
type truth struct {
	// codes are those of which the first finding has one.
	codes []codes.Code
	// words must all be in the first finding: its summary, evidence and remedies. A job that is refused has them in the error.
	words []string
	// runs is whether the job does not end by itself.
	runs bool
	// after is how long it takes at least.
	after time.Duration
}

// mistakes are the ways to break a job. Each is given a correct job, changes one thing, and says what the truth is.
func mistakes() map[string]func(m *mutant, r *rand.Rand) {
	return map[string]func(m *mutant, r *rand.Rand){
		"exception": breakByException, "exit code": breakByExit, "signal": breakBySignal, "MPI call": breakByMPICall, "memory": breakByMemory,
		"missing program": breakProgram, "missing launcher": breakLauncher, "script": breakScript, "too many ranks": breakRanks,
		"launcher's option": breakOption, "variable": breakVariable, "shell": breakShell, "image": breakImage, "reference": breakReference,
		"volume": breakVolume, "place": breakPlace, "name": breakName, "hook": breakHook, "probe": breakProbe, "init container": breakInit,
		"sidecar": breakSidecar, "deadline": breakDeadline, "security": breakSecurity, "hang": breakByHang,
	}
}

// makeMutants returns n mutants; the same for the same seed. Families take turns, so that each is tried alike.
func makeMutants(seed uint64, n int) []mutant {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the mutants are to be the same each time
	all := mistakes()
	var families []string
	for family := range all {
		families = append(families, family)
	}
	slices.Sort(families)
	var made []mutant
	for i := range n {
		if i%len(families) == 0 {
			r.Shuffle(len(families), func(i, j int) { families[i], families[j] = families[j], families[i] })
		}
		m := mutant{family: families[i%len(families)], sample: pick(r, "openmpi", "openmpi", "openmpi5", "mpich", "intelmpi"), trainJob: r.IntN(3) == 0}
		m.job = agentJob("", "job", m.sample, mpiOf(m.sample), 2, mpiCommand(m.sample, "ranks")...)
		m.job.Spec.RunPolicy.BackoffLimit = pick(r, new(int32(0)), new(int32(0)), nil)
		m.job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = pick(r, kubeflow.RestartPolicyNever, kubeflow.RestartPolicyOnFailure, "")
		all[m.family](&m, r)
		made = append(made, m)
	}
	return made
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// mpiOf is the MPI of a sample: one of implementations.
func mpiOf(sample string) kubeflow.MPIImplementation {
	return implementations[indexOf(sample)].implementation
}

// mpiCommand starts four ranks as people do with the MPI of a sample.
func mpiCommand(sample string, program ...string) []string {
	return append([]string{implementations[indexOf(sample)].mpirun, "-n", "4"}, program...)
}

// indexOf is where a sample is among implementations.
func indexOf(sample string) int {
	for i := range implementations {
		if implementations[i].sample == sample {
			return i
		}
	}
	return -1
}

// typo swaps two neighbouring letters of a name, which differ.
func typo(r *rand.Rand, name string) string {
	for {
		i := r.IntN(len(name) - 1)
		if name[i] != name[i+1] {
			return name[:i] + string(name[i+1]) + string(name[i]) + name[i+2:]
		}
	}
}

// python makes the job one with Open MPI that runs a program in which one rank, or each, runs some lines.
func (m *mutant) python(r *rand.Rand, lines ...string) (one bool) {
	m.sample = "openmpi"
	m.job.Spec.MPIImplementation = kubeflow.MPIImplementationOpenMPI
	launcher(m.job).Image, worker(m.job).Image = sampleImage("openmpi"), sampleImage("openmpi")
	condition := "True"
	if one = r.IntN(2) == 0; one {
		condition = fmt.Sprintf("rank == %d", r.IntN(4))
	}
	program := "import json, os, sys, time\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.Get_rank()\n" +
		"print('rank', rank, 'of', comm.Get_size(), 'loads its data', flush=True)\nif " + condition + ":\n    " + strings.Join(lines, "\n    ") +
		"\nprint('step 1, loss', comm.allreduce(1.0 / (rank + 1)), flush=True)"
	start := []string{"python3", "-c"}
	if one || r.IntN(2) == 0 {
		start = []string{"python3", "-m", "mpi4py", "-c"}
	}
	launcher(m.job).Command = mpiCommand(m.sample, append(start, program)...)
	m.what = condition + ": " + strings.Join(lines, "; ")
	return one
}

// both gives the pods of both roles the same setting: those of a TrainJob have one template.
func (m *mutant) both(change func(pod *corev1.PodSpec)) {
	for _, role := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
		change(&m.job.Spec.MPIReplicaSpecs[role].Template.Spec)
	}
}

// workers changes the pods of the workers, of an MPIJob.
func (m *mutant) workers(change func(pod *corev1.PodSpec)) {
	m.trainJob = false
	change(&m.job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec)
}

func breakByException(m *mutant, r *rand.Rand) {
	name := pick(r, "learning_rate", "shard_7", "wandb_key", "n_heads", "checkpoint")
	var lines, words []string
	switch r.IntN(14) {
	case 0:
		lines, words = []string{"config = {}", "print(config['" + name + "'])"}, []string{"KeyError", name}
	case 1:
		lines, words = []string{"raise ValueError('" + name + " must be positive')"}, []string{"ValueError", name + " must be positive"}
	case 2:
		lines, words = []string{name + ".step()"}, []string{"NameError", name}
	case 3:
		lines, words = []string{"comm." + name + "()"}, []string{"AttributeError", name}
	case 4:
		lines, words = []string{"[1, 2][" + fmt.Sprint(2+r.IntN(9)) + "]"}, []string{"IndexError", "list index out of range"}
	case 5:
		lines, words = []string{"1 / 0"}, []string{"ZeroDivisionError"}
	case 6:
		lines, words = []string{"assert comm.Get_size() == 64, 'expected 64 " + name + "'"}, []string{"AssertionError", "expected 64 " + name}
	case 7:
		module := pick(r, "torch", "pandas", "horovod.torch", "transformers", "sklearn.linear_model", "wandb", "h5py", "apex")
		lines, words = []string{"import " + module}, []string{"No module named", strings.Split(module, ".")[0]}
	case 8:
		lines, words = []string{"open('/data/" + name + ".npz')"}, []string{"/data/" + name + ".npz"}
	case 9:
		lines, words = []string{"open('/etc/" + name + "', 'w')"}, []string{"/etc/" + name, "ermission"}
	case 10:
		lines, words = []string{"print(os.environ['" + strings.ToUpper(name) + "'])"}, []string{strings.ToUpper(name)}
	case 11:
		lines, words = []string{"json.loads('{" + name + "}')"}, []string{"JSONDecodeError"}
	case 12:
		lines, words = []string{"int('" + name + "')"}, []string{"invalid literal", name}
	default:
		lines, words = []string{"class TrainingDiverged(Exception): pass", "raise TrainingDiverged('loss is nan after step " + fmt.Sprint(r.IntN(900)) + "')"}, []string{"TrainingDiverged", "loss is nan"}
	}
	m.python(r, lines...)
	m.truth = truth{codes: []codes.Code{codes.ApplicationFailed}, words: words}
}

func breakByExit(m *mutant, r *rand.Rand) {
	code, rank := 1+r.IntN(120), r.IntN(4)
	if r.IntN(2) == 0 {
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--exit", fmt.Sprintf("%d:%d", rank, code))
		m.what = fmt.Sprintf("rank %d exits with %d", rank, code)
		m.truth = truth{codes: []codes.Code{codes.ApplicationFailed}, words: []string{fmt.Sprint(code), fmt.Sprintf("ank %d", rank)}}
		return
	}
	launcher(m.job).Command = []string{"sh", "-c", strings.Join(mpiCommand(m.sample, "ranks"), " ") + fmt.Sprintf("; echo evaluation failed >&2; exit %d", code)}
	m.what = fmt.Sprintf("the launcher's shell exits with %d after mpirun", code)
	m.truth = truth{codes: []codes.Code{codes.ApplicationFailed}, words: []string{fmt.Sprint(code), "evaluation failed"}}
}

func breakBySignal(m *mutant, r *rand.Rand) {
	rank := r.IntN(4)
	kind := pick(r, "SEGV", "ABRT", "BUS", "ILL")
	code := map[string]codes.Code{"SEGV": codes.SegmentationFault, "ABRT": codes.Aborted, "BUS": codes.BusError, "ILL": codes.IllegalInstruction}[kind]
	m.python(r, "import signal", "os.kill(os.getpid(), signal.SIG"+kind+")")
	if r.IntN(2) == 0 {
		m.sample = pick(r, "openmpi5", "mpich", "intelmpi")
		m.job.Spec.MPIImplementation = mpiOf(m.sample)
		launcher(m.job).Image, worker(m.job).Image = sampleImage(m.sample), sampleImage(m.sample)
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--segv", fmt.Sprint(rank))
		m.what, code = fmt.Sprintf("rank %d crashes", rank), codes.SegmentationFault
		m.truth.words = []string{fmt.Sprintf("ank %d", rank)}
	}
	m.truth.codes = []codes.Code{code}
}

func breakByMPICall(m *mutant, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		m.python(r, "comm.send(1, dest=99)")
		m.truth = truth{codes: []codes.Code{codes.ApplicationFailed}, words: []string{"MPI_ERR_RANK"}}
	case 1:
		m.python(r, "comm.Bcast(bytearray(4), root=-7)")
		m.truth = truth{codes: []codes.Code{codes.ApplicationFailed}, words: []string{"MPI_ERR_ROOT"}}
	case 2:
		code := 2 + r.IntN(50)
		m.python(r, fmt.Sprintf("comm.Abort(%d)", code))
		m.truth = truth{codes: []codes.Code{codes.ApplicationFailed, codes.Aborted}, words: []string{"MPI_A", fmt.Sprint(code)}}
	default:
		rank := r.IntN(4)
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--abort", fmt.Sprint(rank))
		m.what = fmt.Sprintf("rank %d calls MPI_Abort(1)", rank)
		m.truth = truth{codes: []codes.Code{codes.ApplicationFailed, codes.Aborted}, words: []string{"bort", fmt.Sprint(rank)}}
	}
}

func breakByMemory(m *mutant, r *rand.Rand) {
	rank := r.IntN(4)
	limit := pick(r, "128Mi", "200Mi", "256Mi")
	m.both(func(pod *corev1.PodSpec) {
		pod.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
	})
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--memory", fmt.Sprintf("%d:700", rank), "--sleep", "1")
	m.what = fmt.Sprintf("rank %d takes 700 MiB, the limit is %s", rank, limit)
	m.truth = truth{codes: []codes.Code{codes.OutOfMemory}, words: []string{strings.TrimSuffix(limit, "Mi") + " MiB"}}
}

func breakProgram(m *mutant, r *rand.Rand) {
	wrong := pick(r, typo(r, "ranks"), "/opt/app/"+pick(r, "train", "solver", "lmp_mpi"), "./"+pick(r, "a.out", "simulate"))
	launcher(m.job).Command = mpiCommand(m.sample, wrong)
	m.what = "mpirun starts " + wrong
	m.truth = truth{codes: []codes.Code{codes.ProgramMissing}, words: []string{wrong}}
}

func breakLauncher(m *mutant, r *rand.Rand) {
	wrong := pick(r, typo(r, "mpirun"), "horovodrun", "deepspeed", "/usr/local/bin/mpirun", "mpirun_rsh", "conda", "bash -c")
	launcher(m.job).Command[0] = wrong
	m.what = "the launcher runs " + wrong
	m.truth = truth{codes: []codes.Code{codes.ProgramMissing, codes.MPINotInPath}, words: []string{strings.Fields(wrong)[0]}}
}

func breakScript(m *mutant, r *rand.Rand) {
	content, word, want := "", "", []codes.Code{codes.ProgramMissing, codes.ApplicationFailed}
	choice := r.IntN(5)
	if choice == 0 && m.job.Spec.MPIImplementation != kubeflow.MPIImplementationOpenMPI {
		// Hydra starts such a script with sh, so that this is no mistake there.
		choice = 4
	}
	switch choice {
	case 0:
		content, word = "echo starting\nranks\n", "#!"
	case 1:
		content, word = "#!/usr/bin/"+pick(r, "zsh", "perl6", "python2.6")+"\nranks\n", "interpreter"
	case 2:
		content, word, want = "#!/bin/sh\r\nranks\r\n", "Windows", []codes.Code{codes.WindowsLineEnds}
	case 3:
		content, word = "#!/bin/sh\nset -e\nls /nothing-here-"+fmt.Sprint(r.IntN(99))+"\nranks\n", "nothing-here"
	default:
		content, word = "#!/bin/sh\nif [ -z \"$DATA\" ]; then echo \"DATA is not set\" >&2; exit 3; fi\nranks\n", "DATA is not set"
	}
	m.objects = append(m.objects, configMap("", "script", "run.sh", content))
	m.both(func(pod *corev1.PodSpec) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "script", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "script"}, DefaultMode: new(int32(0o755)),
		}}})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "script", MountPath: "/app"})
	})
	launcher(m.job).Command = mpiCommand(m.sample, "/app/run.sh")
	m.what = fmt.Sprintf("mpirun starts a script: %q", content)
	m.truth = truth{codes: want, words: []string{word}}
}

func breakRanks(m *mutant, r *rand.Rand) {
	n := 5 + r.IntN(60)
	launcher(m.job).Command[2] = fmt.Sprint(n)
	m.what = fmt.Sprintf("%d ranks, 4 slots", n)
	// Hydra starts more ranks than slots, so that this is no mistake there.
	if m.sample == "mpich" || m.sample == "intelmpi" {
		m.sample = pick(r, "openmpi", "openmpi5")
		m.job.Spec.MPIImplementation = kubeflow.MPIImplementationOpenMPI
		launcher(m.job).Image, worker(m.job).Image, launcher(m.job).Command[0] = sampleImage(m.sample), sampleImage(m.sample), "mpirun"
	}
	m.truth = truth{codes: []codes.Code{codes.NotEnoughSlots}, words: []string{fmt.Sprint(n), "2 slots each"}}
}

func breakOption(m *mutant, r *rand.Rand) {
	wrong := pick(r, "--npernod", "--mapby", "-nn", "--bindto")
	launcher(m.job).Command = slices.Insert(launcher(m.job).Command, 1, wrong, "2")
	m.what = "mpirun has the option " + wrong
	m.truth = truth{codes: []codes.Code{codes.LaunchRefused, codes.ApplicationFailed, codes.ProgramMissing}, words: []string{strings.TrimLeft(wrong, "-")}}
}

func breakVariable(m *mutant, r *rand.Rand) {
	var set corev1.EnvVar
	var words []string
	want := []codes.Code{codes.ApplicationFailed}
	switch r.IntN(4) {
	case 0:
		set = corev1.EnvVar{Name: "PATH", Value: pick(r, "/opt/conda/bin", "$PATH:/opt/app/bin", "/app")}
		want, words = []codes.Code{codes.ProgramMissing, codes.MPINotInPath}, []string{"PATH"}
	case 1:
		m.python(r, "pass")
		set = corev1.EnvVar{Name: "OMPI_MCA_btl", Value: "^tcp"}
		want, words = []codes.Code{codes.NoTransport}, []string{"btl"}
	case 2:
		m.python(r, "pass")
		name := pick(r, "eth7", "ib0", "ens192")
		set = corev1.EnvVar{Name: "OMPI_MCA_btl_tcp_if_include", Value: name}
		want, words = []codes.Code{codes.WrongInterface, codes.NoTransport}, []string{name}
	default:
		m.python(r, "steps = int(os.environ['STEPS'])")
		value := pick(r, "100k", "ten", "1e3")
		set = corev1.EnvVar{Name: "STEPS", Value: value}
		words = []string{value}
	}
	m.both(func(pod *corev1.PodSpec) { pod.Containers[0].Env = append(pod.Containers[0].Env, set) })
	m.what = "variable " + set.Name + "=" + set.Value
	m.truth = truth{codes: want, words: words}
}

func breakShell(m *mutant, r *rand.Rand) {
	run := strings.Join(mpiCommand(m.sample, "ranks"), " ")
	var command string
	var words []string
	want := []codes.Code{codes.ApplicationFailed}
	switch r.IntN(5) {
	case 0:
		command, words = "if true; then "+run, []string{"yntax error"}
	case 1:
		command, words = "cd /workspace/project && "+run, []string{"/workspace/project"}
	case 2:
		command, words = "set -eu; echo $MODEL_DIR; "+run, []string{"MODEL_DIR"}
	case 3:
		command, want, words = "source /opt/conda/bin/activate && "+run, []codes.Code{codes.ApplicationFailed, codes.ProgramMissing}, []string{"/opt/conda/bin/activate"}
	default:
		command, words = "cat /config/train.yaml && "+run, []string{"/config/train.yaml"}
	}
	launcher(m.job).Command = []string{"bash", "-c", command}
	m.what = command
	m.truth = truth{codes: want, words: words}
}

func breakImage(m *mutant, r *rand.Rand) {
	var image string
	var words []string
	want := []codes.Code{codes.ImagePullFailed}
	switch r.IntN(4) {
	case 0:
		image, words = "registry.invalid/team/"+pick(r, "train", "solver")+":1", []string{"registry.invalid"}
	case 1:
		image, want, words = "quay.io/Team/Train:1", []codes.Code{codes.InvalidImageName}, []string{"quay.io/Team/Train:1"}
	case 2:
		image, words = "odh/never-built-"+fmt.Sprint(r.IntN(99))+":dev", []string{"odh/never-built"}
	default:
		image, want, words = "quay.io/team/train:", []codes.Code{codes.InvalidImageName}, []string{"quay.io/team/train:"}
	}
	m.both(func(pod *corev1.PodSpec) {
		pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = image, pick(r, "", corev1.PullIfNotPresent)
	})
	m.what = "image " + image
	m.truth = truth{codes: want, words: words, runs: true}
}

func breakReference(m *mutant, r *rand.Rand) {
	name := pick(r, "settings", "hub-token", "s3-credentials")
	var change func(c *corev1.Container)
	words := []string{name}
	switch r.IntN(4) {
	case 0:
		change = func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
		}
		m.what = "envFrom of the missing Secret " + name
	case 1:
		m.objects = append(m.objects, configMap("", name, "epochs", "3"))
		change = func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "LR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "rate"}}}}
		}
		words = append(words, "rate")
		m.what = "missing key rate of the ConfigMap " + name
	default:
		change = func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
		}
		m.what = "envFrom of the missing ConfigMap " + name
	}
	m.both(func(pod *corev1.PodSpec) { change(&pod.Containers[0]) })
	m.truth = truth{codes: []codes.Code{codes.MissingReference}, words: words, runs: true}
}

func breakVolume(m *mutant, r *rand.Rand) {
	name := pick(r, "datasets", "scratch", "results")
	source, want, words := corev1.VolumeSource{}, codes.MissingReference, []string{name}
	switch r.IntN(4) {
	case 0:
		source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		want = codes.VolumeClaimPending
	case 1:
		m.objects = append(m.objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new("fast-ssd"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		want, words = codes.VolumeClaimPending, []string{name, "fast-ssd"}
	case 2:
		source.Secret = &corev1.SecretVolumeSource{SecretName: name}
	default:
		m.objects = append(m.objects, configMap("", name, "a.yaml", "x"))
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: []corev1.KeyToPath{{Key: "b.yaml", Path: "b.yaml"}}}
		want, words = codes.MissingReference, []string{name, "b.yaml"}
	}
	m.both(func(pod *corev1.PodSpec) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/data"})
	})
	m.what = fmt.Sprintf("a volume %s: %s", name, want)
	m.truth = truth{codes: []codes.Code{want, codes.MountFailed}, words: words, runs: true}
}

func breakPlace(m *mutant, r *rand.Rand) {
	var words []string
	want := []codes.Code{codes.NoMatchingNode}
	switch r.IntN(4) {
	case 0:
		value := pick(r, "a100", "h100", "mi300x")
		m.both(func(pod *corev1.PodSpec) { pod.NodeSelector = map[string]string{"example.com/gpu-model": value} })
		m.what, words = "node selector "+value, []string{"example.com/gpu-model"}
	case 1:
		m.both(func(pod *corev1.PodSpec) {
			pod.Containers[0].Resources.Requests[corev1.ResourceMemory], pod.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("3Ti"), resource.MustParse("3Ti")
		})
		m.what, want, words = "3Ti of memory", []codes.Code{codes.InsufficientResources, codes.GangNeverFits}, []string{"memory"}
	case 2:
		m.both(func(pod *corev1.PodSpec) {
			pod.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1")
		})
		m.what, want, words = "a GPU", []codes.Code{codes.InsufficientResources, codes.GangNeverFits}, []string{"nvidia.com/gpu"}
	default:
		m.both(func(pod *corev1.PodSpec) {
			pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"eu-west-9z"}}},
			}}}}}
		})
		m.what, words = "node affinity to a zone", []string{"topology.kubernetes.io/zone"}
	}
	m.truth = truth{codes: want, words: words, runs: true}
}

func breakName(m *mutant, r *rand.Rand) {
	var want []codes.Code
	var words []string
	switch r.IntN(4) {
	case 0:
		m.both(func(pod *corev1.PodSpec) { pod.SchedulerName = "volcano" })
		m.what, want, words = "scheduler volcano", []codes.Code{codes.NoScheduler}, []string{"volcano"}
	case 1:
		m.both(func(pod *corev1.PodSpec) { pod.PriorityClassName = "research-high" })
		m.what, want, words = "priority class research-high", []codes.Code{codes.MissingReference, codes.ObjectRefused}, []string{"research-high"}
	case 2:
		m.both(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "trainer" })
		m.what, want, words = "service account trainer", []codes.Code{codes.MissingReference, codes.ObjectRefused}, []string{"trainer"}
	default:
		// migrate leaves the field out: Trainer's API has none.
		m.trainJob = false
		m.both(func(pod *corev1.PodSpec) { pod.RuntimeClassName = new("nvidia") })
		m.what, want, words = "runtime class nvidia", []codes.Code{codes.MissingReference, codes.ObjectRefused, codes.ContainerCreateFailed}, []string{"nvidia"}
	}
	m.truth = truth{codes: want, words: words, runs: true}
}

func breakHook(m *mutant, r *rand.Rand) {
	command := []string{"sh", "-c", "echo cannot reach the cache >&2; exit " + fmt.Sprint(1+r.IntN(9))}
	m.workers(func(pod *corev1.PodSpec) {
		pod.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
	})
	m.what = "a postStart hook that fails"
	m.truth = truth{codes: []codes.Code{codes.HookFailed.Code}, words: []string{"postStart"}, runs: true}
}

func breakProbe(m *mutant, r *rand.Rand) {
	probe := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, ProbeHandler: pick(r,
		corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/alive"}}},
		corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}})}
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.workers(func(pod *corev1.PodSpec) { pod.Containers[0].LivenessProbe = probe })
	m.what = "a liveness probe of the workers that never succeeds"
	m.truth = truth{codes: []codes.Code{codes.ProbeFailed}, words: []string{"iveness"}, runs: true}
}

func breakInit(m *mutant, r *rand.Rand) {
	code := 1 + r.IntN(100)
	m.workers(func(pod *corev1.PodSpec) {
		pod.InitContainers = []corev1.Container{{
			Name: "fetch-data", Image: pod.Containers[0].Image, SecurityContext: restricted(), Command: []string{"sh", "-c", fmt.Sprintf("echo bucket not found >&2; exit %d", code)},
		}}
	})
	m.what = fmt.Sprintf("an init container exits with %d", code)
	m.truth = truth{codes: []codes.Code{codes.CrashLoop, codes.ApplicationFailed}, words: []string{"fetch-data", "bucket not found"}, runs: true}
}

func breakSidecar(m *mutant, r *rand.Rand) {
	code := 1 + r.IntN(100)
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.workers(func(pod *corev1.PodSpec) {
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: "log-shipper", Image: pod.Containers[0].Image, SecurityContext: restricted(), Command: []string{"sh", "-c", fmt.Sprintf("sleep 2; echo no route to loki >&2; exit %d", code)},
		})
	})
	m.what = fmt.Sprintf("a sidecar of the workers exits with %d", code)
	m.truth = truth{codes: []codes.Code{codes.SidecarFailed, codes.CrashLoop}, words: []string{"log-shipper"}, runs: true}
}

func breakDeadline(m *mutant, r *rand.Rand) {
	seconds := int64(12 + r.IntN(10))
	m.job.Spec.RunPolicy.ActiveDeadlineSeconds = new(seconds)
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.what = fmt.Sprintf("a deadline of %d s", seconds)
	m.truth = truth{codes: []codes.Code{codes.DeadlineExceeded}, words: []string{fmt.Sprint(seconds)}, after: 20 * time.Second}
}

func breakSecurity(m *mutant, r *rand.Rand) {
	var words []string
	var change func(c *corev1.SecurityContext)
	switch r.IntN(3) {
	case 0:
		change, words = func(c *corev1.SecurityContext) { c.Privileged, c.AllowPrivilegeEscalation = new(true), nil }, []string{"privileged"}
	case 1:
		change, words = func(c *corev1.SecurityContext) { c.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"} }, []string{"SYS_PTRACE"}
	default:
		change, words = func(c *corev1.SecurityContext) { c.RunAsUser, c.RunAsNonRoot = new(int64(0)), new(false) }, []string{"runAsNonRoot"}
	}
	m.both(func(pod *corev1.PodSpec) { change(pod.Containers[0].SecurityContext) })
	m.what = "forbidden by the namespace's Pod Security level: " + words[0]
	m.truth = truth{codes: []codes.Code{codes.PodSecurityDenied}, words: words, runs: true}
}

func breakByHang(m *mutant, r *rand.Rand) {
	rank := r.IntN(4)
	option := pick(r, "--wait", "--loop")
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", option, fmt.Sprint(rank))
	m.truth = truth{codes: []codes.Code{codes.RanksWaiting}, runs: true, after: 30 * time.Second}
	m.what = fmt.Sprintf("rank %d waits for a message that nobody sends", rank)
	if option == "--loop" {
		m.what = fmt.Sprintf("rank %d computes for ever, the others wait", rank)
		m.truth = truth{codes: []codes.Code{codes.Straggler}, words: []string{fmt.Sprintf("rank %d", rank)}, runs: true, after: time.Minute}
	}
}

// TestMutantsAreTheSame: a seed makes the same mutants each time, of all families, each with a truth.
func TestMutantsAreTheSame(t *testing.T) {
	t.Parallel()
	number := len(mistakes())
	one, other := makeMutants(7, number), makeMutants(7, number)
	families := map[string]bool{}
	for i, m := range one {
		if m.String() != other[i].String() {
			t.Errorf("%s, and %s", m, other[i])
		}
		if m.what == "" || len(m.truth.codes) == 0 {
			t.Errorf("%s has no truth", m)
		}
		families[m.family] = true
	}
	if len(families) != number {
		t.Errorf("%d families of %d", len(families), number)
	}
}
