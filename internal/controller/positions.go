package controller

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/kueue"
)

const (
	// positionsTTL is how long the positions in a queue are used as they were read: they are read per queue, not per job.
	positionsTTL = 15 * time.Second
	// positionsTTLNew is how long a job uses them that is not among them: it was created since.
	positionsTTLNew = 2 * time.Second
	// keepPositions is how long they are kept without being used.
	keepPositions = time.Hour
	// positionsTimeout is how long Kueue may take to answer. The position of a job is unknown after that.
	positionsTimeout = 2 * time.Second
)

// positions reads the positions of Workloads in their queues from Kueue, and keeps them for a short time.
type positions struct {
	// read asks Kueue for the positions in a queue, by the names of Workloads.
	read func(ctx context.Context, queue types.NamespacedName) (map[string]kueue.Position, error)

	mu    sync.Mutex
	known map[types.NamespacedName]*queuePositions
}

// queuePositions are the positions in a queue, by the names of Workloads, as they were at a time.
type queuePositions struct {
	mu     sync.Mutex
	at     time.Time
	byName map[string]kueue.Position
}

func newPositions(raw rest.Interface) *positions {
	return &positions{
		known: map[types.NamespacedName]*queuePositions{},
		read: func(ctx context.Context, queue types.NamespacedName) (map[string]kueue.Position, error) {
			return readPositions(ctx, raw, queue)
		},
	}
}

// positionOf returns the position of a Workload in its queue; nil if it is unknown. Callers for different queues do not wait
// for each other.
func (p *positions) positionOf(ctx context.Context, queue types.NamespacedName, workload string, now time.Time) *kueue.Position {
	known := p.inQueue(queue, now)
	known.mu.Lock()
	defer known.mu.Unlock()
	_, found := known.byName[workload]
	if known.isOld(now, found) {
		ctx, cancel := context.WithTimeout(ctx, positionsTimeout)
		defer cancel()
		read, err := p.read(ctx, queue)
		if err != nil {
			log.FromContext(ctx).V(1).Info("positions in a queue are unknown", "queue", queue, "error", err.Error())
		}
		known.at, known.byName = now, read
	}
	if position, found := known.byName[workload]; found {
		return &position
	}
	return nil
}

// inQueue returns the positions in a queue. When a queue is added, those that are no longer used are dropped.
func (p *positions) inQueue(queue types.NamespacedName, now time.Time) *queuePositions {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.known[queue]
	if !found {
		for other, of := range p.known {
			if of.mu.TryLock() {
				if !of.at.IsZero() && now.Sub(of.at) > keepPositions {
					delete(p.known, other)
				}
				of.mu.Unlock()
			}
		}
		known = &queuePositions{}
		p.known[queue] = known
	}
	return known
}

// isOld reports whether the positions have to be read again, for a job that is among them or is not.
func (q *queuePositions) isOld(now time.Time, found bool) bool {
	age := now.Sub(q.at)
	return q.at.IsZero() || age >= positionsTTL || age < 0 || !found && age >= positionsTTLNew
}

const (
	// positionsPage is how many Workloads Kueue lists at once. The answer has several hundred bytes for each.
	positionsPage = 1000
	// mostPages bounds what one reading of a queue costs. Workloads behind these have no position.
	mostPages = 20
)

// readPositions reads the positions of the Workloads that wait in a queue from Kueue's visibility API. With an error it returns those of the
// pages before. If the queue moves between two pages, a Workload may be in neither, or in both with positions that differ by a few.
func readPositions(ctx context.Context, raw rest.Interface, queue types.NamespacedName) (map[string]kueue.Position, error) {
	all := map[string]kueue.Position{}
	for page := range mostPages {
		data, err := raw.Get().AbsPath(kueue.PendingPath(queue.Namespace, queue.Name)...).
			Param("limit", strconv.Itoa(positionsPage)).Param("offset", strconv.Itoa(page*positionsPage)).Do(ctx).Raw()
		if err != nil {
			return all, fmt.Errorf("ask for the Workloads that wait in %s: %w", queue, err)
		}
		read, err := kueue.ParsePositions(data)
		if err != nil {
			return all, fmt.Errorf("read the Workloads that wait in %s: %w", queue, err)
		}
		before := len(all)
		maps.Copy(all, read)
		if len(read) < positionsPage || len(all) == before {
			break
		}
	}
	return all, nil
}
