package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// computedSeconds is how many seconds of a CPU computingProgram uses. It runs for at least half a minute, and longer where others
// leave little of a CPU, and sleeps at its end for longer than an interval of the measurement. idlingProgram does nothing meanwhile.
const computedSeconds = 6

var (
	computingProgram = fmt.Sprintf("import time; t = time.time()\nwhile time.process_time() < %d: pass\ntime.sleep(max(15, 30 - (time.time() - t)))", computedSeconds)
	idlingProgram    = "import time; time.sleep(30)"
)

// TestUsageOverTime: the record of a job shows whether it computed or did nothing, by pod and by rank, also when it has been deleted.
func TestUsageOverTime(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	for name, test := range map[string]struct {
		kind     string
		computes bool
	}{
		"an MPIJob that computes": {kubeflow.Kind, true}, "an MPIJob that does nothing": {kubeflow.Kind, false},
		"a TrainJob that computes": {trainjob.Kind, true}, "a TrainJob that does nothing": {trainjob.Kind, false},
	} {
		t.Run(name, func(t *testing.T) {
			program := idlingProgram
			if test.computes {
				parallel(t, 2)
				program = computingProgram
			} else {
				t.Parallel()
			}
			namespace, jobName := newNamespace(t), "job"
			var object client.Object
			if test.kind == kubeflow.Kind {
				job := openMPI(namespace, 2, "mpirun", "-n", "2", "python3", "-c", program)
				create(t, job)
				object = job
			} else {
				needTrainer(t)
				runtimeIn(t, namespace, "mpi-openmpi")
				job := trainJob(t, namespace, fmt.Sprintf("{numNodes: 2, numProcPerNode: 1, command: [mpirun, -n, '2', python3, -c, %q]}", program))
				createTrainJob(t, job)
				object, jobName = job, "pi"
			}
			reported(t, test.kind, namespace, jobName, "the job runs", inPhase(v1alpha1.PhaseRunning))
			usage := reported(t, test.kind, namespace, jobName, "the record of the job that ended shows what it used", func(status v1alpha1.JobReportStatus) error {
				if status.Phase != v1alpha1.PhaseSucceeded || status.Usage == nil {
					return fmt.Errorf("it is %s: %s, and used %+v", status.Phase, status.Message, status.Usage)
				}
				return nil
			}).Status.Usage
			checkUsage(t, usage, test.computes)

			if err := api.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the job is gone", time.Minute, func() error {
				if left := children(t, namespace); len(left) > 0 {
					return fmt.Errorf("left are %v", left)
				}
				return nil
			})
			s := shell{t, namespace}
			s.run(0, []string{"in 2 pods:", "OVER TIME", "CPU MEAN", "RANK", jobs.MetricText(v1alpha1.MetricCPU, usage.Metrics[0].Mean)}, "top", jobName, "--history")
			s.run(0, []string{`"pointSeconds"`, `"perPod"`}, "top", jobName, "--history", "-o", "json")
			s.run(0, []string{"Used ", "on average"}, "describe", jobName)
		})
	}
}

// TestSumsOfDeletedReports: what jobs of both kinds reserved whose reports were deleted by others is in the sums of their namespace, which an
// administrator sees.
func TestSumsOfDeletedReports(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := quickJob(namespace, "deleted")
	create(t, job)
	runtimeIn(t, namespace, "mpi-openmpi")
	train := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")
	createTrainJob(t, train)
	for kind, job := range map[string]client.Object{kubeflow.Kind: job, trainjob.Kind: train} {
		report := reported(t, kind, namespace, job.GetName(), "the job ends", func(status v1alpha1.JobReportStatus) error {
			if status.CompletionTime == nil || status.Consumption == nil {
				return fmt.Errorf("it is %s, and reserved %+v", status.Phase, status.Consumption)
			}
			return nil
		})
		if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the job is gone", time.Minute, func() error {
			if left := children(t, namespace); len(left) > 0 && api.Get(t.Context(), client.ObjectKeyFromObject(job), job) == nil {
				return fmt.Errorf("left are %v", left)
			}
			return nil
		})
		if err := api.Delete(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	// They are counted a minute later.
	eventually(t, "the sums have the jobs", 3*time.Minute, func() error {
		var configs corev1.ConfigMapList
		if err := api.List(t.Context(), &configs, client.InNamespace(operatorKey.Namespace), client.MatchingLabels{mpi.LabelUsageOf: namespace}); err != nil {
			return err
		}
		counted := 0
		for _, config := range configs.Items {
			sums, err := cost.ParseLedger(config.Data)
			if err != nil {
				return err
			}
			for _, line := range sums.Lines {
				counted += line.Jobs
			}
		}
		if counted != 2 {
			return fmt.Errorf("%d jobs are counted", counted)
		}
		return nil
	})
	s := shell{t, namespace}
	s.run(0, []string{"(deleted reports)"}, "usage", "-n", namespace)
}

