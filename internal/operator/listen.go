package operator

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// listeners is how many jobs are listened to at once: logs come from kubelets, some of which answer slowly.
	listeners = 4
	// young is how long a job that tells no progress is listened to as often as one that does; afterwards it is seldom.
	young  = 5 * time.Minute
	seldom = 5 * time.Minute
	// forgotten is how long nobody asks for a job until it is taken to be gone.
	forgotten = 3 * seldom
)

// listener reads the logs of jobs that run, for their progress and for silence, each now and then. What it has heard
// last stands for what it would hear until then. It is safe for use by many at once, each for another job.
type listener struct {
	listen func(context.Context, mpi.Job, mpi.Observed) mpi.Evidence
	// every is how often jobs are listened to that tell their progress; 0: progress is not taken note of.
	every time.Duration
	slots chan struct{}

	mu   sync.Mutex
	jobs map[types.UID]heard
}

// heard is what a job has said.
type heard struct {
	evidence mpi.Evidence
	// first is when it was first listened to, due when it is next; told is set once it has told progress.
	first, due time.Time
	told       bool
}

func newListener(listen func(context.Context, mpi.Job, mpi.Observed) mpi.Evidence, every time.Duration) *listener {
	return &listener{listen: listen, every: every, slots: make(chan struct{}, listeners), jobs: map[types.UID]heard{}}
}

// hear is what a job that runs has said, and after what time it is to be asked again. It does not wait for its turn: if
// many jobs are being listened to, this one is a little later.
func (l *listener) hear(ctx context.Context, job mpi.Job, seen mpi.Observed) (mpi.Evidence, time.Duration) {
	h := l.known(job.UID, seen.Now)
	if left := h.due.Sub(seen.Now); left > 0 {
		return h.evidence, left
	}
	select {
	case l.slots <- struct{}{}:
	default:
		const soon = time.Second
		return h.evidence, soon + rand.N(soon)
	}
	defer func() { <-l.slots }()
	h.evidence = l.take(ctx, job, seen)
	h.told = h.told || h.evidence.Training != mpi.Training{}
	pause := seldom
	if l.every > 0 && (h.told || seen.Now.Sub(h.first) < young) {
		pause = l.every
	}
	pause = min(pause, job.Lifecycle.SilentAfter/2)
	answer := h.evidence
	if left := lastWord(seen, h.evidence).Add(job.Lifecycle.SilentAfter).Sub(seen.Now); left > 0 {
		// Silence is told from its first second, and only of a log that was read then.
		pause = min(pause, left+time.Second)
		h.evidence.Logs = withoutLines(h.evidence.Logs)
	}
	h.due = seen.Now.Add(pause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[job.UID] = h
	return answer, pause
}

// last is all that a job has said that has just ended.
func (l *listener) last(ctx context.Context, job mpi.Job, seen mpi.Observed) mpi.Evidence {
	l.forget(job.UID)
	return l.take(ctx, job, seen)
}

func (l *listener) take(ctx context.Context, job mpi.Job, seen mpi.Observed) mpi.Evidence {
	evidence := l.listen(ctx, job, seen)
	if l.every <= 0 {
		evidence.Training = mpi.Training{}
	}
	return evidence
}

// known is what is known of a job. With a new one those are dropped that are gone.
func (l *listener) known(job types.UID, now time.Time) heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, is := l.jobs[job]
	if is {
		return h
	}
	for uid, other := range l.jobs {
		if now.Sub(other.due) > forgotten {
			delete(l.jobs, uid)
		}
	}
	h = heard{first: now, due: now}
	l.jobs[job] = h
	return h
}

// forget drops what a job has said that does not run any more.
func (l *listener) forget(job types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.jobs, job)
}

// lastWord is when the pods whose logs were read have last said something or begun to run.
func lastWord(seen mpi.Observed, evidence mpi.Evidence) (last time.Time) {
	later := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, pod := range podsOf(seen) {
		log, read := evidence.Logs[pod.Name]
		if !read {
			continue
		}
		later(log.LastAt)
		for _, c := range pod.Status.ContainerStatuses {
			later(startOf(c))
		}
	}
	return last
}

func startOf(c corev1.ContainerStatus) time.Time {
	if c.State.Running == nil {
		return time.Time{}
	}
	return c.State.Running.StartedAt.Time
}

// withoutLines keeps of logs when the last line was written. Of a program that speaks nobody asks for more, and the
// lines of a thousand jobs are many.
func withoutLines(logs map[string]mpi.Log) map[string]mpi.Log {
	short := make(map[string]mpi.Log, len(logs))
	for name, log := range logs {
		short[name] = mpi.Log{LastAt: log.LastAt}
	}
	return short
}
