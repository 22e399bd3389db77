// Package runtimetest is a test of an MPI runtime: the TrainJob that tries it, and what its record and its ranks' output
// say of each step. All of it is pure.
package runtimetest

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Workers is how many workers a test has, beside its launcher.
const Workers = 2

// labelQueue names the queue of Kueue that a test waits in as any other job.
const labelQueue = "kueue.x-k8s.io/queue-name"

// command is what each rank runs, with nothing but what a shell has built in: it tells where it is.
const command = `read host </proc/sys/kernel/hostname; echo "mpi-runtime-test: rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-?}} on $host"`

var output = regexp.MustCompile(`mpi-runtime-test: rank ([0-9]{1,6}|\?) on ([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)`)

// Hosts are the host names that a launcher's output has, one for each rank that told where it is.
func Hosts(log string) []string {
	const most = 64
	var hosts []string
	for _, match := range output.FindAllStringSubmatch(log, most) {
		hosts = append(hosts, match[2])
	}
	return hosts
}

// JobName names the TrainJob of this very test. The names of its pods begin with it, and have to be short.
func JobName(test v1alpha1.RuntimeTest) string {
	return "rtt-" + string(test.UID[:min(len(test.UID), 8)])
}

// Ref is the test's job with as much as it takes to read its runtime.
func Ref(test v1alpha1.RuntimeTest) trainjob.TrainJob {
	var job trainjob.TrainJob
	job.Namespace, job.Name = test.Namespace, JobName(test)
	job.Spec.RuntimeRef = trainjob.RuntimeRef{Name: test.Spec.RuntimeRef.Name, Kind: test.Spec.RuntimeRef.Kind}
	job.Spec.Trainer = &trainjob.Trainer{ResourcesPerNode: test.Spec.ResourcesPerNode}
	if test.Spec.Image != "" {
		job.Spec.Trainer.Image = &test.Spec.Image
	}
	return job
}

// Job is the TrainJob that tries a runtime: a launcher and two workers with a rank on each pod that runs ranks. A nil
// runtime is one that does not exist. The error says for people why the runtime cannot be tried.
func Job(test v1alpha1.RuntimeTest, used *trainjob.Runtime) (*unstructured.Unstructured, error) {
	ref := test.Spec.RuntimeRef
	switch {
	case used == nil && ref.Kind == trainjob.RuntimeKind:
		return nil, fmt.Errorf("there is no TrainingRuntime %s in the namespace %s: correct the name, or set kind to ClusterTrainingRuntime for one of the whole cluster", ref.Name, test.Namespace)
	case used == nil:
		return nil, fmt.Errorf("there is no ClusterTrainingRuntime %s: correct the name, or set kind to TrainingRuntime for one of the namespace", ref.Name)
	case !used.IsMPI():
		return nil, fmt.Errorf("%s %s is no MPI runtime: it has no spec.mlPolicy.mpi, and only runtimes that have it can be tested", ref.Kind, ref.Name)
	}
	if errs := trainjob.CheckRuntime(*used); len(errs) > 0 {
		return nil, fmt.Errorf("%s %s cannot be used as it is: %w", ref.Kind, ref.Name, errs.ToAggregate())
	}
	job := Ref(test)
	converted := trainjob.Convert(job, *used)
	ranks, mpirun := int32(Workers), "mpirun"
	if converted.Launcher.RunsRanks {
		ranks++
	}
	if converted.Implementation != mpi.OpenMPI {
		mpirun = "mpiexec"
	}
	job.Spec.Trainer.NumNodes = &ranks
	job.Spec.Trainer.Command = []string{mpirun, "-n", fmt.Sprint(ranks), "sh", "-c", command}
	if errs, _ := trainjob.Check(job, *used); len(errs) > 0 {
		return nil, fmt.Errorf("%s %s does not take the test's job of %d pods: %w", ref.Kind, ref.Name, Workers+1, errs.ToAggregate())
	}
	return written(test, job)
}

// Ranks is how many ranks the test's job has.
func Ranks(job *unstructured.Unstructured) int {
	n, _, _ := unstructured.NestedInt64(job.Object, "spec", "trainer", "numNodes")
	return int(n)
}

// written is the object as both versions of Trainer's API take it.
func written(test v1alpha1.RuntimeTest, job trainjob.TrainJob) (*unstructured.Unstructured, error) {
	trainer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job.Spec.Trainer)
	if err != nil {
		return nil, fmt.Errorf("write the test's job: %w", err)
	}
	// A rank for each pod, whatever the runtime has.
	trainer["numProcPerNode"] = int64(1)
	object := trainjob.New()
	object.SetNamespace(job.Namespace)
	object.SetName(job.Name)
	if queue := test.Labels[labelQueue]; queue != "" {
		object.SetLabels(map[string]string{labelQueue: queue})
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&test, v1alpha1.GroupVersion.WithKind("RuntimeTest"))})
	object.Object["spec"] = map[string]any{
		"runtimeRef": map[string]any{"name": job.Spec.RuntimeRef.Name, "kind": job.Spec.RuntimeRef.Kind},
		"trainer":    trainer,
	}
	return object, nil
}
