package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
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
				job := agentJob(newNamespace(t), "job", with.sample, with.implementation, 2, with.mpirun, "-n", "4", "ranks", fault.option, cmp.Or(fault.value, "1"))
				create(t, job)
				waitFor(t, job, "the job runs", runs)
				if fault.inject != nil {
					fault.inject(t, job)
				}
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
	// value is that of the option, by default rank 1.
	value string
	// inject makes the fault outside of the program, if it is one; nil otherwise.
	inject func(*testing.T, *kubeflow.MPIJob)
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
		{name: "endless loop", option: "--loop", tells: names},
		{name: "sleep", option: "--pause", tells: names},
		{name: "file that never comes", option: "--file", tells: names},
		{name: "much more work than the others", option: "--slow", tells: names},
		// Rank 1 waits as the others do: for a message of any rank.
		{name: "lost message", option: "--wait", tells: func(f v1alpha1.Finding) bool { return names(f) || f.Code == codes.RanksWaiting }},
		// All ranks have the same work, and none is rank 99.
		{name: "throttled pod", option: "--slow", value: "99", inject: throttleWorker, tells: func(f v1alpha1.Finding) bool {
			return f.Code == codes.Straggler && f.Rank != nil && *f.Rank >= 2 && strings.Contains(f.Summary, "job-worker-1 is throttled")
		}},
	}
}

// throttleWorker gives the second worker of a job a tenth of a CPU, as another CPU limit than that of the first does. The nodes of the
// one-machine cluster have their cgroups on this machine.
func throttleWorker(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	const quota, period = "10000", "100000"
	pods := podsOf(t, job, mpi.RoleWorker)
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == job.Name+"-worker-1" })
	if i < 0 {
		t.Fatalf("%s has no second worker", job.Name)
	}
	uid, limited := string(pods[i].UID), 0
	// The kubelet writes them with dashes or underscores, below a folder for each controller in version 1.
	isPod := func(path string) bool {
		return strings.Contains(path, "pod"+uid) || strings.Contains(path, "pod"+strings.ReplaceAll(uid, "-", "_"))
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		// Those of the pod itself have no processes.
		if err != nil || !entry.IsDir() || !isPod(filepath.Dir(path)) {
			return nil
		}
		for name, value := range map[string]string{"cpu.max": quota + " " + period, "cpu.cfs_quota_us": quota} {
			if os.WriteFile(filepath.Join(path, name), []byte(value), 0) == nil {
				limited++
			}
		}
		return nil
	})
	if limited == 0 {
		t.Skip("SKIPPED: the cgroups of the job's pods are not on this machine")
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
