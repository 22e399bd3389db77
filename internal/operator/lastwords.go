package operator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
)

// keepWords is how long the last words of a job's pods are kept: its record is settled long before.
const keepWords = 10 * time.Minute

// lastWords keeps what pods have said that are on their way out. Kubernetes removes some together with their logs before
// their job is judged: a launcher that was deleted, or had its time. It is safe for use by many at once.
type lastWords struct {
	mu   sync.Mutex
	jobs map[types.UID]words
}

type words struct {
	logs map[string]mpi.Log
	at   time.Time
}

func newLastWords() *lastWords { return &lastWords{jobs: map[types.UID]words{}} }

// complete keeps the logs that were read of pods that leave or have ended, and adds to the evidence those that were kept
// and cannot be read any more.
func (l *lastWords) complete(job types.UID, seen mpi.Observed, evidence *mpi.Evidence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.jobs[job]
	for _, pod := range podsOf(seen) {
		log := evidence.Logs[pod.Name]
		if len(log.Lines) == 0 || pod.DeletionTimestamp == nil && !mpi.HasEnded(pod) {
			continue
		}
		if kept.logs == nil {
			kept.logs = map[string]mpi.Log{}
		}
		kept.logs[pod.Name], kept.at = log, seen.Now
	}
	if kept.logs == nil {
		return
	}
	for uid, other := range l.jobs {
		if seen.Now.Sub(other.at) > keepWords {
			delete(l.jobs, uid)
		}
	}
	l.jobs[job] = kept
	for name, log := range kept.logs {
		if len(evidence.Logs[name].Lines) > 0 {
			continue
		}
		if evidence.Logs == nil {
			evidence.Logs = map[string]mpi.Log{}
		}
		evidence.Logs[name] = log
	}
}
