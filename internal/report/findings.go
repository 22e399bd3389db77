package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// remembered is how long the loss of a pod stays a finding although the pod was replaced: the program fails a little
// later.
const remembered = 10 * time.Minute

// findings returns the findings of a record, and where its job failed. What disappeared with pods and logs stays: the
// findings of a finished job, the loss of a pod, and the cause that ended the last attempt (see [codes.Moment]).
func (m maker) findings(found []diagnose.Finding) ([]v1alpha1.Finding, *v1alpha1.Failure) {
	if m.before.CompletionTime != nil && !m.isBetter(found) {
		failure := m.before.Failure.DeepCopy()
		if failure != nil && len(failure.LogTail) == 0 {
			failure.LogTail = m.logTail(failure.Pod)
		}
		return slices.DeleteFunc(slices.Clone(m.before.Findings), isAdded), failure
	}
	findings := make([]v1alpha1.Finding, 0, len(found))
	for _, f := range found {
		findings = append(findings, *f.DeepCopy())
	}
	for _, known := range []*v1alpha1.Finding{m.causeOfEnd(findings), m.obstacle(findings), m.lost()} {
		if known != nil {
			findings = m.compare(*known, findings)
		}
	}
	if hang := m.hangBefore(findings); hang != nil {
		findings = append([]v1alpha1.Finding{*hang}, findings...)
	}
	if attempt := m.lastAttempt(findings); attempt != nil {
		findings = append(findings, *attempt)
	}
	m.addStall(findings)
	findings = m.keep(findings)
	return findings[:min(len(findings), maxFindings)], m.failure(findings)
}

// stalls are the findings of ranks that make no progress.
var stalls = []string{codes.RankGone, codes.RanksWaiting, codes.RanksIdle, codes.NoAnswer, codes.Straggler, codes.NoTransport}

// hangBefore returns why a job's ranks waited, as the record has it, if what is found now begins with the deletion of its launcher: that
// is how users end the waiting. The logs that showed the cause are gone. It is over once the next attempt shows something else.
func (m maker) hangBefore(findings []v1alpha1.Finding) *v1alpha1.Finding {
	if len(findings) == 0 || findings[0].Code != codes.LauncherDeleted || len(m.before.Findings) == 0 || m.isBackInQueue() {
		return nil
	}
	known := m.before.Findings[0]
	if known.Severity == v1alpha1.SeverityInfo || !slices.Contains(causesOfHangs, known.Code) {
		return nil
	}
	hang := known.DeepCopy()
	hang.Remedies = slices.DeleteFunc(hang.Remedies, func(r v1alpha1.Remedy) bool { return r.Text == codes.EndWaiting.Text })
	if !IsOfEarlierAttempt(*hang) {
		markEarlier(hang, m.now)
	}
	if m.failed() {
		hang.Severity = v1alpha1.SeverityError
		for i := range findings {
			findings[i].Severity = v1alpha1.SeverityInfo
		}
	}
	return hang
}

// causesOfHangs are those of the stalls that name why the ranks wait.
var causesOfHangs = []string{codes.RankGone, codes.NoAnswer}

// markEarlier adds to the evidence of a finding that it was seen last in an attempt that has ended.
func markEarlier(f *v1alpha1.Finding, ended time.Time) {
	evidence := append([]string{seenInAttempt + ended.UTC().Format(time.DateTime) + " UTC."}, f.Evidence...)
	f.Evidence = evidence[:min(len(evidence), diagnose.MaxEvidence)]
}

// addStall has a job that its deadline ended name the ranks that made no progress before, as its timeline has it: its pods, and their logs, may be
// deleted. More time is then the last remedy.
func (m maker) addStall(findings []v1alpha1.Finding) {
	if len(findings) == 0 || findings[0].Code != codes.DeadlineExceeded {
		return
	}
	for _, entry := range slices.Backward(m.before.Timeline) {
		switch {
		case entry.Event == codes.LauncherRestarted || entry.Event == string(v1alpha1.PhaseRunning):
			return
		case slices.Contains(stalls, entry.Event):
			root := &findings[0]
			root.Summary = phrase.Cut(fmt.Sprintf("%s At %s UTC: %s", root.Summary, entry.Time.UTC().Format(time.TimeOnly), entry.Detail), diagnose.MaxText)
			var remedies []v1alpha1.Remedy
			for _, remedy := range codes.Lookup(entry.Event).Remedies {
				// The others look into pods.
				if remedy.Action == "" && !strings.Contains(remedy.Text, "{") {
					remedies = append(remedies, remedy)
				}
			}
			root.Remedies = append(remedies, root.Remedies...)
			return
		}
	}
}

