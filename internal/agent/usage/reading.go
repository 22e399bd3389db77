// Package usage keeps what containers use over time: it turns the counters of two readings into a sample, adds samples to a series of
// bounded size, and adds up the series of a job's hosts.
package usage

import (
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Reading is what the kernel counts for a container at a time.
type Reading struct {
	At time.Time
	// Counters only grow, Gauges are current. What the kernel does not count is left out.
	Counters map[agentapi.Metric]Counter
	Gauges   map[agentapi.Metric]int64
	// Limits are the most that can be used, without those that are unlimited.
	Limits map[agentapi.Metric]int64
	// GPUs is what is known of the container's GPUs besides; nil if nothing is.
	GPUs *GPUs
}

// GPUs is the state of the GPUs of NVIDIA that a container has.
type GPUs struct {
	// Power is their power in thousandths of a watt, and Temperature that of the hottest one in degrees Celsius.
	Power, Temperature int64
	// Slowed are those that run slower because of heat or of a limit of their power, and Lost those that the driver cannot reach.
	Slowed, Lost int64
	// Errors are the errors of their memory that could not be corrected, since the driver was loaded.
	Errors int64
}

// Counter is a count of a metric. The metric's value is what was added to Count, by what was added to Of, or by the seconds.
type Counter struct {
	Count float64
	// Of is the count that the value relates to; if PerSecond is set, it is the time of the reading.
	Of        float64
	PerSecond bool
}

// Sample is what was used between two readings.
type Sample struct {
	From, To time.Time
	Values   map[agentapi.Metric]float64
}

// NewSample compares two readings. Counters that went back, such as those of a device that was reset, are left out, and so is a
// share of nothing. It returns false if no time has passed.
func NewSample(before, after Reading) (Sample, bool) {
	seconds := after.At.Sub(before.At).Seconds()
	if seconds <= 0 {
		return Sample{}, false
	}
	s := Sample{From: before.At, To: after.At, Values: map[agentapi.Metric]float64{}}
	for metric, now := range after.Counters {
		old, known := before.Counters[metric]
		added, of := now.Count-old.Count, now.Of-old.Of
		if now.PerSecond {
			of = seconds
		}
		switch {
		case !known || added < 0 || of < 0:
		case of == 0 && added == 0:
			// Nothing needed a CPU: nothing was throttled.
			s.Values[metric] = 0
		case of > 0:
			s.Values[metric] = added / of
		}
	}
	for metric, value := range after.Gauges {
		s.Values[metric] = float64(value)
	}
	return s, true
}
