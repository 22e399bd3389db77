package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// timeline adds what happened since the last record. An entry is added when a fact is observed for the first time. An
// operator that restarts does not add it again, because the record contains it.
func (m maker) timeline(status v1alpha1.JobReportStatus) []v1alpha1.TimelineEntry {
	t := timeline{entries: slices.Clone(m.before.Timeline), now: m.now}
	if status.CompletionTime != nil {
		// What was not observed happened before the end.
		t.now = times.Earlier(m.now, status.CompletionTime.Time)
	}
	if len(t.entries) == 0 {
		t.enter(status.StartTime.Time, codes.Created, map[string]string{
			"kind": m.job.Kind, "job": m.job.Name, "workers": phrase.Count(m.job.Workers.Count, "worker"), "by": m.createdBy(),
		})
	}
	if m.before.CompletionTime != nil {
		return t.entries
	}
	if change := m.job.Authors.Change; change.User != "" && change.Generation > m.before.ObservedGeneration {
		t.enter(m.now, codes.Changed, map[string]string{"by": by(change.User)})
	}
	const suspended = v1alpha1.PhaseSuspended
	if change := m.unrecordedChange(); change.Manager != "" && !change.OnlySuspend && (m.before.Phase == suspended) == (status.Phase == suspended) {
		t.enter(change.At, codes.Changed, map[string]string{"by": unrecorded(change.Manager)})
	}
	if m.before.Phase == suspended && status.Phase != suspended {
		t.enter(m.now, codes.Resumed, map[string]string{"by": m.switchedBy()})
	}
	if status.Phase != suspended {
		m.starting(&t)
	}
	m.launched(&t)
	m.trainingStarted(&t)
	m.putBack(&t, status.Scheduling)
	m.preempted(&t)
	entered := m.entered(status)
	for i, entry := range entered {
		if i == len(entered)-1 {
			// Before the last phase, and after phases that nobody observed.
			m.enterFindings(&t, status.Findings)
		}
		message := status.Message
		switch {
		case entry.phase != status.Phase:
			message = ""
		case entry.phase == suspended:
			message = sentences(m.switchedBy(), message)
		case m.outcome.Finish == nil:
			// What is wrong besides has entries of its own.
			message = m.outcome.Message
		}
		if isPhaseEntered[entry.phase] {
			t.add(entry.at, string(entry.phase), message)
		}
	}
	if len(entered) == 0 {
		m.enterFindings(&t, status.Findings)
	}
	return t.entries
}

// switchedBy returns who last suspended or resumed the job, or "" if that is unknown or the job was created in this
// state. In a queue, the user is the one who changed mpi.AnnotationSuspendInQueue. While a job waits there, the queue sets its field, and
// a user who deactivated or activated its Workload is unknown.
func (m maker) switchedBy() string {
	if m.seen.Queue != nil && m.isOnRequest() {
		return by(m.job.Authors.SuspendInQueue)
	}
	if m.seen.Queue != nil && !m.seen.Queue.Admitted {
		return ""
	}
	if user := m.job.Authors.Suspend.User; user != "" {
		return by(user)
	}
	return unrecorded(m.unrecordedChange().Manager)
}

// isOnRequest reports whether mpi.AnnotationSuspendInQueue suspends the job, or suspended the one that is resumed now.
func (m maker) isOnRequest() bool {
	if m.before.Phase != v1alpha1.PhaseSuspended {
		return m.job.SuspendedInQueue
	}
	for _, entry := range slices.Backward(m.before.Timeline) {
		if entry.Event == string(v1alpha1.PhaseSuspended) {
			return strings.Contains(entry.Detail, jobstate.SuspendedOnRequest)
		}
	}
	return false
}

// createdBy returns the user who created the job, or the field manager with which an unrecorded user did.
func (m maker) createdBy() string {
	if user := m.job.Authors.Creator; user != "" {
		return by(user)
	}
	return unrecorded(m.job.Authors.CreatedWith)
}

