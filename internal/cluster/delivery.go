package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// How long an answer about image volumes holds. A refusal may be due to something else, such as a full quota.
const (
	admittedFor = 10 * time.Minute
	refusedFor  = 30 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 4096
)

// Deliveries gathers what decides on how the agent gets into jobs' pods.
type Deliveries struct {
	cluster *Cluster
	wanted  plan.Delivery

	mu      sync.Mutex
	answers map[podKind]answer
}

// podKind is what admission of an image volume may depend on.
type podKind struct{ namespace, serviceAccount string }

type answer struct {
	admitted bool
	until    time.Time
}

// NewDeliveries returns what asks a cluster only if wanted is plan.AutoDelivery.
func NewDeliveries(c *Cluster, wanted plan.Delivery) *Deliveries {
	return &Deliveries{cluster: c, wanted: wanted, answers: map[podKind]answer{}}
}

// Settle returns the settings with the delivery that fits a job.
func (d *Deliveries) Settle(ctx context.Context, job mpi.Job, settings plan.Settings) (plan.Settings, error) {
	settings.Delivery = d.wanted
	if d.wanted != plan.AutoDelivery || settings.AgentImage == "" || !job.UsesAgent() || job.Recorded.Finish != nil {
		settings.Delivery = plan.DeliveryFor(d.wanted, plan.DeliveryFacts{})
		return settings, nil
	}
	runtimes, err := d.cluster.runtimes(ctx, job)
	if err != nil {
		return settings, err
	}
	facts := plan.DeliveryFacts{Admitted: true, Runtimes: runtimes}
	if plan.DeliveryFor(d.wanted, facts) == plan.ImageVolume {
		facts.Admitted = d.admitted(ctx, job, settings)
	}
	settings.Delivery = plan.DeliveryFor(d.wanted, facts)
	return settings, nil
}

// runtimes are those of the nodes that the pods of a job may run on by their node selectors and affinity, each once.
func (c *Cluster) runtimes(ctx context.Context, job mpi.Job) ([]plan.Runtime, error) {
	var nodes corev1.NodeList
	if err := c.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var wanted []nodeaffinity.RequiredNodeAffinity
	if !job.Launcher.None {
		wanted = append(wanted, nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: job.Launcher.Template.Spec}))
	}
	if job.Workers.Count > 0 {
		wanted = append(wanted, nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: job.Workers.Template.Spec}))
	}
	var runtimes []plan.Runtime
	for i := range nodes.Items {
		node := &nodes.Items[i]
		runtime := plan.Runtime{Kubelet: node.Status.NodeInfo.KubeletVersion, Container: node.Status.NodeInfo.ContainerRuntimeVersion}
		if slices.Contains(runtimes, runtime) {
			// Most clusters have one runtime, and then one node of many is matched.
			continue
		}
		fits := slices.ContainsFunc(wanted, func(a nodeaffinity.RequiredNodeAffinity) bool {
			matches, err := a.Match(node)
			return matches && err == nil
		})
		if fits {
			runtimes = append(runtimes, runtime)
		}
	}
	return runtimes, nil
}

// admitted reports whether the API server admits a job's pod with an image volume and keeps the volume. It is asked by a dry
// run, at most every few minutes for a namespace and service account.
func (d *Deliveries) admitted(ctx context.Context, job mpi.Job, settings plan.Settings) bool {
	settings.Delivery = plan.ImageVolume
	template, worker := plan.Templates(job, settings)
	if job.Workers.Count > 0 {
		template = worker
	}
	kind := podKind{job.Namespace, template.Spec.ServiceAccountName}
	now := d.cluster.clock.Now()
	d.mu.Lock()
	known, is := d.answers[kind]
	d.mu.Unlock()
	if is && now.Before(known.until) {
		return known.admitted
	}
	template.Name = "" // the job's own pods may exist already
	_, kept := d.cluster.dryRun(ctx, job, newProbe(mpi.RoleWorker, 1, template, field.NewPath("spec")))
	found := answer{admitted: kept != nil && plan.KeepsImageVolume(kept), until: now.Add(refusedFor)}
	if found.admitted {
		found.until = now.Add(admittedFor)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for kind, old := range d.answers {
		if now.After(old.until) {
			delete(d.answers, kind)
		}
	}
	if len(d.answers) >= maxAnswers {
		// Users choose the names of service accounts.
		clear(d.answers)
	}
	d.answers[kind] = found
	return found.admitted
}
