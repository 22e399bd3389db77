package diagnose

import (
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

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
	if len(kept) > 0 {
		p.considerWarnings(&kept[0])
	}
	for i := range kept {
		if i == 0 && p.Failed() {
			kept[i].Severity = v1alpha1.SeverityError
		}
		if i > 0 && p.Failed() {
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
