package dashboard

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

var (
	projects      = schema.GroupVersionKind{Group: "project.openshift.io", Version: "v1", Kind: "ProjectList"}
	clusterQueues = kueue.LocalQueueKind.GroupVersion().WithKind("ClusterQueueList")
)

// connectionLabel marks Secrets that are data connections of the Open Data Hub dashboard.
const connectionLabel = "opendatahub.io/dashboard"

func quantityOf(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

func sortedNames(resources corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(resources))
}

// namespaces returns the namespaces that the user can select: those that the user may list, else the projects of OpenShift,
// else those with jobs that the user sees.
func (s *Server) namespaces(c *call) (any, error) {
	found := Namespaces{Namespaces: []Namespace{}, Complete: true}
	names := &metav1.PartialObjectMetadataList{}
	names.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := c.api.List(c.ctx, names)
	if apierrors.IsForbidden(err) {
		names.SetGroupVersionKind(projects)
		err = c.api.List(c.ctx, names)
	}
	switch {
	case err == nil:
		for i := range names.Items {
			found.Namespaces = append(found.Namespaces, Namespace{Name: names.Items[i].Name, DisplayName: names.Items[i].Annotations["openshift.io/display-name"]})
		}
	case apierrors.IsForbidden(err) || jobs.IsNotInstalled(err):
		found.Complete = false
		visible, _, _, err := s.visible(c.ctx, c.user)
		if err != nil {
			return nil, err
		}
		set := map[string]bool{}
		for _, row := range visible {
			set[row.Namespace] = true
		}
		for _, name := range keys(set) {
			found.Namespaces = append(found.Namespaces, Namespace{Name: name})
		}
	default:
		return nil, err
	}
	return found, c.addCreate(found.Namespaces)
}

