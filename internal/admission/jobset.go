package admission

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// wireJobSet completes the JobSet that Trainer creates for a TrainJob with one of our runtimes, and keeps it complete when
// Trainer applies it again.
func wireJobSet(ctx context.Context, live client.Reader, c *cluster.Cluster, settings plan.Settings, gangs Gangs, operator *identity, request admission.Request) admission.Response {
	jobSet, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	owner := metav1.GetControllerOfNoCopy(jobSet)
	// Its value does not matter: a TrainJob can patch it.
	_, ours := jobSet.GetAnnotations()[mpi.AnnotationImplementation]
	if owner == nil || owner.Kind != trainjob.Kind || !ours {
		return admission.Allowed("")
	}
	if request.Operation == admissionv1.Update {
		return keepJobSet(ctx, live, c, settings, *owner, operator, request, jobSet)
	}
	job, err := ownerJob(ctx, live, request.Namespace, *owner)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	used, now, err := trainjob.LoadRuntimes(ctx, live, job)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read the runtime of TrainJob %s: %w", job.Name, err))
	}
	if now != nil {
		// The webhook of TrainJobs fails open, and may have had too many requests to answer.
		if errs := trainjob.CheckLimits(job, *now); len(errs) > 0 {
			return responseFor(request, errs, nil)
		}
	}
	if refusal := requireEncryption(ctx, c, settings, request, jobSet); refusal != nil {
		return *refusal
	}
	addressWait, cores := mpi.New().Gang.AddressWait(), int64(0)
	if used != nil {
		converted := trainjob.Convert(job, *used)
		addressWait, cores = converted.Gang.AddressWait(), converted.WorkerCores()
		admitted, refusal := meetSite(ctx, live, settings, converted, jobSet)
		if refusal != nil {
			return *refusal
		}
		// A user can write the ConfigMap with the runtime that Trainer has stored.
		setGate(jobSet, gangs, trainjob.Convert(job, *cmp.Or(now, used)), converted, admitted)
	}
	if err := trainjob.Wire(jobSet.Object, job, settings.ClusterDomain); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	trainjob.PassAddressWait(jobSet.Object, addressWait)
	trainjob.PassCores(jobSet.Object, cores)
	if err := trainjob.PassGPUs(jobSet.Object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if optional, _ := mpi.ParseRDMA(job.Annotations); optional {
		pods, err := trainjob.PodSpecs(jobSet.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if c.LacksRDMA(ctx, pods) {
			trainjob.RemoveRDMA(jobSet.Object)
		}
	}
	return patchResponse(request, jobSet)
}

// requireEncryption returns the refusal of a JobSet whose pods communicate in plain text although that is not allowed; nil of others.
func requireEncryption(ctx context.Context, c *cluster.Cluster, settings plan.Settings, request admission.Request, jobSet *unstructured.Unstructured) *admission.Response {
	job, err := trainjob.JobOf(jobSet.Object)
	if err != nil {
		return new(admission.Errored(http.StatusBadRequest, err))
	}
	job.Namespace = request.Namespace
	if errs := c.CheckEncryption(ctx, job, settings); len(errs) > 0 {
		return new(responseFor(request, errs, nil))
	}
	return nil
}

// meetSite has a new JobSet meet what the administrator requires of all jobs besides encryption: isolation and the type of SSH keys. It
// returns what its NetworkPolicy states of its admission, and the refusal of one that cannot yet.
func meetSite(ctx context.Context, live client.Reader, settings plan.Settings, job mpi.Job, jobSet *unstructured.Unstructured) (admitted string, refusal *admission.Response) {
	policy, err := awaitObjects(ctx, live, job, settings)
	if err != nil {
		return "", new(admission.Errored(http.StatusServiceUnavailable, err))
	}
	if plan.ReplacesKeys(job, settings) {
		trainjob.UseKeys(jobSet.Object, job.KeysName())
	}
	return policy.Annotations[mpi.AnnotationAdmitted], nil
}

// setGate holds back the pods of a new JobSet, or not. The gate is open from the start if room is reserved for all pods, as the job's
// NetworkPolicy states: JobSet then creates its Jobs once, and does not resume them. The room is for the job with its runtime as it is now,
// and must also be for the job as Trainer has stored it.
func setGate(jobSet *unstructured.Unstructured, gangs Gangs, job, stored mpi.Job, admitted string) {
	at := time.Now()
	switch {
	case !gangs.Gates(job):
		trainjob.Ungate(jobSet.Object)
	case gangs.HasAdmitted(job, admitted, at) && gangs.HasAdmitted(stored, admitted, at):
		trainjob.OpenGate(jobSet.Object)
	default:
		trainjob.Gate(jobSet.Object)
	}
}

// keepJobSet keeps a JobSet complete that is changed.
func keepJobSet(ctx context.Context, live client.Reader, c *cluster.Cluster, settings plan.Settings, owner metav1.OwnerReference, operator *identity, request admission.Request, jobSet *unstructured.Unstructured) admission.Response {
	before, err := decodeTree(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	trainjob.Keep(jobSet.Object, before.Object, operator.isOwn(ctx, request))
	errs, err := checkLostLabels(ctx, live, request.Namespace, owner, trainjob.LostNodeLabels(jobSet.Object, before.Object))
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(errs) > 0:
		return responseFor(request, errs, nil)
	}
	if trainjob.IsResumed(jobSet.Object, before.Object) {
		// Its pods may have been changed, and the cluster may encrypt no more.
		if refusal := requireEncryption(ctx, c, settings, request, jobSet); refusal != nil {
			return *refusal
		}
	}
	return patchResponse(request, jobSet)
}

// checkLostLabels returns which of the labels of nodes that a JobSet no longer asks for its runtime requires.
func checkLostLabels(ctx context.Context, live client.Reader, namespace string, owner metav1.OwnerReference, lost map[string]string) (field.ErrorList, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	job, err := trainjob.LoadJob(ctx, live, types.NamespacedName{Namespace: namespace, Name: owner.Name})
	if err != nil || job == nil || job.UID != owner.UID {
		return nil, err
	}
	used, err := trainjob.LoadRuntime(ctx, live, *job)
	if err != nil || used == nil {
		return nil, err
	}
	return trainjob.CheckLostLabels(lost, *used), nil
}

// ownerJob reads the TrainJob that a JobSet is made of. Trainer tries again what is refused here.
func ownerJob(ctx context.Context, live client.Reader, namespace string, owner metav1.OwnerReference) (trainjob.TrainJob, error) {
	job, err := trainjob.LoadJob(ctx, live, types.NamespacedName{Namespace: namespace, Name: owner.Name})
	switch {
	case err != nil:
		return trainjob.TrainJob{}, err
	case job == nil, job.UID != owner.UID:
		return trainjob.TrainJob{}, fmt.Errorf("the TrainJob %s of this JobSet does not exist", owner.Name)
	}
	return *job, nil
}

// objectsTimeout is how long the creation of a JobSet waits for all of the job's objects. The API server waits 10 s for the webhook.
const objectsTimeout = 5 * time.Second

// awaitObjects waits until the objects exist that the operator creates for a TrainJob, so that none of its pods runs without its
// NetworkPolicy or waits for its SSH keys. It returns the NetworkPolicy, empty if there is none. Trainer tries again after an error.
func awaitObjects(ctx context.Context, live client.Reader, job mpi.Job, settings plan.Settings) (policy networkingv1.NetworkPolicy, err error) {
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	if plan.Isolates(job, settings) {
		if err := await(ctx, live, job, "NetworkPolicy", job.PolicyName(), &policy); err != nil {
			return policy, err
		}
	}
	if plan.ReplacesKeys(job, settings) {
		keys := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
		return policy, await(ctx, live, job, "Secret", job.KeysName(), keys)
	}
	return policy, nil
}

// await waits until an object of a TrainJob exists, or the context ends.
func await(ctx context.Context, live client.Reader, job mpi.Job, kind, name string, object client.Object) error {
	// The operator creates it within milliseconds, or is busy.
	pause := wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Steps: math.MaxInt32, Cap: 50 * time.Millisecond}
	err := pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, object); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return job.Owns(object), nil
	})
	if err != nil {
		return fmt.Errorf("the %s %s of TrainJob %s does not exist yet; Trainer retries after it is created: %w", kind, name, job.Name, err)
	}
	return nil
}