// unrecordedChange returns the last change of the job if it happened since the previous record and its user was not recorded. A manager
// that wrote before the last known action was not the one that changed the job.
func (m maker) unrecordedChange() mpi.UnrecordedChange {
	change := m.job.Authors.Unrecorded
	if m.before.ObservedGeneration == 0 || change.Generation <= m.before.ObservedGeneration {
		return mpi.UnrecordedChange{}
	}
	for _, entry := range m.before.Timeline {
		switch entry.Event {
		case codes.Changed, codes.Resumed, string(v1alpha1.PhaseSuspended):
			if change.At.Before(entry.Time.Time) {
				return mpi.UnrecordedChange{}
			}
		}
	}
	return change
}

// unrecorded returns with which field manager a user acted who was not recorded, or "" if that is unknown. The name is quoted, because
// clients choose it.
func unrecorded(manager string) string {
	if manager == "" {
		return ""
	}
	return fmt.Sprintf("The user was not recorded; field manager: %q.", phrase.Limit(manager, maxManager))
}

// by returns who did something, or "" if the user is unknown.
func by(user string) string {
	if user == "" {
		return ""
	}
	return "By " + user + "."
}

// byUser is the user of whom by said it.
func byUser(detail string) string { return strings.TrimSuffix(strings.TrimPrefix(detail, "By "), ".") }

func sentences(first, second string) string {
	return strings.TrimSpace(first + " " + second)
}

// NeedsAction reports whether a user may have to act because of an entry: all except the steps of a healthy job.
func NeedsAction(entry v1alpha1.TimelineEntry) bool {
	switch entry.Event {
	case codes.Created, codes.PodsStarting, codes.PodsPlaced, codes.WorkersReady, codes.LauncherStarted, codes.WorkersFound, codes.MPIInitialized, codes.TrainingStarted, codes.Resumed, codes.Changed, codes.DeletionRequested, codes.JobDeleted:
		return false
	}
	phase := v1alpha1.Phase(entry.Event)
	return !isPhaseEntered[phase] || phase == v1alpha1.PhaseFailed
}

// IsWarning reports whether the event of an entry that a status has just got is a warning: if a user may have to act, and it is no notice.
func IsWarning(entry v1alpha1.TimelineEntry, status v1alpha1.JobReportStatus) bool {
	severity := codes.Lookup(entry.Event).Severity
	// What else was found of a job that failed is less severe than the cause.
	if i := slices.IndexFunc(status.Findings, func(f v1alpha1.Finding) bool { return f.Code == entry.Event }); i >= 0 && status.Phase != v1alpha1.PhaseFailed {
		severity = status.Findings[i].Severity
	}
	return NeedsAction(entry) && severity != v1alpha1.SeverityInfo
}

// isPhaseEntered contains the phases that are entered on a timeline. For Pending and Initializing, their steps are
// entered.
var isPhaseEntered = map[v1alpha1.Phase]bool{
	v1alpha1.PhaseQueued: true, v1alpha1.PhaseGangScheduling: true,
	v1alpha1.PhaseRunning: true, v1alpha1.PhaseSuspended: true,
	v1alpha1.PhaseSucceeded: true, v1alpha1.PhaseFailed: true,
}

// all returns all of a number of things, such as "All 3 pods", or "1 pod".
func all(n int, thing string) string {
	if n == 1 {
		return phrase.Count(n, thing)
	}
	return "All " + phrase.Count(n, thing)
}

