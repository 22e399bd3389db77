// Package kinds connects each job API with the core model. A kind reads its objects, says what job they
// describe, and writes back what became of it; nothing else knows its fields.
package kinds

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// Kind is one API in which users write MPI jobs.
type Kind interface {
	// Name is the kind as users write it, such as MPIJob.
	Name() string
	// New returns an empty object of the kind, to watch and to decode into.
	New() client.Object
	// Load reads the object of that name; nil where there is none. The object may be shared with a cache.
	Load(ctx context.Context, from client.Reader, key types.NamespacedName) (client.Object, error)
	// Convert says what job an object describes, every default in place, and what in the object no job can
	// be. A job that comes with errors must not be run.
	Convert(object client.Object) (mpi.Job, field.ErrorList)
	// Change says what in a change of an object is not allowed now, although the object would be a good one.
	Change(before, after client.Object) field.ErrorList
	// Status says what the object's status becomes with an outcome: a changed copy and the events that tell of
	// the change, or nil where the status says all of it already.
	Status(object client.Object, out mpi.Outcome, now time.Time) (client.Object, []Event)
}

// Event is a Kubernetes event to record of a job.
type Event struct {
	// Warning tells the event's type: Warning, else Normal.
	Warning bool
	// Reason is one word in CamelCase, Message a sentence for people.
	Reason, Message string
}
