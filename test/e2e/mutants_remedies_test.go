package e2e

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
)

// remediesInCI is how many remedies are carried out without MUTANTS_REMEDIES, besides those that must let the job succeed: each takes up to two
// minutes, beside other mutants.
const remediesInCI = 3

// remedyForm is what a program can do with a remedy.
type remedyForm string

const (
	// byChange: a copy of the job with changes.
	byChange remedyForm = "change"
	// byRerun: a copy of the job as it is.
	byRerun remedyForm = "again"
	// byCommand: a command, which shows something or changes another object.
	byCommand remedyForm = "command"
	// byHand: a text for users.
	byHand remedyForm = "by hand"
)

// formOf returns the form of a remedy.
func formOf(r v1alpha1.Remedy) remedyForm {
	switch {
	case r.Rerun && len(r.Changes) > 0:
		return byChange
	case r.Rerun:
		return byRerun
	case codes.IsCommand(r.Action):
		return byCommand
	}
	return byHand
}

// remedyEnd is what became of a job's mistake when its remedy was carried out.
type remedyEnd string

const (
	notCarriedOut remedyEnd = ""
	// succeeds: the copy has succeeded.
	succeeds remedyEnd = "succeeded"
	// getsFurther: the copy has no finding of this code, and runs, or ended otherwise.
	getsFurther remedyEnd = "further"
	// commandRuns: the command works. Most of them show something.
	commandRuns remedyEnd = "ran"
	// staysSame: the copy has the same finding, or did not start, or the command failed.
	staysSame remedyEnd = "same"
)

// remedyResult is what became of the first remedy of one mutant.
type remedyResult struct {
	code, mutant, remedy string
	form                 remedyForm
	end                  remedyEnd
	why                  string
}

// remedyTable is a table with a line for each code: how many mutants had it, what the first remedies were, and what became of those that were carried
// out; then the remedies that did not help.
func remedyTable(all []remedyResult) string {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b remedyResult) int {
		return cmp.Or(strings.Compare(a.code, b.code), strings.Compare(a.mutant, b.mutant))
	})
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "code\tmutants\tchange\tagain\tcommand\tby hand\tcarried out\tsucceeded\tfurther\tran\tsame")
	line := func(name string, of []remedyResult) {
		count := func(is func(remedyResult) bool) (n int) {
			for _, r := range of {
				if is(r) {
					n++
				}
			}
			return n
		}
		_, _ = fmt.Fprintf(table, "%s\t%d", name, len(of))
		for _, form := range []remedyForm{byChange, byRerun, byCommand, byHand} {
			_, _ = fmt.Fprintf(table, "\t%d", count(func(r remedyResult) bool { return r.form == form }))
		}
		_, _ = fmt.Fprintf(table, "\t%d", count(func(r remedyResult) bool { return r.end != notCarriedOut }))
		for _, end := range []remedyEnd{succeeds, getsFurther, commandRuns, staysSame} {
			_, _ = fmt.Fprintf(table, "\t%d", count(func(r remedyResult) bool { return r.end == end }))
		}
		_, _ = fmt.Fprintln(table)
	}
	for i := 0; i < len(all); {
		next := i
		for next < len(all) && all[next].code == all[i].code {
			next++
		}
		line(all[i].code, all[i:next])
		i = next
	}
	line("all", all)
	_ = table.Flush()
	for _, r := range all {
		if r.end == staysSame {
			fmt.Fprintf(&text, "%s, %s: %q did not help: %s\n", r.code, r.mutant, r.remedy, r.why)
		}
	}
	return text.String()
}

// remediesToTry is how many jobs are run again with their remedies: MUTANTS_REMEDIES, which can be "all".
func remediesToTry(t *testing.T) int {
	t.Helper()
	if os.Getenv("MUTANTS_REMEDIES") == "all" {
		return 1 << 30
	}
	return numberOf(t, "MUTANTS_REMEDIES", remediesInCI)
}

// mayTry reports whether one more remedy is to be carried out.
func (s *mutantScore) mayTry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remediesLeft--
	return s.remediesLeft >= 0
}

// carryOut carries out the first remedy of a mutant's report, as `explain --apply` does, or runs its command, if there is time for it, and records
// what became of the mistake. A mutant whose remedy must help has the first remedy that changes the job carried out in any case.
func (s *mutantScore) carryOut(t *testing.T, m mutant, object client.Object, report *v1alpha1.JobReport) remedyResult {
	t.Helper()
	first := report.Status.Findings[0]
	result := remedyResult{code: first.Code, mutant: m.String(), form: byHand}
	if len(first.Remedies) == 0 {
		return result
	}
	remedy := first.Remedies[0]
	if m.truth.curable {
		if i := slices.IndexFunc(first.Remedies, func(r v1alpha1.Remedy) bool { return formOf(r) == byChange }); i >= 0 {
			remedy = first.Remedies[i]
		}
	}
	result.form, result.remedy = formOf(remedy), remedy.Text
	switch {
	case result.form == byCommand && strings.HasPrefix(remedy.Action, "kubectl ") && s.runsCommands && hasCommandLine():
		result.end = commandRuns
		if err := failingCommand(t, remedy.Action); err != nil {
			result.end, result.why = staysSame, err.Error()
		}
	case (result.form == byChange || result.form == byRerun) && (m.truth.curable || s.mayTry()):
		result.end, result.why = m.runAgain(t, object, remedy)
	}
	if result.end != notCarriedOut {
		t.Logf("carried out %q: %s %s", remedy.Text, result.end, result.why)
	}
	return result
}

