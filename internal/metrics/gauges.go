package metrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/report"
)

const (
	// maxInfo is how many jobs are shown by name.
	maxInfo = 500
	// recent is how long a job is shown after its end.
	recent = time.Hour
	// maxQueues and maxQuotas are how many queues and resources of quotas have series of their own.
	maxQueues, maxQuotas = 500, 2000
)

var (
	runningDesc      = gauge("training_operator_mpijob_running_total", "MPIJobs whose launcher and all of whose workers run.", "namespace")
	queuedDesc       = gauge("training_operator_mpijob_queued_total", "MPIJobs that wait: for a queue, or until all of their pods have a machine. Suspended ones are not among them.", "namespace")
	jobsRunningDesc  = gauge("mpijob_jobs_running", "MPI jobs of all kinds whose launcher and all of whose workers run.", "namespace", "kind")
	jobsQueuedDesc   = gauge("mpijob_jobs_queued", "MPI jobs of all kinds that wait: for a queue, or until all of their pods have a machine. Suspended ones are not among them.", "namespace", "kind")
	findingsDesc     = gauge("mpijob_findings", "Unfinished MPI jobs by the codes of the findings in their JobReport, each code once per job; jobs without a finding are not among them.", "namespace", "code")
	queueWaitingDesc = gauge("mpijob_queue_waiting_jobs", "MPI jobs that wait in a queue of Kueue.", "namespace", "queue")
	queueOldestDesc  = gauge("mpijob_queue_oldest_wait_seconds", "For how long the job has waited that has waited longest in a queue of Kueue.", "namespace", "queue")
	startOldestDesc  = gauge("mpijob_start_oldest_wait_seconds", "For how long the MPI job has been in a state that has been longest, of all unfinished ones: Starting (phases Pending and Initializing) or GangScheduling.", "namespace", "kind", "state")
	quotaDesc        = gauge("mpijob_quota_used_ratio", "Used share of a limit of a ResourceQuota, from 0 to 1, in namespaces with MPI jobs; limits of 0 are left out.", "namespace", "quota", "resource")
	expectedDesc     = gauge("mpijob_slots_expected", "Slots of the workers in the launchers' lists of hosts, of unfinished jobs and of those that ended within the last hour; told by the agent at the end of a launcher's run.", "namespace")
	foundDesc        = gauge("mpijob_slots_found", "Slots of those workers that the launchers started anything on, of the same jobs as mpijob_slots_expected.", "namespace")
	infoDesc         = gauge("mpijob_info", "Always 1: what a job is and the phase it is in, for unfinished jobs and those that ended within the last hour, 500 at most.", "namespace", "name", "kind", "implementation", "phase")
	omittedDesc      = gauge("mpijob_info_omitted", "Jobs that mpijob_info leaves out because it has too many, those that ended first.")
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
	for _, desc := range []*prometheus.Desc{runningDesc, queuedDesc, jobsRunningDesc, jobsQueuedDesc, findingsDesc, queueWaitingDesc, queueOldestDesc, startOldestDesc, quotaDesc, expectedDesc, foundDesc, infoDesc, omittedDesc} {
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
	all := tallies{namespaces: map[string]*slots{}, jobs: map[[2]string]*states{}, findings: map[[2]string]float64{}, queues: map[[2]string]*line{}, starts: map[[3]string]time.Duration{}, queueLabels: m.admissions.labels}
	var shown []*v1alpha1.JobReport
	for i := range records {
		job := &records[i]
		if !isMPI(job) {
			continue
		}
		end := job.Status.CompletionTime
		current := end == nil || now.Sub(end.Time) < recent
		if current {
			shown = append(shown, job)
		}
		all.add(job, m.labelOf(job.Namespace), current, now)
	}
	set := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	all.collect(set)
	m.collectQuotas(set, all.namespaces)
	shown = latestOfEach(shown)
	for _, job := range shown[:min(len(shown), maxInfo)] {
		set(infoDesc, 1, job.Namespace, job.Spec.JobRef.Name, job.Spec.JobRef.Kind, job.Status.MPI.Implementation, string(job.Status.Phase))
	}
	set(omittedDesc, float64(max(0, len(shown)-maxInfo)))
}

// tallies are sums over jobs.
type tallies struct {
	namespaces map[string]*slots
	// jobs are by namespace and kind, findings by namespace and code, queues by namespace and queue, and starts, the longest ones, by
	// namespace, kind and state.
	jobs     map[[2]string]*states
	findings map[[2]string]float64
	queues   map[[2]string]*line
	starts   map[[3]string]time.Duration
	// queueLabels returns the labels of a queue, which are those of its admissions.
	queueLabels func(namespace, queue string) [2]string
}

type slots struct{ expected, found float64 }

type states struct{ running, queued float64 }

// line is the jobs that wait in a queue.
type line struct {
	jobs   float64
	oldest time.Duration
}

// entry returns the value of a key, which is added if it is missing.
func entry[K comparable, V any](in map[K]*V, key K) *V {
	if in[key] == nil {
		in[key] = new(V)
	}
	return in[key]
}

func (t tallies) add(job *v1alpha1.JobReport, namespace string, current bool, now time.Time) {
	of := entry(t.jobs, [2]string{namespace, job.Spec.JobRef.Kind})
	found := entry(t.namespaces, namespace)
	if current {
		found.expected += float64(job.Status.MPI.SlotsExpected)
		found.found += float64(job.Status.MPI.SlotsFound)
	}
	switch {
	case job.Status.Phase == v1alpha1.PhaseRunning:
		of.running++
	case waits(job):
		of.queued++
	}
	if job.Status.CompletionTime != nil {
		return
	}
	for code := range codesOf(job.Status.Findings) {
		t.findings[[2]string{namespace, code}]++
	}
	if state, since := startOf(job); state != "" {
		key := [3]string{namespace, job.Spec.JobRef.Kind, state}
		t.starts[key] = max(t.starts[key], now.Sub(since))
	}
	name := queueOf(job)
	if name == "" {
		return
	}
	queue := entry(t.queues, t.queueLabels(namespace, name))
	queue.jobs++
	if since := job.Status.Scheduling.Since; since != nil {
		queue.oldest = max(queue.oldest, now.Sub(since.Time))
	}
}

// codesOf returns the codes of findings, without those that concern an earlier attempt only.
func codesOf(findings []v1alpha1.Finding) map[string]bool {
	found := map[string]bool{}
	for i, finding := range findings {
		if i == 0 || !report.IsOfEarlierAttempt(finding) {
			found[finding.Code] = true
		}
	}
	return found
}

// starting is the state of a job whose pods are created and start.
const starting = "Starting"

// startOf returns the state of a job whose pods do not all run yet, and since when it is in this state; empty for other jobs.
func startOf(job *v1alpha1.JobReport) (state string, since time.Time) {
	stateOf := func(phase v1alpha1.Phase) string {
		switch phase {
		case v1alpha1.PhasePending, v1alpha1.PhaseInitializing:
			return starting
		case v1alpha1.PhaseGangScheduling:
			return string(phase)
		}
		return ""
	}
	if state = stateOf(job.Status.Phase); state == "" {
		return "", since
	}
	// Phases of the same state follow each other.
	var other time.Time
	for _, t := range job.Status.PhaseTimes {
		if stateOf(t.Phase) != state && t.Since.After(other) {
			other = t.Since.Time
		}
	}
	for _, t := range job.Status.PhaseTimes {
		if stateOf(t.Phase) == state && !t.Since.Time.Before(other) && (since.IsZero() || t.Since.Time.Before(since)) {
			since = t.Since.Time
		}
	}
	if since.IsZero() {
		return "", since
	}
	return state, since
}

func (t tallies) collect(set func(desc *prometheus.Desc, value float64, labels ...string)) {
	for namespace, s := range t.namespaces {
		set(expectedDesc, s.expected, namespace)
		set(foundDesc, s.found, namespace)
	}
	for key, s := range t.jobs {
		set(jobsRunningDesc, s.running, key[:]...)
		set(jobsQueuedDesc, s.queued, key[:]...)
		if key[1] == mpiJobKind {
			set(runningDesc, s.running, key[0])
			set(queuedDesc, s.queued, key[0])
		}
	}
	for key, jobs := range t.findings {
		set(findingsDesc, jobs, key[:]...)
	}
	for key, queue := range t.queues {
		set(queueWaitingDesc, queue.jobs, key[:]...)
		set(queueOldestDesc, queue.oldest.Seconds(), key[:]...)
	}
	for key, longest := range t.starts {
		set(startOldestDesc, longest.Seconds(), key[:]...)
	}
}

// Quota is how much of a limit of a ResourceQuota is used.
type Quota struct {
	Namespace, Name, Resource string
	// Ratio is the used share, from 0 to 1, or more if the limit was lowered.
	Ratio float64
}

// collectQuotas shows the quotas of namespaces with jobs.
func (m *Metrics) collectQuotas(set func(desc *prometheus.Desc, value float64, labels ...string), namespaces map[string]*slots) {
	if m.quotas == nil {
		return
	}
	quotas := slices.DeleteFunc(slices.Clone(m.quotas()), func(q Quota) bool { return namespaces[q.Namespace] == nil })
	// The most used ones are shown if there are too many.
	slices.SortFunc(quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Resource, b.Resource))
	})
	for _, q := range quotas[:min(len(quotas), maxQuotas)] {
		set(quotaDesc, q.Ratio, q.Namespace, q.Name, q.Resource)
	}
}

