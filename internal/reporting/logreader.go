package reporting

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// maxReaders is how many jobs' logs are read at once: kubelets serve them, and some answer slowly.
	maxReaders = 4
	// discoveryPeriod is how long the log of a job without progress is read as often as that of a job with progress, before it
	// is only read every slowInterval.
	discoveryPeriod = 5 * time.Minute
	slowInterval    = time.Minute
	// quietInterval is how often the log of a job with an agent is read that has printed nothing for quietAfter: its ranks
	// may wait for each other, which the agent writes into the log after 30 to 35 s. It is reported within a minute.
	quietInterval = 20 * time.Second
	quietAfter    = 15 * time.Second
	// logsPerSecond is how many logs are read in a second, whatever the number of running jobs: with more than 300, each is read less
	// often than every 30 s.
	logsPerSecond = 10
	// keepUnused is how long the state of a job is kept without being used.
	keepUnused = 15 * time.Minute
)

// logReader reads the logs of running jobs periodically, for their progress and for silence. Between two reads the last
// result applies. It is safe for concurrent use, each for another job.
type logReader struct {
	gather func(context.Context, mpi.Job, jobstate.Observed) jobstate.Evidence
	// every is how often jobs are listened to that tell their progress; 0: progress is not taken note of.
	every time.Duration
	slots chan struct{}

	mu   sync.Mutex
	jobs map[types.UID]logState
	// unrecorded are lines with figures that could not be written into the job's report.
	unrecorded map[types.UID]lateLines
}

// lateLines are lines with figures that were read until a time.
type lateLines struct {
	lines []curves.Line
	at    time.Time
}

// maxLateLines is how many lines of a job wait at most until its report can be written.
const maxLateLines = 1000

// logState is what a job has said.
type logState struct {
	evidence jobstate.Evidence
	// first is when it was first listened to, due when it is next; told is set once it has told progress.
	first, due  time.Time
	hasProgress bool
}

func newLogReader(listen func(context.Context, mpi.Job, jobstate.Observed) jobstate.Evidence, every time.Duration) *logReader {
	return &logReader{gather: listen, every: every, slots: make(chan struct{}, maxReaders), jobs: map[types.UID]logState{}, unrecorded: map[types.UID]lateLines{}}
}