// runAgain creates a copy of a mutant with the changes of a remedy, and waits for its end.
func (m mutant) runAgain(t *testing.T, object client.Object, remedy v1alpha1.Remedy) (remedyEnd, string) {
	t.Helper()
	library := jobs.NewClient(api, nil, time.Now)
	failed, err := library.Find(t.Context(), object.GetNamespace(), strings.ToLower(m.kind())+"/"+object.GetName())
	if err != nil {
		return staysSame, err.Error()
	}
	changes, can := jobs.RemedyChanges(failed, remedy)
	if !can {
		return staysSame, fmt.Sprintf("the changes %v do not fit the job", remedy.Changes)
	}
	clone, err := library.Clone(t.Context(), failed, "", changes...)
	if err != nil {
		return staysSame, err.Error()
	}
	if err := library.Create(t.Context(), clone.Job, jobs.DryRunNone); err != nil {
		return staysSame, err.Error()
	}
	t.Logf("carrying out %q: %v", remedy.Text, changes)
	return m.endOf(t, types.NamespacedName{Namespace: clone.Job.GetNamespace(), Name: clone.Job.GetName()}, failed.Status().Findings[0].Code)
}

// endOf waits until it is known whether a copy of a mutant still has its mistake, of a code.
func (m mutant) endOf(t *testing.T, key types.NamespacedName, code string) (remedyEnd, string) {
	t.Helper()
	// What is running shows its mistake soon, as the mutant did.
	steady := m.truth.after + 20*time.Second
	var running time.Time
	var now *v1alpha1.JobReport
	for start := time.Now(); time.Since(start) < m.truth.after+maxWait; time.Sleep(time.Second) {
		if now = reportOf(t, m.kind(), key.Namespace, key.Name); now == nil {
			continue
		}
		found := now.Status.Findings
		isSame := len(found) > 0 && found[0].Code == code
		switch phase := now.Status.Phase; {
		case phase == v1alpha1.PhaseSucceeded:
			return succeeds, ""
		case phase == v1alpha1.PhaseFailed && isSame:
			return staysSame, "the copy is " + told(now)
		case phase == v1alpha1.PhaseFailed && len(found) > 0:
			return getsFurther, "the copy is " + told(now)
		case phase != v1alpha1.PhaseRunning || isSame:
			running = time.Time{}
		case running.IsZero():
			running = time.Now()
		case time.Since(running) > steady:
			return getsFurther, "the copy is running"
		}
	}
	if now == nil {
		return staysSame, "the copy has no report"
	}
	return staysSame, fmt.Sprintf("the copy has not ended: it is %s", told(now))
}

// TestRemedyTable: each code has a line, and remedies that did not help are named.
func TestRemedyTable(t *testing.T) {
	t.Parallel()
	got := remedyTable([]remedyResult{
		{code: "OutOfMemory", mutant: "b", form: byChange, end: succeeds},
		{code: "NodeMissing", mutant: "c", form: byChange, end: getsFurther},
		{code: "OutOfMemory", mutant: "a", form: byChange, end: staysSame, remedy: "Increase it.", why: "it has the same finding"},
		{code: "Killed", mutant: "d", form: byHand},
		{code: "RanksIdle", mutant: "e", form: byCommand, end: commandRuns},
	})
	for _, want := range []string{
		"code         mutants  change  again  command  by hand  carried out  succeeded  further  ran  same\n",
		"NodeMissing  1        1       0      0        0        1            0          1        0    0\n",
		"OutOfMemory  2        2       0      0        0        2            1          0        0    1\n",
		"Killed       1        0       0      0        1        0            0          0        0    0\n",
		"RanksIdle    1        0       0      1        0        1            0          0        1    0\n",
		"all          5        3       0      1        1        4            1          1        1    1\n",
		`OutOfMemory, a: "Increase it." did not help: it has the same finding`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

// TestRemedyForms: what is only a field for users is carried out by hand.
func TestRemedyForms(t *testing.T) {
	t.Parallel()
	for want, r := range map[remedyForm]v1alpha1.Remedy{
		byChange:  {Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "env.A", Value: "1"}}},
		byRerun:   {Rerun: true},
		byCommand: {Action: "kubectl get pods"},
		byHand:    {Action: "spec.slotsPerWorker"},
	} {
		if got := formOf(r); got != want {
			t.Errorf("%+v is carried out by %s, want %s", r, got, want)
		}
	}
}