// isAdded reports whether a finding is no cause of anything: Make adds it to those of each report.
func isAdded(f v1alpha1.Finding) bool {
	return f.Code == codes.InvalidChange || f.Code == codes.SlowStartupStep || f.Code == codes.ProfileMissing || f.Code == codes.WorkersShareNodes
}

// invalidChange returns the finding of a job that became invalid after it had been started.
func invalidChange(job mpi.Job) v1alpha1.Finding {
	texts := make([]string, len(job.Ignored))
	for i, err := range job.Ignored {
		texts[i] = err.Error()
	}
	values := map[string]string{
		"message": strings.Join(texts, "; "), "how": "The default is used instead.",
		"namespace": job.Namespace, "kindLower": strings.ToLower(job.Kind), "job": job.Name,
	}
	if job.IsFrozen() {
		values["how"] = "Its pods go on. No others are created until this is corrected."
	}
	entry := codes.Lookup(codes.InvalidChange)
	f := v1alpha1.Finding{Code: entry.Code, Severity: entry.Severity}
	f.Summary = phrase.Cut(phrase.OneLine(codes.Fill(entry.Summary, values)), diagnose.MaxText)
	for _, remedy := range entry.Remedies {
		f.Remedies = append(f.Remedies, codes.FillRemedy(remedy, values))
	}
	return f
}

// causeOfEnd returns the cause of an attempt's end, as the record has it. It is over once another attempt runs and nothing is wrong.
func (m maker) causeOfEnd(findings []v1alpha1.Finding) *v1alpha1.Finding {
	if len(m.before.Findings) == 0 || m.isBackInQueue() || !m.failed() && (m.outcome.Finish != nil || m.outcome.Suspended()) {
		return nil
	}
	if endings := len(findings) > 0 && codes.Has(findings[0].Code, codes.EndsAttempt); !m.failed() && !endings && !m.attemptEnded() {
		return nil
	}
	cause := m.before.Findings[0].DeepCopy()
	if !codes.Has(cause.Code, codes.EndsAttempt) || cause.Severity == v1alpha1.SeverityInfo {
		return nil
	}
	cause.Severity = v1alpha1.SeverityError
	return cause
}

// obstacle returns what kept the job from starting, as the record has it.
func (m maker) obstacle(findings []v1alpha1.Finding) *v1alpha1.Finding {
	if len(findings) == 0 || len(m.before.Findings) == 0 || m.isBackInQueue() || m.before.RunningTime != nil || m.outcome.Finish != nil && m.outcome.Finish.Succeeded {
		return nil
	}
	return m.before.Findings[0].DeepCopy()
}

// isBackInQueue reports whether a job is in its queue, from which it may have been admitted before, or failed because that happened too
// often; or whether it was put back outside of a queue.
func (m maker) isBackInQueue() bool {
	if m.failed() {
		queue, gang := m.seen.Queue, m.seen.Gang
		return queue != nil && gang != nil && gang.GaveUp && gang.Backend == queue.Backend
	}
	return m.outcome.Phase == v1alpha1.PhaseQueued || m.isPutBack()
}

// isPutBack reports whether a job outside of a queue has no pods because not all of them could be placed in time.
func (m maker) isPutBack() bool {
	gang := m.seen.Gang
	return gang != nil && gang.Attempts > 0 && m.outcome.Phase == v1alpha1.PhaseGangScheduling && len(m.seen.AllPods()) == 0
}

// seenInAttempt is the begin of the evidence of when a finding was seen last that the record has from an earlier attempt.
const seenInAttempt = "Last seen in an earlier attempt, which ended at "

// lastAttempt returns why the last attempt of a job did not get further, as the record has it: its queue, or the operator, has deleted its pods.
// It is over once a new attempt shows something else, or its pods have nodes. What is found now comes first: the new attempt, or
// the queue, decides on the job.
func (m maker) lastAttempt(findings []v1alpha1.Finding) *v1alpha1.Finding {
	known := slices.IndexFunc(m.before.Findings, codes.OutlivesAttempt)
	if known < 0 || slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == m.before.Findings[known].Code }) {
		return nil
	}
	attempt := m.before.Findings[known].DeepCopy()
	isOfEarlier := IsOfEarlierAttempt(*attempt)
	if !m.isBackInQueue() {
		placed, wanted := m.placed()
		if waits := m.outcome.Finish == nil && m.outcome.Phase != v1alpha1.PhaseRunning && !m.outcome.Suspended() && placed < wanted; !isOfEarlier || !waits || len(findings) > 0 {
			return nil
		}
	}
	if !isOfEarlier {
		at := m.now
		switch queue, gang := m.seen.Queue, m.seen.Gang; {
		case queue != nil && !queue.EvictedAt.IsZero():
			at = queue.EvictedAt
		case queue == nil && gang != nil && !gang.EvictedAt.IsZero():
			at = gang.EvictedAt
		}
		markEarlier(attempt, at)
	}
	if m.failed() {
		attempt.Severity = v1alpha1.SeverityInfo
	}
	return attempt
}

