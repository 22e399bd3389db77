package dashboard

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
)

// Queue is a LocalQueue of Kueue.
type Queue struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ClusterQueue string `json:"clusterQueue"`
	// Active is unset if the queue admits no jobs; Message then says why.
	Active  bool   `json:"active"`
	Message string `json:"message,omitempty"`
	Pending int64  `json:"pending"`
	Running int64  `json:"running"`
	// Resources are the quota of the ClusterQueue; empty if the user may not read it.
	Resources []QueueResource `json:"resources"`
	// Waiting are the first jobs that wait in the queue, by position, and WaitingOmitted is how many more there are.
	Waiting        []Row `json:"waiting"`
	WaitingOmitted int   `json:"waitingOmitted,omitempty"`
	// WaitP50 and WaitP90 are how many seconds jobs of the namespace have waited in the queue: half of them, and nine of ten,
	// at most. Samples is the number of these jobs; 0 if there are none.
	WaitP50 int64 `json:"waitP50,omitempty"`
	WaitP90 int64 `json:"waitP90,omitempty"`
	Samples int   `json:"samples,omitempty"`
}

// QueueResource is the quota of a resource in a flavor.
type QueueResource struct {
	Flavor   string  `json:"flavor"`
	Resource string  `json:"resource"`
	Nominal  float64 `json:"nominal"`
	Used     float64 `json:"used"`
}

var clusterQueues = kueue.LocalQueueKind.GroupVersion().WithKind("ClusterQueueList")

// queues returns the LocalQueues of a namespace (empty: all) with the quota of their ClusterQueues, as far as the user may
// read them.
func (c *call) queues(namespace string) ([]Queue, error) {
	local := &unstructured.UnstructuredList{}
	local.SetGroupVersionKind(kueue.LocalQueueListKind)
	if err := c.api.List(c.ctx, local, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	cluster := &unstructured.UnstructuredList{}
	cluster.SetGroupVersionKind(clusterQueues)
	if err := c.api.List(c.ctx, cluster); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	resources := map[string][]QueueResource{}
	for i := range cluster.Items {
		resources[cluster.Items[i].GetName()] = queueResources(cluster.Items[i].Object)
	}
	all := []Queue{}
	for i := range local.Items {
		object := local.Items[i].Object
		name, _, _ := unstructured.NestedString(object, "spec", "clusterQueue")
		queue := Queue{Namespace: local.Items[i].GetNamespace(), Name: local.Items[i].GetName(), ClusterQueue: name, Active: true, Resources: orEmpty(resources[name]), Waiting: []Row{}}
		queue.Pending, _, _ = unstructured.NestedInt64(object, "status", "pendingWorkloads")
		queue.Running, _, _ = unstructured.NestedInt64(object, "status", "admittedWorkloads")
		conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
		for _, entry := range conditions {
			if condition, is := entry.(map[string]any); is && condition["type"] == "Active" && condition["status"] == "False" {
				queue.Active = false
				queue.Message, _ = condition["message"].(string)
			}
		}
		all = append(all, queue)
	}
	return all, nil
}

// queueResources returns the quota and the usage of a ClusterQueue.
func queueResources(object map[string]any) []QueueResource {
	used := map[[2]string]float64{}
	usage, _, _ := unstructured.NestedSlice(object, "status", "flavorsUsage")
	eachResource(usage, func(flavor, name string, entry map[string]any) {
		used[[2]string{flavor, name}] = quantityText(entry["total"]).AsApproximateFloat64()
	})
	all := []QueueResource{}
	groups, _, _ := unstructured.NestedSlice(object, "spec", "resourceGroups")
	for _, entry := range groups {
		group, _ := entry.(map[string]any)
		flavors, _ := group["flavors"].([]any)
		eachResource(flavors, func(flavor, name string, entry map[string]any) {
			all = append(all, QueueResource{flavor, name, quantityText(entry["nominalQuota"]).AsApproximateFloat64(), used[[2]string{flavor, name}]})
		})
	}
	return all
}

// eachResource calls a function with each resource of each flavor.
func eachResource(flavors []any, each func(flavor, name string, entry map[string]any)) {
	for _, entry := range flavors {
		flavor, _ := entry.(map[string]any)
		flavorName, _ := flavor["name"].(string)
		resources, _ := flavor["resources"].([]any)
		for _, entry := range resources {
			if one, is := entry.(map[string]any); is {
				name, _ := one["name"].(string)
				each(flavorName, name, one)
			}
		}
	}
}

// quantityText reads a quantity that may be written as a number. It is zero if it cannot be read.
func quantityText(value any) *resource.Quantity {
	if n, is := value.(int64); is {
		return quantityOf(n)
	}
	text, _ := value.(string)
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return &resource.Quantity{}
	}
	return &parsed
}

// maxWaiting is the maximum number of waiting jobs of a queue.
const maxWaiting = 50

// addWaiting adds to queues the jobs that wait in them, by position, and how long past jobs waited there.
func addWaiting(queues []Queue, visible []*Row) {
	waits, waiting := map[string][]int64{}, map[string][]Row{}
	for _, row := range visible {
		queue := row.Namespace + "/" + row.Queue
		if row.waited != nil {
			waits[queue] = append(waits[queue], *row.waited)
		}
		if row.Ended == nil && !row.Deleted && (row.Phase == string(v1alpha1.PhaseQueued) || row.Phase == string(v1alpha1.PhasePending)) {
			waiting[queue] = append(waiting[queue], *row)
		}
	}
	for i := range queues {
		queue := &queues[i]
		queue.estimate(waits[queue.Namespace+"/"+queue.Name])
		queue.Waiting = orEmpty(waiting[queue.Namespace+"/"+queue.Name])
		slices.SortFunc(queue.Waiting, func(a, b Row) int {
			return cmp.Or(cmp.Compare(position(&a), position(&b)), a.Created.Compare(b.Created))
		})
		queue.WaitingOmitted = max(0, len(queue.Waiting)-maxWaiting)
		queue.Waiting = queue.Waiting[:len(queue.Waiting)-queue.WaitingOmitted]
	}
}

// waitsOf returns how many seconds past jobs have waited in their queues, by queue.
func waitsOf(past []jobs.Job) map[string][]int64 {
	waits := map[string][]int64{}
	for _, job := range past {
		if waited := job.Status().Waited; waited != nil && waited.Queue != "" {
			waits[waited.Queue] = append(waits[waited.Queue], waited.Seconds)
		}
	}
	return waits
}

// estimate sets how long jobs wait in the queue from past waits in seconds.
func (q *Queue) estimate(waits []int64) {
	if q.Samples = len(waits); q.Samples == 0 {
		return
	}
	slices.Sort(waits)
	q.WaitP50, q.WaitP90 = waits[(len(waits)-1)/2], waits[(len(waits)*9-1)/10]
}
