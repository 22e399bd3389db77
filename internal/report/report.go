// Package report creates the record of a job, a JobReport, from what was observed and judged. It keeps what an earlier
// record contains, although pods and operators are replaced.
package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/startup"
	"opendatahub.io/mpijob/internal/times"
)

// Make returns a job's record. The previous one is nil the first time; it is not changed, and the new one keeps its
// metadata, so that it can be written in its place. Findings are those of diagnose.Job for the same observation.
func Make(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome, findings []diagnose.Finding, previous *v1alpha1.JobReport) v1alpha1.JobReport {
	m := maker{job: job, seen: seen, evidence: evidence, outcome: outcome, found: findings, now: second(seen.Now)}
	var report v1alpha1.JobReport
	if previous != nil {
		report = *previous.DeepCopy()
		m.before = previous.Status
	}
	report.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "JobReport"}
	report.Namespace, report.Name = job.Namespace, job.ReportName()
	for name, value := range job.ReportLabels() {
		metav1.SetMetaDataLabel(&report.ObjectMeta, name, value)
	}
	report.Spec.JobRef = v1alpha1.JobReference{APIVersion: job.APIVersion, Kind: job.Kind, Name: job.Name, UID: job.UID}

	status := &report.Status
	status.Phase, status.Reason, status.Message = outcome.Phase, phrase.Limit(outcome.Reason, maxReason), phrase.Limit(outcome.Message, maxMessage)
	m.times(status)
	status.ObservedGeneration = job.Generation
	status.Run = m.run()
	status.MPI.Implementation, status.MPI.SlotsPerWorker, status.MPI.Ranks = string(job.Implementation), job.SlotsPerWorker, job.Ranks()
	m.setHosts(&status.MPI)
	status.MPI.Binding = cmp.Or(m.binding(), status.MPI.Binding)
	status.Encryption = m.encryption()
	status.Startup = m.startup(*status)
	status.Workers = m.workers()
	status.Pods, status.PodsOmitted = m.pods(), 0
	status.Scheduling = m.scheduling()
	m.waits(status)
	status.Waited = m.waited(*status)
	status.Findings, status.Failure = m.findings(findings)
	if len(status.Findings) > 0 && status.Findings[0].Code != codes.Unknown && outcome.Phase != v1alpha1.PhaseSucceeded {
		// The cause is more specific than the reason that Kubernetes gives.
		status.Message = status.Findings[0].Summary
		if outcome.Finish == nil && IsOfEarlierAttempt(status.Findings[0]) {
			status.Message = phrase.Limit(sentences(outcome.Message, "Last attempt: "+status.Findings[0].Summary), maxMessage)
		}
	}
	status.Timeline = m.timeline(*status)
	if outcome.Finish == nil && len(job.Ignored) > 0 && outcome.Reason != codes.ValidationError {
		// After the timeline: it is not the cause of anything.
		status.Findings = append(status.Findings, invalidChange(job))
	}
	if finding, slow := startup.Finding(job.Namespace, status.Startup); slow && (outcome.Phase == v1alpha1.PhaseRunning || outcome.Phase == v1alpha1.PhaseSucceeded) {
		// After the timeline: the job is healthy.
		status.Findings = append(status.Findings, finding)
	}
	adaptRemedies(&report, m.lasting())
	status.Consumption = m.consumption()
	status.Usage = m.usage()
	var noLibrary bool
	status.Profile, noLibrary = m.profile()
	if finding, missing := m.profileMissing(*status, noLibrary); missing {
		// After the timeline, too.
		status.Findings = append(status.Findings, finding)
	}
	if finding, found := m.sharedNodes(*status); found {
		status.Findings = append(status.Findings, finding)
	}
	status.Training = m.training()
	status.EndEstimate = m.endEstimate(*status)
	if m.evidence.KeptLogs != nil {
		status.Logs = m.evidence.KeptLogs
	}
	status.Curves = m.before.Curves
	if m.evidence.Curves != nil {
		status.Curves = m.evidence.Curves
	}
	fit(status)
	return report
}

// often is how often figures are written that change all the time.
const often = 30 * time.Second

