package reporting

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
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

// usageState is what is known of a job.
type usageState struct {
	// first is when it was first seen running, zero while it does not run, and due when its usage is to be read.
	first, due time.Time
	// last is what was read last; nil if nothing was. The report of a long job is seldom written for its usage alone.
	last *agentapi.Usage
	// read is when that was read.
	read time.Time
	// ended is the launcher's pod after whose end it was read.
	ended types.UID
}

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
	if used != nil {
		state.last, state.read = used, seen.Now
	}
	if state.last != nil && state.last.Stall != nil {
		// That it is over is to be known soon.
		pause = min(pause, agentapi.UsagePause(0))
	}
	pause = max(pause, turn(len(u.jobs), usagesPerSecond))
	state.due = seen.Now.Add(pause)
	u.jobs[job.UID] = state
	return used, pause
}

// resume has the usage of a job read at once that has reported it to an operator before this one.
func (u *usageReader) resume(job types.UID, now time.Time, previous *v1alpha1.JobReport) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.jobs[job]; !known && previous != nil && previous.Status.Usage != nil {
		u.jobs[job] = usageState{first: now, due: now}
	}
}

// stallOf returns what the agent of a running job has reported last about ranks that make no progress; nil if they do, or it has not reported for
// long.
func (u *usageReader) stallOf(job types.UID, now time.Time) *agentapi.Stall {
	state := u.stateOf(job)
	if state.last == nil || now.Sub(state.read) > u.longestAge() {
		return nil
	}
	return state.last.Stall
}

// endStall drops what stallOf returns: the log has that it is over.
func (u *usageReader) endStall(job types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state, known := u.jobs[job]; known && state.last != nil && state.last.Stall != nil {
		last := *state.last
		last.Stall = nil
		state.last = &last
		u.jobs[job] = state
	}
}

// readLast reads what a job used once more after the end of its launcher, which reports it then. Call it before the job's pods are deleted.
// It reads nothing of a job that has reported no usage before: what one that ran for a moment used is in the launcher's last message.
func (u *usageReader) readLast(ctx context.Context, job mpi.Job, seen jobstate.Observed, launcher types.UID, previous *v1alpha1.JobReport) {
	state := u.stateOf(job.UID)
	switch {
	case !job.UsesAgent() || len(seen.Workers) == 0:
		return
	case previous == nil || previous.Status.CompletionTime != nil || previous.Status.Usage == nil && state.last == nil:
		return
	case launcher != "" && launcher == state.ended:
		return
	}
	used := u.read(ctx, job, seen)
	u.mu.Lock()
	defer u.mu.Unlock()
	state = u.jobs[job.UID]
	if state.due, state.ended = seen.Now, launcher; used != nil {
		state.last = used
	}
	u.jobs[job.UID] = state
}

// lastOf returns what was read last of a job that does not run; nil if nothing was.
func (u *usageReader) lastOf(job types.UID, now time.Time) *agentapi.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	state, known := u.jobs[job]
	if known {
		state.first, state.due = time.Time{}, now
		u.jobs[job] = state
	}
	return state.last
}

// usedSoFar returns what a running job has used: by what was read last, since the report of a long job is seldom written for its usage alone,
// or else by its report; and the memory of a pod in the last hour, which reports do not have. It returns nil if that is unknown, or so old that
// its agents may report no more.
func (u *usageReader) usedSoFar(job mpi.Job, seen jobstate.Observed, previous *v1alpha1.JobReport) (*v1alpha1.Usage, *jobstate.LatestMemory) {
	state := u.stateOf(job.UID)
	used := report.UsageSoFar(job, seen, jobstate.Evidence{Usage: state.last}, previous)
	if used == nil || seen.Now.Sub(used.Until.Time) > u.longestAge() && seen.Now.Sub(state.first) > firstUsage {
		return nil, nil
	}
	return used, report.LatestMemory(job, seen, state.last)
}

// longestAge is how old the usage is at most that is used for warnings: that of a job whose last reads have failed is unknown.
func (u *usageReader) longestAge() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return 3 * max(agentapi.MaxUsagePause, turn(len(u.jobs), usagesPerSecond))
}

func (u *usageReader) stateOf(job types.UID) usageState {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.jobs[job]
}

// timeToDue returns after what time the usage of a job is due; it is due if that is not positive. With a new job, those are dropped that
// are gone.
func (u *usageReader) timeToDue(job types.UID, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	state := u.jobs[job]
	if !state.first.IsZero() {
		return state.due.Sub(now)
	}
	for uid, other := range u.jobs {
		if now.Sub(other.due) > keepUnused {
			delete(u.jobs, uid)
		}
	}
	state.first, state.due = now, now.Add(launchTime)
	u.jobs[job] = state
	return launchTime
}

// forget drops what is known of a job that has ended.
func (u *usageReader) forget(job types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.jobs, job)
}
