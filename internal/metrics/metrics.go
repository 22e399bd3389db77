// Package metrics makes Prometheus metrics of jobs from their records, the JobReports.
//
// Counters and histograms follow from what is new in a record that has just been written, compared with the one before:
// Observe is called after each write. A write carries the version that was read, so that of two operators only one
// succeeds, and no transition is counted twice, nor after a restart: then the record is there already. If the operator
// is killed between the write and the next scrape, what it counted in between is lost; counters begin at 0 again, as
// Prometheus expects. A job that had ended before the operator first saw it is history and is not counted.
//
// Gauges are computed from the cached records at each scrape. Only the operator that leads shows them, so that a sum
// over all replicas is right.
//
// Metrics named training_operator_mpijob_* count only MPIJobs, as in the Training Operator; those named mpijob_* count all MPI
// jobs, TrainJobs included. TrainJobs of other frameworks have records, too, but are not counted. A namespace without a record
// for an hour is removed, with its counters.
//
// Label values are bounded: kinds, phases, results and codes are lists in the code, queues are limited by maxQueues, devices by
// maxDevices, quotas by maxQuotas and namespaces by maxNamespaces. What exceeds a limit is summed up as (others).
package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/report"
)

const (
	// remembered is how long counters of a namespace without records are kept.
	remembered = time.Hour
	// maxNamespaces is how many namespaces have series of their own.
	maxNamespaces = 1000
	// others is the label of namespaces, queues and devices that have no series of their own. None of them has this name.
	others = "(others)"
	// maxDevices is how many devices of namespaces have series of their own.
	maxDevices = 2000
	// kueueBackend is the backend of jobs that wait in a queue of Kueue. What other backends call a queue is any text.
	kueueBackend = "kueue"
	// undecided is how long the cause of a failure may become known, a little more than evidence is looked for.
	undecided = 3 * time.Minute
)

// Metrics is a collector of metrics of jobs, safe for use by many at once.
type Metrics struct {
	records func() []v1alpha1.JobReport
	quotas  func() []Quota
	clock   clock.PassiveClock
	since   time.Time

	// mpiJobs counts MPIJobs by namespace, jobs all MPI jobs by namespace and kind.
	mpiJobs, jobs                     ends
	admissions, devices               *limited
	gangWait, start, connect, mpiInit prometheus.Histogram
	failures, cpu, memory             *prometheus.CounterVec
	notWritten, usageLost             prometheus.Counter
	reportsDeleted                    *prometheus.CounterVec
	all                               []prometheus.Collector

	mu sync.Mutex
	// seen is when there was last a record of a namespace.
	seen map[string]time.Time
	// unknown is since when jobs have failed of which no cause is known yet.
	unknown map[types.UID]time.Time
}

// limited is a counter whose labels are a namespace and something that users name. It has a limited number of series; further
// ones are summed up as others.
type limited struct {
	*prometheus.CounterVec
	most int

	mu    sync.Mutex
	known map[[2]string]bool
}

func (m *Metrics) limited(most int, name, help, label string) *limited {
	return &limited{CounterVec: m.counter(name, help, "namespace", label), most: most, known: map[[2]string]bool{}}
}

// labels returns the labels of a namespace and a name. Their counter begins at 0 the first time.
func (l *limited) labels(namespace, name string) [2]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{namespace, name}
	if !l.known[key] && len(l.known) >= l.most {
		key = [2]string{others, others}
	} else {
		l.known[key] = true
	}
	l.WithLabelValues(key[:]...)
	return key
}

// of returns the counter of a namespace and a name.
func (l *limited) of(namespace, name string) prometheus.Counter {
	key := l.labels(namespace, name)
	return l.WithLabelValues(key[:]...)
}

// forget removes the counters of a namespace.
func (l *limited) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(key [2]string, _ bool) bool { return key[0] == namespace })
	l.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

// ends counts what becomes of jobs. The labels of its counters are those of a job; durations have the result, too.
type ends struct {
	created, succeeded, failed, deleted *prometheus.CounterVec
	duration                            *prometheus.HistogramVec
}

func (e ends) counters() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{e.created, e.succeeded, e.failed, e.deleted}
}