// readIfDue is what a job that runs has said, and after what time it is to be asked again. It does not wait for its turn: if
// many jobs are being listened to, this one is a little later.
func (l *logReader) readIfDue(ctx context.Context, job mpi.Job, seen jobstate.Observed) (jobstate.Evidence, time.Duration) {
	h := l.stateFor(job.UID, seen.Now)
	if left := h.due.Sub(seen.Now); left > 0 {
		return h.evidence, left
	}
	select {
	case l.slots <- struct{}{}:
	default:
		// Later if there are many jobs: slow nodes may keep the readers for seconds.
		l.mu.Lock()
		soon := max(time.Second, turn(len(l.jobs), logsPerSecond)/4)
		l.mu.Unlock()
		return h.evidence, soon + rand.N(soon)
	}
	defer func() { <-l.slots }()
	h.evidence = l.read(ctx, job, seen)
	h.hasProgress = h.hasProgress || h.evidence.Training != v1alpha1.Training{} || len(h.evidence.CurveLines) > 0
	pause := max(slowInterval, l.every)
	if l.every > 0 && (h.hasProgress || seen.Now.Sub(h.first) < discoveryPeriod) {
		pause = l.every
	}
	pause = min(pause, job.Lifecycle.SilentAfter/2)
	// A log that cannot be read is not quiet: its node may not answer, so that each try keeps others waiting for seconds.
	if last := lastOutput(seen, h.evidence); job.UsesAgent() && !last.IsZero() && seen.Now.Sub(last) >= quietAfter {
		pause = min(pause, quietInterval)
	}
	l.mu.Lock()
	pause = max(pause, turn(len(l.jobs), logsPerSecond))
	l.mu.Unlock()
	answer := h.evidence
	// The report gets them, and those of a thousand jobs need much memory.
	h.evidence.CurveLines = nil
	if left := lastOutput(seen, h.evidence).Add(job.Lifecycle.SilentAfter).Sub(seen.Now); left > 0 {
		// Silence is reported from its first second, and only for a log that was read then.
		pause = min(pause, left+time.Second)
		h.evidence.Logs = withoutLines(h.evidence.Logs)
	}
	h.due = seen.Now.Add(pause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[job.UID] = h
	return answer, pause
}

// turn is how long it takes to read something of all jobs once.
func turn(jobs int, perSecond time.Duration) time.Duration {
	return time.Duration(jobs) * time.Second / perSecond
}

// readLast is all that a job has said that has just ended.
func (l *logReader) readLast(ctx context.Context, job mpi.Job, seen jobstate.Observed) jobstate.Evidence {
	l.forget(job.UID)
	return l.read(ctx, job, seen)
}

func (l *logReader) read(ctx context.Context, job mpi.Job, seen jobstate.Observed) jobstate.Evidence {
	evidence := l.gather(ctx, job, seen)
	if l.every <= 0 {
		evidence.Training, evidence.CurveLines = v1alpha1.Training{}, nil
	}
	return evidence
}

// stateFor is what is known of a job. With a new one those are dropped that are gone.
func (l *logReader) stateFor(job types.UID, now time.Time) logState {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, is := l.jobs[job]
	if is {
		return h
	}
	for uid, other := range l.jobs {
		if now.Sub(other.due) > keepUnused {
			delete(l.jobs, uid)
		}
	}
	h = logState{first: now, due: now}
	l.jobs[job] = h
	return h
}

// forget drops what a job has said that does not run any more.
func (l *logReader) forget(job types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.jobs, job)
}

// keepLines keeps the lines with figures of a job whose report could not be written, until takeLines returns them. A later read has only the
// latest lines.
func (l *logReader) keepLines(job types.UID, lines []curves.Line, now time.Time) {
	if len(lines) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, other := range l.unrecorded {
		if now.Sub(other.at) > keepUnused {
			delete(l.unrecorded, uid)
		}
	}
	l.unrecorded[job] = lateLines{lines: lines[max(0, len(lines)-maxLateLines):], at: now}
}

// takeLines returns the lines of keepLines, and keeps them no longer.
func (l *logReader) takeLines(job types.UID) []curves.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.unrecorded[job].lines
	delete(l.unrecorded, job)
	return lines
}

// withLateLines returns lines with figures after those of keepLines, each once.
func (l *logReader) withLateLines(job types.UID, lines []curves.Line) []curves.Line {
	if late := l.takeLines(job); len(late) > 0 {
		return slices.Concat(late, linesAfter(late[len(late)-1].Time, lines))
	}
	return lines
}

// lastOutput is when the pods whose logs were read have last said something or begun to run; zero if none was read.
func lastOutput(seen jobstate.Observed, evidence jobstate.Evidence) (last time.Time) {
	later := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, pod := range seen.AllPods() {
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

// withoutLines keeps of logs only when the first and the last line were written. The lines of a program that is not silent are not used,
// and those of a thousand jobs need much memory.
func withoutLines(logs map[string]jobstate.Log) map[string]jobstate.Log {
	short := make(map[string]jobstate.Log, len(logs))
	for name, log := range logs {
		if stall := stallLines(log.Lines); stall != nil {
			// The finding rests on these lines until the log is read again.
			log.Lines = stall
			short[name] = log
			continue
		}
		short[name] = jobstate.Log{LastAt: log.LastAt, FirstAt: log.FirstAt}
	}
	return short
}

// stallLines returns the lines on which findings about ranks that make no progress rest; nil if there are none. The lines are copied: they
// must not keep the others in memory.
func stallLines(lines []string) (copied []string) {
	for _, line := range diagnose.StallEvidence(lines) {
		copied = append(copied, strings.Clone(line))
	}
	return copied
}
