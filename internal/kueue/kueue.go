// Package kueue reads the state of a job from its Workload of Kueue, and decides when a job leaves its queue.
package kueue

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Kueue is the name of the back end of Kueue (https://kueue.sigs.k8s.io).
const Kueue = "kueue"

// WorkloadKind is the kind of the object that Kueue creates for each job in a queue.
var WorkloadKind = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}

// LocalQueueKind is the kind of the queues of a namespace, in which jobs wait; LocalQueueListKind is that of a list of them.
var (
	LocalQueueKind     = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "LocalQueue"}
	LocalQueueListKind = LocalQueueKind.GroupVersion().WithKind("LocalQueueList")
)

// LabelJobUID is, on a Workload, the UID of its job.
const LabelJobUID = "kueue.x-k8s.io/job-uid"

// Workload is what is read of a Workload (kueue/apis/kueue/v1beta2/workload_types.go).
type Workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		QueueName string `json:"queueName,omitempty"`
		// Active is set to false to stop the job, by Kueue itself when it gives it up.
		Active *bool `json:"active,omitempty"`
		// Priority decides the order in the queue: those with more go first.
		Priority *int32 `json:"priority,omitempty"`
		// PodSets are the groups of its pods.
		PodSets []PodSet `json:"podSets,omitempty"`
		// MaximumExecutionTimeSeconds is how long the job may be admitted in all.
		MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		// Admission is its share of the quota of a ClusterQueue; nil while it has none.
		Admission *struct {
			ClusterQueue      string             `json:"clusterQueue"`
			PodSetAssignments []PodSetAssignment `json:"podSetAssignments,omitempty"`
		} `json:"admission,omitempty"`
		// ResourceRequests is what its pod sets request while it waits, without the number of pods. Kueue writes it when it first tries to admit the Workload; before that, it
		// is what cluster.WorkloadCacheOptions reads from the pod sets.
		ResourceRequests []PodSetRequest `json:"resourceRequests,omitempty"`
		// AccumulatedPastExecutionTimeSeconds is how long it was admitted before the present admission.
		AccumulatedPastExecutionTimeSeconds *int32 `json:"accumulatedPastExecutionTimeSeconds,omitempty"`

		RequeueState *struct {
			Count     *int32       `json:"count,omitempty"`
			RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
		} `json:"requeueState,omitempty"`
	} `json:"status"`
}

// Conditions of a Workload, the reason of PodsReady until all pods have run for the first time, and reasons of
// QuotaReserved for which waiting does not help.
const (
	admitted      = "Admitted"
	quotaReserved = "QuotaReserved"
	evicted       = "Evicted"
	podsReady     = "PodsReady"
	finished      = "Finished"

	reasonWaitForStart = "WaitForStart"

	reasonExceeds       = "ExceedsMaxQuota"
	reasonNoFlavor      = "NoMatchingFlavor"
	reasonMisconfigured = "Misconfigured"
	reasonInadmissible  = "Inadmissible"
)

// ReasonLacksResource is the reason of a job that requests a resource for which its queue has no quota.
const ReasonLacksResource = "LacksResource"

// UnfitTime is how long a job has ReasonNeedsRequests before that is certain: a job that has just lost quota to another one has the same
// message.
const UnfitTime = 30 * time.Second

// ReasonNeedsRequests is the reason of a job with pods that request nothing, in a queue where Kueue selects the nodes.
const ReasonNeedsRequests = "NeedsRequests"

// ReasonStopped is the reason of a job whose queue admits none: an administrator has stopped it, or its configuration is incomplete.
const ReasonStopped = "QueueStopped"

// ReasonDeactivated is the reason of a job whose Workload is not active: Kueue or a user has deactivated it.
const ReasonDeactivated = "Deactivated"

// gaveUp is the prefix of the reason of Evicted where Kueue itself has deactivated a Workload; the cause follows. Where a
// user has deactivated it, the reason is ReasonDeactivated alone, or that of an earlier eviction.
const gaveUp = ReasonDeactivated + "DueTo"

