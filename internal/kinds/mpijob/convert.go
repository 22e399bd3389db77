package mpijob

import (
	"maps"
	"slices"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

var (
	spec     = field.NewPath("spec")
	policy   = spec.Child("runPolicy")
	replicas = spec.Child("mpiReplicaSpecs")
	launcher = replicas.Key(string(kubeflow.MPIReplicaTypeLauncher))
	worker   = replicas.Key(string(kubeflow.MPIReplicaTypeWorker))

	// fields are the paths of an MPIJob's fields.
	fields = mpi.Fields{
		Name:             field.NewPath("metadata", "name"),
		Slots:            spec.Child("slotsPerWorker"),
		SSHMountPath:     spec.Child("sshAuthMountPath"),
		LauncherTemplate: launcher.Child("template"),
		WorkerCount:      worker.Child("replicas"),
		WorkerTemplate:   worker.Child("template"),
		TTL:              policy.Child("ttlSecondsAfterFinished"),
		Deadline:         policy.Child("activeDeadlineSeconds"),
		ManagedBy:        policy.Child("managedBy"),
		BackoffLimit:     policy.Child("backoffLimit"),
		Gang:             policy.Child("schedulingPolicy"),
		GangTimeout:      policy.Child("schedulingPolicy", "scheduleTimeoutSeconds"),
		Launch:           field.NewPath("metadata", "annotations").Key(mpi.AnnotationLaunch),
	}
)

// Convert returns the job of an MPIJob. It reports values that the schema allows but that are invalid: unknown words,
// a second launcher, replicas of an unknown role.
func (Kind) Convert(object client.Object) (mpi.Job, field.ErrorList) {
	from := object.(*kubeflow.MPIJob)
	c := converter{job: mpi.New()}
	c.identity(from)
	c.sizes(&from.Spec)
	c.runPolicy(&from.Spec.RunPolicy)
	c.launcher(&from.Spec)
	c.workers(&from.Spec)
	c.job.RDMA = mpi.RDMAOf(from, c.job.PodSpecs())
	c.job.Recorded = past(from)
	return c.job, c.errs
}

type converter struct {
	job  mpi.Job
	errs field.ErrorList
}

func (c *converter) identity(from *kubeflow.MPIJob) {
	c.job.APIVersion, c.job.Kind = kubeflow.SchemeGroupVersion.String(), kubeflow.Kind
	c.job.Namespace, c.job.Name, c.job.UID = from.Namespace, from.Name, from.UID
	c.job.Queue, c.job.QueuePriority = from.Labels[mpi.LabelQueue], from.Labels[mpi.LabelQueuePriority]
	c.job.Generation, c.job.Created, c.job.Authors = from.Generation, from.CreationTimestamp.Time, mpi.AuthorsOf(from)
	c.job.Lifecycle.Deleting = from.DeletionTimestamp != nil
	c.job.Lifecycle.Orphaning = slices.Contains(from.Finalizers, metav1.FinalizerOrphanDependents)
	c.job.Fields = fields
	c.job.Launch = from.Annotations[mpi.AnnotationLaunch]
	c.job.Connections, _ = mpi.ParseConnections(from.Namespace, from.Annotations)
	c.job.Gang.Requeues, _ = mpi.ParseRequeues(from.Annotations)
	c.job.SuspendedInQueue, _ = mpi.ParseSuspendInQueue(from.Annotations)
	c.job.Profile, _ = mpi.ParseProfile(from.Annotations)
	c.job.WaitForQuota, _ = mpi.ParseWaitForQuota(from.Annotations)
	c.job.Topology, _ = mpi.ParseTopology(from.Annotations)
	c.job.Lifecycle.SilentAfter, _ = mpi.ParseSilence(from.Annotations)
	c.job.Links, _ = mpi.ParseJobLinks(from.Annotations)
	c.job.TraceParent, _ = mpi.ParseTraceParent(from.Annotations)
	c.errs = append(c.errs, mpi.CheckAnnotations(kubeflow.Kind, from.Namespace, from.Annotations)...)
}

func (c *converter) sizes(from *kubeflow.MPIJobSpec) {
	c.job.Implementation = oneOf(c, spec.Child("mpiImplementation"), mpi.Implementation(from.MPIImplementation), mpi.Implementations)
	c.job.SlotsPerWorker = ptr.Deref(from.SlotsPerWorker, c.job.SlotsPerWorker)
	if from.SSHAuthMountPath != "" {
		c.job.SSHMountPath = from.SSHAuthMountPath
	}
}

func (c *converter) runPolicy(from *kubeflow.RunPolicy) {
	life := &c.job.Lifecycle
	life.Suspended = ptr.Deref(from.Suspend, false)
	life.CleanPods = oneOf(c, policy.Child("cleanPodPolicy"), mpi.CleanPods(ptr.Deref(from.CleanPodPolicy, "")), mpi.CleanPolicies)
	c.gang(from.SchedulingPolicy)
	life.Deadline, life.BackoffLimit = from.ActiveDeadlineSeconds, from.BackoffLimit
	if seconds := from.TTLSecondsAfterFinished; seconds != nil {
		life.TTL = new(time.Duration(*seconds) * time.Second)
	}
	manager := oneOf(c, policy.Child("managedBy"), ptr.Deref(from.ManagedBy, ""),
		[]string{kubeflow.KubeflowJobController, kubeflow.MultiKueueController})
	if manager != kubeflow.KubeflowJobController {
		c.job.ManagedBy = manager
	}
}

// gang reads how the pods are scheduled together.
func (c *converter) gang(from *kubeflow.SchedulingPolicy) {
	if from == nil {
		return
	}
	gang := &c.job.Gang
	gang.Wanted, gang.MinAvailable, gang.Queue, gang.PriorityClass = true, from.MinAvailable, from.Queue, from.PriorityClass
	gang.MinResources = ptr.Deref(from.MinResources, nil)
	if seconds := ptr.Deref(from.ScheduleTimeoutSeconds, 0); seconds != 0 {
		gang.Timeout, gang.TimeoutSet = time.Duration(seconds)*time.Second, true
	}
}

func (c *converter) launcher(from *kubeflow.MPIJobSpec) {
	c.job.Launcher.RunsRanks = ptr.Deref(from.RunLauncherAsWorker, false)
	c.job.Launcher.AfterWorkers = kubeflow.LauncherCreationPolicyWaitForWorkersReady == oneOf(c, spec.Child("launcherCreationPolicy"),
		from.LauncherCreationPolicy, []kubeflow.LauncherCreationPolicy{kubeflow.LauncherCreationPolicyAtStartup, kubeflow.LauncherCreationPolicyWaitForWorkersReady})
	for _, kind := range slices.Sorted(maps.Keys(from.MPIReplicaSpecs)) {
		if kind != kubeflow.MPIReplicaTypeLauncher && kind != kubeflow.MPIReplicaTypeWorker {
			c.errs = append(c.errs, field.NotSupported(replicas, kind, []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker}))
		}
	}
	role := from.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher]
	if role == nil {
		c.errs = append(c.errs, field.Required(launcher, "must define the pod that runs mpirun"))
		return
	}
	if n := ptr.Deref(role.Replicas, 1); n != 1 {
		c.errs = append(c.errs, field.Invalid(launcher.Child("replicas"), n, "must be 1: a job has one launcher"))
	}
	c.job.Launcher.Template = c.prioritized(role.Template)
	c.job.Launcher.RestartPolicy = c.restartPolicy(launcher, role, c.job.Launcher.RestartPolicy)
}

