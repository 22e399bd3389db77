package mpitest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Truth is what the report of a job has to state, known by how the job was broken.
type Truth struct {
	// Codes are those of which the first finding has one. There are several where implementations of MPI differ.
	Codes []string `json:"codes"`
	// Says are parts of the first finding's summary.
	Says []string `json:"says,omitempty"`
	// Advises are parts of which the first remedy has one: in its text, its action or the fields that it changes.
	Advises []string `json:"advises,omitempty"`
	// Rank is the rank that is at fault; nil if it is none, or any may be the first.
	Rank *int32 `json:"rank,omitempty"`
	// Pod is a part of the name of the first affected pod; empty if any will do.
	Pod string `json:"pod,omitempty"`
}

// Verdict is how well a finding meets the truth.
type Verdict string

// Verdicts, from the best to the worst.
const (
	// Right: cause, place and first remedy are those of the truth.
	Right Verdict = "right"
	// WrongRemedy: cause and place are right; the first remedy is another one.
	WrongRemedy Verdict = "remedy"
	// WrongPlace: the cause is right; the pod or rank is not.
	WrongPlace Verdict = "place"
	// Unnamed: the first finding has the right code, but its summary does not name what is wrong.
	Unnamed Verdict = "unnamed"
	// Outranked: the cause is below another finding.
	Outranked Verdict = "outranked"
	// Vague: there is no finding, or one without a cause.
	Vague Verdict = "vague"
	// Wrong: another cause is reported.
	Wrong Verdict = "wrong"
)

// Judge compares findings with the truth. Only the first finding counts, and of that its summary, place and first remedy: evidence and other
// remedies may quote anything. The text states what differs.
func (w Truth) Judge(findings []v1alpha1.Finding) (verdict Verdict, difference string) {
	if len(findings) == 0 {
		return Vague, "there is no finding"
	}
	first := findings[0]
	if !slices.Contains(w.Codes, first.Code) {
		difference = fmt.Sprintf("the first finding is %s", first.Code)
		switch {
		case slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return slices.Contains(w.Codes, f.Code) }):
			return Outranked, difference
		case first.Code == "Unknown":
			return Vague, difference
		}
		return Wrong, difference
	}
	if lacks := slices.DeleteFunc(slices.Clone(w.Says), func(part string) bool { return strings.Contains(first.Summary, part) }); len(lacks) > 0 {
		return Unnamed, fmt.Sprintf("the summary lacks %q", lacks)
	}
	if difference := w.place(first); difference != "" {
		return WrongPlace, difference
	}
	if advice := firstRemedy(first); len(w.Advises) > 0 && !slices.ContainsFunc(w.Advises, func(part string) bool { return strings.Contains(advice, part) }) {
		return WrongRemedy, fmt.Sprintf("the first remedy has none of %q", w.Advises)
	}
	return Right, ""
}

// JudgeRefusal compares the error with which the API server refuses a job with the truth. An error is right only if it is of what was broken.
func (w Truth) JudgeRefusal(refused error) (verdict Verdict, difference string) {
	says := slices.DeleteFunc(slices.Clone(w.Says), func(part string) bool { return part == "" })
	if len(says) == 0 {
		return Wrong, "the job is refused, and nothing is known by which to judge the error"
	}
	if lacks := slices.DeleteFunc(says, func(part string) bool { return strings.Contains(refused.Error(), part) }); len(lacks) > 0 {
		return Wrong, fmt.Sprintf("the error lacks %q", lacks)
	}
	return Right, ""
}

// place returns what differs in the pod and the rank of a finding.
func (w Truth) place(f v1alpha1.Finding) string {
	if w.Pod != "" && !slices.ContainsFunc(f.Affected, func(name string) bool { return strings.Contains(name, w.Pod) }) {
		return fmt.Sprintf("it affects %q, and not %s", f.Affected, w.Pod)
	}
	if w.Rank == nil || f.Rank != nil && *f.Rank == *w.Rank {
		return ""
	}
	if f.Rank == nil && regexp.MustCompile(fmt.Sprintf(`\b[Rr]anks? (\d+(, | and ))*%d\b`, *w.Rank)).MatchString(f.Summary) {
		return ""
	}
	return fmt.Sprintf("it is not of rank %d", *w.Rank)
}

// firstRemedy is all of the first remedy in one text.
func firstRemedy(f v1alpha1.Finding) string {
	if len(f.Remedies) == 0 {
		return ""
	}
	remedy := f.Remedies[0]
	parts := []string{remedy.Text, remedy.Action}
	for _, change := range remedy.Changes {
		parts = append(parts, change.Field)
	}
	return strings.Join(parts, "\n")
}