// deactivationTarget is the condition of a Workload that Kueue is about to make inactive.
const deactivationTarget = "DeactivationTarget"

// Standing says whether a job's Workload is active, and if not, who keeps it out of its queue.
type Standing int

const (
	// Active is that of a job that is let in when its turn comes, or is in.
	Active Standing = iota
	// Resting is that of one that we keep out for a while, since its pods did not all find a node in time.
	Resting
	// GivenUp is that of one that Kueue keeps out for good.
	GivenUp
	// Stopped is that of one that a user keeps out, until one lets it wait again.
	Stopped
)

// Standing is the Workload's.
func (w *Workload) Standing() Standing {
	out := apimeta.FindStatusCondition(w.Status.Conditions, evicted)
	if w.Spec.Active == nil || *w.Spec.Active {
		return Active
	}
	switch rests, ours := restOf(w); {
	case ours && rests.byUser:
		return Stopped
	case ours:
		return Resting
	case apimeta.IsStatusConditionTrue(w.Status.Conditions, deactivationTarget),
		out != nil && out.Status == metav1.ConditionTrue && strings.HasPrefix(out.Reason, gaveUp):
		return GivenUp
	}
	return Stopped
}

// Switch returns the merge patch by which a user deactivates or reactivates the Workload that was read. The operator no
// longer reactivates it by itself; the number of past reactivations is kept.
func (w *Workload) Switch(active bool) map[string]any {
	metadata := map[string]any{"uid": w.UID, "resourceVersion": w.ResourceVersion}
	if count, _, rests := strings.Cut(w.Annotations[mpi.AnnotationGangTimeouts], " "); rests {
		metadata["annotations"] = map[string]any{mpi.AnnotationGangTimeouts: count}
	}
	return map[string]any{"metadata": metadata, "spec": map[string]any{"active": active}}
}

// FromKueue returns a job's state in its queue, without its position. The Workload is nil before Kueue has created one.
func FromKueue(queue string, workload *Workload) jobstate.QueueState {
	state := jobstate.QueueState{Backend: Kueue, Name: queue}
	if workload == nil {
		state.Message = "Kueue has not created a Workload yet"
		return state
	}
	state.Object = workload.Name
	if workload.Spec.QueueName != "" {
		state.Name = workload.Spec.QueueName
	}
	standing := workload.Standing()
	switch {
	case standing == Active && isAdmitted(workload):
		state.Admitted, state.AdmittedAt = true, admittedAt(workload)
		state.EndsAt, state.Limit = endsAt(workload)
		return state
	case standing == Resting:
		rests, _ := restOf(workload)
		state.Reason, state.Requeues, state.EvictedAt = ReasonTimeout, rests.count, rests.evictedAt()
		state.Message = fmt.Sprintf("Admitted, but not all pods were scheduled in time (%s); next attempt at %s",
			often(rests.count), rests.until.UTC().Format(time.TimeOnly+" MST"))
		return state
	case standing == Stopped:
		state.Never, state.Stopped, state.Reason, state.Message = true, true, ReasonDeactivated, "the Workload is deactivated"
		return state
	}
	putOut(&state, workload)
	if standing == GivenUp {
		state.Never, state.Reason, state.Message, state.Evicted = true, ReasonDeactivated, cmp.Or(state.Evicted, "the Workload is deactivated"), ""
		return state
	}
	held(&state, workload)
	return state
}

// IsAdmitted reports whether Kueue has admitted a job and does not evict it.
func (w *Workload) IsAdmitted() bool { return isAdmitted(w) }

// ReportsPods reports whether Kueue watches over the start of a job's pods (waitForPodsReady of its configuration).
func (w *Workload) ReportsPods() bool {
	return apimeta.FindStatusCondition(w.Status.Conditions, podsReady) != nil
}

// isAdmitted reports whether Kueue lets a job in. One that is put out stays admitted until its pods are gone.
func isAdmitted(workload *Workload) bool {
	conditions := workload.Status.Conditions
	return apimeta.IsStatusConditionTrue(conditions, admitted) && !apimeta.IsStatusConditionTrue(conditions, evicted)
}