func (c *converter) workers(from *kubeflow.MPIJobSpec) {
	role := from.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]
	if role == nil {
		return
	}
	c.job.Workers.Count = ptr.Deref(role.Replicas, 1)
	if c.job.Workers.Count == 0 {
		c.errs = append(c.errs, field.Invalid(worker.Child("replicas"), 0, "must be 1 or more; omit Worker for a job with only a launcher"))
	}
	c.job.Workers.Template = c.prioritized(role.Template)
	c.job.Workers.RestartPolicy = c.restartPolicy(worker, role, c.job.Workers.RestartPolicy)
}

// prioritized gives pods the priority class of the job, unless they have their own: pods of different priorities
// cannot be scheduled together, and pods without a priority can be preempted by any other pod.
func (c *converter) prioritized(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if template.Spec.PriorityClassName == "" && template.Spec.Priority == nil {
		template.Spec.PriorityClassName = c.job.Gang.PriorityClass
	}
	return template
}

// restartPolicy accepts the two policies that a batch Job's pods can have (mpi-operator: validation.go).
func (c *converter) restartPolicy(at *field.Path, role *kubeflow.ReplicaSpec, unset corev1.RestartPolicy) corev1.RestartPolicy {
	if role.RestartPolicy == "" {
		return unset
	}
	return oneOf(c, at.Child("restartPolicy"), corev1.RestartPolicy(role.RestartPolicy),
		[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure})
}

// oneOf returns the value if it is allowed. Otherwise it returns the first allowed value, with an error if the value
// is not empty.
func oneOf[T ~string](c *converter, at *field.Path, value T, allowed []T) T {
	switch {
	case value == "":
		return allowed[0]
	case !slices.Contains(allowed, value):
		c.errs = append(c.errs, field.NotSupported(at, value, allowed))
		return allowed[0]
	}
	return value
}

// past reads the end of the job from its status.
func past(from *kubeflow.MPIJob) mpi.Recorded {
	for _, kind := range []kubeflow.JobConditionType{kubeflow.JobSucceeded, kubeflow.JobFailed} {
		c := condition(from.Status.Conditions, kind)
		if c == nil || c.Status != corev1.ConditionTrue {
			continue
		}
		at := c.LastTransitionTime.Time
		if from.Status.CompletionTime != nil {
			at = from.Status.CompletionTime.Time
		}
		return mpi.Recorded{Finish: &mpi.Finish{Succeeded: kind == kubeflow.JobSucceeded, Reason: c.Reason, Message: c.Message, At: at}}
	}
	return mpi.Recorded{}
}
