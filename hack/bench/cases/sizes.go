package cases

import (
	"math"
	"math/rand/v2"
)

const (
	// podsPerJob is how many workers a job has on average, whatever the number of jobs: figures for each job can be compared.
	podsPerJob = 10
	// mostWorkers is the size of the largest job.
	mostWorkers = 1000
)

// sizes returns the numbers of workers of many jobs: podsPerJob on average, the largest with as many as there are jobs, up to
// mostWorkers, and the others by a power law of their rank, down to 1. The order is random, and the same each time.
func sizes(jobs int) []int {
	largest, want := min(jobs, mostWorkers), jobs*podsPerJob
	// The steeper, the fewer workers in total.
	flat, steep := 0.01, 10.0
	for range 60 {
		middle := (flat + steep) / 2
		if sum(powerLaw(jobs, largest, middle)) > want {
			flat = middle
		} else {
			steep = middle
		}
	}
	all := powerLaw(jobs, largest, steep)
	// Rounding leaves some out: they go to the jobs after the largest.
	for missing, at := want-sum(all), 0; missing > 0; missing-- {
		at = at%(jobs/2) + 1
		all[at]++
	}
	order := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same order each time
	order.Shuffle(jobs, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// powerLaw returns the sizes of jobs by their rank, from the largest down to 1: they fall with the rank to the power of an
// exponent.
func powerLaw(jobs, largest int, exponent float64) []int {
	all := make([]int, jobs)
	last := math.Pow(float64(jobs), -exponent)
	for rank := range all {
		share := (math.Pow(float64(rank+1), -exponent) - last) / (1 - last)
		all[rank] = 1 + int(float64(largest-1)*share)
	}
	return all
}

func sum(all []int) int {
	total := 0
	for _, n := range all {
		total += n
	}
	return total
}
