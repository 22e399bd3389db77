package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// unawaited marks a write that the cache does not show in the same form, so that no read can wait for it.
const unawaited = client.DisableReadYourWritesConsistency

// Apply makes a plan come true: what pods need first, then the pods, and what is to go. It returns the
// objects that the API server will not take; it stops asking after the first of a kind of step, and the
// next pass asks again. An error is one that another pass may not meet.
//
// Nothing is ever overwritten that is not the job's: a new object is created, never applied over what may be
// there, and a change is applied to the very object that was observed.
func (c *Cluster) Apply(ctx context.Context, job mpi.Job, p plan.Plan) ([]mpi.Refusal, error) {
	if len(p.Base)+len(p.Pods)+len(p.Delete) == 0 {
		return nil, nil
	}
	c.gate.begin()
	defer c.gate.end()
	refusals, err := c.each(ctx, job, p.Base)
	removed := make(chan error, 1)
	go func() { removed <- c.remove(ctx, job, p.Delete) }()
	if err == nil && len(refusals) == 0 {
		refusals, err = c.each(ctx, job, p.Pods)
	}
	return refusals, errors.Join(err, <-removed)
}

// each creates or mends objects in parallel, in their order; after a refusal or an error no new one is begun.
func (c *Cluster) each(ctx context.Context, job mpi.Job, objects []plan.Object) ([]mpi.Refusal, error) {
	var (
		mu       sync.Mutex
		refusals []mpi.Refusal
	)
	refused := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(refusals) > 0
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, object := range objects {
		if refused() || groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			refusal, err := c.put(groupCtx, job, object)
			if refusal != nil {
				mu.Lock()
				defer mu.Unlock()
				refusals = append(refusals, *refusal)
			}
			return err
		})
	}
	err := group.Wait()
	return refusals, err
}

// put creates an object, or mends it where it has a UID.
func (c *Cluster) put(ctx context.Context, job mpi.Job, object plan.Object) (*mpi.Refusal, error) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	name := object.GetName()
	err := c.gate.enter(ctx, job.UID)
	if err != nil {
		return nil, err
	}
	if object.GetUID() == "" {
		err = c.create(ctx, object)
	} else {
		err = c.mend(ctx, object)
	}
	c.gate.leave(job.UID)
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// In a namespace that is going the job is going too.
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return c.taken(ctx, job, object)
	case refusal(err):
		return &mpi.Refusal{Kind: kind, Name: name, Message: err.Error()}, nil
	}
	return nil, fmt.Errorf("write %s %s: %w", kind, name, err)
}

func (c *Cluster) create(ctx context.Context, object plan.Object) error {
	var opts []client.CreateOption
	switch object.(type) {
	case *corev1.Secret, *unstructured.Unstructured:
		// Secrets are cached as metadata only; waiting for the whole object would start a cache of those. PodGroups are
		// in a cache of their own.
		opts = append(opts, unawaited)
	}
	return c.client.Create(ctx, object, opts...)
}

// mend makes a change. An object that is gone or was replaced since it was observed is left: the watch brings
// the next pass.
func (c *Cluster) mend(ctx context.Context, change plan.Object) error {
	var err error
	if launcher, ok := change.(*batchv1.Job); ok {
		err = c.mendLauncher(ctx, launcher)
	} else {
		err = c.applyFields(ctx, change)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// applyFields applies the fields that a change holds, by force: they are the operator's.
func (c *Cluster) applyFields(ctx context.Context, change plan.Object) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	version, kind := change.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	target := emptyOf(version, kind)
	target.SetNamespace(change.GetNamespace())
	target.SetName(change.GetName())
	opts := []client.PatchOption{client.ForceOwnership}
	if kind == "PodGroup" {
		opts = append(opts, unawaited)
	}
	return c.client.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, data), opts...)
}

