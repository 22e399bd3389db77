package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// Delete deletes a job with its pods; its report stays. The UID protects a new job of the same name.
func (c *Client) Delete(ctx context.Context, job Job, dryRun DryRun) error {
	return c.DeleteWithGrace(ctx, job, nil, dryRun)
}

// DeleteWithGrace is Delete, but the programs of the job have another time to end after SIGTERM than their pods define; nil
// for the pods' own.
func (c *Client) DeleteWithGrace(ctx context.Context, job Job, grace *time.Duration, dryRun DryRun) error {
	switch {
	case job.Object == nil:
		return &DeletedError{Job: job}
	case dryRun == DryRunClient:
		return nil
	case grace == nil:
		return c.deleteJob(ctx, job, dryRun)
	}
	pods, err := c.pods(ctx, job)
	if err != nil {
		return err
	}
	seconds := int64(*grace / time.Second)
	if !isLonger(seconds, pods) {
		if err := c.deleteJob(ctx, job, dryRun); err != nil {
			return err
		}
		return c.deletePods(ctx, pods, seconds, dryRun)
	}
	if err := c.deletePods(ctx, pods, seconds, dryRun); err != nil {
		return err
	}
	return c.deleteJob(ctx, job, dryRun)
}

// Cancel ends a job that has not ended: its programs receive SIGTERM and have the grace period to end (nil for the pods'
// own), and the job is deleted, also if it waits in a queue. Its report stays. It fails with EndedError or DeletedError.
func (c *Client) Cancel(ctx context.Context, job Job, grace *time.Duration, dryRun DryRun) error {
	if job.Object != nil && (job.Ended() || job.HasFinalCondition()) {
		return &EndedError{Job: job}
	}
	return c.DeleteWithGrace(ctx, job, grace, dryRun)
}

// isLonger reports whether a grace period is longer than that of one of the pods. The grace period of a pod that is being
// deleted can only be shortened, so a longer one has to be set before the job's deletion deletes its pods.
func isLonger(seconds int64, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return seconds > ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	})
}

func (c *Client) deleteJob(ctx context.Context, job Job, dryRun DryRun) error {
	options := append(dryRun.deleteOptions(), client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(c.api.Delete(ctx, job.Object, options...))
}

// pods returns the pods of a job, launchers last: their batch Job replaces a launcher that is deleted before the job.
func (c *Client) pods(ctx context.Context, job Job) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.api.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels(job.PodLabels())); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", job, err)
	}
	var workers, launchers []corev1.Pod
	for _, pod := range list.Items {
		switch place, ours := job.Place(&pod); {
		case !ours:
		case place.Role == mpi.RoleLauncher:
			launchers = append(launchers, pod)
		default:
			workers = append(workers, pod)
		}
	}
	return append(workers, launchers...), nil
}

// deletePods deletes pods at the same time, so that no program runs without the others for long.
func (c *Client) deletePods(ctx context.Context, pods []corev1.Pod, seconds int64, dryRun DryRun) error {
	const atOnce = 32
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i := range pods {
		all.Go(func() error {
			options := append(dryRun.deleteOptions(), client.Preconditions{UID: &pods[i].UID}, client.GracePeriodSeconds(seconds))
			if err := c.api.Delete(ctx, &pods[i], options...); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete pod %s: %w", pods[i].Name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// AwaitDeletion returns when a job does not exist anymore, or with the context's error.
func (c *Client) AwaitDeletion(ctx context.Context, job Job) error {
	const interval = 500 * time.Millisecond
	for {
		exists, err := c.exists(ctx, job)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case !exists:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

// exists reports whether the job exists; a new job of the same name does not count, an interrupted connection does.
func (c *Client) exists(ctx context.Context, job Job) (bool, error) {
	object, err := c.get(ctx, job.gvk(), job.Namespace, job.Name)
	if err != nil && IsTransient(err) && !apierrors.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return err == nil && object != nil && object.GetUID() == job.UID, err
}