// IsOfEarlierAttempt reports whether a finding of a record is one of an earlier attempt.
func IsOfEarlierAttempt(f v1alpha1.Finding) bool {
	return slices.ContainsFunc(f.Evidence, isSeenInAttempt)
}

func isSeenInAttempt(evidence string) bool { return strings.HasPrefix(evidence, seenInAttempt) }

// Obstacle returns what kept the pods of a job in a queue from starting in its last attempt, as its record has it; "" if that is unknown.
func Obstacle(record *v1alpha1.JobReport) string {
	if record == nil {
		return ""
	}
	for _, f := range record.Status.Findings {
		if codes.OutlivesAttempt(f) && !codes.Has(f.Code, codes.EndsAttempt) {
			return f.Summary
		}
	}
	return ""
}

// compare puts a cause that the record has before findings that do not outrank it.
func (m maker) compare(known v1alpha1.Finding, findings []v1alpha1.Finding) []v1alpha1.Finding {
	same := slices.IndexFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == known.Code })
	if same >= 0 {
		known.Evidence = slices.DeleteFunc(slices.Clone(known.Evidence), isSeenInAttempt)
		if now := findings[same]; !codes.Has(known.Code, codes.EndsAttempt) || (known.Rank == nil || now.Rank != nil) && len(now.Summary) >= len(known.Summary) {
			// Logs arrive late, and that of a run may be replaced by that of the next one.
			known = *now.DeepCopy()
		}
	}
	at := codes.Moment{Failed: m.failed(), Ran: m.before.RunningTime != nil, Again: m.restartedSince(known.Code)}
	if same != 0 && len(findings) > 0 && at.Outranks(findings[0], known) {
		if same < 0 && !m.failed() && codes.Has(known.Code, codes.RemovesPods) && known.Code != codes.LauncherDeleted && codes.Has(findings[0].Code, codes.BlocksScheduling) {
			findings = append(findings, known)
		}
		return findings
	}
	// What ended an attempt also explains how its program ended.
	least := codes.Unexplained
	if codes.Has(known.Code, codes.EndsAttempt) {
		least, known.Severity = codes.Ending, v1alpha1.SeverityError
	}
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == known.Code || codes.StrengthOf(f.Code) >= least })
	if m.failed() {
		known.Severity = v1alpha1.SeverityError
		for i := range findings {
			findings[i].Severity = v1alpha1.SeverityInfo
		}
	}
	return append([]v1alpha1.Finding{known}, findings...)
}

// isBetter reports whether findings contain a better cause than the record of a job that is over: that a worker was lost is known at
// once, and why a little later. A job may be over before the end of its container is known.
func (m maker) isBetter(found []diagnose.Finding) bool {
	if len(found) == 0 || len(m.before.Findings) == 0 {
		return len(found) > 0
	}
	if before := m.before.Findings[0]; before.Code == found[0].Code && before.Pod == found[0].Pod && before.ExitCode == nil && found[0].ExitCode != nil {
		return true
	}
	return codes.Moment{Failed: m.failed(), Ran: m.before.RunningTime != nil, Over: true}.Outranks(found[0], m.before.Findings[0])
}

// restartedSince reports whether the launcher was started again after a finding was entered on the timeline.
func (m maker) restartedSince(code string) bool {
	for _, entry := range slices.Backward(m.before.Timeline) {
		switch entry.Event {
		case codes.LauncherRestarted:
			return true
		case code:
			return false
		}
	}
	return false
}

// attemptEnded reports whether the launcher has made an attempt and none runs now.
func (m maker) attemptEnded() bool {
	return m.seen.Launcher != nil && m.before.RunningTime != nil &&
		!slices.ContainsFunc(m.seen.LauncherPods, func(pod *corev1.Pod) bool { return podstatus.IsRunning(pod) && !podstatus.LatestStart(pod).IsZero() })
}

// keep adds what was found of how the job runs from lines that its log has left behind since.
func (m maker) keep(findings []v1alpha1.Finding) []v1alpha1.Finding {
	same := func(f v1alpha1.Finding) bool { return f.Code == codes.RDMANotUsed }
	before := slices.IndexFunc(m.before.Findings, same)
	if before < 0 || slices.ContainsFunc(findings, same) {
		return findings
	}
	kept := *m.before.Findings[before].DeepCopy()
	if m.failed() {
		kept.Severity = v1alpha1.SeverityInfo
	}
	return append(findings, kept)
}

