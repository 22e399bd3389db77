package reporting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

const (
	// keepLastPods is how long the last state of a failed pod is kept: its job's record is settled long before.
	keepLastPods = 10 * time.Minute
	// maxLastPods is the number of pods that are kept, of all jobs: the latest.
	maxLastPods = 1000
	// maxWaitingReads is the number of logs that may wait to be read. Others are left to the next reconcile.
	maxWaitingReads = 256
)

// lastPods keeps the last state of each pod of a Job in which a container failed. The Job controller deletes a pod whose
// containers were restarted too often a second or two after the last failure, together with its log. A busy operator may
// reconcile the job later than that. Its methods are safe for concurrent use.
type lastPods struct {
	// read reads the log of the run that failed.
	read  func(ctx context.Context, pod *corev1.Pod) (jobstate.Log, error)
	logs  *lastLogs
	clock clock.PassiveClock
	// toRead are pods whose containers were restarted: Kubernetes may delete them at any moment.
	toRead chan *corev1.Pod

	mu   sync.Mutex
	pods map[types.UID]keptPod
}

// keptPod is a pod in the state in which it was last seen before its deletion.
type keptPod struct {
	pod *corev1.Pod
	// owner is the UID of the pod's Job.
	owner types.UID
	at    time.Time
	// restarts is how often its containers had been started again when its log was read last; -1 if it was not read.
	restarts int32
}

func newLastPods(read func(context.Context, *corev1.Pod) (jobstate.Log, error), logs *lastLogs, clock clock.PassiveClock) *lastPods {
	return &lastPods{read: read, logs: logs, clock: clock, toRead: make(chan *corev1.Pod, maxWaitingReads), pods: map[types.UID]keptPod{}}
}

// watch keeps the pods of a cache.
func (l *lastPods) watch(ctx context.Context, of cache.Cache) error {
	informer, err := of.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    l.see,
		UpdateFunc: func(_, now any) { l.see(now) },
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return nil
}

// see keeps a pod if a container of it failed. What happens in a pod after its deletion was requested is a consequence.
func (l *lastPods) see(object any) {
	pod, is := object.(*corev1.Pod)
	if !is || pod.DeletionTimestamp != nil {
		return
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Job" {
		return
	}
	if _, bad := cluster.EndedBadly(pod); !bad {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, known := l.pods[pod.UID]
	if !known {
		kept.restarts = -1
		l.makeRoom()
	}
	kept.pod, kept.owner, kept.at = pod, owner.UID, l.clock.Now()
	// A pod that has ended stays, with its log.
	if restarts := podstatus.Restarts(pod); pod.Status.Phase == corev1.PodRunning && restarts > kept.restarts {
		select {
		case l.toRead <- pod:
			kept.restarts = restarts
		default:
		}
	}
	l.pods[pod.UID] = kept
}

// makeRoom drops the pods that are too old, and the oldest one if there are too many.
func (l *lastPods) makeRoom() {
	now := l.clock.Now()
	maps.DeleteFunc(l.pods, func(_ types.UID, kept keptPod) bool { return now.Sub(kept.at) > keepLastPods })
	if len(l.pods) < maxLastPods {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(l.pods)), func(a, b keptPod) int { return a.at.Compare(b.at) })
	delete(l.pods, oldest.pod.UID)
}

// run reads logs until the context ends.
func (l *lastPods) run(ctx context.Context) error {
	const readers = 4
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case pod := <-l.toRead:
					l.readLog(ctx, pod)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// readLog keeps the log of a pod's failed run for as long as it can be read.
func (l *lastPods) readLog(ctx context.Context, pod *corev1.Pod) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if log, err := l.read(ctx, pod); err == nil && len(log.Lines) > 0 {
		l.logs.keep(metav1.GetControllerOfNoCopy(pod).UID, pod.Name, log, l.clock.Now())
	}
}

// of returns the pods of a job's launcher as they were last seen, the oldest first.
func (l *lastPods) of(seen jobstate.Observed) []*corev1.Pod {
	if seen.Launcher == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var pods []*corev1.Pod
	for _, kept := range l.pods {
		if kept.owner == seen.Launcher.UID {
			pods = append(pods, kept.pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return pods
}
