package logstore

import "github.com/prometheus/client_golang/prometheus"

// counters are the metrics of a keeper.
type counters struct {
	bytes, errors, lost, deleted prometheus.Counter
	waiting                      prometheus.GaugeFunc
}

func newCounters(k *Keeper) *counters {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &counters{
		bytes:   counter("mpijob_log_bucket_written_bytes_total", "Bytes of compressed log lines that were written to the log bucket."),
		errors:  counter("mpijob_log_bucket_errors_total", "Requests to the log bucket that failed. They are tried again."),
		lost:    counter("mpijob_log_bucket_lost_logs_total", "Logs of containers that were gone before they could be read for the log bucket."),
		deleted: counter("mpijob_log_bucket_deleted_objects_total", "Objects that were deleted from the log bucket when their retention was over."),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mpijob_log_bucket_waiting_bytes", Help: "Bytes of compressed log lines that wait in memory for the log bucket."},
			func() float64 { return float64(k.unsent.Load()) }),
	}
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.bytes, c.errors, c.lost, c.deleted, c.waiting}
}

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(to chan<- *prometheus.Desc) {
	for _, c := range k.counters.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(to chan<- prometheus.Metric) {
	for _, c := range k.counters.all() {
		c.Collect(to)
	}
}
