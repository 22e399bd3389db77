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

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// withoutReadYourWrites marks a write of an object that the cache keeps in another form, so that no read can wait for
// it.
const withoutReadYourWrites = client.DisableReadYourWritesConsistency

// Apply applies a plan: first the objects that pods need, then pods, then deletions. It returns the objects that the
// API server refused. After a refusal or an error it starts no further writes of the same step; the next reconcile
// continues. An error is one that may not occur again.
//
// It never overwrites objects of others: new objects are created, not applied, and changes apply to the UID that was
// observed.
func (c *Cluster) Apply(ctx context.Context, job mpi.Job, p plan.Plan) ([]jobstate.Refusal, error) {
	if len(p.Base)+len(p.Pods)+len(p.Delete) == 0 {
		return nil, nil
	}
	c.gate.begin()
	defer c.gate.end()
	refusals, err := c.writeAll(ctx, job, p.Base)
	removed := make(chan error, 1)
	go func() { removed <- c.remove(ctx, job, p.Delete) }()
	if err == nil && len(refusals) == 0 {
		refusals, err = c.writeAll(ctx, job, p.Pods)
	}
	return refusals, errors.Join(err, <-removed)
}

// writeAll creates or changes objects in parallel, in order. After a refusal or an error it starts no further writes.
func (c *Cluster) writeAll(ctx context.Context, job mpi.Job, objects []plan.Object) ([]jobstate.Refusal, error) {
	var (
		mu       sync.Mutex
		refusals []jobstate.Refusal
	)
	refused := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(refusals) > 0
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxWrites)
	for _, object := range objects {
		if refused() || groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			refusal, err := c.write(groupCtx, job, object)
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

// write creates an object, or changes it if it has a UID. The Secret of a job gets its keys.
func (c *Cluster) write(ctx context.Context, job mpi.Job, object plan.Object) (*jobstate.Refusal, error) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	name := object.GetName()
	if secret, is := object.(*corev1.Secret); is {
		if err := c.keys.fill(secret); err != nil {
			return nil, fmt.Errorf("write Secret %s: %w", name, err)
		}
	}
	err := c.gate.enter(ctx, job.UID)
	if err != nil {
		return nil, err
	}
	if object.GetUID() == "" {
		err = c.create(ctx, object)
	} else {
		err = c.patch(ctx, object)
	}
	c.gate.leave(job.UID)
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The job is being deleted with its namespace.
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return c.resolveConflict(ctx, job, object)
	case isRefusal(err):
		return &jobstate.Refusal{Kind: kind, Name: name, Message: err.Error()}, nil
	}
	return nil, fmt.Errorf("write %s %s: %w", kind, name, err)
}

func (c *Cluster) create(ctx context.Context, object plan.Object) error {
	var opts []client.CreateOption
	switch object.(type) {
	case *corev1.Secret, *unstructured.Unstructured:
		// Secrets are cached as metadata only; waiting for the whole object would start another cache. PodGroups have
		// their own cache.
		opts = append(opts, withoutReadYourWrites)
	}
	return c.client.Create(ctx, object, opts...)
}

// patch changes an object. It ignores an object that was deleted or replaced since it was observed: the watch
// triggers the next reconcile.
func (c *Cluster) patch(ctx context.Context, change plan.Object) error {
	var err error
	launcher, isLauncher := change.(*batchv1.Job)
	switch _, isGate := change.GetAnnotations()[mpi.AnnotationGate]; {
	case isLauncher:
		err = c.patchLauncher(ctx, launcher)
	case isGate:
		// Another controller applies these fields too.
		err = c.patchFields(ctx, change, types.MergePatchType, withoutReadYourWrites)
	default:
		err = c.applyFields(ctx, change)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// applyFields applies the fields of a change with force, because the operator owns them.
func (c *Cluster) applyFields(ctx context.Context, change plan.Object) error {
	opts := []client.PatchOption{client.ForceOwnership}
	if change.GetObjectKind().GroupVersionKind().Kind == "PodGroup" {
		opts = append(opts, withoutReadYourWrites)
	}
	return c.patchFields(ctx, change, types.ApplyPatchType, opts...)
}

// RemoveAnnotation removes an annotation from a NetworkPolicy. Applying the policy without it would not: the operator created the policy
// with it.
func (c *Cluster) RemoveAnnotation(ctx context.Context, policy *networkingv1.NetworkPolicy, name string) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": policy.UID, "annotations": map[string]any{name: nil}}})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	target := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name}}
	err = c.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, data))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove an annotation of NetworkPolicy %s: %w", policy.Name, err)
	}
	return nil
}

