// Package kinds connects each job API with the model. A kind reads its objects, converts them to jobs, judges what was
// observed of them, and writes their status. No other package uses the fields of a kind.
package kinds

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Kind is an API in which users write jobs.
type Kind interface {
	// Name returns the name of the kind, such as MPIJob.
	Name() string
	// New returns an empty object of the kind, NewList an empty list of them.
	New() client.Object
	NewList() client.ObjectList
	// Load reads a job by name, with the objects that other controllers created for it. It returns nil if the job does
	// not exist. The objects may be shared with a cache and must not be changed.
	Load(ctx context.Context, from Readers, key types.NamespacedName) (Job, error)
	// Runner returns what runs the jobs; nil if the operator does.
	Runner() *Runner
}

// Job is a job as Load read it. Its methods are pure: they use nothing but what was read.
type Job interface {
	// Object returns what users wrote.
	Object() client.Object
	// Convert returns the job with all defaults, and the errors because of which it must not be run.
	Convert() (mpi.Job, field.ErrorList)
	// Observe adds the objects that other controllers created for the job to those that the operator created.
	Observe(seen jobstate.Observed) jobstate.Observed
	// Judge decides the state of the job.
	Judge(job mpi.Job, seen jobstate.Observed) jobstate.Outcome
	// Status returns a copy of the object with the status of an outcome, and the events for the changes. It returns
	// nil if the status does not change, or is written by another controller.
	Status(out jobstate.Outcome, now time.Time) (client.Object, []Event)
}

// Validated is a kind whose jobs the operator's webhook validates.
type Validated interface {
	// Name returns the name of the kind, such as MPIJob.
	Name() string
	// New returns an empty object of the kind.
	New() client.Object
	// Convert returns the job that an object describes, with all defaults, and the fields that cannot be converted. A
	// job with errors must not be run.
	Convert(object client.Object) (mpi.Job, field.ErrorList)
	// Change returns the changes of an object that are not allowed in its current state, although the new object is
	// valid.
	Change(before, after client.Object) field.ErrorList
}

// Readers read the objects of jobs.
type Readers struct {
	// Cached reads what changes while a job exists, Live what is read once for a job.
	Cached, Live client.Reader
}

// Runner describes the controllers of others that run the jobs of a kind.
type Runner struct {
	// Name is the name of the product, such as Kubeflow Trainer.
	Name string
	// Requires lists the APIs without which the product is not installed.
	Requires []schema.GroupVersionKind
	// Creates is the kind of the object that is created for each job, with the job's name.
	Creates schema.GroupVersionKind
	// Label contains the name of the job. All Jobs and pods of a job have it. The cache indexes them by this name.
	Label string
	// Changed reports whether an update of a job's object changes a field that Load reads.
	Changed func(before, after *unstructured.Unstructured) bool
}

// Event is a Kubernetes event of a job.
type Event struct {
	// Warning is whether the type of the event is Warning instead of Normal.
	Warning bool
	// Reason is one word in CamelCase, Message a sentence for users.
	Reason, Message string
}
