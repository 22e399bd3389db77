package dashboard

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// Choices are what a new job in a namespace can use.
type Choices struct {
	Runtimes []Runtime `json:"runtimes"`
	Queues   []Queue   `json:"queues"`
	Quotas   []Quota   `json:"quotas"`
	// Connections are those of the namespace. If the user may not list them, they are those of earlier jobs.
	Connections []Connection `json:"connections"`
	// Priorities are the PriorityClasses of pods, and QueuePriorities the WorkloadPriorityClasses of Kueue's queues.
	Priorities      []string `json:"priorities"`
	QueuePriorities []string `json:"queuePriorities"`
	// Images are those of the namespace's jobs, the latest first, and then those of the runtimes.
	Images []string `json:"images"`
	// GPUs are the GPU resources of the cluster's nodes, as far as the user may read them.
	GPUs []string `json:"gpus"`
	// Defaults are those of the last job that the user ran successfully here; null without one.
	Recommended *Recommendation `json:"recommended,omitempty"`
	// Missing says which of these the user may not read.
	Missing []string `json:"missing"`
}

// Recommendation is taken from a past job of the user.
type Recommendation struct {
	Job     string `json:"job"`
	Image   string `json:"image,omitempty"`
	Command string `json:"command,omitempty"`
	Workers int32  `json:"workers"`
	CPU     string `json:"cpu,omitempty"`
	Memory  string `json:"memory,omitempty"`
	GPU     int64  `json:"gpu,omitempty"`
	Runtime string `json:"runtime,omitempty"`
}

// Connection is a data connection: a Secret whose values are never read.
type Connection struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Type        string `json:"type,omitempty"`
}

// queuePriorities is the kind of a list of Kueue's priorities.
var queuePriorities = kueue.LocalQueueKind.GroupVersion().WithKind("WorkloadPriorityClassList")

// missingConnections is in Choices.Missing if the user may not list Secrets.
const missingConnections = "data connections"

// connectionsOf returns the data connections that jobs name, in the order of their names.
func connectionsOf(past []jobs.Job) []Connection {
	names := map[string]bool{}
	for _, job := range past {
		list, _ := mpi.ParseConnections(job.Object.GetNamespace(), job.Object.GetAnnotations())
		for _, name := range list {
			names[name] = true
		}
	}
	all := []Connection{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, Connection{Name: name})
	}
	return all
}

// choices returns what a new job in a namespace can use.
func (s *Server) choices(c *call) (any, error) {
	namespace := c.namespace()
	found := Choices{Priorities: []string{}, QueuePriorities: []string{}, Images: []string{}, GPUs: []string{}, Connections: []Connection{}}
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
	gather(missingConnections, func() (err error) { found.Connections, err = c.connections(namespace); return err })
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
	gather("priority classes of queues", func() error {
		classes := &metav1.PartialObjectMetadataList{}
		classes.SetGroupVersionKind(queuePriorities)
		err := c.api.List(c.ctx, classes)
		for i := range classes.Items {
			found.QueuePriorities = append(found.QueuePriorities, classes.Items[i].Name)
		}
		return err
	})
	gather("nodes", func() (err error) { found.GPUs, err = c.gpus(); return err })
	var past pastChoices
	gather("jobs", func() (err error) { past, err = c.pastChoices(namespace); return err })
	all.Wait()
	found.Images, found.Recommended = slices.Clone(past.images), past.recommended
	found.Quotas = append(own[namespace], shared[namespace]...)
	for i := range found.Queues {
		found.Queues[i].estimate(slices.Clone(past.waits[found.Queues[i].Name]))
	}
	for _, runtime := range found.Runtimes {
		if runtime.Image != "" && !slices.Contains(found.Images, runtime.Image) {
			found.Images = append(found.Images, runtime.Image)
		}
	}
	if slices.Contains(no, missingConnections) {
		found.Connections = orEmpty(past.connections)
	}
	found.Missing = orEmpty([]string(no))
	slices.Sort(found.Missing)
	found.Runtimes, found.Queues, found.Quotas, found.Images, found.GPUs = orEmpty(found.Runtimes), orEmpty(found.Queues), orEmpty(found.Quotas), orEmpty(found.Images), orEmpty(found.GPUs)
	return found, errors.Join(errs...)
}

// pastChoices is what the jobs of a namespace have used at a time.
type pastChoices struct {
	waits       map[string][]int64
	images      []string
	recommended *Recommendation
	connections []Connection
	at          time.Time
}

// pastChoices returns what the jobs of a namespace have used. It is kept for a while, because pages ask for choices every few seconds.
func (c *call) pastChoices(namespace string) (pastChoices, error) {
	c.mu.Lock()
	known, isKnown := c.pasts[namespace]
	c.mu.Unlock()
	if isKnown && c.now().Sub(known.at) <= historyTTL {
		return known, nil
	}
	list, err := c.jobs.List(c.ctx, jobs.Selection{Namespace: namespace})
	if err != nil {
		return pastChoices{}, err
	}
	past := pastChoices{waits: waitsOf(list.Jobs), connections: connectionsOf(list.Jobs), at: c.now()}
	past.images, past.recommended = c.recommend(list.Jobs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pasts = map[string]pastChoices{namespace: past} // one is enough, as of histories
	return past, nil
}

// connections returns the data connections of a namespace. Only the metadata of Secrets is read.
func (c *call) connections(namespace string) ([]Connection, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	all := []Connection{}
	err := c.api.List(c.ctx, list, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelConnection: "true"})
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
