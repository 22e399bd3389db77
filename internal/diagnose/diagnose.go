// Package diagnose finds out why a job does not progress or has failed. Findings start with the cause, contain figures
// and remedies, and are written for the users of jobs, not for administrators.
//
// It judges what was observed (jobstate.Observed) and gathered (jobstate.Evidence) by an ordered list of checks, each a
// function of values. Texts contain times and no ages: a finding stays the same while nothing happens.
package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Finding is a finding of a report.
type Finding = v1alpha1.Finding

// Bounds of what Job returns.
const (
	MaxFindings = 6
	MaxEvidence = 8
	MaxAffected = 16
	MaxRemedies = 5
	// MaxText and MaxLine are bytes of a summary, and of a line of evidence or a remedy.
	MaxText = 1000
	MaxLine = 500
)

// checks are ordered by the rank of causes: problems before pods exist, what happened to pods, what happened in a pod,
// and last what other pods report about that. A check that does not apply returns nothing.
var checks = []func(*input) []Finding{
	unplaceable,
	shortOfQuota,
	refused,
	keys,
	takenAway,
	rejected,
	podDeadlines,
	probes,
	hooks,
	outOfMemory,
	commands,
	images,
	containers,
	unstartable,
	volumes,
	unplaced,
	unattended,
	networkMissing,
	sandboxes,
	launcherDeleted,
	endedWorkers,
	unreached,
	hostfileIgnored,
	transportless,
	symptoms,
	mixedMPI,
	sharedGPUs,
	rdmaNotUsed,
	clocks,
	deadline,
	crashes,
	firstEnds,
	summings,
	lastEnds,
	nothingStarted,
	sidecars,
	failedSidecars,
	workersNotReady,
	earlierJob,
	waitingForHosts,
	stalled,
	silent,
	slowStart,
}

// Job returns the findings of a job: the cause first, then its consequences and other observations. A healthy job has
// none. A job that failed or needs action has at least one, even if only to show what is known and where to look.
func Job(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome) []Finding {
	p := newInput(job, seen, evidence, outcome)
	var found []Finding
	switch {
	case p.succeeded():
		found = slices.Concat(hostfileIgnored(p), mixedMPI(p), unnoticed(p), rdmaNotUsed(p), rdmaFallback(p), throttled(p), workersIdle(p))
	case outcome.Phase == v1alpha1.PhaseSuspended:
		found = shortOfQuota(p)
	case outcome.Phase == v1alpha1.PhaseQueued:
		found = slices.Concat(queued(p), shortOfQuota(p))
	default:
		for _, check := range checks {
			found = append(found, check(p)...)
		}
		found = withoutExplainedStarts(found)
		if len(found) == 0 {
			found = unknown(p)
		}
		if found = append(found, rdmaFallback(p)...); p.failed() {
			found = append(found, throttled(p)...)
		}
	}
	return p.order(found)
}

// withoutExplainedStarts leaves out that pods have not started if another finding is about one of them.
func withoutExplainedStarts(found []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(slow Finding) bool {
		return slow.Code == codes.SlowStart && slices.ContainsFunc(found, func(f Finding) bool {
			return f.Code != codes.SlowStart && slices.ContainsFunc(f.Affected, func(pod string) bool { return slices.Contains(slow.Affected, pod) })
		})
	})
}

// order keeps one finding of each code, lets the first be the cause, and bounds all of them.
func (p *input) order(found []Finding) []Finding {
	var kept []Finding
	for _, f := range strongestFirst(found) {
		if i := slices.IndexFunc(kept, func(k Finding) bool { return k.Code == f.Code }); i >= 0 {
			absorb(&kept[i], f)
			continue
		}
		if len(kept) > 0 && codes.StrengthOf(f.Code) >= codes.Consequence {
			absorb(&kept[0], Finding{Evidence: f.Evidence[:min(len(f.Evidence), 1)], Pod: f.Pod, Rank: f.Rank, ExitCode: f.ExitCode})
			continue
		}
		kept = append(kept, f)
	}
	kept = kept[:min(len(kept), MaxFindings)]
	for i := range kept {
		if i == 0 && p.failed() {
			kept[i].Severity = v1alpha1.SeverityError
		}
		if i > 0 && p.failed() {
			kept[i].Severity = v1alpha1.SeverityInfo
		}
		bound(&kept[i])
		for j := range kept[i].Remedies {
			p.adaptRemedy(&kept[i].Remedies[j])
		}
	}
	return kept
}

// strongestFirst puts a cause before the first finding if that states only a consequence or an end, such as the signal 9 with which
// MPI ends the other ranks after a crash. What other pods report of a lost one is no such cause.
func strongestFirst(found []Finding) []Finding {
	cause := slices.IndexFunc(found, func(f Finding) bool {
		severity := codes.Lookup(f.Code).Severity
		return codes.StrengthOf(f.Code) < codes.StrengthOf(found[0].Code) && !codes.Has(f.Code, codes.FollowsPodLoss) &&
			severity != v1alpha1.SeverityWarning && severity != v1alpha1.SeverityInfo
	})
	if cause < 0 {
		return found
	}
	return slices.Concat(found[cause:cause+1], found[:cause], found[cause+1:])
}

// absorb adds what another finding of the same code knows.
func absorb(f *Finding, other Finding) {
	for _, line := range other.Evidence {
		if !slices.Contains(f.Evidence, line) {
			f.Evidence = append(f.Evidence, line)
		}
	}
	for _, name := range other.Affected {
		if !slices.Contains(f.Affected, name) {
			f.Affected = append(f.Affected, name)
		}
	}
	if f.Rank == nil {
		f.Rank = other.Rank
	}
	// How another pod ended is another matter, but mpirun passes a rank's code on.
	if f.ExitCode == nil && (f.Pod == "" || f.Pod == other.Pod || f.Rank != nil) {
		f.ExitCode = other.ExitCode
	}
}

func bound(f *Finding) {
	f.Summary = phrase.Cut(phrase.OneLine(f.Summary), MaxText)
	f.Evidence = f.Evidence[:min(len(f.Evidence), MaxEvidence)]
	for i := range f.Evidence {
		f.Evidence[i] = phrase.Cut(phrase.OneLine(f.Evidence[i]), MaxLine)
	}
	if more := len(f.Affected) - MaxAffected; more > 0 {
		f.Affected = append(f.Affected[:MaxAffected:MaxAffected], fmt.Sprintf("and %d more", more))
	}
	f.Remedies = slices.Clone(f.Remedies[:min(len(f.Remedies), MaxRemedies)])
	for i := range f.Remedies {
		f.Remedies[i].Text, f.Remedies[i].Action = phrase.Cut(phrase.OneLine(f.Remedies[i].Text), MaxLine), boundAction(f.Remedies[i].Action)
	}
}

// boundAction shortens an action. A command is not cut but left out, because the end of a quotation could be lost.
func boundAction(action string) string {
	action = phrase.OneLine(action)
	if codes.IsCommand(action) && len(action) > MaxLine {
		return ""
	}
	return phrase.Cut(action, MaxLine)
}
