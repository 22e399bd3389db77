// Package plan computes the objects of a job. For compares a job with its observed objects, and returns the objects
// to create, change and delete. It is pure.
package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Settings are the settings of the cluster, which are the same for all jobs.
type Settings struct {
	// ClusterDomain is the suffix of the DNS names of Services, such as cluster.local. If empty, host names have no
	// domain.
	ClusterDomain string
	// AgentImage is the image of the agent. If empty, the agent is not used: ranks are started by the image's sshd.
	AgentImage string
	// Delivery is how the agent gets into a job's pods: ImageVolume or, if empty, InitContainer.
	Delivery Delivery
	// NetworkPolicies is whether jobs are isolated from each other and from other pods.
	NetworkPolicies bool
	// IsolatesAllTrainJobs is whether TrainJobs without MPI are isolated too.
	IsolatesAllTrainJobs bool
	// RequireEncryption is whether jobs of more than one pod only run if the traffic between pods is encrypted.
	RequireEncryption bool
	// ReplacesKeys is whether TrainJobs use SSH keys of the operator in place of Trainer's, which are always of type p521.
	ReplacesKeys bool
	// OperatorNamespace is the namespace of the operator, which the endpoints of jobs do not open; empty if it runs outside.
	OperatorNamespace string
	// AllowEgress lists the destinations that all jobs' pods may connect to, in the format of isolation.ParseEgress.
	AllowEgress string
}

// Home returns where the names of destinations of a namespace's jobs are resolved.
func (s Settings) Home(namespace string) isolation.Home {
	return isolation.Home{Namespace: namespace, ClusterDomain: s.ClusterDomain, OperatorNamespace: s.OperatorNamespace}
}

// Object is an object of the API server.
type Object interface {
	metav1.Object
	runtime.Object
}

// Plan contains the changes that a job needs. A zero Plan means that nothing changes.
//
// An object without a UID is created. An object with a UID is changed: it contains the fields to apply, and applies
// to the object with this UID only, not to a later one of the same name.
type Plan struct {
	// Base is applied first: the objects that pods need before they start (Service, ConfigMap, Secret, NetworkPolicy,
	// PodGroup), and changes of the existing launcher.
	Base []Object
	// Pods are the launcher's new Job and new worker pods. They are created when all of Base has succeeded.
	Pods []Object
	// Delete lists objects that the job no longer needs. They are deleted after Base was applied.
	Delete []Ref
}

// Ref identifies an object of a job by name and UID.
type Ref struct {
	// APIVersion is only set if the kind is ambiguous: for PodGroups.
	APIVersion            string
	Kind, Namespace, Name string
	UID                   types.UID
}

// For plans a job from its observed objects and their outcome. For a job that another controller runs, the plan contains only
// a NetworkPolicy, SSH keys if the site requires another type, and the change of its gate.
func For(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, settings Settings) Plan {
	if settings.AgentImage == "" || startedBySSHD(job, seen) {
		job.Launch = mpi.LaunchSSHD
	}
	switch {
	case job.Lifecycle.Deleting:
		return release(job, seen)
	case job.External:
		plan := isolate(job, seen, out, settings)
		plan.Base = append(plan.Base, wanted(gate(job, seen, out))...)
		return plan
	case out.Finish != nil:
		return Plan{
			Base:   wanted(stopLauncher(job, seen)),
			Delete: slices.Concat(finishedWorkers(job, seen), unwantedIsolation(job, seen, settings), unwantedPodGroups(job, seen, out)),
		}
	}
	if job.IsFrozen() {
		return frozen(job, seen, settings)
	}
	job = bound(job, seen)
	plan := Plan{
		Base:   wanted(service(job, seen), config(job, seen, settings), secret(job, seen), networkPolicy(job, seen, settings), podGroup(job, seen)),
		Delete: append(unwantedIsolation(job, seen, settings), unwantedPodGroups(job, seen, out)...),
	}
	switch launcher := launcher(job, seen, out, settings); {
	case launcher == nil:
	case launcher.GetUID() != "":
		// A launcher is suspended before its workers are deleted, because it would fail without them, and resumed
		// before they are created, so that an observer of the workers never sees the old launcher.
		plan.Base = append(plan.Base, launcher)
	default:
		plan.Pods = append(plan.Pods, launcher)
	}
	plan.Delete = append(plan.Delete, deletedLauncher(job, seen, settings)...)
	if job.Lifecycle.Suspended || seen.Gang != nil && seen.Gang.Evict {
		plan.Delete = append(plan.Delete, workersFrom(seen, 0)...)
		return plan
	}
	if out.PodsMayStart {
		plan.Pods = append(plan.Pods, missingWorkers(job, seen, settings)...)
	}
	plan.Delete = append(plan.Delete, workersFrom(seen, int(job.Workers.Count))...)
	plan.Delete = append(plan.Delete, lostWorkers(job, seen)...)
	return plan
}

// frozen plans a job that became invalid after it had been started. Its objects stay as they are, and its pods keep their host
// names and their isolation. Suspending it deletes its pods.
func frozen(job mpi.Job, seen jobstate.Observed, settings Settings) Plan {
	var plan Plan
	if seen.Service == nil {
		plan.Base = append(plan.Base, service(job, seen))
	}
	if seen.Isolation == nil {
		plan.Base = append(plan.Base, wanted(networkPolicy(job, seen, settings))...)
	}
	launcher := seen.Launcher
	runs := launcher != nil && launcher.DeletionTimestamp == nil && !ptr.Deref(launcher.Spec.Suspend, false) && !jobstate.HasFinished(launcher)
	switch {
	case job.Lifecycle.Suspended && runs:
		plan.Base = append(plan.Base, suspendLauncher(job, seen))
	case runs:
		plan.Base = append(plan.Base, wanted(attemptRecord(job, seen), forgive(job, seen))...)
	}
	if job.Lifecycle.Suspended {
		plan.Delete = workersFrom(seen, 0)
	}
	return plan
}

// release stops the pods of a job that is being deleted. The garbage collector deletes a job's objects only when the job is
// gone, and a finalizer may keep it for long.
func release(job mpi.Job, seen jobstate.Observed) Plan {
	if job.External || job.Lifecycle.Orphaning {
		return Plan{}
	}
	doomed := workersFrom(seen, 0)
	if seen.Launcher != nil && seen.Launcher.DeletionTimestamp == nil {
		doomed = append(doomed, Ref{Kind: "Job", Namespace: job.Namespace, Name: job.LauncherName(), UID: seen.Launcher.UID})
	}
	return Plan{Delete: doomed}
}

// wanted removes nil objects.
func wanted(objects ...Object) []Object {
	var some []Object
	for _, object := range objects {
		if object != nil {
			some = append(some, object)
		}
	}
	return some
}

// meta returns the metadata of an object of the job. uid is that of the object to change, or empty for a new one.
func meta(job mpi.Job, name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: job.Namespace, UID: uid, Labels: job.Labels(),
		OwnerReferences: []metav1.OwnerReference{job.Owner()},
	}
}
