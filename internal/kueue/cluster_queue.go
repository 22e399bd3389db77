package kueue

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterQueueKind is the kind of the objects that have the quotas of LocalQueues.
var ClusterQueueKind = LocalQueueKind.GroupVersion().WithKind("ClusterQueue")

// ClusterQueue is what is read of a ClusterQueue (kueue/apis/kueue/v1beta2/clusterqueue_types.go).
type ClusterQueue struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ResourceGroups []struct {
			CoveredResources []corev1.ResourceName `json:"coveredResources,omitempty"`
			// Flavors are tried in this order.
			Flavors []flavor `json:"flavors,omitempty"`
		} `json:"resourceGroups,omitempty"`
		// CohortName is set if it shares its quota with other ClusterQueues.
		CohortName string `json:"cohortName,omitempty"`
		// AdmissionScope is set if the use of its LocalQueues in the past decides about the order.
		AdmissionScope *struct{} `json:"admissionScope,omitempty"`
		// QueueingStrategy is StrictFIFO if no job passes one that does not fit.
		QueueingStrategy string `json:"queueingStrategy,omitempty"`
		// AdmissionChecksStrategy has what jobs wait for after they have quota.
		AdmissionChecksStrategy struct {
			AdmissionChecks []struct{} `json:"admissionChecks,omitempty"`
		} `json:"admissionChecksStrategy"`
	} `json:"spec"`
	Status struct {
		// FlavorsReservation is what the Workloads hold that have reserved quota.
		FlavorsReservation []struct {
			Name      string `json:"name"`
			Resources []struct {
				Name  corev1.ResourceName `json:"name"`
				Total resource.Quantity   `json:"total"`
			} `json:"resources,omitempty"`
		} `json:"flavorsReservation,omitempty"`
	} `json:"status"`
}

// flavor has the quotas of a ClusterQueue for a kind of nodes.
type flavor struct {
	Name      string `json:"name"`
	Resources []struct {
		Name         corev1.ResourceName `json:"name"`
		NominalQuota resource.Quantity   `json:"nominalQuota"`
	} `json:"resources,omitempty"`
}

// strictFIFO is the strategy of a queue in which a job that never fits stops all behind it.
const strictFIFO = "StrictFIFO"

// PodSet is a group of so many equal pods.
type PodSet struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// PodSetRequest is what all pods of a pod set of a Workload request that waits.
type PodSetRequest struct {
	Name      string              `json:"name"`
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// PodSetAssignment is what a pod set holds, and of which flavors.
type PodSetAssignment struct {
	Flavors       map[corev1.ResourceName]string `json:"flavors,omitempty"`
	ResourceUsage corev1.ResourceList            `json:"resourceUsage,omitempty"`
}

// amount is a quantity: of CPUs in thousandths, of other resources in their unit (kueue/pkg/resources/requests.go).
type amount = int64

func amountOf(name corev1.ResourceName, quantity resource.Quantity) amount {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// of is a resource of a flavor.
type of struct {
	flavor   string
	resource corev1.ResourceName
}

// room is the free quota of a ClusterQueue as Workloads take and release it (waiting.Room).
type room struct {
	queue *ClusterQueue
	// free is what is left of all: more is never free, since pods that have ended may have released their part of a Workload's already.
	free, all map[of]amount
	// running and waiting are the Workloads, and excluded, for each that waits, the flavors that do not accept its pods.
	running, waiting []*Workload
	excluded         []map[string]bool
	// placed is what each waiting Workload was given.
	placed map[int]map[of]amount
}

func newRoom(queue *ClusterQueue, running, waiting []*Workload, excluded []map[string]bool) *room {
	r := &room{queue: queue, free: map[of]amount{}, all: map[of]amount{}, running: running, waiting: waiting, excluded: excluded, placed: map[int]map[of]amount{}}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, quota := range flavor.Resources {
				r.all[of{flavor.Name, quota.Name}] += amountOf(quota.Name, quota.NominalQuota)
			}
		}
	}
	maps.Copy(r.free, r.all)
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, held := range flavor.Resources {
			r.free[of{flavor.Name, held.Name}] -= amountOf(held.Name, held.Total)
		}
	}
	return r
}

// Place takes the quota that a waiting Workload requests, and reports whether there is enough.
func (r *room) Place(i int) bool {
	taken := map[of]amount{}
	workload := r.waiting[i]
	if workload.Status.ResourceRequests == nil {
		return false
	}
	for _, podSet := range workload.Status.ResourceRequests {
		left, fits := r.placePodSet(workload.requests(podSet), r.excluded[i], taken)
		// Before Kueue has looked at the Workload, its requests may have resources that Kueue is configured to ignore.
		if !fits || left > 0 && workload.isConsidered() {
			return false
		}
	}
	for what, much := range taken {
		r.free[what] -= much
	}
	r.placed[i] = taken
	return true
}

// placePodSet adds what a pod set takes, and reports whether that is free, and of how many resources the queue has no quota. All resources of a group come from the same flavor, the first one
// that has enough.
func (r *room) placePodSet(left map[corev1.ResourceName]amount, excluded map[string]bool, taken map[of]amount) (uncovered int, fits bool) {
	for _, group := range r.queue.Spec.ResourceGroups {
		wants := map[corev1.ResourceName]amount{}
		for _, name := range group.CoveredResources {
			if request, requested := left[name]; requested {
				wants[name] = request
				delete(left, name)
			}
		}
		i := slices.IndexFunc(group.Flavors, func(f flavor) bool { return !excluded[f.Name] && r.has(f.Name, wants, taken) })
		if i < 0 && len(wants) > 0 {
			return 0, false
		}
		for name, much := range wants {
			taken[of{group.Flavors[i].Name, name}] += much
		}
	}
	// The number of pods is limited only where the queue has a quota of it.
	delete(left, corev1.ResourcePods)
	return len(left), true
}

// requests are what a pod set requests, and how many pods it has.
func (w *Workload) requests(podSet PodSetRequest) map[corev1.ResourceName]amount {
	requests := map[corev1.ResourceName]amount{}
	for name, request := range podSet.Resources {
		if !request.IsZero() {
			requests[name] = amountOf(name, request)
		}
	}
	if i := slices.IndexFunc(w.Spec.PodSets, func(s PodSet) bool { return s.Name == podSet.Name }); i >= 0 {
		requests[corev1.ResourcePods] = w.Spec.PodSets[i].Count
	}
	return requests
}

// has reports whether a flavor has so much left besides what is taken.
func (r *room) has(flavor string, wants map[corev1.ResourceName]amount, taken map[of]amount) bool {
	for name, much := range wants {
		what := of{flavor, name}
		if r.free[what]-taken[what] < much {
			return false
		}
	}
	return true
}

// Release gives back what a running Workload holds.
func (r *room) Release(i int) {
	for what, much := range r.running[i].holds() {
		r.free[what] = min(r.free[what]+much, r.all[what])
	}
}

// ReleasePlaced gives back what a waiting Workload was given.
func (r *room) ReleasePlaced(i int) {
	for what, much := range r.placed[i] {
		r.free[what] += much
	}
}

// holds is the quota that a Workload has reserved.
func (w *Workload) holds() map[of]amount {
	all := map[of]amount{}
	if w.Status.Admission == nil {
		return all
	}
	for _, podSet := range w.Status.Admission.PodSetAssignments {
		for name, used := range podSet.ResourceUsage {
			all[of{podSet.Flavors[name], name}] += amountOf(name, used)
		}
	}
	return all
}
