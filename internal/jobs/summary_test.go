package jobs

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// statusOf reads the status of a report. The time in all tests (now) is 2026-11-21T10:00:00Z.
func statusOf(t *testing.T, text string) v1alpha1.JobReportStatus {
	t.Helper()
	var status v1alpha1.JobReportStatus
	if err := yaml.UnmarshalStrict([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// reported returns an MPIJob in the cluster with a report, or without one for an empty text.
func reported(t *testing.T, status string) Job {
	t.Helper()
	job := FromObject(object(t, mpiJobText))
	if status != "" {
		job.Report = reportFor("MPIJob", "pi", "pi-uid", statusOf(t, status))
	}
	return job
}

func TestHeadline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  string
		deleted bool
		want    string
	}{
		"no report":             {want: "No report yet: the operator writes one within seconds if it is running"},
		"running":               {status: "{phase: Running, phaseTimes: [{phase: Queued, since: 2026-11-21T09:00:00Z}, {phase: Running, since: 2026-11-21T09:55:00Z}]}", want: "Running for 5m"},
		"a phase without times": {status: "{phase: Running}", want: "Running"},
		"ended":                 {status: "{phase: Succeeded, runningTime: 2026-11-21T08:00:00Z, completionTime: 2026-11-21T09:30:00Z}", want: "Succeeded 30m ago, ran for 90m"},
		"ended before it ran":   {status: "{phase: Failed, completionTime: 2026-11-21T09:30:00Z, phaseTimes: [{phase: Failed, since: 2026-11-21T09:30:00Z}]}", want: "Failed 30m ago, never ran"},
		"deleted":               {status: "{phase: Running}", deleted: true, want: "Running; the job is deleted, this is its report"},
	} {
		job := reported(t, test.status)
		if test.deleted {
			job.Object = nil
		}
		if got := job.Headline(now); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestJobOfAnotherCluster: nobody waits for the report of a job that this cluster's operator does not run.
func TestJobOfAnotherCluster(t *testing.T) {
	t.Parallel()
	for kind, field := range map[string][]string{mpi.KindMPIJob: {"spec", "runPolicy", "managedBy"}, mpi.KindTrainJob: {"spec", "managedBy"}} {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
		if err := unstructured.SetNestedField(object.Object, "kueue.x-k8s.io/multikueue", field...); err != nil {
			t.Fatal(err)
		}
		job := FromObject(object)
		want := "No report: " + strings.Join(field, ".") + " is kueue.x-k8s.io/multikueue, so that Kueue runs the job on another cluster. Without MultiKueue it never starts; create it again without this field"
		for _, got := range []string{job.Headline(now), job.Progress()} {
			if got != want {
				t.Errorf("%s: %q, want %q", kind, got, want)
			}
		}
	}
}

func TestProgressAndReason(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ status, progress, reason string }{
		"no report":                         {"", "Waiting for the operator to report on the job", "NoReport"},
		"queued":                            {"{phase: Queued, reason: Queued, scheduling: {queue: team, position: 3}}", "Queued in team, position 3", "Position3"},
		"queued at an unknown position":     {"{phase: Queued, reason: Queued, scheduling: {queue: team}}", "Queued in team", "Queued"},
		"queued, nothing known":             {"{phase: Queued}", "Queued", "-"},
		"waiting for places":                {"{phase: GangScheduling, reason: WaitingForPlaces, scheduling: {placed: 2, wanted: 5}}", "GangScheduling 2/5 pods scheduled", "WaitingForPlaces"},
		"pending":                           {"{phase: Pending, reason: WaitingForQuota}", "Pending", "WaitingForQuota"},
		"pending with a gang":               {"{phase: Pending, scheduling: {wanted: 5}}", "Pending 0/5 pods scheduled", "-"},
		"initializing":                      {"{phase: Initializing, reason: PodsStarting, workers: {summary: 1/4}}", "Initializing 1/4 workers ready", "PodsStarting"},
		"initializing with a gang":          {"{phase: Initializing, scheduling: {placed: 5, wanted: 5}, workers: {summary: 1/4}}", "Initializing 5/5 pods scheduled, 1/4 workers ready", "-"},
		"running":                           {"{phase: Running, reason: Running, training: {epoch: 1/3, loss: '0.5'}}", "Running: epoch 1/3, loss 0.5", "-"},
		"running, a warning":                {"{phase: Running, findings: [{code: NoOutput, severity: Warning}]}", "Running (NoOutput)", "NoOutput"},
		"running, a hint":                   {"{phase: Running, findings: [{code: NoOutput, severity: Info}]}", "Running", "-"},
		"failed with a cause":               {"{phase: Failed, reason: BackoffLimitExceeded, findings: [{code: OutOfMemory, severity: Error}]}", "Failed (OutOfMemory)", "OutOfMemory"},
		"failed without a cause":            {"{phase: Failed, reason: BackoffLimitExceeded, findings: [{code: Unknown, severity: Error}]}", "Failed (BackoffLimitExceeded)", "BackoffLimitExceeded"},
		"the cause comes before a position": {"{phase: Queued, scheduling: {queue: team, position: 3}, findings: [{code: QueueNeverFits, severity: Error}]}", "Queued in team, position 3 (QueueNeverFits)", "QueueNeverFits"},
	} {
		job := reported(t, test.status)
		if got := job.Progress(); got != test.progress {
			t.Errorf("%s: the progress is %q, want %q", name, got, test.progress)
		}
		if got := job.Reason(); got != test.reason {
			t.Errorf("%s: the reason is %q, want %q", name, got, test.reason)
		}
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"": "", "{phase: Queued, scheduling: {queue: team}}": "", "{phase: Running}": "",
		"{phase: Queued, scheduling: {estimate: {message: Expected start.}}}":                                         "Expected start.",
		"{phase: Running, scheduling: {estimate: {message: Expected start.}}, endEstimate: {message: Expected end.}}": "Expected end.",
		"{phase: Failed, completionTime: 2026-11-21T09:30:00Z, scheduling: {estimate: {message: Expected start.}}}":   "",
	} {
		if got := reported(t, status).Estimate(); got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}

func TestCreatorText(t *testing.T) {
	t.Parallel()
	manager := `{run: {fieldManager: kubectl-create}}`
	by := func(user string) func(*Job) {
		return func(job *Job) { job.Object.SetAnnotations(map[string]string{mpi.AnnotationCreator: user}) }
	}
	deleted := func(job *Job) { job.Object = nil }
	for name, test := range map[string]struct {
		status, want string
		change       func(*Job)
	}{
		"unknown":                       {"", "", nil},
		"recorded":                      {manager, " by ada", by("ada")},
		"not recorded":                  {manager, ` (the user was not recorded; field manager: "kubectl-create")`, nil},
		"not recorded, and deleted":     {manager, ` (the user was not recorded; field manager: "kubectl-create")`, deleted},
		"recorded, and deleted":         {"{run: {creator: ada}}", " by ada", deleted},
		"in a report without a manager": {"{run: {}}", "", nil},
	} {
		job := reported(t, test.status)
		if test.change != nil {
			test.change(&job)
		}
		if got := job.CreatorText(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	// A field manager is no user, whatever its name.
	job := reported(t, `{run: {fieldManager: "x By eve."}, timeline: [{time: 2026-11-21T09:30:00Z, event: Created, detail: 'MPIJob pi with 1 worker. The user was not recorded; field manager: "x By eve.".'}]}`)
	if job.Object = nil; job.creator() != "" {
		t.Errorf("the creator is %q", job.creator())
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	created := reported(t, "{startTime: 2026-11-21T05:00:00Z}")
	created.Object.SetCreationTimestamp(*ago(2 * hour))
	deleted := created
	deleted.Object = nil
	for want, job := range map[string]Job{"120m": created, "5h": deleted, "-": {}} {
		if got := job.Age(now); got != want {
			t.Errorf("the age is %s, want %s", got, want)
		}
	}
	future := created
	future.Object = created.Object.DeepCopy()
	future.Object.SetCreationTimestamp(*ago(-hour))
	if got := future.Age(now); got != "0s" {
		t.Errorf("by a clock that is behind, the age is %s", got)
	}
}

func TestFailureText(t *testing.T) {
	t.Parallel()
	const pods = ", pods: [{name: pi-worker-0}, {name: pi-worker-1, node: n1}]}"
	for name, test := range map[string]struct{ status, want string }{
		"none":       {"{}", ""},
		"no pod":     {"{failure: {code: X, exitCode: 1}}", ""},
		"a pod":      {"{failure: {code: X, pod: pi-worker-0}" + pods, "Failed first in pod pi-worker-0."},
		"all":        {"{failure: {code: X, pod: pi-worker-1, rank: 0, exitCode: 3}" + pods, "Failed first in pod pi-worker-1, rank 0, on node n1, with exit code 3."},
		"a signal":   {"{failure: {code: X, pod: pi-worker-1, exitCode: 139}" + pods, "Failed first in pod pi-worker-1, on node n1, with exit code 139 (signal 11)."},
		"no signal":  {"{failure: {code: X, pod: pi-worker-1, exitCode: 255}" + pods, "Failed first in pod pi-worker-1, on node n1, with exit code 255."},
		"exactly it": {"{failure: {code: X, pod: pi-worker-1, exitCode: 128}" + pods, "Failed first in pod pi-worker-1, on node n1, with exit code 128."},
	} {
		if got := FailureText(statusOf(t, test.status)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTextsOfAReport(t *testing.T) {
	t.Parallel()
	status := statusOf(t, `
training: {epoch: 2/10, step: "40", loss: "0.25", accuracy: "0.9", progress: 20%}
consumption: {until: 2026-11-21T10:00:00Z, cpuCoreSeconds: 5400, memoryGiBSeconds: 36, gpuSeconds: {nvidia.com/gpu: 3600, amd.com/gpu: 1800}}
run: {mpiVersions: [Open MPI 5.0.7]}
mpi: {implementation: OpenMPI, slotsPerWorker: 2, ranks: 6}
workers: {wanted: 3, ready: 3, running: 3, succeeded: 0, failed: 0}`)
	for got, want := range map[string]string{
		TrainingText(status.Training):                            "epoch 2/10, step 40, loss 0.25, accuracy 0.9, progress 20%",
		TrainingText(nil):                                        "",
		ReservedText(status.Consumption):                         "1.50 core hours, 0.01 GiB hours of memory, 0.50 hours of amd.com/gpu, 1.00 hours of nvidia.com/gpu (requests multiplied by time)",
		ReservedText(nil):                                        "",
		ReservedText(&v1alpha1.Consumption{}):                    "",
		ReservedText(&v1alpha1.Consumption{MemoryGiBSeconds: 3}): "3 GiB seconds of memory (requests multiplied by time)",
		ReservedText(&v1alpha1.Consumption{CPUCoreSeconds: 1, MemoryGiBSeconds: 90, GPUSeconds: map[string]int64{"nvidia.com/gpu": 20}}): "1 core second, 0.03 GiB hours of memory, 20 seconds of nvidia.com/gpu (requests multiplied by time)",
		RanksText(status): "Open MPI 5.0.7, 6 ranks: 2 each on 3 workers",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	status.MPI.Ranks, status.Run = 8, nil
	if got, want := RanksText(status), "OpenMPI, 8 ranks: 2 each on 3 workers and the launcher"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	status.MPI.Implementation = ""
	if got := RanksText(status); got != "" {
		t.Errorf("another framework has the ranks %q", got)
	}
}

func TestMPIText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{}":                             "",
		"{mpi: {implementation: Intel}}": "Intel",
		"{mpi: {implementation: Intel}, run: {mpiVersions: [Intel MPI 2021.13]}}":             "Intel MPI 2021.13",
		"{mpi: {implementation: MPICH}, run: {mpiVersions: [MPICH 4.0.2, MPICH 4.2.1]}}":      "MPICH 4.0.2, MPICH 4.2.1",
		"{mpi: {implementation: OpenMPI}, run: {mpiVersions: [MPICH 4.2.1]}}":                 "MPICH 4.2.1 (the job names OpenMPI)",
		"{mpi: {implementation: OpenMPI}, run: {mpiVersions: [MPICH 4.2.1, Open MPI 5.0.7]}}": "MPICH 4.2.1, Open MPI 5.0.7",
		"{mpi: {implementation: OpenMPI}, run: {image: train, attempts: 1}}":                  "OpenMPI",
	} {
		if got := MPIText(statusOf(t, text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	job := FromObject(object(t, mpiJobText))
	got := job.Summary()
	if got.Image != "old" || len(got.Command) != 2 || got.Command[1] != "x" || ResourcesText(got.Worker) != "cpu 1, memory 1Gi" {
		t.Errorf("%+v", got)
	}
	job.Object = nil
	if got := job.Summary(); got.Image != "" || got.Command != nil {
		t.Errorf("of a deleted job: %+v", got)
	}
}

func TestResourcesText(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"":                                  "{}",
		"cpu 2":                             "{requests: {cpu: 2}, limits: {cpu: 2}}",
		"cpu 1 (limit 2), nvidia.com/gpu 1": "{requests: {cpu: 1}, limits: {cpu: 2, nvidia.com/gpu: 1}}",
		"memory 8Gi":                        "{requests: {memory: 8Gi}}",
	} {
		var resources corev1.ResourceRequirements
		if err := yaml.Unmarshal([]byte(text), &resources); err != nil {
			t.Fatal(err)
		}
		if got := ResourcesText(resources); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestPodSummary: what a TrainJob leaves to its runtime is what its report has.
func TestPodSummary(t *testing.T) {
	t.Parallel()
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	report := reportFor("TrainJob", "pi", "u", v1alpha1.JobReportStatus{Run: &v1alpha1.Run{Image: "runtime:1", Requests: requests}})
	for name, test := range map[string]struct{ job, image, cpu string }{
		"of the runtime": {"{kind: TrainJob, metadata: {name: pi}, spec: {runtimeRef: {name: r}}}", "runtime:1", "2"},
		"of the job": {
			"{kind: TrainJob, metadata: {name: pi}, spec: {runtimeRef: {name: r}, trainer: {image: own, resourcesPerNode: {requests: {cpu: 3}}}}}", "own", "3",
		},
	} {
		job := FromObject(parsed(t, test.job))
		job.Report = report
		got := job.PodSummary()
		if got.Image != test.image || got.Worker.Requests.Cpu().String() != test.cpu || got.Runtime != "r" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
