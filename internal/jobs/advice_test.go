package jobs

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestAdvise(t *testing.T) {
	pod := func(memory, cpu, gpu, throttled int64) v1alpha1.PodUsage {
		return v1alpha1.PodUsage{Metrics: []v1alpha1.UsageMetric{
			{Metric: v1alpha1.MetricMemory, Max: memory},
			{Metric: v1alpha1.MetricCPU, P95: cpu},
			{Metric: v1alpha1.MetricGPU, Mean: gpu},
			{Metric: v1alpha1.MetricThrottled, Mean: throttled},
		}}
	}
	report := func(workers int32, minutes int, pods ...v1alpha1.PodUsage) v1alpha1.JobReport {
		start := v1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
		end := v1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
		return v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{
			Phase: v1alpha1.PhaseSucceeded, RunningTime: &start, CompletionTime: &end,
			Workers: v1alpha1.WorkersStatus{Wanted: workers}, Usage: &v1alpha1.Usage{PerPod: pods},
			Run: &v1alpha1.Run{Image: "quay.io/me/train:v1", Command: "mpirun -np 8 python train.py --epochs 1", Creator: "ann"},
		}}
	}
	three := func(one v1alpha1.JobReport) []v1alpha1.JobReport { return []v1alpha1.JobReport{one, one, one} }
	changed := func(all []v1alpha1.JobReport, change func(*v1alpha1.JobReport)) []v1alpha1.JobReport {
		for i := range all {
			all[i].Status.Run = all[i].Status.Run.DeepCopy()
			change(&all[i])
		}
		return all
	}
	small := three(report(4, 20, pod(1100, 900, 0, 0), pod(1200, 700, 0, 0)))
	var golden []adviceCase
	for name, test := range map[string]struct {
		past    []v1alpha1.JobReport
		workers int64
		limits  map[string]any
		want    []string
	}{
		"two jobs are too few":        {past: small[:2], workers: 4, limits: map[string]any{"memory": "64Gi"}},
		"what is asked for is enough": {past: small, workers: 4, limits: map[string]any{"memory": "2Gi", "cpu": "1"}},
		"far more than is used": {past: small, workers: 4, limits: map[string]any{"memory": "64Gi", "cpu": "16"}, want: []string{
			"Memory: 3 earlier jobs like this one used at most 1.2 GiB in a pod; this one asks for 64 GiB. 1536Mi is enough.",
			"CPU: 3 earlier jobs like this one used at most 0.9 cores in a pod (95th percentile); this one asks for 16 cores. 1 is enough.",
		}},
		"less than is used": {past: small, workers: 4, limits: map[string]any{"memory": "1Gi", "cpu": "1"}, want: []string{
			"Memory: 3 earlier jobs like this one used at most 1.2 GiB in a pod; this one asks for 1 GiB. Ask for 1536Mi.",
		}},
		"no memory": {past: small, workers: 4, limits: map[string]any{"cpu": "1"}, want: []string{
			"Memory: 3 earlier jobs like this one used at most 1.2 GiB in a pod; this one asks for none. Ask for 1536Mi.",
		}},
		"throttled": {past: three(report(4, 20, pod(1200, 1000, 0, 300))), workers: 4, limits: map[string]any{"memory": "2Gi", "cpu": "1"}, want: []string{
			"CPU: the limit slowed down 3 of 3 earlier jobs like this one. Ask for more CPU, or for fewer slots per worker.",
		}},
		"idle GPUs": {past: three(report(4, 20, pod(1200, 1000, 30, 0))), workers: 4, limits: map[string]any{"memory": "2Gi", "cpu": "1", "nvidia.com/gpu": "1"}, want: []string{
			"GPU: 3 earlier jobs like this one used at most 0.03 GPUs in a pod on average; this one asks for 1. Check that the program uses them.",
		}},
		"workers in vain": {past: slices.Concat(small, three(report(8, 19, pod(1200, 1000, 0, 0)))), workers: 8, limits: map[string]any{"memory": "2Gi", "cpu": "1"}, want: []string{
			"Workers: earlier jobs took 20m with 4 workers and 19m with 8 (medians of 3 and 3 jobs). Fewer workers are enough, unless the data has grown.",
		}},
		"workers that help": {past: slices.Concat(small, three(report(8, 11, pod(1200, 1000, 0, 0)))), workers: 8, limits: map[string]any{"memory": "2Gi", "cpu": "1"}},
		"jobs of others": {
			past: changed(slices.Clone(small), func(r *v1alpha1.JobReport) { r.Status.Run.Creator = "bob" }), workers: 4, limits: map[string]any{"memory": "64Gi"},
		},
		"failed jobs": {
			past: changed(slices.Clone(small), func(r *v1alpha1.JobReport) { r.Status.Phase = v1alpha1.PhaseFailed }), workers: 4, limits: map[string]any{"memory": "64Gi"},
		},
		"another program": {
			past: changed(slices.Clone(small), func(r *v1alpha1.JobReport) { r.Status.Run.Command = "mpirun python test.py" }), workers: 4,
			limits: map[string]any{"memory": "64Gi"},
		},
		"without usage": {
			past: changed(slices.Clone(small), func(r *v1alpha1.JobReport) { r.Status.Usage = nil }), workers: 4, limits: map[string]any{"memory": "64Gi"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := func(command []any) map[string]any {
				return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": "mpi", "image": "quay.io/me/train:v2", "command": command, "resources": map[string]any{"limits": test.limits},
				}}}}
			}
			job := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": map[string]any{"name": "next", "namespace": "team"},
				"spec": map[string]any{"mpiReplicaSpecs": map[string]any{
					"Launcher": map[string]any{"replicas": int64(1), "template": template([]any{"mpirun", "-np", strconv.FormatInt(test.workers, 10), "python", "/app/train.py"})},
					"Worker":   map[string]any{"replicas": test.workers, "template": template(nil)},
				}},
			}}
			if got := historyOf(test.past).Advise(job, "ann"); !slices.Equal(got, test.want) {
				t.Errorf("advice\n%q\nwant\n%q", got, test.want)
			}
			golden = append(golden, adviceCase{Name: name, Past: counted(test.past), Job: job.Object, User: "ann", Advice: test.want})
		})
	}
	slices.SortFunc(golden, func(a, b adviceCase) int { return strings.Compare(a.Name, b.Name) })
	mpitest.Golden(t, "advice", golden)
}

