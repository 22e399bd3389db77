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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
)

// mutant is a correct job in which one thing was broken.
type mutant struct {
	// family is the kind of mistake, and what is what was done.
	family, what string
	// base is the correct job that was broken.
	base string
	// sample is the image of the job's MPI.
	sample   string
	trainJob bool
	job      *kubeflow.MPIJob
	// inRuntime are changes of pods that a TrainJob cannot state itself: its runtime has them.
	inRuntime []runtimeChange
	// objects are others that the job needs; they are created first. quota is that of the namespace, which is open if it admits any pod.
	objects []client.Object
	quota   string
	open    bool
	truth   truth
}

// runtimeChange changes the pods of a role in a TrainJob's runtime: launcher or node.
type runtimeChange func(role string, pod *corev1.PodSpec)

func (m mutant) String() string {
	return fmt.Sprintf("%s, %s, %s, %s: %s", m.family, m.kind(), m.sample, m.base, m.what)
}

// truth is what a mutant must be told, known by how it was made. A job that is refused must have all of Says in the error, and there must be some.
type truth struct {
	mpitest.Truth
	// curable is whether the remedy that changes the job lets it succeed.
	curable bool
	// runs is whether the job does not end by itself.
	runs bool
	// after is how long it takes at least.
	after time.Duration
}

// family is a way to break a job: it is given a correct job, changes one thing, and states the truth.
type family struct {
	change func(m *mutant, r *rand.Rand)
	// anyJob is whether it breaks any correct job; otherwise it needs the program ranks, with two workers.
	anyJob bool
}

func mistakes() map[string]family {
	return map[string]family{
		"exception": {breakByException, false}, "exit code": {breakByExit, false}, "signal": {breakBySignal, false}, "MPI call": {breakByMPICall, false},
		"memory": {breakByMemory, false}, "missing program": {breakProgram, false}, "missing launcher": {breakLauncher, false}, "script": {breakScript, false},
		"too many ranks": {breakRanks, false}, "launcher's option": {breakOption, false}, "variable": {breakVariable, false}, "shell": {breakShell, false},
		"image": {breakImage, true}, "reference": {breakReference, true}, "volume": {breakVolume, true}, "place": {breakPlace, true}, "name": {breakName, true},
		"hook": {breakHook, true}, "probe": {breakProbe, false}, "init container": {breakInit, true}, "sidecar": {breakSidecar, false},
		"deadline": {breakDeadline, false}, "security": {breakSecurity, false}, "hang": {breakByHang, false},
		"network": {breakNetwork, false}, "name resolution": {breakDNS, true}, "size": {breakSize, true}, "node": {breakNode, true},
		"time limit of a pod": {breakPodDeadline, false}, "slow start": {breakStart, true}, "late file": {breakFile, false}, "short record": {breakTTL, false},
		"quota": {breakQuota, true}, "limit range": {breakLimitRange, true}, "file mode": {breakFileMode, false}, "full volume": {breakDisk, false},
	}
}

// makeMutants returns n mutants; the same for the same seed. Families take turns, so that each is tried alike, and so do the kinds within a family.
func makeMutants(t *testing.T, seed uint64, n int) []mutant {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the mutants are to be the same each time
	all := mistakes()
	var families []string
	for name := range all {
		families = append(families, name)
	}
	slices.Sort(families)
	asTrainJob := map[string]bool{}
	for _, name := range families {
		asTrainJob[name] = r.IntN(2) == 0
	}
	var made []mutant
	for i := range n {
		if i%len(families) == 0 {
			r.Shuffle(len(families), func(i, j int) { families[i], families[j] = families[j], families[i] })
		}
		name := families[i%len(families)]
		m := mutant{family: name, sample: pick(r, "openmpi", "openmpi", "openmpi5", "mpich", "intelmpi"), trainJob: asTrainJob[name]}
		asTrainJob[name] = !asTrainJob[name]
		m.setBase(t, r, all[name].anyJob)
		m.job.Spec.RunPolicy.BackoffLimit = pick(r, new(int32(0)), new(int32(0)), nil)
		m.job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = pick(r, kubeflow.RestartPolicyNever, kubeflow.RestartPolicyOnFailure, "")
		all[name].change(&m, r)
		made = append(made, m)
	}
	return made
}

