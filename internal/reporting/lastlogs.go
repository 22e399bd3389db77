package reporting

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// keepLastLogs is how long the last words of a job's pods are kept: its record is settled long before.
const keepLastLogs = 10 * time.Minute

// maxLastLogs is how many bytes of logs are kept, of all jobs: the latest.
const maxLastLogs = 32 << 20

// lastLogs keeps the logs of pods that are being deleted, that have ended, or whose containers ended badly and were
// started again. Kubernetes removes some together with their logs before their job is judged: a launcher that was
// deleted, exceeded its deadline, or was restarted too often. It is safe for concurrent use.
type lastLogs struct {
	mu   sync.Mutex
	jobs map[types.UID]keptLogs
	// bytes is the size of all logs.
	bytes int
}

type keptLogs struct {
	logs  map[string]jobstate.Log
	at    time.Time
	bytes int
}

// size returns the number of bytes of a job's logs.
func (k keptLogs) size() (bytes int) {
	for _, log := range k.logs {
		for _, line := range log.Lines {
			bytes += len(line)
		}
	}
	return bytes
}

// with returns the logs of a job with one more.
func (k keptLogs) with(pod string, log jobstate.Log, now time.Time) keptLogs {
	logs := map[string]jobstate.Log{}
	maps.Copy(logs, k.logs)
	logs[pod] = log
	return keptLogs{logs: logs, at: now}
}

func newLastLogs() *lastLogs { return &lastLogs{jobs: map[types.UID]keptLogs{}} }

// complete keeps the logs of such pods among those that were read, and adds to the evidence those that were kept and
// cannot be read any more.
func (l *lastLogs) complete(job mpi.Job, seen jobstate.Observed, evidence *jobstate.Evidence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.jobs[job.UID]
	if seen.Launcher != nil {
		// What was read the moment the pod failed.
		for name, log := range l.jobs[seen.Launcher.UID].logs {
			if _, is := kept.logs[name]; !is {
				kept = kept.with(name, log, seen.Now)
			}
		}
	}
	exhausted := jobstate.CountAttempts(job, seen).Exhausted()
	for _, pod := range seen.AllPods() {
		log := evidence.Logs[pod.Name]
		if len(log.Lines) == 0 || pod.DeletionTimestamp == nil && !podstatus.HasEnded(pod) && !endedBadly(pod) {
			continue
		}
		if earlier, is := kept.logs[pod.Name]; is && exhausted && pod.DeletionTimestamp != nil {
			// The Job controller stops a run that it did not want to start. The log of the run before is the one that counts.
			evidence.Logs[pod.Name], kept.at = earlier, seen.Now
			continue
		}
		kept = kept.with(pod.Name, log, seen.Now)
	}
	if kept.logs == nil {
		return
	}
	l.put(job.UID, kept, seen.Now)
	for name, log := range kept.logs {
		if len(evidence.Logs[name].Lines) > 0 {
			continue
		}
		if evidence.Logs == nil {
			evidence.Logs = map[string]jobstate.Log{}
		}
		evidence.Logs[name] = log
	}
}

// keep keeps the log of a pod under the UID of its Job.
func (l *lastLogs) keep(owner types.UID, pod string, log jobstate.Log, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(owner, l.jobs[owner].with(pod, log, now), now)
}

// put keeps the logs of a job, and drops those that are too old or too many.
func (l *lastLogs) put(job types.UID, kept keptLogs, now time.Time) {
	drop := func(uid types.UID) {
		l.bytes -= l.jobs[uid].bytes
		delete(l.jobs, uid)
	}
	drop(job)
	for uid, other := range l.jobs {
		if now.Sub(other.at) > keepLastLogs {
			drop(uid)
		}
	}
	kept.bytes = kept.size()
	for l.bytes+kept.bytes > maxLastLogs && len(l.jobs) > 0 {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(l.jobs)), func(a, b types.UID) int {
			return cmp.Or(l.jobs[a].at.Compare(l.jobs[b].at), cmp.Compare(a, b))
		})
		drop(oldest)
	}
	l.jobs[job], l.bytes = kept, l.bytes+kept.bytes
}

func endedBadly(pod *corev1.Pod) bool {
	_, bad := cluster.EndedBadly(pod)
	return bad
}