// newEnds returns counters whose names have a prefix, and whose help begins with what is counted.
func (m *Metrics) newEnds(prefix, duration, things string, labels ...string) ends {
	e := ends{
		created:   m.counter(prefix+"_created_total", things+" that the operator has seen for the first time.", labels...),
		succeeded: m.counter(prefix+"_succeeded_total", things+" that have succeeded.", labels...),
		failed:    m.counter(prefix+"_failed_total", things+" that have failed; those that were deleted before their end are not among them.", labels...),
		deleted:   m.counter(prefix+"_deleted_total", things+" that were deleted before their end.", labels...),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: duration, Help: "Time from the creation of " + things + " to their end, waiting included, by result: succeeded or failed.",
			Buckets: []float64{10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600},
		}, append(labels, "result")),
	}
	m.all = append(m.all, e.duration)
	return e
}

// Sources are what metrics are computed from at each scrape. What they return is read only.
type Sources struct {
	// Records returns the records of all jobs. Where there are none, as with a replica that does not lead, there are no gauges.
	Records func() []v1alpha1.JobReport
	// Quotas returns how far the quotas of namespaces are used; nil if they are unknown.
	Quotas func() []Quota
}

// New returns a collector.
func New(sources Sources, clock clock.PassiveClock) *Metrics {
	m := &Metrics{records: sources.Records, quotas: sources.Quotas, clock: clock, since: clock.Now().Truncate(time.Second), seen: map[string]time.Time{}, unknown: map[types.UID]time.Time{}}
	long := []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 3 * 3600, 12 * 3600}
	quick := []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

	m.mpiJobs = m.newEnds("training_operator_mpijob", "training_operator_mpijob_duration_seconds", "MPIJobs", "namespace")
	m.jobs = m.newEnds("mpijob_jobs", "mpijob_job_duration_seconds", "MPI jobs of all kinds", "namespace", "kind")
	m.admissions = m.limited(maxQueues, "mpijob_queue_admissions_total", "Admissions of jobs from a queue of Kueue; a job that was evicted and is admitted again counts again.", "queue")

	m.gangWait = m.histogram("mpijob_gang_wait_seconds", "Time from a job's creation, or from when it was resumed, until all of its pods had a machine.", long)
	m.start = m.histogram("mpijob_start_seconds", "Time from a job's creation, or from when it was resumed, until its launcher and all of its workers ran.", long)
	m.connect = m.histogram("mpijob_connect_seconds", "Time from a launcher's first attempt to connect to a worker until it had reached all; told by the agent at the end of the launcher's run.", quick)
	m.mpiInit = m.histogram("mpijob_mpi_init_seconds", "Time that MPI took on the slowest worker from its first command there until a rank's process ran; told by the agent at the end of the launcher's run.", quick)
	m.failures = m.counter("mpijob_failures_total", "Jobs that have failed, by the code of the cause, which is that of the first finding in their JobReport.", "code")
	// Prometheus does not count the first value of a series as an increase: what has few labels begins at 0.
	m.failures.WithLabelValues(codes.Unknown)
	for _, entry := range codes.Entries() {
		if entry.IsFinding() {
			m.failures.WithLabelValues(entry.Code)
		}
	}
	m.cpu = m.counter("mpijob_cpu_core_seconds_total", "Requested CPU cores of jobs' pods times the seconds that they had them; a running job's share is added about once an hour.", "namespace")
	m.memory = m.counter("mpijob_memory_gib_seconds_total", "Requested GiB of memory of jobs' pods times the seconds that they had them; a running job's share is added about once an hour.", "namespace")
	m.devices = m.limited(maxDevices, "mpijob_gpu_seconds_total", "Requested GPUs and other devices of jobs' pods times the seconds that they had them, by resource such as nvidia.com/gpu; a running job's share is added about once an hour.", "resource")
	m.notWritten = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mpijob_report_write_errors_total", Help: "JobReport writes that failed, except conflicts. The content is written by a later attempt.",
	})
	m.usageLost = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mpijob_usage_lost_reports_total", Help: "JobReports that were deleted and whose usage is not in the sums of deleted reports.",
	})
	m.all = append(m.all, m.notWritten, m.usageLost)
	m.reportsDeleted = m.counter("mpijob_reports_deleted_total", "JobReports of finished jobs that were deleted because of a limit: that of their namespace, or that of all namespaces (total).", "limit")
	for _, limit := range []string{"namespace", "total"} {
		m.reportsDeleted.WithLabelValues(limit)
	}
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.all = append(m.all, vector)
	return vector
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.all = append(m.all, h)
	return h
}