// mendLauncher suspends or resumes a launcher. A resumed one takes over from the job what may be changed in a
// suspended Job, down to what is no longer there, which an apply would leave.
func (c *Cluster) mendLauncher(ctx context.Context, change *batchv1.Job) error {
	var have batchv1.Job
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(change), &have); err != nil {
		return err
	}
	if have.UID != change.UID {
		return nil
	}
	if resume := !*change.Spec.Suspend; resume {
		if have.Status.StartTime != nil {
			// The API server takes a Job with a start time for one that runs, whose template is fixed.
			have.Status.StartTime = nil
			if err := c.client.Status().Update(ctx, &have); err != nil {
				return err
			}
		}
		from, to := &change.Spec.Template, &have.Spec.Template
		to.Labels, to.Annotations = withJobLabels(from.Labels, to.Labels), from.Annotations
		to.Spec.NodeSelector, to.Spec.Affinity = from.Spec.NodeSelector, from.Spec.Affinity
		to.Spec.Tolerations, to.Spec.SchedulingGates = from.Spec.Tolerations, from.Spec.SchedulingGates
	}
	have.Spec.Suspend = change.Spec.Suspend
	return c.client.Update(ctx, &have)
}

// withJobLabels keeps the labels by which a batch Job finds its pods.
func withJobLabels(wanted, have map[string]string) map[string]string {
	labels := maps.Clone(wanted)
	for _, key := range []string{batchv1.JobNameLabel, batchv1.ControllerUidLabel, "job-name", "controller-uid"} {
		if value, ok := have[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

// taken finds out whose an object is that stood in the way of a new one.
func (c *Cluster) taken(ctx context.Context, job mpi.Job, object plan.Object) (*mpi.Refusal, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	var there metav1.PartialObjectMetadata
	there.SetGroupVersionKind(gvk)
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(object), &there); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if job.Owns(&there) {
		return nil, c.adopt(ctx, job, &there)
	}
	owner := metav1.GetControllerOfNoCopy(&there)
	earlier := owner != nil && owner.Kind == job.Kind && owner.Name == job.Name
	return &mpi.Refusal{Kind: gvk.Kind, Name: object.GetName(), Taken: true, Leaving: earlier || there.DeletionTimestamp != nil}, nil
}

// adopt labels an object of the job's that mpi-operator made, which labels only pods: without labels we do
// not see it.
func (c *Cluster) adopt(ctx context.Context, job mpi.Job, there *metav1.PartialObjectMetadata) error {
	if there.Labels[mpi.LabelOperator] == mpi.OperatorName && there.Labels[mpi.LabelJob] == job.Name {
		return nil
	}
	before := there.DeepCopy()
	if there.Labels == nil {
		there.Labels = map[string]string{}
	}
	maps.Copy(there.Labels, job.Labels())
	if err := c.client.Patch(ctx, there, client.MergeFrom(before), unawaited); err != nil {
		return fmt.Errorf("adopt %s %s: %w", there.Kind, there.Name, err)
	}
	return nil
}

// remove deletes objects in parallel. One that is gone already, or replaced, is as good as deleted.
func (c *Cluster) remove(ctx context.Context, job mpi.Job, refs []plan.Ref) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, ref := range refs {
		group.Go(func() error {
			if err := c.removeOne(groupCtx, job, ref); err != nil {
				return fmt.Errorf("delete %s %s: %w", ref.Kind, ref.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) removeOne(ctx context.Context, job mpi.Job, ref plan.Ref) error {
	object := emptyOf(ref.APIVersion, ref.Kind)
	// Lists do not wait for what we deleted before; this read does.
	err := c.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) || err == nil && (object.GetUID() != ref.UID || object.GetDeletionTimestamp() != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.gate.enter(ctx, job.UID); err != nil {
		return err
	}
	defer c.gate.leave(job.UID)
	doomed := emptyOf(ref.APIVersion, ref.Kind)
	doomed.SetNamespace(ref.Namespace)
	doomed.SetName(ref.Name)
	err = c.client.Delete(ctx, doomed, client.Preconditions{UID: &ref.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// emptyOf returns an empty object of one of the kinds that plans hold.
func emptyOf(version, kind string) client.Object {
	switch kind {
	case "PodGroup":
		podGroup := &unstructured.Unstructured{}
		podGroup.SetAPIVersion(version)
		podGroup.SetKind(kind)
		return podGroup
	case "Service":
		return &corev1.Service{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Job":
		return &batchv1.Job{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	default:
		return &corev1.Pod{}
	}
}

// refusal tells whether an error is the API server's answer to what was asked, so that asking the same again
// helps only when something else has changed: quota, policy, the job itself.
func refusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
