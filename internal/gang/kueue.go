// Package gang knows what places jobs as a whole: all of a job's pods or none. It reads what such a back end says of a
// job. Pure.
package gang

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/mpi"
)

// Kueue is the name of the back end of Kueue (https://kueue.sigs.k8s.io).
const Kueue = "kueue"

// WorkloadKind is what Kueue makes of each job that it queues.
var WorkloadKind = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}

// Workload is what is read of a Workload (kueue/apis/kueue/v1beta2/workload_types.go).
type Workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		QueueName string `json:"queueName,omitempty"`
		// Active is set to false to stop the job, by Kueue itself when it gives it up.
		Active *bool `json:"active,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions   []metav1.Condition `json:"conditions,omitempty"`
		RequeueState *struct {
			Count     *int32       `json:"count,omitempty"`
			RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
		} `json:"requeueState,omitempty"`
	} `json:"status"`
}

// Place is a Workload's among those that wait, counted from 0 (kueue/apis/visibility/v1beta2).
type Place struct {
	InQueue        int32 `json:"positionInLocalQueue"`
	InClusterQueue int32 `json:"positionInClusterQueue"`
}

// Conditions of a Workload, and reasons of QuotaReserved for which waiting does not help.
const (
	admitted      = "Admitted"
	quotaReserved = "QuotaReserved"
	evicted       = "Evicted"

	reasonExceeds       = "ExceedsMaxQuota"
	reasonNoFlavor      = "NoMatchingFlavor"
	reasonMisconfigured = "Misconfigured"
	reasonInadmissible  = "Inadmissible"
)

// tooMuch is how Kueue says what ExceedsMaxQuota means, where it does not give that reason: its finer reasons are
// switched off by default (kueue/pkg/scheduler/flavorassigner).
const tooMuch = "> maximum capacity ("

// ReasonDeactivated is that of a job that Kueue has given up, or that somebody has stopped by its Workload.
const ReasonDeactivated = "Deactivated"

// FromKueue says where a job is in its queue. The Workload is nil before Kueue has made one, the place where it is not
// known.
func FromKueue(queue string, workload *Workload, place *Place) mpi.QueueState {
	state := mpi.QueueState{Backend: Kueue, Name: queue}
	if workload == nil {
		state.Message = "Kueue has not taken the job up yet"
		return state
	}
	if workload.Spec.QueueName != "" {
		state.Name = workload.Spec.QueueName
	}
	conditions := workload.Status.Conditions
	if apimeta.IsStatusConditionTrue(conditions, admitted) {
		state.Admitted = true
		return state
	}
	putOut(&state, workload)
	if place != nil {
		state.Position, state.Total = place.InQueue+1, place.InClusterQueue+1
	}
	if active := workload.Spec.Active; active != nil && !*active {
		state.Never, state.Reason, state.Message = true, ReasonDeactivated, "its Workload is not active"
		if state.Evicted != "" {
			state.Message, state.Evicted = state.Evicted, ""
		}
		return state
	}
	held(&state, conditions)
	return state
}

// putOut adds that a job had been let in before.
func putOut(state *mpi.QueueState, workload *Workload) {
	if out := apimeta.FindStatusCondition(workload.Status.Conditions, evicted); out != nil && out.Status == metav1.ConditionTrue {
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
		state.Message = fmt.Sprintf("It is tried again at %s", requeue.RequeueAt.UTC().Format(time.TimeOnly+" MST"))
	}
}

// held adds why a job is not let in.
func held(state *mpi.QueueState, conditions []metav1.Condition) {
	why := apimeta.FindStatusCondition(conditions, quotaReserved)
	switch {
	case why == nil:
		return
	case why.Status == metav1.ConditionTrue:
		state.Message = "Its quota is reserved, and it waits for admission checks"
		why = apimeta.FindStatusCondition(conditions, admitted)
		if why == nil {
			return
		}
	}
	state.Reason = why.Reason
	if why.Message != "" {
		state.Message = why.Message
	}
	if strings.Contains(why.Message, tooMuch) {
		state.Reason = reasonExceeds
	}
	switch state.Reason {
	case reasonExceeds, reasonNoFlavor, reasonMisconfigured, reasonInadmissible:
		state.Never = true
	}
}