// Changed reports whether a record differs from the previous one so that it must be written: in anything but figures
// that grow by themselves. Progress of training counts twice a minute, what pods hold once an hour, and the duration of a
// wait not at all (see Outdated). Nor does another estimate (see Reestimated).
func Changed(previous *v1alpha1.JobReport, next v1alpha1.JobReport) bool {
	if previous == nil {
		return true
	}
	old, now := previous.Status, next.Status
	// A thousand pods are most of a record; reflection would take milliseconds for them, in every reconcile.
	if advanced(old.Training, now.Training, often) || !slices.EqualFunc(old.Pods, now.Pods, samePod) {
		return true
	}
	if old.Scheduling != nil && now.Scheduling != nil {
		waits := *now.Scheduling
		waits.ObservedAt, waits.WaitedSeconds = old.Scheduling.ObservedAt, old.Scheduling.WaitedSeconds
		// The estimates of many jobs change with each one that starts or ends (see Reestimated).
		if waits.Estimate != nil && old.Scheduling.Estimate != nil {
			waits.Estimate = old.Scheduling.Estimate
		}
		now.Scheduling = &waits
	}
	if grownFor(old.Consumption, now.Consumption) >= time.Hour || isCountedAgain(old.Consumption, now.Consumption) || released(old.Consumption, now.Consumption) {
		return true
	}
	old.Pods, now.Pods = nil, nil
	// At the end, everything is written.
	if usedMore(old.Usage, now.Usage) || now.CompletionTime != nil && !apiequality.Semantic.DeepEqual(old.Usage, now.Usage) {
		return true
	}
	if grewLonger(old.Curves, now.Curves) || now.CompletionTime != nil && !apiequality.Semantic.DeepEqual(old.Curves, now.Curves) {
		return true
	}
	old.Curves, now.Curves = nil, nil
	old.Consumption, old.Training, now.Consumption, now.Training = nil, nil, nil, nil
	if old.EndEstimate != nil && now.EndEstimate != nil && old.EndEstimate.Reason == now.EndEstimate.Reason {
		// An estimate changes with the progress.
		old.EndEstimate, now.EndEstimate = nil, nil
	}
	old.Usage, now.Usage = nil, nil
	// It is reported with the usage.
	old.Profile, now.Profile = nil, nil
	return !apiequality.Semantic.DeepEqual(old, now) || !apiequality.Semantic.DeepEqual(previous.Labels, next.Labels) || previous.Spec != next.Spec
}

// Reestimated reports whether the estimate of a waiting job changed since it was written, half a minute ago or more.
func Reestimated(previous *v1alpha1.JobReport, next v1alpha1.JobReport) bool {
	old, now := previous.Status.Scheduling, next.Status.Scheduling
	if old == nil || now == nil || !isDue(old.ObservedAt.Time, now.ObservedAt.Time, often) {
		return false
	}
	return !apiequality.Semantic.DeepEqual(old.Estimate, now.Estimate)
}

// confirmed is how often the unchanged record of a waiting job is written.
const confirmed = 5 * time.Minute

// Outdated reports whether an unchanged record of a waiting job was written some minutes ago: readers need to know that it
// is current.
func Outdated(previous *v1alpha1.JobReport, next v1alpha1.JobReport) bool {
	old, now := previous.Status.Scheduling, next.Status.Scheduling
	return old != nil && now != nil && isDue(old.ObservedAt.Time, now.ObservedAt.Time, confirmed)
}

// isDue reports whether an interval has passed since a figure was written. A figure from the future was written before the clock
// was set back: it is due, or it would stay until the clock has caught up.
func isDue(written, now time.Time, interval time.Duration) bool {
	return now.Sub(written) >= interval || isSetBack(written, now)
}

// isSetBack reports whether the clock was set back since a time was recorded. Smaller steps are differences between the clocks of
// two replicas.
func isSetBack(recorded, now time.Time) bool { return recorded.Sub(now) > 5*time.Minute }

// grownFor is for how long a job has held something since it was last told what; 0 where it holds nothing.
func grownFor(old, now *v1alpha1.Consumption) time.Duration {
	if old == nil || now == nil || sameTotals(*old, *now) {
		return 0
	}
	return now.Until.Sub(old.Until.Time)
}

// isCountedAgain reports whether consumption is counted from an earlier time than before, since the clock was set back.
func isCountedAgain(old, now *v1alpha1.Consumption) bool {
	return old != nil && now != nil && isSetBack(old.Until.Time, now.Until.Time)
}

// released reports whether pods held something and do not any more.
func released(old, now *v1alpha1.Consumption) bool { return holds(old) && !holds(now) }