// TestLaunchIsReported: while a job runs, its record and its events show that the launcher connected to the workers and that ranks run.
func TestLaunchIsReported(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, openMPI(namespace, 2, "mpirun", "-n", "4", "ranks", "--sleep", "600"))
	steps := []string{codes.WorkersFound, codes.MPIInitialized}
	// The operator reads it after 15 s, and then about once a minute.
	eventually(t, "the record of the running job shows that ranks run", 3*time.Minute, func() error {
		report := reportOf(t, kubeflow.Kind, namespace, "job")
		if report == nil || report.Status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("the report is %+v", report)
		}
		for _, step := range steps {
			if !slices.ContainsFunc(report.Status.Timeline, func(entry v1alpha1.TimelineEntry) bool { return entry.Event == step }) {
				return fmt.Errorf("there is no %s on the timeline: %+v", step, report.Status.Timeline)
			}
		}
		return nil
	})
	eventually(t, "the job has events", time.Minute, func() error {
		var events corev1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, step := range steps {
			if !slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
				return event.Reason == step && event.InvolvedObject.Kind == kubeflow.Kind && event.Type == corev1.EventTypeNormal
			}) {
				return fmt.Errorf("there is no %s", step)
			}
		}
		return nil
	})
}

// checkUsage checks what a job of two pods with a rank each used: its CPU time, which does not depend on what others leave of a CPU.
func checkUsage(t *testing.T, usage *v1alpha1.Usage, computes bool) {
	t.Helper()
	// The last interval may be missing, and a pod that does nothing starts MPI.
	const enough, little = 0.6 * computedSeconds, 0.3 * computedSeconds
	cpu, memory := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricCPU), v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricMemory)
	if cpu == nil || memory == nil || usage.Pods != 2 || len(usage.PerPod) != 2 || len(usage.PerRank) != 2 {
		t.Fatalf("it shows %+v", usage)
	}
	if covered := usage.Until.Sub(usage.Since.Time); covered < 20*time.Second || len(cpu.Points) < 2 {
		t.Errorf("it covers %s with %d points", covered, len(cpu.Points))
	}
	if cpu.Mean > cpu.Max || cpu.P95 > cpu.Max || memory.Max <= 0 {
		t.Errorf("the CPU is %+v, the memory %+v", cpu, memory)
	}
	seconds := usage.Until.Sub(usage.Since.Time).Seconds()
	if used := float64(cpu.Mean) / 1000 * seconds; computes && used < 2*enough || !computes && used > 2*little {
		t.Errorf("%.1f s of CPU time in %.0f s: %+v", used, seconds, cpu)
	}
	for _, rank := range usage.PerRank {
		if used := float64(rank.CPUMillicores) / 1000 * seconds; computes && used < enough || !computes && used > little {
			t.Errorf("rank %d used %.1f s of CPU time in %.0f s", rank.Rank, used, seconds)
		}
	}
}

// leakingProgram has rank 1 keep 1 MiB more every 10 s, and 1 GiB at once when a file exists. The other ranks wait.
const leakingProgram = `import os, time
kept = []
while True:
    time.sleep(10)
    if os.environ["OMPI_COMM_WORLD_RANK"] != "1": continue
    kept.append(b"x" * ((1024 if os.path.exists("/tmp/enough") else 1) << 20))`

