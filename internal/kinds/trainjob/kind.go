package trainjob

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
)

// kind implements kinds.Kind for TrainJobs.
type kind struct {
	mu sync.Mutex
	// runtimes are the runtimes that jobs run with, from when a job has a JobSet: later changes of a runtime do not
	// apply to it.
	runtimes map[types.NamespacedName]usedRuntime
}

// usedRuntime is the runtime of the job with a UID.
type usedRuntime struct {
	job     types.UID
	runtime Runtime
}

// NewKind returns the kind TrainJob.
func NewKind() kinds.Kind { return &kind{runtimes: map[types.NamespacedName]usedRuntime{}} }

func (*kind) Name() string { return Kind }

func (*kind) New() client.Object { return New() }

func (*kind) NewList() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersion.WithKind(Kind + "List"))
	return list
}

func (*kind) Runner() *kinds.Runner {
	return &kinds.Runner{
		Name:     "Kubeflow Trainer",
		Requires: []schema.GroupVersionKind{GroupVersion.WithKind(Kind), JobSetKind},
		Creates:  JobSetKind,
		Label:    LabelJobSet,
		Changed:  changed,
	}
}

// changed ignores the status of a TrainJob except for its conditions, and annotations that have no effect on it.
func changed(before, after *unstructured.Unstructured) bool {
	was, _, _ := unstructured.NestedSlice(before.Object, "status", "conditions")
	is, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
	return before.GetGeneration() != after.GetGeneration() ||
		!mpi.SameAnnotations(Kind, before.GetAnnotations(), after.GetAnnotations()) || !equality.Semantic.DeepEqual(was, is)
}

// Load reads a TrainJob with its runtime, its JobSet, and the Jobs and pods with the JobSet's label.
func (k *kind) Load(ctx context.Context, from kinds.Readers, key types.NamespacedName) (kinds.Job, error) {
	object, written, err := loadJob(ctx, from.Cached, key)
	if err != nil {
		return nil, err
	}
	if written == nil {
		k.forget(key)
		return nil, nil
	}
	job := Job{object: object, TrainJob: *written}
	if written.DeletionTimestamp != nil {
		return job, nil
	}
	if err := job.loadObjects(ctx, from.Cached, key); err != nil {
		return nil, err
	}
	job.Runtime, err = k.runtimeFor(ctx, from.Live, job, key)
	return job, err
}

// loadObjects reads the objects that Trainer and JobSet created for a job.
func (j *Job) loadObjects(ctx context.Context, from client.Reader, key types.NamespacedName) error {
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(JobSetKind)
	switch err := from.Get(ctx, key, jobSet); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read JobSet %s: %w", key, err)
	case err != nil, !metav1.IsControlledBy(jobSet, &j.TrainJob):
		return nil
	}
	j.JobSet = jobSet
	var jobs batchv1.JobList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&jobs, &pods} {
		if err := from.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{LabelJobSet: key.Name}); err != nil {
			return fmt.Errorf("list %T of TrainJob %s: %w", list, key, err)
		}
	}
	j.Jobs, j.Pods = pointers(jobs.Items), pointers(pods.Items)
	return nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// runtimeFor returns the runtime that a job runs with. It is read from the API server until the job has a JobSet.
func (k *kind) runtimeFor(ctx context.Context, from client.Reader, job Job, key types.NamespacedName) (Runtime, error) {
	k.mu.Lock()
	known, found := k.runtimes[key]
	k.mu.Unlock()
	if found && known.job == job.UID {
		return known.runtime, nil
	}
	used, live, err := LoadRuntimes(ctx, from, job.TrainJob)
	switch {
	case err != nil:
		return Runtime{}, err
	case used == nil:
		// Trainer refuses jobs without a runtime: it was deleted later.
		used = &Runtime{}
	case live != nil:
		used.Version = VersionOf(live)
	}
	if job.JobSet != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.runtimes[key] = usedRuntime{job: job.UID, runtime: *used}
	}
	return *used, nil
}

func (k *kind) forget(job types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runtimes, job)
}
