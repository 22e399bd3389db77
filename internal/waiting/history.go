package waiting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// What a history keeps, and how many samples there must be to say anything.
const (
	maxKeys    = 1000
	maxSamples = 200
	MinSamples = 10
)

// History keeps how long something took for jobs that compare with each other: the latest 200 samples of each key, of 1,000 keys at
// most. The zero value is empty. It may not be used concurrently.
type History[K comparable] struct {
	samples map[K][]sample
}

// sample is how long it took for a job of so many pods, until a time.
type sample struct {
	job   types.UID
	pods  int32
	took  time.Duration
	until time.Time
}

// Add adds the sample of a job. Each job counts once.
func (h *History[K]) Add(key K, job types.UID, pods int32, took time.Duration, until time.Time) {
	known, found := h.samples[key]
	if slices.ContainsFunc(known, func(old sample) bool { return old.job == job }) {
		return
	}
	if !found {
		if h.samples == nil {
			h.samples = map[K][]sample{}
		}
		h.dropOldest(maxKeys - 1)
	}
	at, _ := slices.BinarySearchFunc(known, until, func(old sample, until time.Time) int { return old.until.Compare(until) })
	known = slices.Insert(known, at, sample{job: job, pods: pods, took: max(0, took), until: until})
	h.samples[key] = known[max(0, len(known)-maxSamples):]
}

// dropOldest drops the keys with the longest time since their last sample, until at most this many are left.
func (h *History[K]) dropOldest(most int) {
	for len(h.samples) > most {
		var oldest K
		var at time.Time
		for key, known := range h.samples {
			if last := known[len(known)-1].until; at.IsZero() || last.Before(at) {
				oldest, at = key, last
			}
		}
		delete(h.samples, oldest)
	}
}

// SimilarSize returns the sizes of the jobs that are comparable with one of so many pods: half to twice as many.
func SimilarSize(pods int32) (fewest, most int32) { return (pods + 1) / 2, 2 * pods }

// Similar returns how long it took for the jobs of a key that are comparable in size, shortest first.
func (h *History[K]) Similar(key K, pods int32) []time.Duration {
	fewest, most := SimilarSize(pods)
	var took []time.Duration
	for _, known := range h.samples[key] {
		if known.pods >= fewest && known.pods <= most {
			took = append(took, known.took)
		}
	}
	slices.Sort(took)
	return took
}

// Within returns the shortest time within which so many percent of sorted samples were done. There must be a sample.
func Within(took []time.Duration, percent int) time.Duration {
	return took[(len(took)*percent+99)/100-1]
}
