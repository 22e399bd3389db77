package metrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

const (
	// maxInfo is how many jobs are shown by name.
	maxInfo = 500
	// recent is how long a job is shown after its end.
	recent = time.Hour
)

var (
	runningDesc  = gauge("training_operator_mpijob_running_total", "MPIJobs whose launcher and all of whose workers run.", "namespace")
	queuedDesc   = gauge("training_operator_mpijob_queued_total", "MPIJobs that wait: for a queue, or until all of their pods have a machine. Suspended ones are not among them.", "namespace")
	expectedDesc = gauge("mpijob_slots_expected", "Slots of the workers in the launchers' lists of hosts, of unfinished jobs and of those that ended within the last hour; told by the agent at the end of a launcher's run.", "namespace")
	foundDesc    = gauge("mpijob_slots_found", "Slots of those workers that the launchers started anything on, of the same jobs as mpijob_slots_expected.", "namespace")
	infoDesc     = gauge("mpijob_info", "Always 1: what a job is and the phase it is in, for unfinished jobs and those that ended within the last hour, 500 at most.", "namespace", "name", "kind", "implementation", "phase")
	omittedDesc  = gauge("mpijob_info_omitted", "Jobs that mpijob_info leaves out because it has too many, those that ended first.")
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
	for _, desc := range []*prometheus.Desc{runningDesc, queuedDesc, expectedDesc, foundDesc, infoDesc, omittedDesc} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	records, now := m.records(), m.clock.Now()
	m.tidy(records, now)
	for _, c := range m.all {
		c.Collect(to)
	}
	if records == nil {
		return
	}
	sums := map[string]*tally{}
	var shown []*v1alpha1.JobReport
	for i := range records {
		job := &records[i]
		if !isMPI(job) {
			continue
		}
		if sums[job.Namespace] == nil {
			sums[job.Namespace] = &tally{}
		}
		end := job.Status.CompletionTime
		current := end == nil || now.Sub(end.Time) < recent
		if current {
			shown = append(shown, job)
		}
		sums[job.Namespace].add(job, current)
	}
	set := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for namespace, s := range sums {
		if s.mpiJobs {
			set(runningDesc, s.running, namespace)
			set(queuedDesc, s.queued, namespace)
		}
		set(expectedDesc, s.expected, namespace)
		set(foundDesc, s.found, namespace)
	}
	shown = latestOfEach(shown)
	for _, job := range shown[:min(len(shown), maxInfo)] {
		set(infoDesc, 1, job.Namespace, job.Spec.JobRef.Name, job.Spec.JobRef.Kind, job.Status.MPI.Implementation, string(job.Status.Phase))
	}
	set(omittedDesc, float64(max(0, len(shown)-maxInfo)))
}

// tally is what there is in a namespace.
type tally struct {
	mpiJobs                          bool
	running, queued, expected, found float64
}

func (s *tally) add(job *v1alpha1.JobReport, current bool) {
	if isMPIJob(job) {
		s.mpiJobs = true
		switch {
		case job.Status.Phase == v1alpha1.PhaseRunning:
			s.running++
		case waits(job):
			s.queued++
		}
	}
	if current {
		s.expected += float64(job.Status.MPI.SlotsExpected)
		s.found += float64(job.Status.MPI.SlotsFound)
	}
}

// waits reports whether a job waits for a place.
func waits(job *v1alpha1.JobReport) bool {
	switch {
	case job.Status.CompletionTime != nil, job.Status.Phase == v1alpha1.PhaseSuspended:
		return false
	case job.Status.Phase == v1alpha1.PhaseQueued, job.Status.Phase == v1alpha1.PhaseGangScheduling:
		return true
	}
	return job.Status.Scheduling != nil
}

// latestOfEach orders jobs, unfinished ones first and then by their end, the latest first, and leaves of those that
// share a name the first.
func latestOfEach(jobs []*v1alpha1.JobReport) []*v1alpha1.JobReport {
	slices.SortFunc(jobs, func(a, b *v1alpha1.JobReport) int {
		return cmp.Or(
			endOf(b).Compare(endOf(a)),
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name),
		)
	})
	type name struct{ namespace, kind, name string }
	known := map[name]bool{}
	return slices.DeleteFunc(jobs, func(job *v1alpha1.JobReport) bool {
		of := name{job.Namespace, job.Spec.JobRef.Kind, job.Spec.JobRef.Name}
		again := known[of]
		known[of] = true
		return again
	})
}

// endOf is when a job ended, or a time after all others where it has not.
func endOf(job *v1alpha1.JobReport) time.Time {
	if end := job.Status.CompletionTime; end != nil {
		return end.Time
	}
	return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
}

// tidy decides about failures whose cause has not become known, and forgets namespaces that have no records any more.
// One that has is given its counters, at 0 after a restart.
func (m *Metrics) tidy(records []v1alpha1.JobReport, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for job, since := range m.unknown {
		if now.Sub(since) >= undecided {
			m.failures.WithLabelValues(codes.Unknown).Inc()
			delete(m.unknown, job)
		}
	}
	begun := map[string]bool{}
	for i := range records {
		namespace := records[i].Namespace
		m.seen[namespace] = now
		if isMPIJob(&records[i]) && !begun[namespace] {
			begun[namespace] = true
			m.begin(namespace)
		}
	}
	for namespace, last := range m.seen {
		if now.Sub(last) < remembered {
			continue
		}
		delete(m.seen, namespace)
		gone := prometheus.Labels{"namespace": namespace}
		for _, counter := range []*prometheus.CounterVec{m.created, m.succeeded, m.failed, m.deleted, m.cpu, m.memory, m.devices} {
			counter.DeletePartialMatch(gone)
		}
	}
}
