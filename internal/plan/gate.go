package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// gate returns the change that opens or closes the gate of a job's pods, or nil if nothing changes. It is opened when all pods
// have room on nodes and in the quotas. It is closed to remove all pods, or for a job without pods, such as between two attempts.
// A job that runs and waits for a place of one lost pod keeps the others. The gate of a suspended or finished job stays as it is, also while Trainer
// has yet to resume the JobSet of a job that was resumed.
func gate(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome) Object {
	if seen.Gate == nil || seen.Gate.Suspended || job.Lifecycle.Suspended || out.Finish != nil {
		return nil
	}
	evicted, hasPods := seen.Gang != nil && seen.Gang.Evict, len(seen.LauncherPods)+len(seen.Workers) > 0
	if !out.PodsMayStart && hasPods && !evicted {
		return nil
	}
	return gateChange(job, *seen.Gate, !out.PodsMayStart)
}

// gateChange returns the change to a state of a gate; nil if that is its state.
func gateChange(job mpi.Job, have jobstate.Gate, closed bool) Object {
	if have.Closed == closed {
		return nil
	}
	state := mpi.GateOpen
	if closed {
		state = mpi.GateClosed
	}
	change := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": closed}}}
	change.SetGroupVersionKind(have.Kind)
	change.SetNamespace(job.Namespace)
	change.SetName(have.Name)
	change.SetUID(have.UID)
	change.SetAnnotations(map[string]string{mpi.AnnotationGate: state})
	return change
}
