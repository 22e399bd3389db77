package jobs

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/logstream"
)

// OwnPlace returns a function like Job.Place that also returns false for pods that only have the labels of the job's pods:
// whoever may create pods in the namespace can set any labels. The function reads the Jobs and the JobSet between the job and
// its pods, each once.
func (c *Client) OwnPlace(ctx context.Context, job Job) func(*corev1.Pod) (logstream.Place, bool) {
	o := &owners{c: c, job: job, verdicts: map[types.UID]bool{}}
	return func(pod *corev1.Pod) (logstream.Place, bool) {
		place, is := job.Place(pod)
		return place, is && (job.Object == nil || o.control(ctx, metav1.GetControllerOfNoCopy(pod)))
	}
}

// owners finds out which objects the job controls, directly or not.
type owners struct {
	c   *Client
	job Job

	mu       sync.Mutex
	verdicts map[types.UID]bool
}

// control reports whether the job is an object's controller, or controls its controller. Where an object between them cannot
// be read, or is not the one that was named, the names decide: the garbage collector deletes pods whose owner does not exist,
// and pods of a deleted Job still have logs.
func (o *owners) control(ctx context.Context, controller *metav1.OwnerReference) bool {
	switch {
	case controller == nil:
		return false
	case controller.UID == o.job.UID:
		return true
	case controller.Kind != "Job" && controller.Kind != "JobSet":
		return false
	}
	o.mu.Lock()
	verdict, known := o.verdicts[controller.UID]
	o.mu.Unlock()
	if known {
		return verdict
	}
	named := controller.Name == o.job.Name || strings.HasPrefix(controller.Name, o.job.Name+"-")
	between := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: controller.APIVersion, Kind: controller.Kind}}
	err := o.c.api.Get(ctx, types.NamespacedName{Namespace: o.job.Namespace, Name: controller.Name}, between)
	switch {
	case err != nil || between.UID != controller.UID:
		verdict = named
	default:
		next := metav1.GetControllerOfNoCopy(between)
		// A Job can belong to a JobSet, and nothing else between them: references of users may form a circle.
		verdict = next != nil && (next.UID == o.job.UID || controller.Kind == "Job" && next.Kind == "JobSet" && o.control(ctx, next))
	}
	if ctx.Err() == nil {
		o.mu.Lock()
		o.verdicts[controller.UID] = verdict
		o.mu.Unlock()
	}
	return verdict
}