// setBase gives a mutant the correct job that is broken: one of the program ranks, or one of the samples and upstream's example.
func (m *mutant) setBase(t *testing.T, r *rand.Rand, anyJob bool) {
	t.Helper()
	m.base = "ranks"
	if anyJob {
		m.base = pick(r, "ranks", "pi", "train", "upstream's pi")
	}
	switch {
	case m.base == "upstream's pi" && !m.trainJob:
		m.sample, m.open = "openmpi-sshd", true
		m.job = &kubeflow.MPIJob{}
		if err := yaml.UnmarshalStrict(published(t, "", "v2beta1/pi/pi.yaml"), m.job); err != nil {
			t.Fatal(err)
		}
	case m.base == "pi", m.base == "train":
		if m.base == "train" {
			// The other images lack Python.
			m.sample = "openmpi"
		}
		m.job = sample(t, m.base, "")
		m.job.Spec.MPIImplementation = mpiOf(m.sample)
		launcher(m.job).Command[0] = mpiCommand(m.sample)[0]
	default:
		m.base = "ranks"
		m.job = agentJob("", "job", m.sample, mpiOf(m.sample), 2, mpiCommand(m.sample, "ranks")...)
	}
	for _, container := range []*corev1.Container{launcher(m.job), worker(m.job)} {
		container.Image, container.ImagePullPolicy = sampleImage(m.sample), corev1.PullIfNotPresent
		if container.Resources.Requests == nil {
			container.Resources.Requests = corev1.ResourceList{}
		}
		if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
			container.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		}
	}
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

// expects states the code of a mutant's first finding and parts of its summary.
func (m *mutant) expects(code codes.Code, says ...string) {
	m.truth.Codes, m.truth.Says = []string{code}, says
}

// waits states the same of a job that does not end by itself.
func (m *mutant) waits(code codes.Code, says ...string) {
	m.expects(code, says...)
	m.truth.runs = true
}

// advises states parts of the first remedy, one of which is enough.
func (m *mutant) advises(parts ...string) { m.truth.Advises = parts }

// isOf states the rank at fault.
func (m *mutant) isOf(rank int) { m.truth.Rank = new(int32(rank)) } //nolint:gosec // it is one of four

// use makes the job one of another MPI.
func (m *mutant) use(sample string) {
	m.sample = sample
	m.job.Spec.MPIImplementation = mpiOf(sample)
	launcher(m.job).Image, worker(m.job).Image = sampleImage(sample), sampleImage(sample)
	launcher(m.job).Command[0] = mpiCommand(sample)[0]
}

// python makes the job one with Open MPI that runs a program in which one rank, or each, runs some lines.
func (m *mutant) python(r *rand.Rand, lines ...string) (one bool) {
	m.use("openmpi")
	condition := "True"
	if one = r.IntN(2) == 0; one {
		rank := r.IntN(4)
		condition = fmt.Sprintf("rank == %d", rank)
		m.isOf(rank)
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

// bothInRuntime is both for a field that only the runtime of a TrainJob has.
func (m *mutant) bothInRuntime(change func(pod *corev1.PodSpec)) {
	if m.trainJob {
		m.inRuntime = append(m.inRuntime, func(_ string, pod *corev1.PodSpec) { change(pod) })
		return
	}
	m.both(change)
}

// workers changes the pods of the workers: those of a TrainJob in its runtime.
func (m *mutant) workers(change func(pod *corev1.PodSpec)) {
	m.truth.Pod = "-worker-"
	if m.trainJob {
		m.truth.Pod = "-node-"
		m.inRuntime = append(m.inRuntime, func(role string, pod *corev1.PodSpec) {
			if role == "node" {
				change(pod)
			}
		})
		return
	}
	change(&m.job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec)
}

// mount mounts a volume in all pods.
func (m *mutant) mount(source corev1.VolumeSource, at string) {
	m.both(func(pod *corev1.PodSpec) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: at})
	})
}

// TestMutantsAreTheSame: a seed makes the same mutants each time, of all families and both kinds, each with a truth.
func TestMutantsAreTheSame(t *testing.T) {
	t.Parallel()
	number := len(mistakes())
	one, other := makeMutants(t, 7, 2*number), makeMutants(t, 7, 2*number)
	families, bases, trainJobs := map[string]int{}, map[string]bool{}, 0
	for i, m := range one {
		if m.String() != other[i].String() {
			t.Errorf("%s, and %s", m, other[i])
		}
		if m.what == "" || len(m.truth.Codes) == 0 {
			t.Errorf("%s has no truth", m)
		}
		families[m.family]++
		bases[m.base] = true
		if m.trainJob {
			trainJobs++
		}
	}
	if len(families) != number || len(bases) != 4 || trainJobs < number-6 {
		t.Errorf("%d families of %d with the bases %v, %d TrainJobs", len(families), number, bases, trainJobs)
	}
	for name, times := range families {
		if times != 2 {
			t.Errorf("family %s is tried %d times", name, times)
		}
	}
}