// adviceCase is a case for the tests of the Python SDK, which has the same rules.
type adviceCase struct {
	Name   string         `json:"name"`
	Past   []equalJobs    `json:"past"`
	Job    map[string]any `json:"job"`
	User   string         `json:"user"`
	Advice []string       `json:"advice,omitempty"`
}

// equalJobs are jobs with the same status.
type equalJobs struct {
	Jobs   int                      `json:"jobs"`
	Status v1alpha1.JobReportStatus `json:"status"`
}

func counted(reports []v1alpha1.JobReport) (past []equalJobs) {
	for _, report := range reports {
		if last := len(past) - 1; last >= 0 && equality.Semantic.DeepEqual(past[last].Status, report.Status) {
			past[last].Jobs++
			continue
		}
		past = append(past, equalJobs{1, report.Status})
	}
	return past
}

func TestProgramOf(t *testing.T) {
	for command, want := range map[string]string{
		"mpirun -np 4 python train.py --epochs 3":                        "python train.py",
		"sh -c 'set -e; mpirun -n 2 -x NCCL_DEBUG=INFO /app/solve in.7'": "solve in.7",
		"deepspeed --hostfile=/etc/mpi/hostfile train.py --x 1":          "train.py",
		"mpirun": "",
		"":       "",
	} {
		if got := programOf(command); got != want {
			t.Errorf("program of %q is %q, want %q", command, got, want)
		}
	}
}

func TestRepositoryOf(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/me/train:v1": "quay.io/me/train", "localhost:5000/train": "localhost:5000/train", "train@sha256:0123": "train",
		"localhost:5000/train:v1@sha256:0123": "localhost:5000/train",
	} {
		if got := repositoryOf(image); got != want {
			t.Errorf("repository of %q is %q, want %q", image, got, want)
		}
	}
}