func samePod(a, b v1alpha1.PodStatus) bool {
	same := (a.ExitCode == nil) == (b.ExitCode == nil) && (a.ExitCode == nil || *a.ExitCode == *b.ExitCode)
	a.ExitCode, b.ExitCode = nil, nil
	return same && a == b
}

// advanced reports whether training printed new progress, long enough after the last time.
func advanced(old, now *v1alpha1.Training, often time.Duration) bool {
	switch {
	case now == nil:
		return false
	case old == nil:
		return true
	}
	values := *now
	values.At = old.At
	return values != *old && isDue(old.At.Time, now.At.Time, often)
}

// curvesOften is how often curves are written. It is less than the time between two reads of a log, so that the lines of each are kept.
const curvesOften = 20 * time.Second

// grewLonger reports whether curves are to be written: they are new, or have grown for long enough.
func grewLonger(old, now *v1alpha1.TrainingCurves) bool {
	switch {
	case now == nil:
		return false
	case old == nil:
		return true
	}
	return now.Until.After(old.Until.Time) && isDue(old.Until.Time, now.Until.Time, curvesOften)
}

// Settled reports whether the record of a finished job is complete, so that no more evidence is needed: its cause is
// known, with a log and the end of the launcher's pod; or there has been time enough to find these.
func Settled(previous *v1alpha1.JobReport, now time.Time) bool {
	const patience = 2 * time.Minute
	switch {
	case previous == nil || previous.Status.CompletionTime == nil:
		return false
	case previous.Status.Phase != v1alpha1.PhaseFailed:
		return true
	}
	failure := previous.Status.Failure
	found := failure != nil && !codes.IsEcho(failure.Code) && len(failure.LogTail) > 0 && !slices.ContainsFunc(previous.Status.Pods, func(pod v1alpha1.PodStatus) bool {
		return pod.Name == failure.Pod && pod.Role == string(mpi.RoleLauncher) && pod.ExitCode == nil && pod.Phase == string(corev1.PodRunning)
	})
	return found || now.Sub(previous.Status.CompletionTime.Time) >= patience
}

// NewEntries returns the entries of a record's timeline that the previous record does not contain. They become events.
func NewEntries(previous *v1alpha1.JobReport, next v1alpha1.JobReport) []v1alpha1.TimelineEntry {
	if previous == nil {
		return next.Status.Timeline
	}
	var news []v1alpha1.TimelineEntry
	for _, entry := range next.Status.Timeline {
		if !slices.ContainsFunc(previous.Status.Timeline, func(old v1alpha1.TimelineEntry) bool {
			return old.Event == entry.Event && old.Time.Equal(&entry.Time) && old.Detail == entry.Detail
		}) {
			news = append(news, entry)
		}
	}
	return news
}

// maker makes the parts of a record.
type maker struct {
	job      mpi.Job
	seen     jobstate.Observed
	evidence jobstate.Evidence
	outcome  jobstate.Outcome
	// found are the findings of this observation alone.
	found []diagnose.Finding
	// before is the status of the previous record, empty if there is none.
	before v1alpha1.JobReportStatus
	now    time.Time
}

// times sets when the job came to its phases.
func (m maker) times(status *v1alpha1.JobReportStatus) {
	if status.StartTime == nil {
		status.StartTime = at(m.began())
	}
	if status.RunningTime == nil && (m.outcome.Phase == v1alpha1.PhaseRunning || m.outcome.Phase == v1alpha1.PhaseSucceeded) {
		status.RunningTime = at(m.firstRan())
	}
	if finish := m.outcome.Finish; finish != nil && status.CompletionTime == nil {
		status.CompletionTime = at(times.Later(finish.At, status.StartTime.Time))
	}
	status.PhaseTimes = slices.Clone(m.before.PhaseTimes)
	from := m.before.Phase
	for _, entry := range m.entered(*status) {
		status.PhaseTimes = enter(status.PhaseTimes, from, entry.phase, entry.at)
		from = entry.phase
	}
}

// RanSince returns when all pods of a job last began to run together, as its record has it; zero if they never have.
func RanSince(record *v1alpha1.JobReport) time.Time {
	if record == nil {
		return time.Time{}
	}
	return ranSince(record.Status)
}

func ranSince(status v1alpha1.JobReportStatus) time.Time {
	for _, t := range status.PhaseTimes {
		if t.Phase == v1alpha1.PhaseRunning {
			return t.Since.Time
		}
	}
	return time.Time{}
}