// ReportNotWritten counts a write of a JobReport that has failed.
func (m *Metrics) ReportNotWritten() { m.notWritten.Inc() }

// UsageLost counts JobReports that are deleted and whose usage is not kept.
func (m *Metrics) UsageLost(reports int) { m.usageLost.Add(float64(reports)) }

// ReportDeleted counts a JobReport that was deleted because of a limit: "namespace" or "total".
func (m *Metrics) ReportDeleted(limit string) { m.reportsDeleted.WithLabelValues(limit).Inc() }

// Observe counts and measures what is new in a record that was written. The previous one is nil the first time.
func (m *Metrics) Observe(previous *v1alpha1.JobReport, next v1alpha1.JobReport) {
	if !isMPI(&next) {
		return
	}
	var before v1alpha1.JobReportStatus
	if previous != nil {
		before = previous.Status
	}
	now := next.Status
	ended := before.CompletionTime == nil && now.CompletionTime != nil
	if previous == nil && ended && now.CompletionTime.Time.Before(m.since) {
		return
	}
	namespace := m.seenNow(next.Namespace)
	m.beginUse(namespace)
	// The implementation of a TrainJob may not be known at first.
	isNew := previous == nil || !isMPI(previous)
	counted := []ends{m.jobs}
	labels := [][]string{{namespace, next.Spec.JobRef.Kind}}
	if isMPIJob(&next) {
		counted, labels = append(counted, m.mpiJobs), append(labels, []string{namespace})
	}
	for i, e := range counted {
		e.begin(labels[i])
		if isNew {
			e.created.WithLabelValues(labels[i]...).Inc()
		}
		if ended {
			e.end(next, labels[i])
		}
	}
	m.beginAdmissions(namespace, &next)
	if queue := admittedFrom(before, now); queue != "" {
		m.admissions.of(namespace, queue).Inc()
	}
	m.cause(before, next)
	m.times(previous, next)
	if now.MPI.ConnectMilliseconds > 0 && now.MPI.ConnectMilliseconds != before.MPI.ConnectMilliseconds {
		m.connect.Observe(float64(now.MPI.ConnectMilliseconds) / 1000)
	}
	if now.MPI.InitMilliseconds > 0 && now.MPI.InitMilliseconds != before.MPI.InitMilliseconds {
		m.mpiInit.Observe(float64(now.MPI.InitMilliseconds) / 1000)
	}
	m.consumed(namespace, before.Consumption, now.Consumption)
}

const mpiJobKind = "MPIJob"

func isMPIJob(job *v1alpha1.JobReport) bool { return job.Spec.JobRef.Kind == mpiJobKind }

// isMPI reports whether a job runs MPI. Every MPIJob does.
func isMPI(job *v1alpha1.JobReport) bool { return isMPIJob(job) || job.Status.MPI.Implementation != "" }

// begin makes the counters of a namespace begin at 0, so that the first failure is seen as an increase.
func (e ends) begin(labels []string) {
	for _, counter := range e.counters() {
		counter.WithLabelValues(labels...)
	}
}

// beginUse does the same for the resources of a namespace that every job has.
func (m *Metrics) beginUse(namespace string) {
	m.cpu.WithLabelValues(namespace)
	m.memory.WithLabelValues(namespace)
}

// beginAdmissions does the same for the queue that a job waits in.
func (m *Metrics) beginAdmissions(namespace string, job *v1alpha1.JobReport) {
	if queue := queueOf(job); queue != "" {
		m.admissions.labels(namespace, queue)
	}
}

// queueOf returns the queue of Kueue that a job waits in; empty if it waits in none.
func queueOf(job *v1alpha1.JobReport) string {
	if wait := job.Status.Scheduling; wait != nil && wait.Backend == kueueBackend && waits(job) {
		return wait.Queue
	}
	return ""
}

// admittedFrom returns the queue of Kueue that has let a job go on since the previous record, for the first time or again; empty if
// none has. A job that fails, is deleted or suspended, or becomes invalid, leaves its queue otherwise.
func admittedFrom(before, now v1alpha1.JobReportStatus) string {
	switch waited := now.Waited; {
	case now.Phase == v1alpha1.PhaseQueued, now.Phase == v1alpha1.PhaseSuspended, now.Phase == v1alpha1.PhaseFailed, now.Reason == codes.ValidationError:
	case before.Phase == v1alpha1.PhaseQueued && before.Scheduling != nil && before.Scheduling.Backend == kueueBackend:
		return before.Scheduling.Queue
	case before.Waited == nil && waited != nil && waited.Backend == kueueBackend:
		// It was admitted before the operator saw it wait.
		return waited.Queue
	}
	return ""
}