// addCreate sets in which namespaces the user may create MPIJobs.
func (c *call) addCreate(namespaces []Namespace) error {
	mpiJobs := resourceOf(jobs.Kinds()[0]).GroupResource()
	everywhere, err := c.may(c.ctx, "create", mpiJobs, "")
	if err != nil {
		return err
	}
	errs := make([]error, len(namespaces))
	gate := make(chan struct{}, parallelReviews)
	var all sync.WaitGroup
	for i := range namespaces {
		if namespaces[i].CanCreate = everywhere; everywhere {
			continue
		}
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			namespaces[i].CanCreate, errs[i] = c.may(c.ctx, "create", mpiJobs, namespaces[i].Name)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// missing collects what a user may not read. Kinds that are not installed are not missing.
type missing []string

func (m *missing) note(what string, err error) error {
	switch {
	case err == nil || jobs.IsNotInstalled(err):
		return nil
	case apierrors.IsForbidden(err):
		*m = append(*m, what)
		return nil
	}
	return err
}

// choices returns what a new job in a namespace can use.
func (s *Server) choices(c *call) (any, error) {
	namespace := c.namespace()
	found := Choices{Priorities: []string{}, Images: []string{}, GPUs: []string{}, Connections: []Connection{}}
	var no missing
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	gather := func(what string, read func() error) {
		all.Go(func() {
			err := read()
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, no.note(what, err))
		})
	}
	gather("runtimes", func() (err error) { found.Runtimes, _, err = c.runtimes(namespace); return err })
	gather("queues", func() (err error) { found.Queues, err = c.queues(namespace); return err })
	var own, shared map[string][]Quota
	gather("quotas", func() (err error) { own, err = c.resourceQuotas(namespace); return err })
	gather("ClusterResourceQuotas", func() (err error) { shared, err = c.clusterQuotas(namespace); return err })
	gather("data connections", func() (err error) { found.Connections, err = c.connections(namespace); return err })
	gather("priority classes", func() error {
		var classes schedulingv1.PriorityClassList
		err := c.api.List(c.ctx, &classes)
		for i := range classes.Items {
			if !strings.HasPrefix(classes.Items[i].Name, "system-") {
				found.Priorities = append(found.Priorities, classes.Items[i].Name)
			}
		}
		return err
	})
	gather("nodes", func() (err error) { found.GPUs, err = c.gpus(); return err })
	var waits map[string][]int64
	gather("jobs", func() error {
		past, err := c.jobs.List(c.ctx, jobs.Selection{Namespace: namespace})
		if err == nil {
			waits = waitsOf(past.Jobs)
			found.Images, found.Recommended = c.recommend(past.Jobs)
		}
		return err
	})
	all.Wait()
	found.Quotas = append(own[namespace], shared[namespace]...)
	for i := range found.Queues {
		found.Queues[i].estimate(waits[found.Queues[i].Name])
	}
	for _, runtime := range found.Runtimes {
		if runtime.Image != "" && !slices.Contains(found.Images, runtime.Image) {
			found.Images = append(found.Images, runtime.Image)
		}
	}
	found.Missing = orEmpty([]string(no))
	slices.Sort(found.Missing)
	found.Runtimes, found.Queues, found.Quotas, found.Images, found.GPUs = orEmpty(found.Runtimes), orEmpty(found.Queues), orEmpty(found.Quotas), orEmpty(found.Images), orEmpty(found.GPUs)
	return found, errors.Join(errs...)
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

// connections returns the data connections of a namespace. Only the metadata of Secrets is read.
func (c *call) connections(namespace string) ([]Connection, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	all := []Connection{}
	err := c.api.List(c.ctx, list, client.InNamespace(namespace), client.MatchingLabels{connectionLabel: "true"})
	for i := range list.Items {
		notes := list.Items[i].Annotations
		all = append(all, Connection{
			Name: list.Items[i].Name, DisplayName: notes["openshift.io/display-name"],
			Type: cmp.Or(notes["opendatahub.io/connection-type-ref"], notes["opendatahub.io/connection-type"]),
		})
	}
	return all, err
}

// gpus returns the GPU resources of the cluster's nodes.
func (c *call) gpus() ([]string, error) {
	var nodes corev1.NodeList
	err := c.api.List(c.ctx, &nodes)
	set := map[string]bool{}
	for i := range nodes.Items {
		for name := range nodes.Items[i].Status.Allocatable {
			if podspec.IsGPU(name) {
				set[string(name)] = true
			}
		}
	}
	return keys(set), err
}

// recommend returns the images of past jobs, and what the latest job that succeeded used.
func (c *call) recommend(past []jobs.Job) (images []string, best *Recommendation) {
	slices.SortFunc(past, func(a, b jobs.Job) int {
		return b.Object.GetCreationTimestamp().Compare(a.Object.GetCreationTimestamp().Time)
	})
	for _, job := range past {
		summary := job.Summary()
		if summary.Image != "" && !slices.Contains(images, summary.Image) && len(images) < 20 {
			images = append(images, summary.Image)
		}
		if best != nil || job.Phase() != v1alpha1.PhaseSucceeded {
			continue
		}
		requests := podspec.FillIn(summary.Worker.Requests.DeepCopy(), summary.Worker.Limits)
		best = &Recommendation{
			Job: job.Name, Image: summary.Image, Command: phrase.QuoteCommand(summary.Command), Workers: workersOf(job.Object),
			GPU: podspec.GPUs(summary.Worker), Runtime: summary.Runtime,
		}
		if cpu, set := requests[corev1.ResourceCPU]; set {
			best.CPU = cpu.String()
		}
		if memory, set := requests[corev1.ResourceMemory]; set {
			best.Memory = memory.String()
		}
	}
	return images, best
}

// resourceQuotas returns the limits of the ResourceQuotas of a namespace, or of all with an empty name, by namespace.
func (c *call) resourceQuotas(namespace string) (map[string][]Quota, error) {
	var list corev1.ResourceQuotaList
	err := c.api.List(c.ctx, &list, client.InNamespace(namespace))
	all := map[string][]Quota{}
	for i := range list.Items {
		all[list.Items[i].Namespace] = append(all[list.Items[i].Namespace], limitsOf(&list.Items[i], false)...)
	}
	return all, err
}

// clusterQuotas returns the limits of the ClusterResourceQuotas that limit a namespace, or all with an empty name, by namespace.
func (c *call) clusterQuotas(namespace string) (map[string][]Quota, error) {
	shared, err := c.jobs.ClusterQuotas(c.ctx, namespace)
	all := map[string][]Quota{}
	for name, quotas := range shared {
		for i := range quotas {
			all[name] = append(all[name], limitsOf(&quotas[i], true)...)
		}
	}
	return all, err
}

// limitsOf returns the limits of a quota, by resource.
func limitsOf(quota *corev1.ResourceQuota, isShared bool) []Quota {
	var all []Quota
	for _, name := range sortedNames(quota.Status.Hard) {
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		all = append(all, Quota{
			Name: quota.Name, Resource: string(name), Hard: hard.AsApproximateFloat64(), Used: used.AsApproximateFloat64(),
			HardText: hard.String(), UsedText: used.String(), Shared: isShared,
		})
	}
	return all
}

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

// quotasPage returns queues with the jobs that wait in them, and the quotas of the namespaces that the user selects.
func (s *Server) quotasPage(c *call) (any, error) {
	found := Quotas{Queues: []Queue{}, Quotas: []NamespaceQuotas{}, Kueue: true}
	var no missing
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	namespaces, err := c.quotaNamespaces(visible)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		quotas, err := c.resourceQuotas(namespace)
		if err := no.note("quotas of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		shared, err := c.clusterQuotas(namespace)
		if err := no.note("ClusterResourceQuotas of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		for name, more := range shared {
			quotas[name] = append(quotas[name], more...)
		}
		for _, name := range keys(quotas) {
			found.Quotas = append(found.Quotas, NamespaceQuotas{name, quotas[name]})
		}
		queues, err := c.queues(namespace)
		if err != nil && jobs.IsNotInstalled(err) {
			found.Kueue = false
		}
		if err := no.note("queues of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		found.Queues = append(found.Queues, queues...)
	}
	addWaiting(found.Queues, visible)
	found.Missing = orEmpty([]string(no))
	return found, nil
}

// quotaNamespaces returns the namespaces of the request; without any, those of the visible rows, or an empty name for all
// namespaces if the user may list their quotas and queues: an administrator also sees projects without jobs.
func (c *call) quotaNamespaces(visible []*Row) ([]string, error) {
	if namespaces := list(c.URL.Query(), "namespace"); len(namespaces) > 0 {
		return namespaces, nil
	}
	quotas, err1 := c.may(c.ctx, "list", corev1.Resource("resourcequotas"), "")
	queues, err2 := c.may(c.ctx, "list", schema.GroupResource{Group: kueue.LocalQueueListKind.Group, Resource: "localqueues"}, "")
	if err := errors.Join(err1, err2); err != nil || quotas && queues {
		return []string{""}, err
	}
	set := map[string]bool{}
	for _, row := range visible {
		set[row.Namespace] = true
	}
	return keys(set), nil
}

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
	}
}
