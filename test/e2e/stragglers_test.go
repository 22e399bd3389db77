package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
)

// TestStragglers: with each MPI, and whatever holds rank 1 up, the report says that the ranks wait, and names rank 1 where the others wait
// for it. It takes minutes, and requires STRAGGLERS=quiet, which runs one job at a time, or STRAGGLERS=busy, which keeps every core busy.
func TestStragglers(t *testing.T) {
	load := os.Getenv("STRAGGLERS")
	switch load {
	case "":
		t.Skip("SKIPPED: it takes minutes; STRAGGLERS=quiet and STRAGGLERS=busy run it")
	case "quiet", "busy":
	default:
		t.Fatalf("STRAGGLERS is %q; use quiet or busy", load)
	}
	var outcome stragglerTable
	t.Cleanup(outcome.print)
	if load == "busy" {
		keepCoresBusy(t)
	}
	for _, with := range implementations {
		for _, fault := range stragglerFaults() {
			t.Run(with.sample+"/"+fault.name, func(t *testing.T) {
				if load == "busy" {
					t.Parallel()
					takeRoom(t, 2)
				}
				job := agentJob(newNamespace(t), "job", with.sample, with.implementation, 2, with.mpirun, "-n", "4", "ranks", fault.option, "1")
				create(t, job)
				waitFor(t, job, "the job runs", runs)
				began := time.Now()
				var found v1alpha1.Finding
				eventuallyAfter(t, "a finding says who waits", 2*time.Minute, maxWait, func() error {
					report := reportOf(t, (mpijob.Kind{}).Name(), job.Namespace, job.Name)
					if report == nil {
						return errors.New("there is no report")
					}
					i := slices.IndexFunc(report.Status.Findings, fault.tells)
					if i < 0 {
						return fmt.Errorf("findings are %+v", report.Status.Findings)
					}
					found = report.Status.Findings[i]
					return nil
				})
				outcome.add(with.sample, fault.name, found.Code, time.Since(began))
				t.Logf("after %s: %s: %s", time.Since(began).Round(time.Second), found.Code, found.Summary)
			})
		}
	}
}

// A stragglerFault holds a rank up.
type stragglerFault struct {
	name string
	// option is that of the sample program ranks.
	option string
	tells  func(v1alpha1.Finding) bool
}

func stragglerFaults() []stragglerFault {
	names := func(f v1alpha1.Finding) bool {
		text := f.Summary
		if len(f.Remedies) > 0 {
			text += " " + f.Remedies[0].Text
		}
		isNamed := f.Rank != nil && *f.Rank == 1 || strings.Contains(strings.ToLower(text), "rank 1 ")
		return isNamed && slices.Contains([]codes.Code{codes.Straggler, codes.RanksWaiting, codes.RanksIdle}, f.Code)
	}
	return []stragglerFault{
		{"endless loop", "--loop", names},
		{"sleep", "--pause", names},
		{"file that never comes", "--file", names},
		{"much more work than the others", "--slow", names},
		// Rank 1 waits as the others do: for a message of any rank.
		{"lost message", "--wait", func(f v1alpha1.Finding) bool { return names(f) || f.Code == codes.RanksWaiting }},
	}
}

// keepCoresBusy computes on each core of the machine until the test has ended.
func keepCoresBusy(t *testing.T) {
	t.Helper()
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--slow", "99")
	create(t, job)
	waitFor(t, job, "a job keeps the cores busy", runs)
}

// stragglerTable has the code and the time of each case.
type stragglerTable struct {
	mu   sync.Mutex
	rows []string
}

func (s *stragglerTable) add(sample, fault, code string, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, fmt.Sprintf("%-10s %-32s %-14s %4.0f s", sample, fault, code, after.Seconds()))
}

func (s *stragglerTable) print() {
	slices.Sort(s.rows)
	fmt.Println(strings.Join(s.rows, "\n"))
}
