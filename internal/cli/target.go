package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/internal/follow"
	"opendatahub.io/mpijob/internal/mpi"
)

// target is the flags that pick one of a job's pods: the launcher, unless they say otherwise.
type target struct {
	worker, rank int
	c            *cobra.Command
}

func addTarget(c *cobra.Command) *target {
	t := &target{c: c}
	c.Flags().IntVarP(&t.worker, "worker", "w", 0, "The worker of this number, rather than the launcher")
	c.Flags().IntVarP(&t.rank, "rank", "r", 0, "The pod that this rank runs on, rather than the launcher")
	return t
}

// place is the pod that is meant.
func (t *target) place(job Job) (follow.Place, error) {
	worker, rank := t.c.Flags().Changed("worker"), t.c.Flags().Changed("rank")
	switch {
	case worker && rank:
		return follow.Place{}, usagef("--worker and --rank both name a pod: choose one")
	case worker && t.worker < 0:
		return follow.Place{}, usagef("--worker %d: must be 0 or more", t.worker)
	case worker:
		return follow.Place{Role: mpi.RoleWorker, Index: t.worker}, nil
	case !rank:
		return follow.Place{Role: mpi.RoleLauncher}, nil
	}
	hosts := hostsOf(job)
	at, known := hosts.Place(t.rank)
	switch {
	case !known:
		return at, exitf(ExitError, "it is not known on which pod of %s rank %d is: name a worker with --worker", job, t.rank)
	case t.rank < 0 || t.rank >= hosts.Ranks:
		return at, usagef("--rank %d: %s has the ranks 0 to %d", t.rank, job, hosts.Ranks-1)
	}
	return at, nil
}

// reach finds the pod that is meant of a job by the job's name, and begins a request to a subresource of it.
func (t *target) reach(ctx context.Context, f *Factory, name, subresource string) (*corev1.Pod, *rest.Config, *rest.Request, error) {
	job, err := f.Find(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := t.place(job)
	if err != nil {
		return nil, nil, nil, err
	}
	config, err := f.RESTConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	pod, err := f.pod(ctx, clients, job, at)
	if err != nil {
		return nil, nil, nil, err
	}
	return pod, config, clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource(subresource), nil
}

// pod finds a running pod at a place of a job, the latest of several.
func (f *Factory) pod(ctx context.Context, clients kubernetes.Interface, job Job, at follow.Place) (*corev1.Pod, error) {
	if job.Object == nil {
		return nil, exitf(ExitNotFound, "%s is deleted, and its pods with it", job)
	}
	list, err := clients.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selectorOf(job)})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", job, err)
	}
	of := placeOf(job)
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		place, ours := of(&pod)
		return !ours || place != at
	})
	if len(pods) == 0 {
		return nil, exitf(ExitNotFound, "%s has no %s: %s describe %s -n %s shows its pods", job, at, f.name, job.Name, job.Namespace)
	}
	pod := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(isRunning(a)-isRunning(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	if isRunning(pod) == 0 {
		return nil, exitf(ExitError, "the %s of %s (pod %s) does not run: it is %s; %s explain %s -n %s may say why", at, job, pod.Name, follow.Reason(&pod), f.name, job.Name, job.Namespace)
	}
	return &pod, nil
}

func isRunning(pod corev1.Pod) int {
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		return 1
	}
	return 0
}
