// Package runtimetest tests MPI runtimes: it defines the TrainJob of a test, and derives the result of each check
// from the JobReport and the output. It is pure.
package runtimetest

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Workers is the number of workers of a test, in addition to the launcher.
const Workers = 2

var output = regexp.MustCompile(`mpi-runtime-test: rank ([0-9]{1,6}|\?) on ([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)`)

// mostRanks limits how many ranks are read from an output.
const mostRanks = 64

// Hosts returns the host names in a launcher's output, one for each rank that printed its host.
func Hosts(log string) []string {
	var hosts []string
	for _, match := range output.FindAllStringSubmatch(log, mostRanks) {
		hosts = append(hosts, match[2])
	}
	return hosts
}

// JobName returns the name of the test's TrainJob. It is short, because pod names start with it, and includes part of
// the UID.
func JobName(test v1alpha1.RuntimeTest) string {
	return "rtt-" + string(test.UID[:min(len(test.UID), 8)])
}

// Ref returns the test's TrainJob with the fields that are needed to look up its runtime.
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

// Cluster is what a test's job depends on besides its runtime.
type Cluster struct {
	// Limits are those of the jobs of the test's namespace.
	Limits trainjob.Limits
	// HasOverrides is whether TrainJobs have podTemplateOverrides, and not runtimePatches.
	HasOverrides bool
}

// Job returns the TrainJob that tests a runtime: a launcher and two workers, or as many as the runtime requires, with one rank per pod that
// runs ranks, on nodes with the labels that the runtime and the namespace require. A nil runtime is one that does not exist. The error
// explains to users why the runtime cannot be tested.
func Job(test v1alpha1.RuntimeTest, used *trainjob.Runtime, in Cluster) (*unstructured.Unstructured, error) {
	ref := test.Spec.RuntimeRef
	switch {
	case used == nil && ref.Kind == trainjob.RuntimeKind:
		return nil, fmt.Errorf("TrainingRuntime %s does not exist in namespace %s; correct the name, or set kind to ClusterTrainingRuntime for a runtime of the cluster", ref.Name, test.Namespace)
	case used == nil:
		return nil, fmt.Errorf("ClusterTrainingRuntime %s does not exist; correct the name, or set kind to TrainingRuntime for a runtime of the namespace", ref.Name)
	case !used.IsMPI():
		return nil, fmt.Errorf("%s %s is not an MPI runtime: it has no spec.mlPolicy.mpi, and only runtimes with this field can be tested", ref.Kind, ref.Name)
	}
	if errs := trainjob.CheckRuntime(*used); len(errs) > 0 {
		return nil, fmt.Errorf("%s %s is invalid: %w", ref.Kind, ref.Name, errs.ToAggregate())
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
	// A runtime may require more nodes.
	ranks = max(ranks, int32(min(used.MinWorkers(), mostRanks)))
	job.Spec.Trainer.NumNodes = &ranks
	job.Spec.Trainer.Command = append([]string{mpirun, "-n", fmt.Sprint(ranks), "sh", "-c", rankScript}, exchanges(converted, mpirun)...)
	job.Spec.PodTemplateOverrides = trainjob.RequiredNodes(job, *used, in.Limits)
	pods := ranks
	if !converted.Launcher.RunsRanks {
		pods++
	}
	if errs, _ := trainjob.Check(job, *used); len(errs) > 0 {
		return nil, fmt.Errorf("%s %s does not accept the test's job of %d pods: %w", ref.Kind, ref.Name, pods, errs.ToAggregate())
	}
	return written(test, job, in.HasOverrides)
}

// exchanges returns the arguments of the ranks' script; none if some ranks could lack what others have, because the launcher
// has another image: MPI needs all ranks.
func exchanges(job mpi.Job, mpirun string) []string {
	launcher, workers := job.Launcher.Template.Spec.Containers, job.Workers.Template.Spec.Containers
	if job.Launcher.RunsRanks && len(launcher) > 0 && len(workers) > 0 && launcher[0].Image != workers[0].Image {
		return nil
	}
	return []string{"sh", agentapi.ExchangeLibrary, mpirun}
}

// Ranks returns the number of ranks of the test's job.
func Ranks(job *unstructured.Unstructured) int {
	n, _, _ := unstructured.NestedInt64(job.Object, "spec", "trainer", "numNodes")
	return int(n)
}

// patchManager is the author of the patches in a test's job.
const patchManager = mpi.Group + "/runtime-test"

// written returns the TrainJob in the form of the cluster's version of Trainer.
func written(test v1alpha1.RuntimeTest, job trainjob.TrainJob, hasOverrides bool) (*unstructured.Unstructured, error) {
	trainer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job.Spec.Trainer)
	if err != nil {
		return nil, fmt.Errorf("encode the test's job: %w", err)
	}
	// One rank per pod, whatever the runtime sets.
	trainer["numProcPerNode"] = int64(1)
	object := trainjob.New()
	object.SetNamespace(job.Namespace)
	object.SetName(job.Name)
	if queue := test.Labels[mpi.LabelQueue]; queue != "" {
		object.SetLabels(map[string]string{mpi.LabelQueue: queue})
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&test, v1alpha1.GroupVersion.WithKind("RuntimeTest"))})
	spec := map[string]any{
		"runtimeRef": map[string]any{"name": job.Spec.RuntimeRef.Name, "kind": job.Spec.RuntimeRef.Kind},
		"trainer":    trainer,
	}
	object.Object["spec"] = spec
	var overrides []any
	var patches []trainjob.JobPatch
	for _, override := range job.Spec.PodTemplateOverrides {
		selector := map[string]any{}
		for key, value := range override.Spec.NodeSelector {
			selector[key] = value
		}
		pod := map[string]any{"nodeSelector": selector}
		for _, target := range override.TargetJobs {
			overrides = append(overrides, map[string]any{"targetJobs": []any{map[string]any{"name": target.Name}}, "spec": pod})
			patches = append(patches, trainjob.JobPatch{Job: target.Name, Template: map[string]any{"spec": pod}})
		}
	}
	switch {
	case len(patches) == 0:
	case hasOverrides:
		spec["podTemplateOverrides"] = overrides
	default:
		spec["runtimePatches"] = trainjob.RuntimePatches(patchManager, patches)
	}
	return object, nil
}
