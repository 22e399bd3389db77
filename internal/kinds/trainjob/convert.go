package trainjob

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// Conditions of a TrainJob.
const (
	conditionComplete = "Complete"
	conditionFailed   = "Failed"
)

var (
	spec        = field.NewPath("spec")
	trainerPath = spec.Child("trainer")
	nodesPath   = trainerPath.Child("numNodes")
	slotsPath   = trainerPath.Child("numProcPerNode")
	sizePath    = trainerPath.Child("resourcesPerNode")

	// fields are where a TrainJob's users write what a job is made of. The templates and the mount path are the
	// runtime's.
	fields = mpi.Fields{
		Name:             field.NewPath("metadata", "name"),
		Slots:            slotsPath,
		SSHMountPath:     spec.Child("runtimeRef"),
		LauncherTemplate: trainerPath,
		WorkerCount:      nodesPath,
		WorkerTemplate:   trainerPath,
		Deadline:         spec.Child("activeDeadlineSeconds"),
		ManagedBy:        spec.Child("managedBy"),
		BackoffLimit:     spec.Child("runtimeRef"),
		Gang:             spec.Child("runtimeRef"),
		GangTimeout:      annotations.Key(mpi.AnnotationScheduleTimeout),
		Launch:           spec.Child("runtimeRef"),
		TTL:              annotations.Key(mpi.AnnotationTTL),
	}

	// names are those that Trainer and JobSet give.
	names = mpi.Names{Config: "-mpi-hostfile", Secret: "-mpi-ssh-auth", Launcher: "-" + launcherName + "-0", LauncherHost: "-" + launcherName + "-0-0", Worker: "-" + nodeName + "-0-", Keys: ".ssh", Policy: ".trainjob", PodLabel: LabelJobSet}
)

// maxNodes is the number of pods that Kubernetes creates for a Job of a JobSet at most
// (k8s.io/kubernetes/pkg/apis/batch/validation: maxParallelismForIndexedJob).
const maxNodes = 100_000

// deadlineFrom returns when a TrainJob's deadline began to count: when it was created, or last resumed (Trainer's TrainJob controller).
func deadlineFrom(job TrainJob) time.Time {
	if suspended := apimeta.FindStatusCondition(job.Status.Conditions, "Suspended"); suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}

// Convert returns the job that Trainer runs for a TrainJob with a runtime, by Trainer's rules, odd ones included. A job of
// a runtime without MPI has no launcher, and its nodes are its workers.
func Convert(from TrainJob, used Runtime) mpi.Job {
	job := mpi.New()
	job.APIVersion, job.Kind = GroupVersion.String(), Kind
	job.Namespace, job.Name, job.UID = from.Namespace, from.Name, from.UID
	job.Generation, job.Created, job.Authors = from.Generation, from.CreationTimestamp.Time, mpi.AuthorsOf(&from)
	job.Fields, job.Names, job.External = fields, names, true
	job.Queue, job.QueuePriority = from.Labels[mpi.LabelQueue], from.Labels[mpi.LabelQueuePriority]
	job.Runtime, job.RuntimeVersion = from.Spec.RuntimeRef.Name, used.Version
	job.Lifecycle.Deleting = from.DeletionTimestamp != nil
	job.Lifecycle.Suspended = ptr.Deref(from.Spec.Suspend, false)
	job.Lifecycle.Deadline, job.Lifecycle.DeadlineFrom = from.Spec.ActiveDeadlineSeconds, deadlineFrom(from)
	job.Lifecycle.SilentAfter, _ = mpi.ParseSilence(from.Annotations)
	job.Links, _ = mpi.ParseJobLinks(from.Annotations)
	job.TraceParent, _ = mpi.ParseTraceParent(from.Annotations)
	job.Lifecycle.TTL, _ = mpi.ParseTTL(from.Annotations)
	job.SuspendedInQueue, _ = mpi.ParseSuspendInQueue(from.Annotations)
	job.Profile, _ = mpi.ParseProfile(from.Annotations)
	job.WaitForQuota, _ = mpi.ParseWaitForQuota(from.Annotations)
	job.Topology, _ = mpi.ParseTopology(from.Annotations)
	job.RDMA = mpi.RDMA{Fixed: !used.ours()}
	job.Lifecycle.MaxRestarts = maxRestarts(from, used)
	if by := ptr.Deref(from.Spec.ManagedBy, manager); by != manager {
		job.ManagedBy = by
	}
	job.Recorded = past(from)
	job.Gang.Wanted = used.Spec.PodGroupPolicy != nil
	job.SlotsPerWorker = slots(from, used)
	job.Connections, _ = Connections(from, used)
	if !used.IsMPI() {
		job.Launcher.None, job.Implementation = true, ""
		job.Workers.Count, job.Workers.Template = possible(nodes(from, used)), template(from, used.trainer(), true)
		return job
	}
	policy := used.mpiPolicy()
	job.AllowEgress = used.Annotations[mpi.AnnotationAllowEgress]
	if from.Spec.RuntimeRef.Kind == RuntimeKind {
		// Users of the namespace may maintain it.
		job.AllowEgress = isolation.WithoutMetadata(job.AllowEgress)
	}
	job.Implementation = used.implementation()
	job.SSHMountPath = policy.SSHAuthMountPath
	job.Launcher.RunsRanks = policy.RunLauncherAsNode
	launcher, node := used.job(launcherName), used.job(nodeName)
	job.Launcher.Template = template(from, launcher, true)
	job.Workers.Template = template(from, node, policy.RunLauncherAsNode)
	job.Workers.Count = possible(workers(from, used))
	job.Launcher.AfterWorkers = launcher != nil && len(launcher.DependsOn) > 0
	if job.Gated = used.mayBeGated(); job.Gated {
		// Only Trainer can end a TrainJob.
		job.Gang.Requeues = math.MaxInt32
		if timeout := scheduleTimeout(from, used); timeout > 0 {
			job.Gang.Wanted = true
			// Outside of a queue, a job of which no pod has a node holds nothing, and waits for its turn.
			job.Gang.Timeout, job.Gang.TimeoutSet = timeout, job.Queue != ""
		}
	}
	if used.ours() {
		job.RDMA = mpi.RDMAOf(&from, job.PodSpecs())
		prioritize(&job, from)
	}
	job.Launch = mpi.LaunchSSHD
	if hasAgent(node.pod().Spec) {
		job.Launch = mpi.LaunchAgent
	}
	return job
}

