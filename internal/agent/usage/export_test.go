package usage

import "opendatahub.io/mpijob/internal/agentapi"

// Sums returns the sum of a metric in all points of a series, and the seconds for which it was measured.
func Sums(s *Series, metric agentapi.Metric) (sum, seconds float64) {
	for _, point := range s.points {
		if w := point[metric]; w != nil {
			sum, seconds = sum+w.sum, seconds+w.seconds
		}
	}
	return sum, seconds
}
