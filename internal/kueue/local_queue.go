package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// LocalQueue is what is read of a LocalQueue (kueue/apis/kueue/v1beta2/localqueue_types.go).
type LocalQueue struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ClusterQueue string `json:"clusterQueue,omitempty"`
		StopPolicy   string `json:"stopPolicy,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		// FlavorsUsage has all resources of which the ClusterQueue has a quota, used or not.
		FlavorsUsage []struct {
			Resources []struct {
				Name corev1.ResourceName `json:"name"`
			} `json:"resources,omitempty"`
		} `json:"flavorsUsage,omitempty"`
	} `json:"status"`
}

// The condition of a LocalQueue that admits jobs, its reason if the ClusterQueue is missing, and the value of stopPolicy that does not
// stop a queue.
const (
	active                 = "Active"
	reasonNoClusterQueue   = "ClusterQueueDoesNotExist"
	stopPolicyNone         = "None"
	reasonStoppedByItsUser = "Stopped"
)

// Warnings returns why a new job is going to wait in its queue until someone changes the queue: the queue is stopped or incompletely
// configured, or it has no quota for a resource that the pods request.
func (q *LocalQueue) Warnings(job mpi.Job) []string {
	var warnings []string
	label := field.NewPath("metadata", "labels").Key(mpi.LabelQueue).String()
	if why := q.stopped(); why != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %s. The job waits until then", label, why))
	}
	if lacking := q.lacks(job.PodSpecs()); len(lacking) > 0 {
		text := fmt.Sprintf("%s: queue %s has no quota for %s, which the pods request: Kueue does not admit the job, unless it is configured to ignore that", label, q.Name, mpi.ResourceNames(lacking))
		if job.RDMA.Optional && slices.ContainsFunc(lacking, podspec.IsRDMA) {
			text += ". Without a request for RDMA, the job runs over TCP"
		}
		warnings = append(warnings, text)
	}
	return warnings
}

// stopped returns why the queue admits no job, or "".
func (q *LocalQueue) stopped() string {
	condition := apimeta.FindStatusCondition(q.Status.Conditions, active)
	isInactive := condition != nil && condition.Status == metav1.ConditionFalse
	switch {
	case q.Spec.StopPolicy != "" && q.Spec.StopPolicy != stopPolicyNone:
		return stoppedText("LocalQueue "+q.Name, true)
	case !isInactive || condition.Reason == reasonStoppedByItsUser:
		// The status may lag behind the field.
		return ""
	case condition.Reason == reasonNoClusterQueue:
		return fmt.Sprintf("ClusterQueue %s does not exist: LocalQueue %s admits no job until its administrator creates it", q.Spec.ClusterQueue, q.Name)
	}
	return stoppedText("ClusterQueue "+q.Spec.ClusterQueue, false)
}

// lacks returns the resources that pods request and of which the queue has no quota, by name; none if its quotas are unknown.
func (q *LocalQueue) lacks(pods []corev1.PodSpec) []corev1.ResourceName {
	covered := map[corev1.ResourceName]bool{}
	for _, flavor := range q.Status.FlavorsUsage {
		for _, resource := range flavor.Resources {
			covered[resource.Name] = true
		}
	}
	if len(covered) == 0 {
		return nil
	}
	lacking := map[corev1.ResourceName]bool{}
	for _, pod := range pods {
		for name, quantity := range podspec.Requests(pod) {
			if quantity.Sign() > 0 && !covered[name] {
				lacking[name] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(lacking), func(a, b corev1.ResourceName) int { return strings.Compare(string(a), string(b)) })
}