// prioritize gives the pods of a job the priority class that its TrainJob sets (see Wire).
func prioritize(job *mpi.Job, from TrainJob) {
	class, _ := mpi.ParsePriorityClass(from.Annotations)
	if class == "" {
		return
	}
	for _, pod := range []*corev1.PodSpec{&job.Launcher.Template.Spec, &job.Workers.Template.Spec} {
		pod.PriorityClassName, pod.Priority = class, nil
	}
}

// mayBeGated reports whether the pods of the runtime's jobs can be held back until all of them fit: its JobSets are completed
// by the operator (Wire), all pods are created at once, and no scheduler places them as a gang.
func (r Runtime) mayBeGated() bool {
	return r.ours() && r.Spec.PodGroupPolicy == nil && !slices.ContainsFunc(r.Spec.Template.Spec.ReplicatedJobs, func(j ReplicatedJob) bool {
		return len(j.DependsOn) > 0 || j.Name != launcherName && j.Name != nodeName
	})
}

// scheduleTimeout returns how long an attempt to place the pods together may take, by the job or its runtime; 0 for the default.
func scheduleTimeout(from TrainJob, used Runtime) time.Duration {
	jobs, _ := mpi.ParseScheduleTimeout(from.Annotations)
	runtimes, _ := mpi.ParseScheduleTimeout(used.Annotations)
	return cmp.Or(jobs, runtimes)
}

// maxRestarts is how often JobSet starts the whole job again after a failure of its program: as often as the job's annotation allows
// (see Wire), or the runtime.
func maxRestarts(from TrainJob, used Runtime) int32 {
	if limit, _ := mpi.ParseMaxRestarts(from.Annotations); limit != nil && used.ours() {
		return *limit
	}
	policy := used.Spec.Template.Spec.FailurePolicy
	if slices.ContainsFunc(policy.Rules, endsFailedProgram) {
		return 0
	}
	return policy.MaxRestarts
}

// endsFailedProgram reports whether a rule ends the JobSet if its program failed (jobset api/jobset/v1alpha2, FailurePolicyAction).
func endsFailedProgram(rule FailureRule) bool {
	return rule.Action == actionFail &&
		(len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, batchv1.JobReasonBackoffLimitExceeded))
}

// possible limits a number of workers to what can exist: the operator goes through all workers of a job, also of one that
// was created while its webhook did not answer.
func possible(workers int32) int32 { return min(max(workers, 0), maxNodes) }

// nodes is what numNodes comes to.
func nodes(from TrainJob, used Runtime) int32 {
	if n := from.trainer().NumNodes; n != nil {
		return *n
	}
	if used.Spec.MLPolicy != nil {
		return ptr.Deref(used.Spec.MLPolicy.NumNodes, 1)
	}
	return 1
}