// admittedAt is when Kueue let a job in that it lets in.
func admittedAt(workload *Workload) time.Time {
	return apimeta.FindStatusCondition(workload.Status.Conditions, admitted).LastTransitionTime.Time
}

// endsAt returns when Kueue deactivates an admitted Workload because of its limit of time, and that limit; zero if it has none
// (kueue/pkg/controller/core/workload_controller.go: reconcileMaxExecutionTime).
func endsAt(workload *Workload) (time.Time, time.Duration) {
	if workload.Spec.MaximumExecutionTimeSeconds == nil {
		return time.Time{}, 0
	}
	limit := time.Duration(*workload.Spec.MaximumExecutionTimeSeconds) * time.Second
	past := time.Duration(ptr.Deref(workload.Status.AccumulatedPastExecutionTimeSeconds, 0)) * time.Second
	return admittedAt(workload).Add(limit - past), limit
}

// putOut adds that a job had been admitted before. A Workload that a user deactivated had not necessarily been.
func putOut(state *jobstate.QueueState, workload *Workload) {
	if out := apimeta.FindStatusCondition(workload.Status.Conditions, evicted); out != nil && out.Status == metav1.ConditionTrue && out.Reason != ReasonDeactivated {
		state.Evicted, state.EvictedAt = out.Message, out.LastTransitionTime.Time
	}
	requeue := workload.Status.RequeueState
	if requeue == nil {
		return
	}
	if requeue.Count != nil {
		state.Requeues = *requeue.Count
	}
	if requeue.RequeueAt != nil {
		state.Message = fmt.Sprintf("Next attempt at %s", requeue.RequeueAt.UTC().Format(time.TimeOnly+" MST"))
	}
}

// held adds why a job is not let in.
func held(state *jobstate.QueueState, workload *Workload) {
	conditions := workload.Status.Conditions
	why := apimeta.FindStatusCondition(conditions, quotaReserved)
	switch {
	case why == nil:
		return
	case why.Status == metav1.ConditionTrue && apimeta.IsStatusConditionTrue(conditions, evicted):
		// Its conditions are those of the time when it was admitted.
		state.Message = "Its pods are being deleted, then it waits for quota again"
		return
	case why.Status == metav1.ConditionTrue:
		state.Message = "Quota reserved, waiting for admission checks"
		why = apimeta.FindStatusCondition(conditions, admitted)
		if why == nil {
			return
		}
	}
	state.Reason = why.Reason
	if why.Message != "" && why.Message != state.Evicted {
		state.Message = why.Message
	}
	if reason, clause := refusal(why.Message); reason != "" {
		state.Reason, state.Why = reason, clause
	}
	if empty := workload.withoutRequests(); empty != "" && (why.Message == noLongerFits || strings.HasSuffix(why.Message, noTopologyFlavor)) {
		state.Reason, state.Why = ReasonNeedsRequests, fmt.Sprintf("pods of the pod set %s request nothing, and Kueue does not admit such pods where it selects the nodes", empty)
	}
	switch state.Reason {
	case reasonExceeds, reasonNoFlavor, reasonMisconfigured, reasonInadmissible, ReasonLacksResource, ReasonNeedsRequests, ReasonStopped:
		state.Never = true
	}
}

// noLongerFits is Kueue 0.19's message about a job with pods that request nothing, if it selects the nodes: no node has room for them
// (pkg/cache/scheduler/tas_flavor_snapshot.go, Fits), whatever it found before. It tries such a job again at once, so that others wait.
const noLongerFits = "Workload no longer fits after processing another workload"

// noTopologyFlavor ends its message about such a job if the queue has no quota of pods: no resource has a flavor then
// (pkg/scheduler/flavorassigner/errors.go). Kueue tries the job again only when something changes.
const noTopologyFlavor = ": no TAS flavor assigned"

// withoutRequests returns the name of the first pod set that requests nothing; "" if each requests something.
func (w *Workload) withoutRequests() string {
	for _, set := range w.Status.ResourceRequests {
		if len(set.Resources) == 0 {
			return set.Name
		}
	}
	return ""
}
