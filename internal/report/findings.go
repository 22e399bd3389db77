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
// findings of a finished job, the loss of a pod, and the cause that ended the last attempt (see codes.Strength).
func (m maker) findings(found []diagnose.Finding) ([]v1alpha1.Finding, *v1alpha1.Failure) {
	if m.before.CompletionTime != nil && !better(found, m.before.Findings) {
		failure := m.before.Failure.DeepCopy()
		if failure != nil && len(failure.LogTail) == 0 {
			failure.LogTail = m.logTail(failure.Pod)
		}
		return slices.Clone(m.before.Findings), failure
	}
	findings := make([]v1alpha1.Finding, 0, len(found))
	for _, f := range found {
		findings = append(findings, *f.DeepCopy())
	}
	findings = m.keepObstacle(m.keepCause(findings))
	failure := m.failure(findings)
	if lost := m.lost(); lost != nil && (m.outcome.Finish == nil || m.failed()) {
		findings, failure = m.recall(*lost, findings, failure)
	}
	findings = m.keep(findings)
	if len(findings) > maxFindings {
		findings = findings[:maxFindings]
	}
	return findings, failure
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

// keepCause puts the cause of an attempt's end, as the record has it, before findings that explain less, or as much and
// later. It is over once another attempt runs and nothing is wrong.
func (m maker) keepCause(findings []v1alpha1.Finding) []v1alpha1.Finding {
	if len(m.before.Findings) == 0 || !m.failed() && (m.outcome.Finish != nil || m.outcome.Suspended()) {
		return findings
	}
	if endings := len(findings) > 0 && codes.Has(findings[0].Code, codes.EndsAttempt); !m.failed() && !endings && !m.attemptEnded() {
		return findings
	}
	cause := m.before.Findings[0].DeepCopy()
	if !codes.Has(cause.Code, codes.EndsAttempt) || cause.Severity == v1alpha1.SeverityInfo {
		return findings
	}
	if i := slices.IndexFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == cause.Code }); i >= 0 {
		// Logs arrive late, and that of a run may be replaced by that of the next one.
		if now := findings[i]; (cause.Rank == nil || now.Rank != nil) && len(now.Summary) >= len(cause.Summary) {
			cause = now.DeepCopy()
		}
		findings = slices.Delete(findings, i, i+1)
	} else if len(findings) > 0 && m.explainsMore(findings[0], *cause) {
		return findings
	}
	cause.Severity = v1alpha1.SeverityError
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool { return codes.StrengthOf(f.Code) >= codes.Ending })
	for i := range findings {
		if m.failed() {
			findings[i].Severity = v1alpha1.SeverityInfo
		}
	}
	return append([]v1alpha1.Finding{*cause}, findings...)
}

// keepObstacle puts what kept the job from starting, as the record has it, before what follows from that: the deadline was
// exceeded, the launcher was deleted, or nothing is known, because pods and their messages are gone.
func (m maker) keepObstacle(findings []v1alpha1.Finding) []v1alpha1.Finding {
	if len(findings) == 0 || len(m.before.Findings) == 0 || m.before.RunningTime != nil || m.outcome.Finish != nil && m.outcome.Finish.Succeeded {
		return findings
	}
	switch findings[0].Code {
	case codes.DeadlineExceeded, codes.LauncherDeleted, codes.Unknown:
	default:
		return findings
	}
	obstacle := m.before.Findings[0].DeepCopy()
	blocks := codes.Has(obstacle.Code, codes.BlocksScheduling) || codes.Has(obstacle.Code, codes.BlocksPods) ||
		obstacle.Severity == v1alpha1.SeverityError && codes.StrengthOf(obstacle.Code) == codes.Cause
	if !blocks || obstacle.Code == findings[0].Code || obstacle.Code == codes.LauncherDeleted {
		return findings
	}
	if m.failed() {
		obstacle.Severity = v1alpha1.SeverityError
		for i := range findings {
			findings[i].Severity = v1alpha1.SeverityInfo
		}
	}
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == obstacle.Code || f.Code == codes.Unknown })
	return append([]v1alpha1.Finding{*obstacle}, findings...)
}

