package mpijob

import (
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// fixed tells why a field of a running job stays as it is, and what to do.
const fixed = "cannot change while the job runs: suspend the job first (spec.runPolicy.suspend: true), or delete it and create it anew with the change"

// Change holds a running job to what it was started with. The number of workers may change, for elastic
// programs, and so may what becomes of the job afterwards. A job that is or becomes suspended, or is being
// resumed, may change as a whole: Kueue writes where the pods are to run with the same update.
func (Kind) Change(before, after client.Object) field.ErrorList {
	was, is := before.(*kubeflow.MPIJob).DeepCopy(), after.(*kubeflow.MPIJob).DeepCopy()
	var errs field.ErrorList
	if from, to := ptr.Deref(was.Spec.RunPolicy.ManagedBy, ""), ptr.Deref(is.Spec.RunPolicy.ManagedBy, ""); from != to {
		errs = append(errs, field.Invalid(policy.Child("managedBy"), to, "field is immutable"))
	}
	if ptr.Deref(was.Spec.RunPolicy.Suspend, false) || ptr.Deref(is.Spec.RunPolicy.Suspend, false) || past(was).Finish != nil {
		return errs
	}
	// A job that was never valid has not started anything; correcting it is what its user should do.
	if _, wrong := (Kind{}).Convert(was); len(wrong) > 0 {
		return errs
	}
	kubeflow.SetDefaults_MPIJob(was)
	kubeflow.SetDefaults_MPIJob(is)
	connections := pair{mpi.ConnectionsPath, was.Annotations[mpi.AnnotationConnections], is.Annotations[mpi.AnnotationConnections]}
	for _, f := range append(frozen(&was.Spec, &is.Spec), connections) {
		if !equality.Semantic.DeepEqual(f.was, f.is) {
			errs = append(errs, field.Forbidden(f.at, fixed))
		}
	}
	return errs
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