// starting enters how far the pods have come, each step once in each start of the job, at the time that they tell. Those
// on their way out may be of the start before.
func (m maker) starting(t *timeline) {
	pods := staying(m.seen.AllPods())
	if len(pods) == 0 {
		return
	}
	made, tries := m.made(), staying(m.seen.LauncherPods)
	if m.isStartedAgain() {
		// The steps are those of a new attempt, which begins with them.
		switch t.restarts = m.seen.Restarts; {
		case len(tries) == 0:
			return
		case len(tries) == 1 && podstatus.Restarts(tries[0]) == 0:
			m.restarts(t, made)
		}
	}
	t.once(made, codes.PodsStarting, phrase.Count(len(pods), "pod")+" created.")
	placed := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	wanted := int(m.job.Workers.Count)
	if placed >= wanted && placed == len(pods) {
		t.once(m.latest(podstatus.ScheduledAt), codes.PodsPlaced, detail(codes.PodsPlaced, map[string]string{"pods": all(placed, "pod")}))
	}
	if wanted > 0 && int(m.outcome.Workers.Ready) >= wanted {
		t.once(m.latest(podstatus.ReadyAt), codes.WorkersReady, detail(codes.WorkersReady, map[string]string{"workers": all(wanted, "worker")}))
	}
	if len(tries) > 0 {
		if first := firstStarted(tries); first.Status.Phase != corev1.PodPending {
			t.once(podstatus.FirstStart(first), codes.LauncherStarted, detail(codes.LauncherStarted, map[string]string{"pod": first.Name}))
		}
		m.restarts(t, podstatus.LatestStart(tries[len(tries)-1]))
	}
}

// firstStarted returns the first of some pods that is known to have started, or the last if none is.
func firstStarted(tries []*corev1.Pod) *corev1.Pod {
	for _, try := range tries {
		if !podstatus.FirstStart(try).IsZero() {
			return try
		}
	}
	return tries[len(tries)-1]
}

// isStartedAgain reports whether JobSet has started all pods of a job with a launcher again.
func (m maker) isStartedAgain() bool { return m.seen.Restarts > 0 && !m.job.Launcher.None }

// made returns when the first of the current pods was created, zero if there is none.
func (m maker) made() (first time.Time) {
	for _, pod := range staying(m.seen.CurrentPods(m.job.Workers.Count)) {
		first = times.Earlier(pod.CreationTimestamp.Time, first)
	}
	return first
}

// launched enters that the launcher of a running job found all workers, and that ranks run there, when its agent reports it. Programs
// of the job can write what agents report: the figures are bounded, as are the times of all entries.
func (m maker) launched(t *timeline) {
	if m.before.RunningTime == nil || m.evidence.Usage == nil || m.evidence.Usage.Launch == nil {
		return
	}
	launch := *m.evidence.Usage.Launch
	enter := func(event codes.Code, at int64, seconds float64) {
		if at <= 0 || seconds <= 0 || seconds >= maxLaunch.Seconds() || m.isStartedAgain() && time.UnixMilli(at).Before(m.made()) {
			return
		}
		took := time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
		t.once(time.UnixMilli(at), event, detail(event, map[string]string{"workers": phrase.Count(m.job.Workers.Count, "worker"), "time": took.String()}))
	}
	enter(codes.WorkersFound, launch.ConnectedAt, launch.ConnectSeconds)
	enter(codes.MPIInitialized, launch.RanksAt, launch.InitSeconds)
}

// maxLaunch is the longest time that the begin of a launch is believed to have taken.
const maxLaunch = 30 * 24 * time.Hour

// trainingStarted enters that the program of a running job printed its first progress.
func (m maker) trainingStarted(t *timeline) {
	if m.before.RunningTime == nil || m.before.Training != nil {
		return
	}
	training := m.training()
	if training == nil {
		return
	}
	first, at := *training, training.At.Time
	// What was read of the log may be all that a short job has printed.
	if lines := m.evidence.CurveLines; len(lines) > 0 {
		first, at = trainingOf(lines[0]), lines[0].Time
	}
	var values []string
	for _, value := range [][2]string{
		{"epoch", first.Epoch}, {"step", first.Step}, {"loss", first.Loss}, {"accuracy", first.Accuracy}, {"progress", first.Progress},
	} {
		if value[1] != "" {
			values = append(values, value[0]+" "+value[1])
		}
	}
	t.once(at, codes.TrainingStarted, detail(codes.TrainingStarted, map[string]string{"progress": strings.Join(values, ", ")}))
}

