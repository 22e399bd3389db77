package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/waiting"
)

const (
	// newStartInterval is the shortest time between two estimates of the starts in all queues, for new jobs.
	newStartInterval = 5 * time.Second
	// startShare is how many times as long as an estimate took passes before the next one: it bounds what estimates cost.
	startShare = 20
)

// queueStarts estimates when the jobs in all of Kueue's queues start, and keeps that for a short time.
type queueStarts struct {
	// workloads lists all Workloads, and live the queues, which are few.
	workloads func(ctx context.Context) ([]unstructured.Unstructured, error)
	live      client.Reader
	// describe returns what is known about the end of a job.
	describe func(mpi.ID) waiting.Job
	// isJob reports whether jobs of a kind are reconciled by the operator.
	isJob func(kind string) bool
	clock func() time.Time

	// mu is held while the starts are estimated.
	mu sync.Mutex
	// of are the starts by the UIDs of Workloads, as they were at a time; they took so long.
	of   map[types.UID]waiting.Estimate
	at   time.Time
	took time.Duration
}

// startOf returns when the job of a Workload that waits is expected to start; zero if that is not estimated.
func (s *queueStarts) startOf(ctx context.Context, workload types.UID, now time.Time) waiting.Estimate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.of[workload]; s.isOld(now, found) {
		ctx, cancel := context.WithTimeout(ctx, positionsTimeout)
		defer cancel()
		began := s.clock()
		starts, err := s.estimate(ctx, now)
		if err != nil {
			log.FromContext(ctx).V(1).Info("the starts of jobs in queues are not estimated", "error", err.Error())
		}
		s.of, s.at, s.took = starts, now, s.clock().Sub(began)
		if err != nil {
			// The rights to read queues may be missing for good.
			s.took = shortageRefresh / startShare
		}
	}
	return s.of[workload]
}

// isOld reports whether the starts have to be estimated again, for a job that is among them or is not.
func (s *queueStarts) isOld(now time.Time, found bool) bool {
	age := now.Sub(s.at)
	switch {
	case s.at.IsZero() || age < 0:
		return true
	case age < startShare*s.took:
		return false
	}
	return age >= shortageRefresh || !found && age >= newStartInterval
}

// estimate returns the starts of all jobs that wait in queues.
func (s *queueStarts) estimate(ctx context.Context, now time.Time) (map[types.UID]waiting.Estimate, error) {
	clusterQueues, err := listAs[kueue.ClusterQueue](ctx, s.live, kueue.ClusterQueueKind)
	if err != nil {
		return nil, err
	}
	localQueues, err := listAs[kueue.LocalQueue](ctx, s.live, kueue.LocalQueueKind)
	if err != nil {
		return nil, err
	}
	objects, err := s.workloads(ctx)
	if err != nil {
		return nil, err
	}
	uses := make(map[types.NamespacedName]string, len(localQueues))
	for _, queue := range localQueues {
		uses[types.NamespacedName{Namespace: queue.Namespace, Name: queue.Name}] = queue.Spec.ClusterQueue
	}
	byQueue := map[string][]*kueue.Workload{}
	for i := range objects {
		workload := &kueue.Workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, workload); err != nil {
			return nil, fmt.Errorf("read Workload %s/%s: %w", objects[i].GetNamespace(), objects[i].GetName(), err)
		}
		name := uses[types.NamespacedName{Namespace: workload.Namespace, Name: workload.Spec.QueueName}]
		if admission := workload.Status.Admission; admission != nil {
			name = admission.ClusterQueue
		}
		byQueue[name] = append(byQueue[name], workload)
	}
	starts := map[types.UID]waiting.Estimate{}
	for _, queue := range clusterQueues {
		maps.Copy(starts, kueue.EstimateStarts(now, queue, byQueue[queue.Name], s.describeJob))
	}
	return starts, nil
}

// describeJob returns what is known about the end of a Workload's job.
func (s *queueStarts) describeJob(workload *kueue.Workload) waiting.Job {
	owner := metav1.GetControllerOfNoCopy(workload)
	switch {
	case owner == nil:
		return waiting.Job{Namespace: workload.Namespace, Name: workload.Name}
	case !s.isJob(owner.Kind):
		return waiting.Job{Namespace: workload.Namespace, Name: owner.Name}
	}
	return s.describe(mpi.ID{Kind: owner.Kind, Namespace: workload.Namespace, Name: owner.Name})
}

// listAs returns all objects of a kind.
func listAs[T any](ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) ([]*T, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	all := make([]*T, len(list.Items))
	for i := range list.Items {
		all[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, all[i]); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind.Kind, list.Items[i].GetName(), err)
		}
	}
	return all, nil
}