// explainsMore reports whether a finding explains more than the cause that is known; if both are causes, whether it is
// that of a later attempt.
func (m maker) explainsMore(finding, known v1alpha1.Finding) bool {
	now, before := codes.StrengthOf(finding.Code), codes.StrengthOf(known.Code)
	if codes.Has(finding.Code, codes.RemovesPods) && codes.Has(known.Code, codes.FollowsPodLoss) {
		return true
	}
	return now < before || now == before && isGuess(known) && !isGuess(finding) ||
		(now == codes.Cause || endedOtherwise(finding, known)) && before == codes.Cause && m.restartedSince(known.Code)
}

// endedOtherwise reports whether the program ended by itself, and not as it did for the cause that is known: a pod was taken away,
// or the exit code was another one. If it was the same, the log may only not have been read yet.
func endedOtherwise(finding, known v1alpha1.Finding) bool {
	return isOwnEnd(finding) && (codes.Has(known.Code, codes.RemovesPods) || known.ExitCode != nil && *known.ExitCode != *finding.ExitCode)
}

// isOwnEnd reports whether a finding is that the program ended by itself, with an exit code of its own.
func isOwnEnd(f v1alpha1.Finding) bool { return f.Code == codes.ApplicationFailed && f.ExitCode != nil }

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

// better reports whether findings contain a cause, and those before did not, or only a consequence: that a worker was
// lost is known at once, and why a little later.
func better(found []diagnose.Finding, before []v1alpha1.Finding) bool {
	if len(found) == 0 {
		return false
	}
	if len(before) == 0 || codes.StrengthOf(found[0].Code) < codes.StrengthOf(before[0].Code) {
		return true
	}
	if codes.StrengthOf(found[0].Code) == codes.StrengthOf(before[0].Code) && isGuess(before[0]) {
		return !isGuess(found[0])
	}
	return mayFollow(before[0].Code) && !mayFollow(found[0].Code) && codes.StrengthOf(found[0].Code) == codes.StrengthOf(before[0].Code)
}

// isGuess reports whether an exit code is all that a cause is known from. A program that is missing has 127, and so has one
// that starts a script which lacks its interpreter: the log shows which.
func isGuess(f v1alpha1.Finding) bool {
	return f.Code == codes.ProgramMissing && f.ExitCode != nil && len(f.Evidence) <= 1
}

// mayFollow reports whether a code is mostly not where it began. A program's own error mostly is, if nothing else is known
// by the time the job has failed.
func mayFollow(code string) bool {
	return codes.Has(code, codes.FollowsPodLoss) && code != codes.ApplicationFailed
}

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
				if m.now.Sub(entry.Time.Time) <= remembered {
					return finding.DeepCopy()
				}
				break
			}
		}
	}
	return nil
}

// recall puts the loss of a pod before what follows from it. A cause of another kind stays the cause.
func (m maker) recall(lost v1alpha1.Finding, findings []v1alpha1.Finding, failure *v1alpha1.Failure) ([]v1alpha1.Finding, *v1alpha1.Failure) {
	if slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == lost.Code }) {
		return findings, failure
	}
	if m.failed() && len(findings) > 0 && isOwnEnd(findings[0]) && m.restartedSince(lost.Code) {
		return findings, failure
	}
	if len(findings) > 0 && !codes.Has(findings[0].Code, codes.FollowsPodLoss) {
		if !codes.Has(lost.Code, codes.RemovesPods) || !codes.Has(findings[0].Code, codes.BlocksScheduling) || lost.Code == codes.LauncherDeleted {
			return findings, failure
		}
		if !m.failed() {
			// That pods which had to go find no room when they come back is what keeps the job now.
			lost.Severity = v1alpha1.SeverityWarning
			return append(findings, lost), failure
		}
	}
	if failure != nil && failure.Rank != nil && lost.Code == codes.NodeLost {
		// A busy node may not respond for a while. That does not explain a rank that failed.
		return findings, failure
	}
	lost.Severity = v1alpha1.SeverityWarning
	if m.failed() {
		lost.Severity = v1alpha1.SeverityError
		for i := range findings {
			findings[i].Severity = v1alpha1.SeverityInfo
		}
	}
	if failure != nil {
		failure.Code = lost.Code
		if len(lost.Affected) > 0 {
			failure.Pod, failure.Rank, failure.ExitCode = lost.Affected[0], nil, nil
			failure.LogTail = m.logTail(failure.Pod)
		}
	}
	// A cause is known.
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == codes.Unknown })
	return append([]v1alpha1.Finding{lost}, findings...), failure
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
