package e2e

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpitest"
)

// Verdicts besides those of a truth.
const (
	// overwritten: the report was right, and is not any more.
	overwritten mpitest.Verdict = "overwritten"
	// uncured: the report is right, and the job fails again although its remedy was carried out.
	uncured mpitest.Verdict = "uncured"
)

const (
	// mutantsInCI is how many mutants are tried without MUTANTS: one each of a third of the families, because CI has little time.
	mutantsInCI = 12
	// mutantsRight is the share in percent that must be told right, and mutantsRightInCI that of the sample: of so few, two may be told
	// wrongly by chance.
	mutantsRight, mutantsRightInCI = 95, 80
)

// TestMutants: correct jobs are broken in one way each, and their reports name what was broken.
//
// A report is right if the first finding has the cause, the place and, as its first remedy, what is to be done, and still has when the job is over.
//
// The first remedy is then carried out as it stands: the job is run again with its changes, or its command is run. A second table shows for each code
// what became of the mistake. MUTANTS_REMEDIES is how many jobs are run again, 0 for none and "all" for each; few in CI.
//
// MUTANTS is the number of jobs, or "all" for each family as both kinds. MUTANTS_SEED chooses others; without it the commit does, so that
// each commit tries others, and the same ones again. With MUTANTS_LOAD=1 all CPUs are kept busy meanwhile. MUTANTS_SAVE=FOLDER saves the
// objects and logs of those that are told wrongly: with FOLDER=../../internal/offline/testdata/mutants they become tests of the diagnosis.
func TestMutants(t *testing.T) {
	t.Parallel()
	seed, number := mutantSeed(t), mutantsInCI
	if os.Getenv("MUTANTS") == "all" {
		number = 2 * len(mistakes())
	} else {
		number = numberOf(t, "MUTANTS", number)
	}
	fmt.Printf("MUTANTS_SEED=%d MUTANTS=%d make e2e SUITE=mutants repeats these mutants\n", seed, number)
	remedies := remediesToTry(t)
	score := &mutantScore{runsCommands: remedies > 0, remediesLeft: remedies}
	t.Run("all", func(t *testing.T) {
		for i, m := range makeMutants(t, seed, number) {
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
	fmt.Printf("mutants of seed %d\n%s\nfirst remedies, and what became of those that were carried out\n%s", seed, score, remedyTable(score.remedies))
	want := mutantsRightInCI
	if number > mutantsInCI {
		want = mutantsRight
	}
	if right, all := score.right(); 100*right < want*all {
		t.Errorf("%d of %d mutants are explained correctly; want %d %%", right, all, want)
	}
}

// mutantSeed is MUTANTS_SEED or, without it, a number that follows from the commit.
func mutantSeed(t *testing.T) uint64 {
	t.Helper()
	if os.Getenv("MUTANTS_SEED") != "" {
		return uint64(numberOf(t, "MUTANTS_SEED", 0)) //nolint:gosec // numberOf refuses negative numbers
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Logf("the seed is 1, because the commit is unknown: %v", err)
		return 1
	}
	return seedOf(strings.TrimSpace(string(commit)))
}

// seedOf is the number in the first digits of a commit, as people can type it.
func seedOf(commit string) uint64 {
	seed, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 64)
	if err != nil {
		return 1
	}
	return seed
}

// TestMutantSeeds: each commit has its own seed, and it is a number that MUTANTS_SEED takes.
func TestMutantSeeds(t *testing.T) {
	t.Parallel()
	one, other := seedOf("da9d6d2105fe"), seedOf("0f538dcf05fe")
	if one == other || one != seedOf("da9d6d2105fe") || one > math.MaxInt || seedOf("") != 1 {
		t.Errorf("%d and %d", one, other)
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

// mutantScore is how right mutants were told.
type mutantScore struct {
	mu       sync.Mutex
	all      []mutantResult
	remedies []remedyResult
	// runsCommands is whether the commands of remedies are run, and remediesLeft how many more jobs may be run again.
	runsCommands bool
	remediesLeft int
}

// mutantResult is how right one was told; why is what differs.
type mutantResult struct {
	mutant  mutant
	verdict mpitest.Verdict
	took    time.Duration
	why     string
}

func (s *mutantScore) right() (right, all int) {
	for _, result := range s.all {
		if result.verdict == mpitest.Right {
			right++
		}
	}
	return right, len(s.all)
}

// String is a table with a line for each mutant, and what differs in those that are not right.
func (s *mutantScore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.all, func(a, b mutantResult) int { return strings.Compare(a.mutant.String(), b.mutant.String()) })
	load := "quiet"
	if os.Getenv("MUTANTS_LOAD") == "1" {
		load = "loaded"
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "family\tkind\tMPI\tbase\tmachine\tseconds\tverdict\tbroken\tdifference")
	for _, r := range s.all {
		what := strings.Join(strings.Fields(r.mutant.what), " ")
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%.70s\t%s\n", r.mutant.family, r.mutant.kind(), r.mutant.sample, r.mutant.base, load, r.took.Seconds(), r.verdict, what, r.why)
	}
	_ = table.Flush()
	right, all := 0, len(s.all)
	for _, r := range s.all {
		if r.verdict == mpitest.Right {
			right++
		}
	}
	fmt.Fprintf(&text, "%d of %d right\n", right, all)
	return text.String()
}

func (s *mutantScore) add(result mutantResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, result)
}

func (s *mutantScore) addRemedy(result remedyResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remedies = append(s.remedies, result)
}

// try creates a mutant, waits until its report explains it and still does when the job is over, carries out its first remedy, and
// counts how it was explained.
func (s *mutantScore) try(t *testing.T, m mutant) {
	start := time.Now()
	namespace := newNamespace(t)
	if m.open {
		namespace = openNamespace(t)
	}
	for _, object := range m.objects {
		object.SetNamespace(namespace)
		create(t, object)
	}
	if m.quota != "" {
		quotaIn(t, namespace, m.quota)
	}
	m.job.Namespace = namespace
	var object client.Object = m.job
	if m.trainJob {
		object = asTrainJob(t, m.job, m.inRuntime...)
	}
	if err := submit(t, api, object); err != nil {
		verdict, why := m.truth.JudgeRefusal(err)
		t.Logf("%s: refused: %v", verdict, err)
		s.add(mutantResult{m, verdict, time.Since(start), why})
		return
	}
	verdict, why, report := m.await(t, object)
	took := time.Since(start)
	if m.family != "image" && report != nil && len(report.Status.Findings) > 0 && report.Status.Findings[0].Code == codes.ImagePullFailed {
		t.Fatalf("the mutant cannot be tried, because the cluster lacks an image: %s", report.Status.Findings[0].Summary)
	}
	t.Logf("%s: %s; the truth is %+v\n%s", verdict, why, m.truth.Truth, told(report))
	if verdict == mpitest.Right {
		remedy := s.carryOut(t, m, object, report)
		if s.addRemedy(remedy); m.truth.curable && remedy.end != succeeds {
			verdict, why = uncured, fmt.Sprintf("%q is %s: %s", remedy.remedy, remedy.end, remedy.why)
			t.Logf("%s: %s", verdict, why)
		}
	}
	if verdict != mpitest.Right {
		m.save(t, namespace, report)
	}
	s.add(mutantResult{m, verdict, took, why})
}

// await waits until a mutant is over, or the time within which people expect an answer, and judges what its report states then. A job that does
// not end has to be explained in the same way for a while.
func (m mutant) await(t *testing.T, object client.Object) (verdict mpitest.Verdict, why string, report *v1alpha1.JobReport) {
	t.Helper()
	// within is how long people wait for an answer, afterEnd how long the operator looks for the cause of an end, and stable how long
	// an answer must last.
	const within, afterEnd, stable = 2 * time.Minute, 30 * time.Second, 20 * time.Second
	verdict, why = mpitest.Vague, "there is no report"
	rightSince, wasRight := time.Time{}, false
	for start := time.Now(); time.Since(start) < m.truth.after+within; time.Sleep(500 * time.Millisecond) {
		now := reportOf(t, m.kind(), object.GetNamespace(), object.GetName())
		if now == nil {
			continue
		}
		report = now
		verdict, why = m.truth.Judge(now.Status.Findings)
		switch {
		case verdict != mpitest.Right:
			rightSince = time.Time{}
		case rightSince.IsZero():
			rightSince, wasRight = time.Now(), true
		}
		if over := now.Status.CompletionTime; over != nil && time.Since(over.Time) > afterEnd {
			break
		}
		lasts := !rightSince.IsZero() && time.Since(rightSince) > stable
		if lasts && (m.truth.runs || now.Status.CompletionTime != nil || time.Since(rightSince) > afterEnd) {
			break
		}
	}
	if wasRight && verdict != mpitest.Right {
		return overwritten, fmt.Sprintf("it was right, and now is %s: %s", verdict, why), report
	}
	return verdict, why, report
}

// save copies what was gathered of a mutant to the folder MUTANTS_SAVE, if it is set: its objects and logs, what the operator reported, and
// the truth.
func (m mutant) save(t *testing.T, namespace string, report *v1alpha1.JobReport) {
	t.Helper()
	to := os.Getenv("MUTANTS_SAVE")
	if to == "" || report == nil {
		return
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Logf("not saved: %v", err)
		return
	}
	folder, _ := saveFiles(t, namespace)
	// Only the pods of the mutant itself are its evidence.
	if err := errors.Join(os.Remove(filepath.Join(folder, "pods.yaml")), removeObjects(filepath.Join(folder, "objects.yaml"), "kube-root-ca.crt")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{"operator.report": report, "truth": m.truth.Truth} {
		text, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(to, strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(m.family+" "+m.kind()+" "+m.sample+" "+m.what), "-"), "-"))
	at = at[:min(len(at), len(to)+60)]
	if err := errors.Join(os.RemoveAll(at), os.CopyFS(at, os.DirFS(folder))); err != nil {
		t.Error(err)
	}
	t.Logf("saved in %s", at)
}

// removeObjects removes the objects of a name from a list in a file.
func removeObjects(path, name string) error {
	var list struct {
		APIVersion string                      `json:"apiVersion"`
		Kind       string                      `json:"kind"`
		Items      []unstructured.Unstructured `json:"items"`
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool { return object.GetName() == name })
	if text, err = yaml.Marshal(list); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// kind is the mutant's kind.
func (m mutant) kind() string {
	if m.trainJob {
		return trainjob.Kind
	}
	return (mpijob.Kind{}).Name()
}