// TestMemoryLeak: if one rank of several leaks, the report warns long before its pod is killed, and names it.
func TestMemoryLeak(t *testing.T) {
	whenAsked(t, "MemoryLeak")
	t.Parallel()
	// limit is reached after more than 40 minutes. The warning needs 20 minutes of samples, and the next reports of the agents and of the operator.
	const limit, first = "320Mi", 25 * time.Minute
	namespace := newNamespace(t)
	job := openMPI(namespace, 3, "mpirun", "-n", "3", "--map-by", "node", "python3", "-c", leakingProgram)
	worker := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0]
	worker.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	create(t, job)
	var warning v1alpha1.Finding
	eventuallyAfter(t, "the report warns of the leak", first, time.Minute, func() error {
		report := reportOf(t, kubeflow.Kind, namespace, job.Name)
		if report == nil || report.Status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("the report is %+v", report)
		}
		i := slices.IndexFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.MemoryGrowing })
		if i < 0 {
			return fmt.Errorf("its findings are %+v, the usage %+v", report.Status.Findings, report.Status.Usage)
		}
		warning = report.Status.Findings[i]
		return nil
	})
	t.Logf("the warning: %s (%v)", warning.Summary, warning.Evidence)
	const pod = "job-worker-1"
	if warning.Pod != pod || !slices.Equal(warning.Affected, []string{pod}) || !strings.Contains(warning.Summary, "worker 1") || !strings.Contains(warning.Summary, "of "+limit[:3]+" MiB") {
		t.Errorf("the warning is %+v, want one of %s and its own limit", warning, pod)
	}
	if out, err := exec.CommandContext(t.Context(), "kubectl", "exec", "-n", namespace, pod, "--", "touch", "/tmp/enough").CombinedOutput(); err != nil {
		t.Fatalf("have the program use up its memory: %v: %s", err, out)
	}
	failedWith(t, job, time.Minute)
	reported(t, kubeflow.Kind, namespace, job.Name, "the pod of the warning was killed", func(status v1alpha1.JobReportStatus) error {
		if status.Failure == nil || status.Failure.Code != codes.OutOfMemory || status.Failure.Pod != pod {
			return fmt.Errorf("the cause is %+v", status.Failure)
		}
		return nil
	})
}

// TestUsageWhileRunning: the record shows what a job used while it runs, and keeps it when the launcher is killed without a last word.
func TestUsageWhileRunning(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 2, "mpirun", "-n", "2", "sleep", "600")
	create(t, job)
	// The agents report it after a minute, the operator reads it soon after that, and again after another minute if they were late.
	const first = 75 * time.Second
	eventuallyAfter(t, "the record of the running job shows what it used", first, time.Minute, func() error {
		report := reportOf(t, kubeflow.Kind, namespace, job.Name)
		if report == nil || report.Status.Usage == nil {
			return fmt.Errorf("it shows nothing")
		}
		return inPhase(v1alpha1.PhaseRunning)(report.Status)
	})
	before := reportOf(t, kubeflow.Kind, namespace, job.Name).Status.Usage
	if before.Pods != 2 || len(before.PerPod) != 2 {
		t.Errorf("it shows %+v", before)
	}
	out, err := exec.CommandContext(t.Context(), "kubectl", "delete", "pod", "-n", namespace, "--selector", "training.kubeflow.org/job-role=launcher", "--grace-period=0", "--force").CombinedOutput()
	if err != nil {
		t.Fatalf("delete the launcher: %v: %s", err, out)
	}
	if err := api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	report := reported(t, kubeflow.Kind, namespace, job.Name, "the record is complete", func(status v1alpha1.JobReportStatus) error {
		if status.CompletionTime == nil {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	if after := report.Status.Usage; after == nil || after.Until.Before(&before.Until) || after.Pods != 2 {
		t.Errorf("the usage was %+v, and is %+v", before, after)
	}
}