// patchFields sends the fields of a change as a patch of some type.
func (c *Cluster) patchFields(ctx context.Context, change plan.Object, patch types.PatchType, opts ...client.PatchOption) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	target := emptyObject(change.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind())
	target.SetNamespace(change.GetNamespace())
	target.SetName(change.GetName())
	return c.client.Patch(ctx, target, client.RawPatch(patch, data), opts...)
}

// patchLauncher suspends or resumes a launcher, or raises its backoffLimit. A resumed launcher gets all mutable fields of the job's template,
// including removals, which server-side apply would not remove.
func (c *Cluster) patchLauncher(ctx context.Context, change *batchv1.Job) error {
	var have batchv1.Job
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(change), &have); err != nil {
		return err
	}
	if have.UID != change.UID {
		return nil
	}
	if change.Spec.Suspend == nil {
		if jobstate.IsEnding(&have) {
			// It fails with any limit, and is replaced.
			return nil
		}
		metav1.SetMetaDataAnnotation(&have.ObjectMeta, mpi.AnnotationDisrupted, change.Annotations[mpi.AnnotationDisrupted])
		have.Spec.BackoffLimit = change.Spec.BackoffLimit
		return c.client.Update(ctx, &have)
	}
	if resume := !*change.Spec.Suspend; resume {
		if have.Status.StartTime != nil {
			// The API server treats a Job with a start time as running, so that its template is immutable.
			have.Status.StartTime = nil
			if err := c.client.Status().Update(ctx, &have); err != nil {
				return err
			}
		}
		from, to := &change.Spec.Template, &have.Spec.Template
		to.Labels, to.Annotations = withJobLabels(from.Labels, to.Labels), from.Annotations
		to.Spec.NodeSelector, to.Spec.Affinity = from.Spec.NodeSelector, from.Spec.Affinity
		to.Spec.Tolerations, to.Spec.SchedulingGates = from.Spec.Tolerations, from.Spec.SchedulingGates
		if have.Annotations[mpi.AnnotationEarlierAttempts] != "" {
			// The deadline of a Job that has replaced another one does not start again. It may have been shortened by others.
			have.Spec.ActiveDeadlineSeconds = shorter(have.Spec.ActiveDeadlineSeconds, change.Spec.ActiveDeadlineSeconds)
		}
	}
	have.Spec.Suspend = change.Spec.Suspend
	return c.client.Update(ctx, &have)
}

// shorter returns the shorter one of two deadlines; nil is none.
func shorter(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// withJobLabels keeps the labels by which a batch Job selects its pods.
func withJobLabels(wanted, have map[string]string) map[string]string {
	labels := maps.Clone(wanted)
	for _, key := range []string{batchv1.JobNameLabel, batchv1.ControllerUidLabel, "job-name", "controller-uid"} {
		if value, ok := have[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

// resolveConflict determines the owner of an existing object that prevented the creation of a new one.
func (c *Cluster) resolveConflict(ctx context.Context, job mpi.Job, object plan.Object) (*jobstate.Refusal, error) {
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
	return &jobstate.Refusal{Kind: gvk.Kind, Name: object.GetName(), Taken: true, Leaving: earlier || there.DeletionTimestamp != nil}, nil
}

// adopt labels an object of the job that mpi-operator created, which only labels pods: the cache only contains
// labeled objects.
func (c *Cluster) adopt(ctx context.Context, job mpi.Job, there client.Object) error {
	labels := maps.Clone(there.GetLabels())
	if labels[mpi.LabelOperator] == mpi.OperatorName && labels[mpi.LabelJob] == job.Name {
		return nil
	}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, job.Labels())
	before := there.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
	there.SetLabels(labels)
	if err := c.client.Patch(ctx, there, client.MergeFrom(before), withoutReadYourWrites); err != nil {
		return fmt.Errorf("adopt %T %s: %w", there, there.GetName(), err)
	}
	return nil
}

// remove deletes objects in parallel. It ignores objects that were already deleted or replaced.
func (c *Cluster) remove(ctx context.Context, job mpi.Job, refs []plan.Ref) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxWrites)
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
	object := emptyObject(ref.APIVersion, ref.Kind)
	// Lists do not wait for our deletions; this read does.
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
	doomed := emptyObject(ref.APIVersion, ref.Kind)
	doomed.SetNamespace(ref.Namespace)
	doomed.SetName(ref.Name)
	err = c.client.Delete(ctx, doomed, client.Preconditions{UID: &ref.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// emptyObject returns an empty object of a kind that plans contain.
func emptyObject(version, kind string) client.Object {
	switch kind {
	case "PodGroup", "JobSet":
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(version)
		object.SetKind(kind)
		return object
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

// isRefusal reports whether an error is a refusal of the request by the API server, so that a retry only succeeds
// after something else changed: quota, policy, the job, or a webhook that the API server cannot call.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500 || jobstate.IsUncalledWebhook(status.Status().Message)
	}
}
