package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
)

// target has the flags that select one of a job's pods, by default the launcher.
type target struct {
	worker, rank int
	c            *cobra.Command
}

func addTarget(c *cobra.Command) *target {
	t := &target{c: c}
	c.Flags().IntVarP(&t.worker, "worker", "w", 0, "Index of a worker (default: the launcher)")
	c.Flags().IntVarP(&t.rank, "rank", "r", 0, "Rank whose pod is used (default: the launcher)")
	return t
}

// place returns the place of the selected pod.
func (t *target) place(job jobs.Job) (logstream.Place, error) {
	worker, rank := t.c.Flags().Changed("worker"), t.c.Flags().Changed("rank")
	switch {
	case worker && rank:
		return logstream.Place{}, usagef("--worker and --rank cannot be combined")
	case worker && t.worker < 0:
		return logstream.Place{}, usagef("--worker: %d is not allowed; use 0 or more", t.worker)
	case worker:
		return logstream.Place{Role: mpi.RoleWorker, Index: t.worker}, nil
	case !rank:
		return logstream.Place{Role: mpi.RoleLauncher}, nil
	}
	hosts := job.Hosts()
	at, known := hosts.Place(t.rank)
	switch {
	case !known:
		return at, exitf(ExitError, "the pod of rank %d of %s is unknown; use --worker instead", t.rank, job)
	case t.rank < 0 || t.rank >= hosts.Ranks:
		return at, usagef("--rank: %d is not allowed; %s has ranks 0 to %d", t.rank, job, hosts.Ranks-1)
	}
	return at, nil
}

// reach returns the selected pod of a job and a request to a subresource of the pod.
func (t *target) reach(ctx context.Context, f *Factory, name, subresource string) (*corev1.Pod, *rest.Config, *rest.Request, error) {
	job, err := f.Find(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := t.place(job)
	if err != nil {
		return nil, nil, nil, err
	}
	return f.reach(ctx, job, at, subresource)
}

// reach returns the running pod at a place of a job and a request to a subresource of the pod.
func (f *Factory) reach(ctx context.Context, job jobs.Job, at logstream.Place, subresource string) (*corev1.Pod, *rest.Config, *rest.Request, error) {
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

// pod returns the running pod at a place of a job, the latest of several.
func (f *Factory) pod(ctx context.Context, clients kubernetes.Interface, job jobs.Job, at logstream.Place) (*corev1.Pod, error) {
	if job.Object == nil {
		return nil, exitf(ExitNotFound, "%s and its pods are deleted", job)
	}
	list, err := clients.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set(job.PodLabels()).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", job, err)
	}
	c, err := f.Jobs()
	if err != nil {
		return nil, err
	}
	own := c.OwnPlace(ctx, job)
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		place, ours := own(&pod)
		return !ours || place != at
	})
	if job.Ended() && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return isRunning(pod) == 1 }) {
		return nil, exitf(ExitNotFound, "%s has ended, and its %s does not run any more; run %s logs %s -n %s for its output, or run a command in a copy of the job: "+
			"%s clone %s -n %s --workers 1 --command COMMAND --logs", job, at, f.name, job.Name, job.Namespace, f.name, job.Name, job.Namespace)
	}
	if len(pods) == 0 {
		return nil, exitf(ExitNotFound, "%s has no %s; run %s describe %s -n %s to see its pods", job, at, f.name, job.Name, job.Namespace)
	}
	pod := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(isRunning(a)-isRunning(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	if isRunning(pod) == 0 {
		return nil, exitf(ExitError, "the %s of %s (pod %s) is not running: %s; run %s explain %s -n %s", at, job, pod.Name, logstream.Reason(&pod), f.name, job.Name, job.Namespace)
	}
	return &pod, nil
}

func isRunning(pod corev1.Pod) int {
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		return 1
	}
	return 0
}