func (m maker) failed() bool { return m.outcome.Finish != nil && !m.outcome.Finish.Succeeded }

// lost is an earlier finding that a pod was taken away, from which what is found now may follow; or that pods were
// refused, which is not tried again once the launcher has given up waiting for them.
func (m maker) lost() *v1alpha1.Finding {
	for i := range m.before.Findings {
		finding := &m.before.Findings[i]
		if code := finding.Code; !codes.Has(code, codes.RemovesPods) && (!codes.Has(code, codes.BlocksPods) || !m.failed()) {
			continue
		}
		for _, entry := range slices.Backward(m.before.Timeline) {
			if entry.Event == finding.Code {
				if m.now.Sub(entry.Time.Time) <= remembered && (m.outcome.Finish == nil || m.failed()) {
					lost := finding.DeepCopy()
					lost.Severity = v1alpha1.SeverityWarning
					return lost
				}
				break
			}
		}
	}
	return nil
}

// failure is where a job that failed did so; nil where it has not.
func (m maker) failure(found []v1alpha1.Finding) *v1alpha1.Failure {
	if !m.failed() {
		return nil
	}
	failure := &v1alpha1.Failure{Code: codes.Unknown}
	if len(found) > 0 {
		failure.Code, failure.Pod, failure.Rank, failure.ExitCode = found[0].Code, found[0].Pod, found[0].Rank, found[0].ExitCode
	}
	if at := m.podOf(failure.Rank); at != "" {
		failure.Pod = at
	}
	if failure.LogTail = m.logTail(failure.Pod); len(failure.LogTail) == 0 {
		failure.LogTail = quotedLines(found)
	}
	return failure
}

// quotedLine matches a line of a log in evidence (diagnose.quoted).
var quotedLine = regexp.MustCompile(`^Log of ([^\s,:]+)(?:, rank \d+)?: (.*)$`)

// quotedLines returns the lines of logs that findings quote: the record has them, although the pod is gone with its log, and so is
// the leader that had read it.
func quotedLines(found []v1alpha1.Finding) (lines []string) {
	for _, finding := range found {
		for _, evidence := range finding.Evidence {
			if quoted := quotedLine.FindStringSubmatch(evidence); quoted != nil {
				lines = append(lines, phrase.Limit(fmt.Sprintf("[%s] %s", quoted[1], quoted[2]), maxLogLine))
			}
		}
	}
	return lines
}

// podOf returns the pod with the slot of a rank, even if that pod is gone, or "" if it is unknown.
func (m maker) podOf(rank *int32) string {
	if rank == nil {
		return ""
	}
	name := ""
	for _, pod := range m.pods() {
		first, last, is := strings.Cut(pod.Ranks, "-")
		if !is {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 32)
		to, also := strconv.ParseInt(last, 10, 32)
		if err == nil && also == nil && int64(*rank) >= from && int64(*rank) <= to {
			// Of the launcher's tries it is the last.
			name = pod.Name
		}
	}
	return name
}

// logTail are the ends of the logs: the launcher's, that of the pod where it began, and those of others that failed.
// Each gets its share of the lines.
func (m maker) logTail(first string) []string {
	var names []string
	for _, pod := range slices.Backward(m.pods()) {
		if pod.Role == string(mpi.RoleLauncher) {
			names = append(names, pod.Name)
		}
	}
	// A pod that went before the job ended is not among them.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(m.evidence.Logs))) {
		if strings.HasPrefix(name, m.job.LauncherName()+"-") {
			names = append(names, name)
		}
	}
	names = append(names, first)
	for _, worker := range m.seen.Workers {
		names = append(names, worker.Pod.Name)
	}
	var with []string
	for _, name := range names {
		if len(m.evidence.Logs[name].Lines) > 0 && !slices.Contains(with, name) {
			with = append(with, name)
		}
	}
	if len(with) == 0 {
		return nil
	}
	// Half of it is the launcher's, which most say most in.
	var tail []string
	for i, name := range with {
		share := maxLogLines / 2
		if i > 0 {
			share = maxLogLines / 2 / (len(with) - 1)
		}
		lines := slices.DeleteFunc(slices.Clone(m.evidence.Logs[name].Lines), func(line string) bool { return strings.TrimSpace(line) == "" })
		for _, line := range lines[max(0, len(lines)-share):] {
			tail = append(tail, phrase.Limit(fmt.Sprintf("[%s] %s", name, line), maxLogLine))
		}
	}
	return tail
}
