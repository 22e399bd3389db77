package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/mpi"
)

// remembered is how long the loss of a pod stays a finding although the pod was replaced: what the program makes of it
// comes a little later.
const remembered = 10 * time.Minute

// findings are what is wrong now, and where it failed. Of a job that had finished before they stay as they were: its
// pods and logs go, and with them what its cause was known from.
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
		findings = append(findings, convert(f))
	}
	failure := m.failure(found)
	if lost := m.lost(); lost != nil && (m.outcome.Finish == nil || m.failed()) {
		findings, failure = m.recall(*lost, findings, failure)
	}
	findings = m.keep(findings)
	if len(findings) > maxFindings {
		findings = findings[:maxFindings]
	}
	return findings, failure
}

// keep adds what was found of how the job runs from lines that its log has left behind since.
func (m maker) keep(findings []v1alpha1.Finding) []v1alpha1.Finding {
	same := func(f v1alpha1.Finding) bool { return f.Code == string(mpi.CodeRDMANotUsed) }
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

// better tells whether findings know a cause where those before knew none, or only what follows from one: that a
// worker was lost is known at once, and what became of it a little later.
func better(found []diagnose.Finding, before []v1alpha1.Finding) bool {
	if len(found) == 0 {
		return false
	}
	return len(before) == 0 || mayFollow(before[0].Code) && !mayFollow(string(found[0].Code))
}

// mayFollow tells whether a code is mostly not where it began. A program's own error mostly is, if nothing else is known
// by the time the job has failed.
func mayFollow(code string) bool {
	return follows[mpi.Code(code)] && mpi.Code(code) != mpi.CodeApplicationFailed
}

func convert(f diagnose.Finding) v1alpha1.Finding {
	finding := v1alpha1.Finding{
		Code: string(f.Code), Severity: v1alpha1.Severity(f.Severity), Summary: f.Summary,
		Evidence: slices.Clone(f.Evidence), Affected: slices.Clone(f.Affected),
	}
	for _, r := range f.Remedies {
		finding.Remedies = append(finding.Remedies, v1alpha1.Remedy(r))
	}
	return finding
}

// lost is an earlier finding that a pod was taken away, from which what is found now may follow; or that pods were
// refused, which is not tried again once the launcher has given up waiting for them.
func (m maker) lost() *v1alpha1.Finding {
	for i := range m.before.Findings {
		finding := &m.before.Findings[i]
		if code := mpi.Code(finding.Code); !takesPods[code] && (!keepsPods[code] || !m.failed()) {
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

// takesPods are the codes of what takes pods away. The pod is then gone, and with it what this was known from.
var takesPods = map[mpi.Code]bool{mpi.CodeEvicted: true, mpi.CodePreempted: true, mpi.CodeNodeLost: true, mpi.CodeLauncherDeleted: true}

// keepsPods are the codes of what keeps pods from being made.
var keepsPods = map[mpi.Code]bool{
	mpi.CodeQuotaExceeded: true, mpi.CodePodSecurity: true, mpi.CodeSCCDenied: true, mpi.CodeAdmissionDenied: true, mpi.CodeRefused: true,
}

// follows are the codes of what the loss of a pod looks like to those that are left.
var follows = map[mpi.Code]bool{
	mpi.CodeConnectionLost: true, mpi.CodeUnreachable: true, mpi.CodeDaemonUnroutable: true, mpi.CodeDaemonsNotStarted: true,
	mpi.CodeNameUnresolved: true, mpi.CodeConnectionRefused: true, mpi.CodeConnectionTimeout: true, mpi.CodeSSHFailed: true,
	mpi.CodeKilled: true, mpi.CodeTerminated: true, mpi.CodeNCCLTimeout: true, mpi.CodeNCCLSystem: true, mpi.CodeWrongInterface: true,
	mpi.CodeApplicationFailed: true, mpi.CodeUnknown: true,
}

// noRoom are the codes of pods that find no node.
var noRoom = map[mpi.Code]bool{mpi.CodeInsufficient: true, mpi.CodeNoMatchingNode: true, mpi.CodeUnschedulable: true}

// recall puts the loss of a pod before what follows from it. A cause of another kind stays the cause.
func (m maker) recall(lost v1alpha1.Finding, findings []v1alpha1.Finding, failure *v1alpha1.Failure) ([]v1alpha1.Finding, *v1alpha1.Failure) {
	if slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == lost.Code }) {
		return findings, failure
	}
	if len(findings) > 0 && !follows[mpi.Code(findings[0].Code)] {
		if !takesPods[mpi.Code(lost.Code)] || !noRoom[mpi.Code(findings[0].Code)] {
			return findings, failure
		}
		if !m.failed() {
			// That pods which had to go find no room when they come back is what keeps the job now.
			lost.Severity = v1alpha1.SeverityWarning
			return append(findings, lost), failure
		}
	}
	if failure != nil && failure.Rank != nil && lost.Code == string(mpi.CodeNodeLost) {
		// A node that is busy may not answer for a while; a rank that was seen to end did so all the same.
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
	// That the cause is not known is not so.
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool { return f.Code == string(mpi.CodeUnknown) })
	return append([]v1alpha1.Finding{lost}, findings...), failure
}

// failure is where a job that failed did so; nil where it has not.
func (m maker) failure(found []diagnose.Finding) *v1alpha1.Failure {
	if !m.failed() {
		return nil
	}
	failure := &v1alpha1.Failure{Code: string(mpi.CodeUnknown)}
	if len(found) > 0 {
		failure.Code, failure.Pod, failure.Rank, failure.ExitCode = string(found[0].Code), found[0].Pod, found[0].Rank, found[0].ExitCode
	}
	if at := m.podOf(failure.Rank); at != "" {
		failure.Pod = at
	}
	failure.LogTail = m.logTail(failure.Pod)
	return failure
}

// podOf is the pod that a rank had its slot on, also where that pod is gone; empty where it is not known.
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
	for _, pod := range slices.Backward(m.seen.LauncherPods) {
		names = append(names, pod.Name)
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
			tail = append(tail, cut(fmt.Sprintf("[%s] %s", name, line), maxLogLine))
		}
	}
	return tail
}
