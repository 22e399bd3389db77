package reporting

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// launchTime is when most jobs that have begun to run have connected to their workers and started ranks there.
	launchTime = 15 * time.Second
	// firstUsage is when agents have reported the usage of a job that has begun to run: they do after a minute.
	firstUsage = 75 * time.Second
	// usagesPerSecond is how many jobs' usage is read in a second, whatever their number. The usage of all is in the log of one agent, so
	// that nothing is lost in between.
	usagesPerSecond = 5
)

// usageRetry is when a job's usage is read that was due while that of too many others was being read.
const usageRetry = 10 * time.Second

// usageReader reads what running jobs use. It is safe for concurrent use, each for another job.
type usageReader struct {
	read  func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage
	slots chan struct{}

	mu   sync.Mutex
	jobs map[types.UID]usageState
}

// usageState is what is known of a job: when it was first seen running, and when its usage is due.
type usageState struct{ first, due time.Time }

func newUsageReader(read func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage) *usageReader {
	return &usageReader{read: read, slots: make(chan struct{}, maxReaders), jobs: map[types.UID]usageState{}}
}

// readIfDue returns what a running job used if it is due, and nil otherwise; and after what time it is due next, 0 if the job's agents
// report no usage. If the usage of many jobs is being read, that of this one is read later.
func (u *usageReader) readIfDue(ctx context.Context, job mpi.Job, seen jobstate.Observed) (*agentapi.Usage, time.Duration) {
	if !job.UsesAgent() || len(seen.Workers) == 0 {
		return nil, 0
	}
	if wait := u.timeToDue(job.UID, seen.Now); wait > 0 {
		return nil, wait
	}
	select {
	case u.slots <- struct{}{}:
	default:
		return nil, usageRetry
	}
	defer func() { <-u.slots }()
	used := u.read(ctx, job, seen)
	u.mu.Lock()
	defer u.mu.Unlock()
	state := u.jobs[job.UID]
	pause := agentapi.UsagePause(seen.Now.Sub(state.first))
	if left := firstUsage - seen.Now.Sub(state.first); left > 0 {
		pause = left
	}
	pause = max(pause, turn(len(u.jobs), usagesPerSecond))
	state.due = seen.Now.Add(pause)
	u.jobs[job.UID] = state
	return used, pause
}

// timeToDue returns after what time the usage of a job is due; it is due if that is not positive. With a new job, those are dropped that
// are gone.
func (u *usageReader) timeToDue(job types.UID, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	state, known := u.jobs[job]
	if known {
		return state.due.Sub(now)
	}
	for uid, other := range u.jobs {
		if now.Sub(other.due) > keepUnused {
			delete(u.jobs, uid)
		}
	}
	u.jobs[job] = usageState{first: now, due: now.Add(launchTime)}
	return launchTime
}

// forget drops what is known of a job that does not run any more.
func (u *usageReader) forget(job types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.jobs, job)
}
