package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/cluster"
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
	// namespaces are those whose Workloads are listed; empty: all.
	namespaces []string
	// describe returns what is known about the end of a job.
	describe func(mpi.ID) waiting.Job
	// isJob reports whether jobs of a kind are reconciled by the operator.
	isJob func(kind string) bool
	clock func() time.Time

	// mu is held while the starts are estimated; the others use the last ones meanwhile.
	mu   sync.Mutex
	last atomic.Pointer[starts]
}

// starts are when jobs are expected to start, by the UIDs of their Workloads, as it was estimated at a time. That took so long.
type starts struct {
	of   map[types.UID]waiting.Estimate
	at   time.Time
	took time.Duration
}

// startOf returns when the job of a Workload that waits is expected to start; zero if that is not estimated, as in the first half minute: until
// then, the ends of the running jobs are unknown.
func (s *queueStarts) startOf(ctx context.Context, workload types.UID, now time.Time) waiting.Estimate {
	last := s.last.Load()
	if last == nil {
		s.last.CompareAndSwap(nil, &starts{at: s.clock(), took: shortageRefresh / startShare})
		return waiting.Estimate{}
	}
	if _, found := last.of[workload]; last.isOld(s.clock(), found) && s.mu.TryLock() {
		defer s.mu.Unlock()
		// Another pass may just have estimated them.
		if last = s.last.Load(); last.isOld(s.clock(), found) {
			last = s.next(ctx, now)
			s.last.Store(last)
		}
	}
	return last.of[workload]
}

// next estimates the starts again.
func (s *queueStarts) next(ctx context.Context, now time.Time) *starts {
	ctx, cancel := context.WithTimeout(ctx, positionsTimeout)
	defer cancel()
	began := s.clock()
	of, err := s.estimate(ctx, now)
	next := &starts{of: of, at: s.clock(), took: s.clock().Sub(began)}
	if err != nil {
		log.FromContext(ctx).V(1).Info("the starts of jobs in queues are not estimated", "error", err.Error())
		// The rights to read queues may be missing for good.
		next.took = shortageRefresh / startShare
	}
	return next
}

// isOld reports whether the starts have to be estimated again, for a job that is among them or is not.
func (s *starts) isOld(now time.Time, found bool) bool {
	age := now.Sub(s.at)
	switch {
	case age < 0:
		return true // the clock was set back
	case age < startShare*s.took:
		return false
	}
	return age >= shortageRefresh || !found && age >= newStartInterval
}

// estimate returns the starts of all jobs that wait in queues.
func (s *queueStarts) estimate(ctx context.Context, now time.Time) (map[types.UID]waiting.Estimate, error) {
	clusterQueues, err := cluster.ListAs[kueue.ClusterQueue](ctx, s.live, kueue.ClusterQueueKind)
	if err != nil {
		return nil, err
	}
	localQueues, err := cluster.ListAs[kueue.LocalQueue](ctx, s.live, kueue.LocalQueueKind)
	if err != nil {
		return nil, err
	}
	objects, err := s.workloads(ctx)
	if err != nil {
		return nil, err
	}
	uses := make(map[types.NamespacedName]string, len(localQueues))
	// Of a ClusterQueue that is also used by namespaces that are not watched, not all Workloads are known.
	partly := map[string]bool{}
	for _, queue := range localQueues {
		name := queue.Spec.ClusterQueue
		uses[types.NamespacedName{Namespace: queue.Namespace, Name: queue.Name}] = name
		partly[name] = partly[name] || len(s.namespaces) > 0 && !slices.Contains(s.namespaces, queue.Namespace)
	}
	byQueue, all := map[string][]*kueue.Workload{}, make(map[types.UID]waiting.Estimate, len(objects))
	for i := range objects {
		all[objects[i].GetUID()] = waiting.Estimate{}
		workload := &kueue.Workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, workload); err != nil {
			log.FromContext(ctx).V(1).Info("a Workload cannot be read", "namespace", objects[i].GetNamespace(), "name", objects[i].GetName(), "error", err.Error())
			continue
		}
		name := uses[types.NamespacedName{Namespace: workload.Namespace, Name: workload.Spec.QueueName}]
		if admission := workload.Status.Admission; admission != nil {
			name = admission.ClusterQueue
		}
		byQueue[name] = append(byQueue[name], workload)
	}
	for _, queue := range clusterQueues {
		if !partly[queue.Name] {
			maps.Copy(all, kueue.EstimateStarts(now, queue, byQueue[queue.Name], s.describeJob))
		}
	}
	return all, nil
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
