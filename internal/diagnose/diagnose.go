// Package diagnose tells why a job does not progress or has failed: the cause first, in words for those who wrote the
// job and not for those who run the cluster, with figures, and with what to do first.
//
// It judges what was observed (mpi.Observed) and what was gathered besides (mpi.Evidence), by an ordered list of
// checks, each a function of values. Texts say no ages, only times: a finding stays the same while nothing happens.
package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// Finding is something that is wrong with a job.
type Finding struct {
	Code     mpi.Code
	Severity Severity
	// Summary says what is wrong, in a sentence or two.
	Summary string
	// Evidence is what it rests on: lines of logs, events, figures. At most MaxEvidence.
	Evidence []string `json:",omitempty"`
	// Affected are pods or other objects, at most MaxAffected and one that says how many more.
	Affected []string `json:",omitempty"`
	// Remedies are what to do, the most promising first. At most MaxRemedies.
	Remedies []Remedy `json:",omitempty"`

	// Pod, Rank and ExitCode say where it began; empty or nil where that is not known.
	Pod      string `json:",omitempty"`
	Rank     *int32 `json:",omitempty"`
	ExitCode *int32 `json:",omitempty"`
}

// Remedy is something that may help.
type Remedy struct {
	Text string
	// Action is a command, or a field of the job and its value; empty where there is none.
	Action string `json:",omitempty"`
}

// Severity is how much a finding matters.
type Severity string

// The severities.
const (
	// Error: the job failed of it, or cannot go on until somebody acts.
	Error Severity = "Error"
	// Warning: the job may still go on by itself, or is not what its user thinks.
	Warning Severity = "Warning"
	// Info: follows from another finding, or was seen besides.
	Info Severity = "Info"
)

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

// checks are in the order in which causes outrank each other: what was there before pods, what was done to pods, what
// a pod has done to itself, and last what others say of that. A check that does not apply finds nothing.
var checks = []func(*patient) []Finding{
	unplaceable,
	shortOfQuota,
	refused,
	keys,
	takenAway,
	launcherDeleted,
	outOfMemory,
	images,
	containers,
	unstartable,
	volumes,
	unplaced,
	networkMissing,
	unreached,
	hostfileIgnored,
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
	sidecars,
	earlierJob,
	waitingForHosts,
	silent,
	slowStart,
}

// Job tells what is wrong with a job: its cause first, then what follows from it or was seen besides. A job that is
// well has no findings; one that failed or is in trouble has at least one, if only to say what is known and where to
// look.
func Job(job mpi.Job, seen mpi.Observed, evidence mpi.Evidence, outcome mpi.Outcome) []Finding {
	p := newPatient(job, seen, evidence, outcome)
	var found []Finding
	switch {
	case p.succeeded():
		found = slices.Concat(hostfileIgnored(p), mixedMPI(p), unnoticed(p), rdmaNotUsed(p))
	case outcome.Phase == mpi.PhaseSuspended:
		found = shortOfQuota(p)
	case outcome.Phase == mpi.PhaseQueued:
		found = slices.Concat(queued(p), shortOfQuota(p))
	default:
		for _, check := range checks {
			found = append(found, check(p)...)
		}
		if len(found) == 0 {
			found = unknown(p)
		}
	}
	return p.order(found)
}

// consequences say nothing that their cause does not say better: beside one they are evidence of it.
var consequences = map[mpi.Code]bool{
	mpi.CodeApplicationFailed: true, mpi.CodeDaemonsNotStarted: true, mpi.CodeDaemonUnroutable: true,
	mpi.CodeConnectionLost: true, mpi.CodeSSHFailed: true,
	mpi.CodeAborted: true, mpi.CodeTerminated: true, mpi.CodeKilled: true,
}

// order keeps one finding of each code, lets the first be the cause, and bounds all of them.
func (p *patient) order(found []Finding) []Finding {
	var kept []Finding
	for _, f := range found {
		if i := slices.IndexFunc(kept, func(k Finding) bool { return k.Code == f.Code }); i >= 0 {
			kept[i].absorb(f)
			continue
		}
		if len(kept) > 0 && consequences[f.Code] {
			kept[0].absorb(Finding{Evidence: f.Evidence[:min(len(f.Evidence), 1)], Pod: f.Pod, Rank: f.Rank, ExitCode: f.ExitCode})
			continue
		}
		kept = append(kept, f)
	}
	kept = kept[:min(len(kept), MaxFindings)]
	for i := range kept {
		if i == 0 && p.failed() {
			kept[i].Severity = Error
		}
		if i > 0 && p.failed() {
			kept[i].Severity = Info
		}
		kept[i].bound()
		for j := range kept[i].Remedies {
			kept[i].Remedies[j].Action = cut(p.inKind(kept[i].Remedies[j].Action), MaxLine)
		}
	}
	return kept
}

// absorb adds what another finding of the same code knows.
func (f *Finding) absorb(other Finding) {
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

func (f *Finding) bound() {
	f.Summary = cut(f.Summary, MaxText)
	f.Evidence = f.Evidence[:min(len(f.Evidence), MaxEvidence)]
	for i := range f.Evidence {
		f.Evidence[i] = cut(f.Evidence[i], MaxLine)
	}
	if more := len(f.Affected) - MaxAffected; more > 0 {
		f.Affected = append(f.Affected[:MaxAffected:MaxAffected], fmt.Sprintf("and %d more", more))
	}
	f.Remedies = slices.Clone(f.Remedies[:min(len(f.Remedies), MaxRemedies)])
	for i := range f.Remedies {
		f.Remedies[i].Text, f.Remedies[i].Action = cut(f.Remedies[i].Text, MaxLine), cut(f.Remedies[i].Action, MaxLine)
	}
}

// cut keeps a text to so many bytes, on one line, and valid.
func cut(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, mpi.Printable(text))
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len("…")], "") + "…"
	}
	return text
}
