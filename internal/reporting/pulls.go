package reporting

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failedPulls keeps which jobs cannot pull images because of their registry. Its zero value is ready to use.
type failedPulls struct {
	mu sync.Mutex
	// jobs are the times at which each job could not pull, by registry.
	jobs map[string]map[types.UID]time.Time
}

const (
	// severalOthers is from how many other jobs on a registry is the cause rather than the node of one job.
	severalOthers = 2
	// pullMemory is how long a job counts that could not pull. Jobs that wait for images are reconciled every 30 s.
	pullMemory = 5 * time.Minute
)

// areShared notes that a job cannot pull images because of a registry, "" for none, and reports whether several others cannot either.
func (f *failedPulls) areShared(job types.UID, registry string, now time.Time) bool {
	if registry == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, jobs := range f.jobs {
		for uid, at := range jobs {
			if now.Sub(at) > pullMemory {
				delete(jobs, uid)
			}
		}
		if len(jobs) == 0 {
			delete(f.jobs, name)
		}
	}
	if f.jobs == nil {
		f.jobs = map[string]map[types.UID]time.Time{}
	}
	if f.jobs[registry] == nil {
		f.jobs[registry] = map[types.UID]time.Time{}
	}
	f.jobs[registry][job] = now
	return len(f.jobs[registry]) > severalOthers
}
