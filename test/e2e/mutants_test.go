package e2e

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// How right a mutant was told.
const (
	// toldRight: the first finding has the right code and all words; toldNear: a finding has the right code, or the first one all words;
	// toldVaguely: no finding, or one without a cause; toldWrong: another cause.
	toldRight, toldNear, toldVaguely, toldWrong = "right", "near", "vague", "wrong"
	// mutantsInCI is how many mutants are tried without MUTANTS: one each of half of the families, because CI has little time.
	mutantsInCI = 12
	// mutantsRight is the share in percent that must be told right, and mutantsRightInCI that of the sample: of so few, one or two may be
	// of the kinds that are known to be told wrongly.
	mutantsRight, mutantsRightInCI = 95, 75
)

// TestMutants: correct jobs are broken in one way each, and their reports name what was broken.
//
// MUTANTS is the number of jobs, MUTANTS_SEED chooses others, and with MUTANTS_LOAD=1 all CPUs are kept busy meanwhile.
func TestMutants(t *testing.T) {
	t.Parallel()
	number, seed := numberOf(t, "MUTANTS", mutantsInCI), numberOf(t, "MUTANTS_SEED", 1)
	score := &mutantScore{counts: map[string]map[string]int{}}
	t.Run("all", func(t *testing.T) {
		for i, m := range makeMutants(uint64(seed), number) {
			t.Run(fmt.Sprintf("%d %s", i, m), func(t *testing.T) {
				// Few mutants run ranks for long.
				parallel(t, 2)
				score.try(t, m)
			})
		}
		if os.Getenv("MUTANTS_LOAD") == "1" {
			keepBusy(t)
		}
	})
	fmt.Printf("mutants of seed %d\n%s", seed, score)
	want := mutantsRightInCI
	if number > mutantsInCI {
		want = mutantsRight
	}
	if right, all := score.right(); 100*right < want*all {
		t.Errorf("%d of %d mutants are explained correctly; want %d %%", right, all, want)
	}
}

// keepBusy computes on all CPUs until the test and its subtests have ended.
func keepBusy(t *testing.T) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	for range runtime.NumCPU() {
		go func() {
			for sum := 0; ; sum++ {
				if sum%(1<<20) != 0 {
					continue
				}
				select {
				case <-done:
					return
				case <-time.After(0):
				}
			}
		}()
	}
}

// mutantScore counts how right mutants were told, by family.
type mutantScore struct {
	mu     sync.Mutex
	counts map[string]map[string]int
}

func (s *mutantScore) right() (right, all int) {
	for _, of := range s.counts {
		for how, count := range of {
			all += count
			if how == toldRight {
				right += count
			}
		}
	}
	return right, all
}

// String is a table with a line for each family.
func (s *mutantScore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "family\tright\tnear\tvague\twrong")
	for _, family := range slices.Sorted(maps.Keys(s.counts)) {
		of := s.counts[family]
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", family, of[toldRight], of[toldNear], of[toldVaguely], of[toldWrong])
	}
	_ = table.Flush()
	return text.String()
}

func (s *mutantScore) add(family, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[family] == nil {
		s.counts[family] = map[string]int{}
	}
	s.counts[family][how]++
}

// try creates a mutant, waits until its report explains it or the time is over, and counts how it was explained.
func (s *mutantScore) try(t *testing.T, m mutant) {
	namespace := newNamespace(t)
	for _, object := range m.objects {
		object.SetNamespace(namespace)
		create(t, object)
	}
	m.job.Namespace = namespace
	var object client.Object = m.job
	if m.trainJob {
		object = asTrainJob(t, m.job)
	}
	if err := submit(t, api, object); err != nil {
		how := toldWrong
		if containsAll(err.Error(), m.truth.words) {
			how = toldRight
		}
		s.add(m.family, how)
		t.Logf("%s: refused: %v", how, err)
		return
	}
	how, report := m.await(t, object)
	s.add(m.family, how)
	t.Logf("%s; the truth is %v with %q\n%s", how, m.truth.codes, m.truth.words, told(report))
}

// await waits until the report of a mutant explains it and, if it ends by itself, has done so for a while or it has ended; or until no
// better report can come.
func (m mutant) await(t *testing.T, object client.Object) (how string, report *v1alpha1.JobReport) {
	t.Helper()
	// within is how long people wait for an answer, and afterEnd how long the operator looks for the cause of an end.
	const within, afterEnd = 2 * time.Minute, 30 * time.Second
	kind := (mpijob.Kind{}).Name()
	if m.trainJob {
		kind = trainjob.Kind
	}
	how = toldVaguely
	rightSince := time.Time{}
	for start := time.Now(); time.Since(start) < m.truth.after+within; time.Sleep(500 * time.Millisecond) {
		now := reportOf(t, kind, object.GetNamespace(), object.GetName())
		if now == nil {
			continue
		}
		report, how = now, m.truth.judge(now.Status.Findings)
		switch {
		case how != toldRight:
			rightSince = time.Time{}
		case rightSince.IsZero():
			rightSince = time.Now()
		}
		over := now.Status.CompletionTime
		if how == toldRight && (m.truth.runs || over != nil || time.Since(rightSince) > afterEnd) || over != nil && time.Since(over.Time) > afterEnd {
			break
		}
	}
	return how, report
}

// judge compares findings with the truth.
func (w truth) judge(findings []v1alpha1.Finding) string {
	if len(findings) == 0 {
		return toldVaguely
	}
	hasCode := func(f v1alpha1.Finding) bool { return slices.Contains(w.codes, f.Code) }
	first := findings[0]
	hasWords := containsAll(textOf(first), w.words)
	switch {
	case hasCode(first) && hasWords:
		return toldRight
	case hasWords && len(w.words) > 0, slices.ContainsFunc(findings, hasCode):
		return toldNear
	case first.Code == "Unknown":
		return toldVaguely
	}
	return toldWrong
}

// textOf is everything that a finding says.
func textOf(f v1alpha1.Finding) string {
	text := f.Summary + "\n" + strings.Join(f.Evidence, "\n")
	for _, remedy := range f.Remedies {
		text += "\n" + remedy.Text + "\n" + remedy.Action
	}
	return text
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