// entry is that a job came to a phase.
type entry struct {
	phase v1alpha1.Phase
	at    time.Time
}

// entered returns the phases that the job entered since the last record, with their times as far as they are known: the
// operator may have been stopped. A job that ran and ended between two reconciles was running, too.
func (m maker) entered(status v1alpha1.JobReportStatus) []entry {
	var entries []entry
	if m.before.RunningTime == nil && status.RunningTime != nil && status.Phase != v1alpha1.PhaseRunning {
		entries = append(entries, entry{v1alpha1.PhaseRunning, status.RunningTime.Time})
	}
	if status.Phase == m.before.Phase && !m.ranAgain() {
		return entries
	}
	when := m.now
	switch {
	case status.CompletionTime != nil:
		when = status.CompletionTime.Time
	case status.Phase == v1alpha1.PhaseRunning:
		when = m.ran()
	}
	return append(entries, entry{status.Phase, when})
}

// ranAgain reports whether the launcher of a job that runs was started again since all of its pods last began to run. Its container may
// be started again in its pod within a second, which leaves the phase unchanged.
func (m maker) ranAgain() bool {
	n := len(m.seen.LauncherPods)
	if n == 0 || m.outcome.Phase != v1alpha1.PhaseRunning {
		return false
	}
	// A time after now is of a node whose clock differs.
	started := podstatus.LatestStart(m.seen.LauncherPods[n-1])
	return started.After(ranSince(m.before)) && !started.After(m.now)
}

// enter closes the phase that a job was in and opens the one that it comes to. A clock that went back makes none last
// less than no time.
func enter(phases []v1alpha1.PhaseTime, from, to v1alpha1.Phase, when time.Time) []v1alpha1.PhaseTime {
	place := func(phase v1alpha1.Phase) int {
		return slices.IndexFunc(phases, func(t v1alpha1.PhaseTime) bool { return t.Phase == phase })
	}
	if i := place(from); i >= 0 {
		when = times.Later(when, phases[i].Since.Time)
		phases[i].Seconds += int64(when.Sub(phases[i].Since.Time) / time.Second)
	}
	if i := place(to); i >= 0 {
		phases[i].Since = *at(when)
		return phases
	}
	return append(phases, v1alpha1.PhaseTime{Phase: to, Since: *at(when)})
}

// began is the earliest time that anything of the job is known from.
func (m maker) began() time.Time {
	first := m.now
	if m.seen.Service != nil {
		first = times.Earlier(first, m.seen.Service.CreationTimestamp.Time)
	}
	for _, pod := range m.seen.AllPods() {
		first = times.Earlier(first, pod.CreationTimestamp.Time)
	}
	return first
}

// ran returns when the last of the launcher and the existing workers started to run, or now if that is unknown.
func (m maker) ran() (when time.Time) {
	for _, pod := range m.seen.CurrentPods(m.job.Workers.Count) {
		when = times.Later(when, podstatus.LatestStart(pod))
	}
	return times.Earlier(m.now, when)
}

// firstRan returns when the launcher and the existing workers first ran together, as far as their pods have it, or now if that is unknown.
func (m maker) firstRan() time.Time {
	var workers time.Time
	for _, worker := range m.seen.Workers {
		if worker.Index < int(m.job.Workers.Count) {
			workers = times.Later(workers, podstatus.FirstStart(worker.Pod))
		}
	}
	var launcher time.Time
	for _, try := range m.seen.LauncherPods {
		launcher = podstatus.FirstStart(try)
		if ended := podstatus.EndedAt(try); !launcher.IsZero() && (ended.IsZero() || !ended.Before(workers)) {
			break
		}
	}
	return times.Earlier(m.now, times.Later(launcher, workers))
}

func (m maker) workers() v1alpha1.WorkersStatus {
	tally := m.outcome.Workers
	w := v1alpha1.WorkersStatus{Wanted: tally.Wanted, Ready: tally.Ready, Running: tally.Running, Succeeded: tally.Succeeded, Failed: tally.Failed}
	if m.outcome.Finish != nil {
		// A finished job's outcome counts no pods, and its pods may be gone.
		for _, worker := range m.seen.Workers {
			switch worker.Pod.Status.Phase {
			case "Succeeded":
				w.Succeeded++
			case "Failed":
				w.Failed++
			}
		}
		w.Succeeded, w.Failed = max(w.Succeeded, m.before.Workers.Succeeded), max(w.Failed, m.before.Workers.Failed)
	}
	if w.Summary = fmt.Sprintf("%d/%d", w.Ready, w.Wanted); m.outcome.Finish != nil {
		w.Summary = finishedWorkers(w.Wanted)
	}
	return w
}