// end counts that a job has ended.
func (e ends) end(job v1alpha1.JobReport, labels []string) {
	var seconds float64
	if job.Status.StartTime != nil {
		seconds = job.Status.CompletionTime.Sub(job.Status.StartTime.Time).Seconds()
	}
	result := ""
	switch {
	case job.Status.Phase == v1alpha1.PhaseSucceeded:
		e.succeeded.WithLabelValues(labels...).Inc()
		result = "succeeded"
	case job.Status.Reason == codes.JobDeleted:
		e.deleted.WithLabelValues(labels...).Inc()
		return
	default:
		e.failed.WithLabelValues(labels...).Inc()
		result = "failed"
	}
	e.duration.WithLabelValues(append(slices.Clone(labels), result)...).Observe(seconds)
}

// cause counts a failure by its cause, once that is known: logs and events may come a little later than the end.
func (m *Metrics) cause(before v1alpha1.JobReportStatus, next v1alpha1.JobReport) {
	if next.Status.Phase != v1alpha1.PhaseFailed || next.Status.Reason == codes.JobDeleted {
		return
	}
	first := before.Phase != v1alpha1.PhaseFailed
	code, known := codeOf(next.Status)
	_, knew := codeOf(before)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case known && (first || !knew):
		m.failures.WithLabelValues(code).Inc()
		delete(m.unknown, next.Spec.JobRef.UID)
	case first:
		m.unknown[next.Spec.JobRef.UID] = m.clock.Now()
	}
}

// codeOf returns the code of a failure, and whether there is one.
func codeOf(status v1alpha1.JobReportStatus) (string, bool) {
	if status.Failure == nil || status.Failure.Code == "" {
		return codes.Unknown, false
	}
	return status.Failure.Code, status.Failure.Code != codes.Unknown
}

// times measures how long the job took to where it has come since the previous record.
func (m *Metrics) times(previous *v1alpha1.JobReport, next v1alpha1.JobReport) {
	news := report.NewEntries(previous, next)
	var began time.Time
	placed, ran := false, false
	for _, entry := range next.Status.Timeline {
		switch entry.Event {
		case codes.Created, codes.Resumed:
			began, placed, ran = entry.Time.Time, false, false
			continue
		case codes.PodsPlaced, string(v1alpha1.PhaseRunning):
		default:
			continue
		}
		isNew := slices.Contains(news, entry) && !began.IsZero()
		switch took := entry.Time.Sub(began).Seconds(); {
		case entry.Event == codes.PodsPlaced:
			// Later ones are those of a TrainJob that JobSet has started again.
			if isNew && !placed {
				m.gangWait.Observe(took)
			}
			placed = true
		case entry.Event == string(v1alpha1.PhaseRunning):
			// Later ones are that it runs again after the loss of a pod.
			if isNew && !ran {
				m.start.Observe(took)
			}
			ran = true
		}
	}
}

func (m *Metrics) consumed(namespace string, before, now *v1alpha1.Consumption) {
	if now == nil {
		return
	}
	if before == nil {
		before = &v1alpha1.Consumption{}
	}
	m.cpu.WithLabelValues(namespace).Add(float64(max(0, now.CPUCoreSeconds-before.CPUCoreSeconds)))
	m.memory.WithLabelValues(namespace).Add(float64(max(0, now.MemoryGiBSeconds-before.MemoryGiBSeconds)))
	for resource, seconds := range now.GPUSeconds {
		// Users may request what no node has.
		if added := seconds - before.GPUSeconds[resource]; added > 0 {
			m.devices.of(namespace, resource).Add(float64(added))
		}
	}
}

// seenNow notes that there is a record of a namespace, and returns the label of the namespace.
func (m *Metrics) seenNow(namespace string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.see(namespace, m.clock.Now())
}

// see is seenNow for callers that hold the lock.
func (m *Metrics) see(namespace string, now time.Time) string {
	if _, known := m.seen[namespace]; !known && len(m.seen) >= maxNamespaces {
		return others
	}
	m.seen[namespace] = now
	return namespace
}