// trainingOf returns the figures of a line of a log.
func trainingOf(line curves.Line) (training v1alpha1.Training) {
	text := func(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
	if !math.IsNaN(line.Epoch) {
		training.Epoch = text(line.Epoch)
	}
	if !math.IsNaN(line.Step) {
		training.Step = text(line.Step)
	}
	for _, figure := range line.Figures {
		switch figure.Name {
		case "loss":
			training.Loss = text(figure.Value)
		case "accuracy":
			training.Accuracy = text(figure.Value)
		}
	}
	return training
}

// staying are the pods that are not on their way out.
func staying(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// putBack enters that not all pods found a place in time.
func (m maker) putBack(t *timeline, waits *v1alpha1.SchedulingStatus) {
	if waits == nil || waits.EvictedAt == nil || m.before.Scheduling != nil && m.before.Scheduling.Attempts >= waits.Attempts {
		return
	}
	values := map[string]string{"running": strconv.Itoa(int(waits.Placed)), "pods": strconv.Itoa(int(waits.Wanted))}
	if waits.Attempts <= m.job.Gang.Requeues {
		limit := ""
		if m.job.Gang.Requeues < math.MaxInt32 {
			limit = fmt.Sprintf(" of %d", m.job.Gang.Requeues)
		}
		values["message"] = fmt.Sprintf("Next attempt at %s (retry %d%s).", waits.NextTry.UTC().Format(time.TimeOnly+" MST"), waits.Attempts, limit)
	}
	t.enter(waits.EvictedAt.Time, codes.PutBack, values)
}

// preempted enters that the back end itself has the pods stopped, to make room for another job.
func (m maker) preempted(t *timeline) {
	const event = codes.Preempted
	if gang := m.seen.Gang; gang == nil || !gang.Evict || gang.Reason != event {
		return
	}
	if last := t.last(event); last == nil || last.Detail != phrase.Limit(m.seen.Gang.Message, maxDetail) {
		t.add(m.now, event, m.seen.Gang.Message)
	}
}

// latest returns the latest of a time of each worker, zero if none is known.
func (m maker) latest(timeOf func(*corev1.Pod) time.Time) (when time.Time) {
	for _, worker := range m.seen.Workers {
		when = times.Later(when, timeOf(worker.Pod))
	}
	return when
}

// restarts enters that the launcher was started again at a time, as a new pod or in the same one, and why the attempt before ended.
func (m maker) restarts(t *timeline, when time.Time) {
	seen := m.seen
	seen.LauncherPods = staying(seen.LauncherPods)
	attempts := jobstate.CountAttempts(m.job, seen)
	if attempts.Number <= 1 || attempts.Exhausted() {
		return
	}
	values := map[string]string{"attempt": phrase.Capital(attempts.String())}
	if last := t.last(codes.LauncherRestarted); last != nil && strings.HasPrefix(last.Detail, values["attempt"]+".") {
		return
	}
	if cause := m.endOfAttempt(t); cause != "" {
		values["cause"] = "The previous one ended: " + cause + "."
	}
	if jobstate.IsForgiven(m.seen, attempts.Number-1) {
		values["cause"] = strings.TrimSpace(values["cause"] + " It does not count as a retry, because Kubernetes removed a pod.")
	}
	t.enter(when, codes.LauncherRestarted, values)
}

// endOfAttempt returns why the launcher's previous attempt ended: as the findings have it, or if its pods are gone, the
// timeline; empty if that is unknown.
func (m maker) endOfAttempt(t *timeline) string {
	ends := func(code string) bool {
		return codes.Has(code, codes.EndsAttempt) || codes.Has(code, codes.RemovesPods)
	}
	for _, cause := range slices.Concat(m.found[:min(1, len(m.found))], m.before.Findings[:min(1, len(m.before.Findings))]) {
		switch {
		case ends(cause.Code) && cause.ExitCode != nil:
			return fmt.Sprintf("%s, exit code %d", cause.Code, *cause.ExitCode)
		case ends(cause.Code):
			return cause.Code
		}
	}
	for _, entry := range slices.Backward(t.entries) {
		switch {
		case entry.Event == codes.LauncherRestarted:
			return ""
		case ends(entry.Event):
			return entry.Event
		}
	}
	return ""
}

// enterFindings enters each trouble when it becomes the first of the findings, each loss of a pod, and each warning of a running job when it
// begins.
func (m maker) enterFindings(t *timeline, findings []v1alpha1.Finding) {
	for i, finding := range findings {
		isEntered := i == 0 || codes.Has(finding.Code, codes.RemovesPods) ||
			m.outcome.Finish == nil && (codes.Has(finding.Code, codes.Warns) || slices.Contains(stalls, finding.Code))
		isKnown := slices.ContainsFunc(m.before.Findings, func(old v1alpha1.Finding) bool { return isSameTrouble(old, finding) })
		if isKnown || !isEntered || codes.Has(finding.Code, codes.Warns) && t.countLatest(finding.Code) >= maxRepeats {
			continue
		}
		if last := t.last(finding.Code); last == nil || last.Detail != phrase.Limit(finding.Summary, maxDetail) {
			t.add(m.now, finding.Code, finding.Summary)
		}
	}
}

// maxRepeats is how often a warning is entered that comes and goes, or concerns one pod after the other.
const maxRepeats = 8

// isSameTrouble reports whether a finding is an earlier one. The figures of a warning change while it lasts.
func isSameTrouble(old, now v1alpha1.Finding) bool {
	if old.Code != now.Code {
		return false
	}
	if !codes.Has(now.Code, codes.Warns) {
		return old.Summary == now.Summary
	}
	isOther := func(pod string) bool { return !slices.Contains(old.Affected, pod) }
	return old.Pod == now.Pod && ptr.Equal(old.Rank, now.Rank) && !slices.ContainsFunc(now.Affected, isOther)
}

// timeline is a list of entries that is kept short.
type timeline struct {
	entries []v1alpha1.TimelineEntry
	now     time.Time
	// restarts is how often all pods were started again: the job was last started with the attempt after as many.
	restarts int32
}

// enter adds an event with the text of its code.
func (t *timeline) enter(when time.Time, event codes.Code, values map[string]string) {
	t.add(when, event, detail(event, values))
}

// detail returns the text of an event.
func detail(event codes.Code, values map[string]string) string {
	return strings.TrimSpace(codes.Status(event, values))
}

// add enters an event, not before the previous one: clocks differ. An event of unknown time happened now.
func (t *timeline) add(when time.Time, event, detail string) {
	when = times.Earlier(t.now, when)
	if n := len(t.entries); n > 0 {
		when = times.Later(when, t.entries[n-1].Time.Time)
	}
	if n := len(t.entries); n >= maxTimeline {
		// How it began and what happened last are worth more than what is between.
		t.entries = slices.Delete(t.entries, maxTimeline/4, maxTimeline/4+1)
	}
	t.entries = append(t.entries, v1alpha1.TimelineEntry{Time: *at(when), Event: phrase.Limit(event, maxCode), Detail: phrase.Limit(detail, maxDetail)})
}

// once enters an event unless it was entered since the job was last started or resumed.
func (t *timeline) once(when time.Time, event, detail string) {
	start := fmt.Sprintf("Attempt %d of ", t.restarts+1)
	for _, entry := range slices.Backward(t.entries) {
		if entry.Event == event {
			return
		}
		if entry.Event == codes.Resumed || entry.Event == codes.LauncherRestarted && t.restarts > 0 && strings.HasPrefix(entry.Detail, start) {
			break
		}
	}
	t.add(when, event, detail)
}

// countLatest returns how often an event was entered since the job was last started or resumed, or its launcher restarted.
func (t *timeline) countLatest(event string) (n int) {
	for _, entry := range slices.Backward(t.entries) {
		switch entry.Event {
		case event:
			n++
		case codes.Resumed, codes.LauncherRestarted:
			return n
		}
	}
	return n
}

func (t *timeline) last(event string) *v1alpha1.TimelineEntry {
	for i, entry := range slices.Backward(t.entries) {
		if entry.Event == event {
			return &t.entries[i]
		}
	}
	return nil
}
