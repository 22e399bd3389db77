package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

// CompletedPods are the pods of a job as the API server completes them: with requests, tolerations, overhead and
// priority. A pod that the job does not have is nil.
type CompletedPods struct {
	Launcher, Worker *corev1.Pod
	// Refused is set if the API server refuses one of the pods. The pods then have the defaults of LimitRanges and the
	// priority of their class.
	Refused *jobstate.Refusal
}

// Completed completes a launcher's and a worker's pod of a job by a dry run. It returns an error if the API server does
// not answer. Nothing in the templates decides on the priority of pods but the name of their class.
func (c *Cluster) Completed(ctx context.Context, job mpi.Job, settings plan.Settings) (CompletedPods, error) {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	launchers, workers := plan.Templates(job, settings)
	var pods CompletedPods
	var refused [2]*jobstate.Refusal
	var errs [2]error
	var both sync.WaitGroup
	if !job.Launcher.None {
		both.Go(func() { pods.Launcher, refused[0], errs[0] = c.complete(ctx, job, job.LauncherName(), launchers) })
	}
	if job.Workers.Count > 0 {
		both.Go(func() { pods.Worker, refused[1], errs[1] = c.complete(ctx, job, job.WorkerName(0), workers) })
	}
	both.Wait()
	for _, refusal := range refused {
		if refusal != nil && pods.Refused == nil {
			pods.Refused = refusal
		}
	}
	return pods, errors.Join(errs[:]...)
}

// Estimated completes the pods of a job without a dry run, from the cached LimitRanges and the cluster's default priority
// class. It returns false if more may be added to the pods: another priority or the overhead of a RuntimeClass. What webhooks add is
// unknown.
func (c *Cluster) Estimated(ctx context.Context, job mpi.Job, settings plan.Settings) (CompletedPods, bool) {
	var pods CompletedPods
	launchers, workers := plan.Templates(job, settings)
	ranges, err := limitRanges(ctx, c.client, job.Namespace)
	if err != nil {
		return pods, false
	}
	priority, err := c.defaultPriority(ctx)
	if err != nil {
		return pods, false
	}
	if !job.Launcher.None {
		pods.Launcher = quota.WithDefaults(launchers, ranges)
	}
	if job.Workers.Count > 0 {
		pods.Worker = quota.WithDefaults(workers, ranges)
	}
	for _, pod := range []*corev1.Pod{pods.Launcher, pods.Worker} {
		if pod == nil {
			continue
		}
		if pod.Spec.PriorityClassName != "" || pod.Spec.RuntimeClassName != nil {
			return pods, false
		}
		pod.Spec.Priority, pod.Spec.PreemptionPolicy = &priority.Value, priority.PreemptionPolicy
	}
	return pods, true
}

// complete returns a pod of a template with the API server's defaults, and its refusal.
func (c *Cluster) complete(ctx context.Context, job mpi.Job, name string, template corev1.PodTemplateSpec) (*corev1.Pod, *jobstate.Refusal, error) {
	// The job's own pods may exist.
	template.Name = ""
	pod, err := c.tryPod(ctx, job, template)
	if err == nil {
		return pod, nil, nil
	}
	if !isRefusal(err) {
		return nil, nil, fmt.Errorf("complete the pod %s: %w", name, err)
	}
	refusal := &jobstate.Refusal{Kind: "Pod", Name: name, Message: err.Error()}
	if strings.Contains(err.Error(), "exceeded quota:") {
		// The job's own pods may use the quota. Quotas are checked for the job as a whole.
		refusal = nil
	}
	ranges, err := limitRanges(ctx, c.client, job.Namespace)
	if err != nil {
		ranges = nil
	}
	pod = quota.WithDefaults(template, ranges)
	class, err := c.priorityClass(ctx, pod.Spec.PriorityClassName)
	if err != nil {
		return nil, nil, err
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &class.Value, class.PreemptionPolicy
	return pod, refusal, nil
}

// defaultPriorityAge is how long the cluster's default priority class is remembered.
const defaultPriorityAge = time.Minute

// defaultPriority returns the cluster's default priority class, at most defaultPriorityAge old.
func (c *Cluster) defaultPriority(ctx context.Context) (schedulingv1.PriorityClass, error) {
	return c.priority.get(ctx, c.clock, preflightTimeout, defaultPriorityAge, 0, func(ctx context.Context) (schedulingv1.PriorityClass, error) {
		return c.priorityClass(ctx, "")
	})
}

// priorityClass returns a PriorityClass by name, the cluster's default one for "", and an empty one if it does not exist.
func (c *Cluster) priorityClass(ctx context.Context, name string) (schedulingv1.PriorityClass, error) {
	var class schedulingv1.PriorityClass
	if name != "" {
		err := c.live.Get(ctx, client.ObjectKey{Name: name}, &class)
		if err != nil && !apierrors.IsNotFound(err) {
			return class, fmt.Errorf("read PriorityClass %s: %w", name, err)
		}
		return class, nil
	}
	var list schedulingv1.PriorityClassList
	if err := c.live.List(ctx, &list); err != nil {
		return class, fmt.Errorf("list PriorityClasses: %w", err)
	}
	found := false
	for _, item := range list.Items {
		// Of several defaults, the lowest counts (k8s.io/kubernetes/plugin/pkg/admission/priority).
		if item.GlobalDefault && (!found || item.Value < class.Value) {
			class, found = item, true
		}
	}
	if class.PreemptionPolicy == nil {
		class.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	return class, nil
}
