package mpijob

import (
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// fixed is the error for a field that cannot be changed while the job runs.
const fixed = "cannot be changed while the job runs; suspend the job first (spec.runPolicy.suspend: true), or delete it and create it again with the change"

// Change rejects changes of a running job, except to the number of workers, for elastic programs, and to fields that
// apply when it finishes. All fields of a job that is being suspended or resumed may change: Kueue sets the nodes in
// the same update.
func (Kind) Change(before, after client.Object) field.ErrorList {
	was, is := before.(*kubeflow.MPIJob).DeepCopy(), after.(*kubeflow.MPIJob).DeepCopy()
	var errs field.ErrorList
	if from, to := ptr.Deref(was.Spec.RunPolicy.ManagedBy, ""), ptr.Deref(is.Spec.RunPolicy.ManagedBy, ""); from != to {
		errs = append(errs, field.Invalid(policy.Child("managedBy"), to, "field is immutable"))
	}
	if past(was).Finish != nil {
		return append(errs, changesOfFinished(was, is)...)
	}
	if ptr.Deref(was.Spec.RunPolicy.Suspend, false) || ptr.Deref(is.Spec.RunPolicy.Suspend, false) {
		return errs
	}
	converted, wrong := Kind{}.Convert(was)
	wrong = append(wrong, mpi.Validate(converted)...)
	// An invalid job that has not started anything may be corrected by its user.
	if len(wrong) > 0 && condition(was.Status.Conditions, kubeflow.JobCreated) == nil {
		return errs
	}
	kubeflow.SetDefaults_MPIJob(was)
	kubeflow.SetDefaults_MPIJob(is)
	for _, f := range append(frozen(&was.Spec, &is.Spec), annotated(was, is)...) {
		if !equality.Semantic.DeepEqual(f.was, f.is) && !f.isInvalid(wrong) {
			errs = append(errs, field.Forbidden(f.at, fixed))
		}
	}
	return errs
}

// isInvalid reports whether errors are about the field, which may then be corrected.
func (p pair) isInvalid(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return strings.HasPrefix(err.Field, p.at.String()) })
}

// changesOfFinished returns the fields of a finished job that were changed. Only what happens to it from now on can be.
func changesOfFinished(was, is *kubeflow.MPIJob) (errs field.ErrorList) {
	kubeflow.SetDefaults_MPIJob(was)
	kubeflow.SetDefaults_MPIJob(is)
	pairs := frozen(&was.Spec, &is.Spec)
	for _, role := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
		if from, to := was.Spec.MPIReplicaSpecs[role], is.Spec.MPIReplicaSpecs[role]; from != nil && to != nil {
			pairs = append(pairs, pair{spec.Child("mpiReplicaSpecs").Key(string(role)).Child("replicas"), from.Replicas, to.Replicas})
		}
	}
	for _, f := range append(pairs, annotated(was, is)...) {
		if !equality.Semantic.DeepEqual(f.was, f.is) {
			errs = append(errs, field.Forbidden(f.at, mpi.FinishedIsFixed(was.Name)))
		}
	}
	return errs
}

// annotated are the annotations that pods are made of, before and after a change.
func annotated(was, is *kubeflow.MPIJob) []pair {
	return []pair{
		{mpi.ConnectionsPath, was.Annotations[mpi.AnnotationConnections], is.Annotations[mpi.AnnotationConnections]},
		{field.NewPath("metadata", "annotations").Key(mpi.AnnotationLaunch), was.Annotations[mpi.AnnotationLaunch], is.Annotations[mpi.AnnotationLaunch]},
	}
}

// pair is a field before and after a change.
type pair struct {
	at      *field.Path
	was, is any
}

func frozen(was, is *kubeflow.MPIJobSpec) []pair {
	pairs := []pair{
		{spec.Child("slotsPerWorker"), was.SlotsPerWorker, is.SlotsPerWorker},
		{spec.Child("runLauncherAsWorker"), ptr.Deref(was.RunLauncherAsWorker, false), ptr.Deref(is.RunLauncherAsWorker, false)},
		{spec.Child("sshAuthMountPath"), was.SSHAuthMountPath, is.SSHAuthMountPath},
		{spec.Child("launcherCreationPolicy"), was.LauncherCreationPolicy, is.LauncherCreationPolicy},
		{spec.Child("mpiImplementation"), was.MPIImplementation, is.MPIImplementation},
		{policy.Child("activeDeadlineSeconds"), was.RunPolicy.ActiveDeadlineSeconds, is.RunPolicy.ActiveDeadlineSeconds},
		{policy.Child("backoffLimit"), was.RunPolicy.BackoffLimit, is.RunPolicy.BackoffLimit},
		{policy.Child("schedulingPolicy"), was.RunPolicy.SchedulingPolicy, is.RunPolicy.SchedulingPolicy},
	}
	for _, role := range []struct {
		at   *field.Path
		name kubeflow.MPIReplicaType
	}{{launcher, kubeflow.MPIReplicaTypeLauncher}, {worker, kubeflow.MPIReplicaTypeWorker}} {
		from, to := was.MPIReplicaSpecs[role.name], is.MPIReplicaSpecs[role.name]
		if from == nil || to == nil {
			pairs = append(pairs, pair{role.at, from == nil, to == nil})
			continue
		}
		pairs = append(pairs,
			pair{role.at.Child("template"), from.Template, to.Template},
			pair{role.at.Child("restartPolicy"), from.RestartPolicy, to.RestartPolicy})
	}
	return pairs
}
