package mpitest_test

import (
	"errors"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestTruth: only the first finding's summary, place and first remedy count.
func TestTruth(t *testing.T) {
	t.Parallel()
	truth := mpitest.Truth{Codes: []string{"OutOfMemory"}, Says: []string{"256 MiB"}, Advises: []string{"memory limit"}, Rank: new(int32(1)), Pod: "-worker-"}
	right := v1alpha1.Finding{
		Code: "OutOfMemory", Summary: "Worker 0 out of memory: used 256 MiB of 256 MiB.", Affected: []string{"job-worker-0"}, Rank: new(int32(1)),
		Remedies: []v1alpha1.Remedy{{Text: "Increase the memory limit."}, {Text: "Or use less."}},
	}
	other := v1alpha1.Finding{Code: "ConnectionLost", Summary: "The connection was lost."}
	changed := func(change func(*v1alpha1.Finding)) []v1alpha1.Finding {
		f := *right.DeepCopy()
		change(&f)
		return []v1alpha1.Finding{f}
	}
	for name, test := range map[string]struct {
		findings []v1alpha1.Finding
		want     mpitest.Verdict
	}{
		"right":                 {[]v1alpha1.Finding{right, other}, mpitest.Right},
		"rank in the summary":   {changed(func(f *v1alpha1.Finding) { f.Rank, f.Summary = nil, "Ranks 0, 1 and 3 out of memory: 256 MiB" }), mpitest.Right},
		"no finding":            {nil, mpitest.Vague},
		"unknown":               {[]v1alpha1.Finding{{Code: "Unknown"}}, mpitest.Vague},
		"below another":         {[]v1alpha1.Finding{other, right}, mpitest.Outranked},
		"another":               {[]v1alpha1.Finding{other}, mpitest.Wrong},
		"only in the evidence":  {changed(func(f *v1alpha1.Finding) { f.Summary, f.Evidence = "Out of memory.", []string{"256 MiB"} }), mpitest.Unnamed},
		"another rank":          {changed(func(f *v1alpha1.Finding) { f.Rank = new(int32(2)) }), mpitest.WrongPlace},
		"rank of another digit": {changed(func(f *v1alpha1.Finding) { f.Rank, f.Summary = nil, "Rank 12 out of memory: 256 MiB" }), mpitest.WrongPlace},
		"another pod":           {changed(func(f *v1alpha1.Finding) { f.Affected = []string{"job-launcher-x"} }), mpitest.WrongPlace},
		"a later remedy":        {changed(func(f *v1alpha1.Finding) { f.Remedies[0], f.Remedies[1] = f.Remedies[1], f.Remedies[0] }), mpitest.WrongRemedy},
		"no remedy":             {changed(func(f *v1alpha1.Finding) { f.Remedies = nil }), mpitest.WrongRemedy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, why := truth.Judge(test.findings); got != test.want {
				t.Errorf("%s (%s), want %s", got, why, test.want)
			}
		})
	}
}

// TestTruthOfRefusals: an error is right only if it is of what was broken.
func TestTruthOfRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		says  []string
		error string
		want  mpitest.Verdict
	}{
		"what was broken": {[]string{"image", "x:y:z"}, `spec.image: "x:y:z" is no image`, mpitest.Right},
		"something else":  {[]string{"image"}, "spec.slotsPerWorker: must be 1 or more", mpitest.Wrong},
		"nothing known":   {nil, "the webhook is away", mpitest.Wrong},
		"an empty text":   {[]string{""}, "the webhook is away", mpitest.Wrong},
	} {
		if got, why := (mpitest.Truth{Says: test.says}).JudgeRefusal(errors.New(test.error)); got != test.want {
			t.Errorf("%s: %s (%s), want %s", name, got, why, test.want)
		}
	}
}