// workers is how many pods Trainer makes in the job "node" of an MPI runtime (plugins/mpi, EnforceMLPolicy): those
// that the TrainJob asks for, less the launcher where this runs ranks, but never none; where it asks for none, what
// the template says.
func workers(from TrainJob, used Runtime) int32 {
	node := used.job(nodeName)
	if node == nil {
		return 0
	}
	asked := from.trainer().NumNodes
	switch {
	case asked == nil && node.isTrainer():
		return nodes(from, used)
	case asked == nil:
		return ptr.Deref(node.Template.Spec.Parallelism, 1)
	case used.mpiPolicy().RunLauncherAsNode:
		return max(*asked-1, 1)
	}
	return *asked
}

// slots is what numProcPerNode comes to: the job's value, else the runtime's, and where that is 1 the number of GPUs.
func slots(from TrainJob, used Runtime) int32 {
	if n := from.trainer().NumProcPerNode; n != nil && n.Type == intstr.Int {
		return n.IntVal
	}
	runtimes := ptr.Deref(used.mpiPolicy().NumProcPerNode, 1)
	if !used.IsMPI() || runtimes != 1 {
		return runtimes
	}
	return int32(max(podspec.GPUs(size(from, used)), 1))
}

// size is what a node of the job asks for.
func size(from TrainJob, used Runtime) corev1.ResourceRequirements {
	if asked := from.trainer().ResourcesPerNode; asked != nil {
		return *asked
	}
	pod := used.trainer().pod()
	if main := container(&pod.Spec); main != nil {
		return main.Resources
	}
	return corev1.ResourceRequirements{}
}

// template returns the pod template of one of the runtime's jobs with the fields of the TrainJob; the container that
// Trainer wires is the first. The TrainJob's image and variables apply to every pod (see Wire), its command to the launcher
// alone, its resources where Trainer applies them.
func template(from TrainJob, of *ReplicatedJob, sized bool) corev1.PodTemplateSpec {
	runtimes := of.pod()
	pod := *runtimes.DeepCopy()
	for _, patch := range from.patches(of) {
		if pod.Annotations == nil && len(patch.Metadata.Annotations) > 0 {
			pod.Annotations = map[string]string{}
		}
		maps.Copy(pod.Annotations, patch.Metadata.Annotations)
	}
	containers := pod.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == nodeName })
	if at < 0 {
		return pod
	}
	main := containers[at]
	copy(containers[1:at+1], containers[:at])
	trainer := from.trainer()
	main.Image = ptr.Deref(trainer.Image, main.Image)
	main.Env = append(main.Env, trainer.Env...)
	if sized && trainer.ResourcesPerNode != nil {
		main.Resources = withResources(main.Resources, *trainer.ResourcesPerNode)
	}
	if of.isTrainer() {
		if trainer.Command != nil {
			main.Command = trainer.Command
		}
		if trainer.Args != nil {
			main.Args = trainer.Args
		}
	}
	containers[0] = main
	from.patch(of, &pod.Spec)
	return pod
}

// withResources returns resources with those that a TrainJob sets, which replace those of the same name
// (trainer/v2 v2.3.0, pkg/util/trainingruntime).
func withResources(have, set corev1.ResourceRequirements) corev1.ResourceRequirements {
	merge := func(have, set corev1.ResourceList) corev1.ResourceList {
		if len(have)+len(set) == 0 {
			return nil
		}
		all := corev1.ResourceList{}
		maps.Copy(all, have)
		maps.Copy(all, set)
		return all
	}
	have.Requests, have.Limits = merge(have.Requests, set.Requests), merge(have.Limits, set.Limits)
	have.Claims = append(slices.Clip(have.Claims), set.Claims...)
	return have
}

// past reads how the TrainJob ended.
func past(from TrainJob) mpi.Recorded {
	for _, kind := range []string{conditionComplete, conditionFailed} {
		c := apimeta.FindStatusCondition(from.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		finish := &mpi.Finish{Succeeded: kind == conditionComplete, Reason: c.Reason, Message: c.Message, At: c.LastTransitionTime.Time}
		if finish.Succeeded {
			// Trainer speaks of the JobSet, which users have not made.
			finish.Message = fmt.Sprintf("TrainJob %s/%s successfully completed.", from.Namespace, from.Name)
		}
		return mpi.Recorded{Finish: finish}
	}
	return mpi.Recorded{}
}
