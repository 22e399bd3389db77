// Package plan says what must exist for a job: For turns a job and what was observed of it into the objects to
// make or mend and those to remove. It is pure, and runs without a cluster.
package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
)

// Settings are the cluster's, the same for every job.
type Settings struct {
	// ClusterDomain ends the DNS names of Services, such as cluster.local; empty leaves it out of host names.
	ClusterDomain string
	// AgentImage is the image that brings the agent into pods. Without one there is no agent: ranks are started by
	// the images' own sshd.
	AgentImage string
	// NetworkPolicies has jobs isolated from each other and from whatever else runs in the cluster.
	NetworkPolicies bool
	// OperatorNamespace is where the operator runs, which may read agents' status; empty: it may not.
	OperatorNamespace string
	// AllowEgress is where all jobs' pods may connect to, as mpi.ParseEgress reads it.
	AllowEgress string
}

// Object is anything the API server keeps.
type Object interface {
	metav1.Object
	runtime.Object
}

// Plan is what is to be done for a job. A zero Plan means that all is as it should be.
//
// An object without a UID is to be created. One with a UID is to be mended: it holds the fields that are
// not as they should be, and is meant for that very object, never for a later one of the same name.
type Plan struct {
	// Base is what comes first: what pods need before they start, Service, ConfigMap, Secret, NetworkPolicy and PodGroup,
	// and a change of the launcher that is there.
	Base []Object
	// Pods are a new launcher's Job and the worker pods; they come when all of Base is done.
	Pods []Object
	// Delete are objects that the job no longer needs; they go when Base was tried.
	Delete []Ref
}

// Ref names one object of a job, and no later one of the same name.
type Ref struct {
	// APIVersion is set where the kind alone does not say what it is: of PodGroups.
	APIVersion            string
	Kind, Namespace, Name string
	UID                   types.UID
}

// For plans a job from what was observed and judged of it.
func For(job mpi.Job, seen mpi.Observed, out mpi.Outcome, settings Settings) Plan {
	if settings.AgentImage == "" {
		job.Launch = mpi.LaunchSSHD
	}
	switch {
	case job.Lifecycle.Deleting:
		// The garbage collector removes what the job owns.
		return Plan{}
	case out.Finish != nil:
		return Plan{
			Base:   wanted(stopLauncher(job, seen)),
			Delete: slices.Concat(finishedWorkers(job, seen), unwantedIsolation(job, seen, settings), unwantedPodGroups(job, seen, out)),
		}
	}
	job = bound(job, seen)
	plan := Plan{
		Base:   wanted(service(job, seen), config(job, seen, settings), secret(job, seen), isolation(job, seen, settings), podGroup(job, seen)),
		Delete: append(unwantedIsolation(job, seen, settings), unwantedPodGroups(job, seen, out)...),
	}
	switch launcher := launcher(job, seen, out, settings); {
	case launcher == nil:
	case launcher.GetUID() != "":
		// A launcher is suspended before its workers go, of whose loss it would else die, and resumed before they
		// come: who sees the workers sees the launcher as it should be.
		plan.Base = append(plan.Base, launcher)
	default:
		plan.Pods = append(plan.Pods, launcher)
	}
	if launcherOutdated(job, seen, settings) {
		plan.Delete = append(plan.Delete, Ref{Kind: "Job", Namespace: job.Namespace, Name: job.LauncherName(), UID: seen.Launcher.UID})
	}
	if job.Lifecycle.Suspended || seen.Gang != nil && seen.Gang.Evict {
		plan.Delete = append(plan.Delete, workersFrom(seen, 0)...)
		return plan
	}
	if out.PodsMayStart {
		plan.Pods = append(plan.Pods, missingWorkers(job, seen, settings)...)
	}
	plan.Delete = append(plan.Delete, workersFrom(seen, int(job.Workers.Count))...)
	return plan
}

// wanted leaves out what need not be changed.
func wanted(objects ...Object) []Object {
	var some []Object
	for _, object := range objects {
		if object != nil {
			some = append(some, object)
		}
	}
	return some
}

// meta is the metadata of an object of the job; uid is that of the object to mend, or empty for a new one.
func meta(job mpi.Job, name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: job.Namespace, UID: uid, Labels: job.Labels(),
		OwnerReferences: []metav1.OwnerReference{job.Owner()},
	}
}