// labelOf returns the label of a namespace, which tidy has seen.
func (m *Metrics) labelOf(namespace string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.seen[namespace]; known {
		return namespace
	}
	return others
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
	begun := map[[2]string]bool{}
	for i := range records {
		namespace, kind := m.see(records[i].Namespace, now), records[i].Spec.JobRef.Kind
		if !isMPI(&records[i]) {
			continue
		}
		m.beginAdmissions(namespace, &records[i])
		if begun[[2]string{namespace, kind}] {
			continue
		}
		begun[[2]string{namespace, kind}] = true
		m.beginUse(namespace)
		m.jobs.begin([]string{namespace, kind})
		if kind == mpiJobKind {
			m.mpiJobs.begin([]string{namespace})
		}
	}
	for namespace, last := range m.seen {
		if now.Sub(last) < remembered {
			continue
		}
		delete(m.seen, namespace)
		gone := prometheus.Labels{"namespace": namespace}
		for _, counter := range slices.Concat(m.mpiJobs.counters(), m.jobs.counters(), []*prometheus.CounterVec{m.cpu, m.memory}) {
			counter.DeletePartialMatch(gone)
		}
		m.admissions.forget(namespace)
		m.devices.forget(namespace)
		m.mpiJobs.duration.DeletePartialMatch(gone)
		m.jobs.duration.DeletePartialMatch(gone)
	}
}