// finishedWorkers summarizes the workers of a finished job: how many are ready is not of interest any more.
func finishedWorkers(wanted int32) string { return strconv.Itoa(int(wanted)) }

func (m maker) training() *v1alpha1.Training {
	told := m.evidence.Training
	if told == (v1alpha1.Training{}) {
		return m.before.Training.DeepCopy()
	}
	training := v1alpha1.Training{}
	if m.before.Training != nil {
		training = *m.before.Training
	}
	for _, value := range []struct {
		into *string
		told string
	}{
		{&training.Epoch, told.Epoch},
		{&training.Step, told.Step},
		{&training.Loss, told.Loss},
		{&training.Accuracy, told.Accuracy},
		{&training.Progress, told.Progress},
	} {
		if value.told != "" {
			*value.into = phrase.Limit(value.told, maxValue)
		}
	}
	if training.At = *at(told.At.Time); told.At.IsZero() {
		training.At = *at(m.now)
	}
	return &training
}

// setHosts sets what the launcher's agent reported about hosts at the end of its latest run. A run without an agent
// changes nothing.
func (m maker) setHosts(status *v1alpha1.MPIStatus) {
	for summary := range m.launcherSummaries() {
		status.SlotsExpected, status.SlotsFound = summary.SlotsExpected, summary.SlotsFound
		status.ConnectMilliseconds, status.InitMilliseconds = milliseconds(summary.ConnectSeconds), milliseconds(summary.InitSeconds)
		return
	}
}

// launcherSummaries yields what the launcher's agent reported at the end of its runs, the latest first.
func (m maker) launcherSummaries() iter.Seq[agentapi.Summary] { return launcherSummaries(m.seen) }

// Sessions returns the sessions of the launcher's runs that have ended, the latest run first.
func Sessions(seen jobstate.Observed) (runs []agentapi.Sessions) {
	for summary := range launcherSummaries(seen) {
		if summary.Sessions != nil {
			runs = append(runs, *summary.Sessions)
		}
	}
	return runs
}

func launcherSummaries(seen jobstate.Observed) iter.Seq[agentapi.Summary] {
	return func(yield func(agentapi.Summary) bool) {
		for _, try := range slices.Backward(seen.LauncherPods) {
			for _, c := range try.Status.ContainerStatuses {
				for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
					if ended == nil {
						continue
					}
					if summary, is := agentapi.ParseSummary(ended.Message); is && summary.Role == agentapi.RoleLauncher && !yield(summary) {
						return
					}
				}
			}
		}
	}
}

// startup returns the parts of the job's start, as far as they are known by now.
func (m maker) startup(status v1alpha1.JobReportStatus) *v1alpha1.Startup {
	if m.outcome.Suspended() {
		return m.before.Startup
	}
	var created time.Time
	if m.before.Startup == nil && !slices.ContainsFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return t.Phase == v1alpha1.PhaseSuspended }) {
		created = status.StartTime.Time
	}
	return startup.Merge(m.before.Startup, startup.Measure(m.job, m.seen, m.evidence, m.launch(), created))
}

// launch returns how the run of the latest launcher began, as its agent reported at its end. An earlier launcher may be of an earlier start.
func (m maker) launch() (launch startup.Launch) {
	latest := m.seen
	latest.LauncherPods = latest.LauncherPods[max(0, len(latest.LauncherPods)-1):]
	for summary := range launcherSummaries(latest) {
		launch.ConnectMilliseconds, launch.InitMilliseconds = milliseconds(summary.ConnectSeconds), milliseconds(summary.InitSeconds)
		if summary.Started > 0 && summary.Sessions != nil {
			launch.Started, launch.Connecting = time.UnixMilli(summary.Started), time.UnixMilli(summary.Sessions.First)
		}
		break
	}
	return launch
}

func milliseconds(seconds float64) int64 { return int64(seconds*1000 + 0.5) }

// second is a time as the API keeps it. Without that a record would differ from itself once it is read again.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: second(t)} }
