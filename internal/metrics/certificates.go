package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var certificateDesc = gauge("mpijob_certificate_expiry_timestamp_seconds", "When a certificate that this replica serves expires, in seconds since 1970.", "certificate")

// Certificates returns a collector of when certificates expire, by name. Every replica has one: they all serve.
func Certificates(expiries func() map[string]time.Time) prometheus.Collector {
	return certificates(expiries)
}

type certificates func() map[string]time.Time

// Describe implements prometheus.Collector.
func (certificates) Describe(to chan<- *prometheus.Desc) { to <- certificateDesc }

// Collect implements prometheus.Collector.
func (c certificates) Collect(to chan<- prometheus.Metric) {
	for name, expiry := range c() {
		to <- prometheus.MustNewConstMetric(certificateDesc, prometheus.GaugeValue, float64(expiry.Unix()), name)
	}
}
