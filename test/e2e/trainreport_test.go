package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// inPhase waits for a phase of a job's record.
func inPhase(phase v1alpha1.Phase) func(v1alpha1.JobReportStatus) error {
	return func(status v1alpha1.JobReportStatus) error {
		if status.Phase != phase {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		return nil
	}
}

// TestTrainJobReport: a TrainJob's record follows it, and outlasts it.
func TestTrainJobReport(t *testing.T) {
	parallel(t, 6)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 3, numProcPerNode: 2, command: [mpirun, -n, '6', ranks, --sleep, '5']}")
	createTrainJob(t, job)
	running := reported(t, trainjob.Kind, namespace, "pi", "its record says that it runs", inPhase(v1alpha1.PhaseRunning)).Status
	if running.MPI.Ranks != 6 || running.MPI.Implementation != string(mpi.OpenMPI) || running.Workers.Wanted != 2 || len(running.Pods) != 3 {
		t.Errorf("%d ranks, %s, %d workers, %d pods", running.MPI.Ranks, running.MPI.Implementation, running.Workers.Wanted, len(running.Pods))
	}
	ends(t, job, "Complete")
	reported(t, trainjob.Kind, namespace, "pi", "its record says that it has succeeded", inPhase(v1alpha1.PhaseSucceeded))
	// Trainer's own column is its last condition: one of ours would stand there.
	columns, err := exec.CommandContext(t.Context(), "kubectl", "get", "trainjobs", "-n", namespace).CombinedOutput()
	if words := strings.Fields(string(columns)); err != nil || len(words) != 6 || words[1] != "STATE" || words[4] != "Complete" {
		t.Errorf("kubectl lists TrainJobs as %q: %v", columns, err)
	}
	if err := api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is gone", time.Minute, func() error {
		if left := children(t, namespace); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
	left := reportOf(t, trainjob.Kind, namespace, "pi")
	if left == nil || left.Status.Phase != v1alpha1.PhaseSucceeded || left.Status.CompletionTime == nil || len(left.Status.Findings) > 0 {
		t.Fatalf("the record of the deleted job is %+v", left)
	}
	table, err := exec.CommandContext(t.Context(), "kubectl", "get", "jobreports", "-n", namespace).CombinedOutput()
	t.Logf("%s", table)
	if err != nil || !strings.Contains(string(table), "TrainJob") {
		t.Errorf("kubectl lists %q: %v", table, err)
	}
}

// TestTrainJobExplained: the report of a TrainJob names the rank that crashed or raised an error, or the image that does not exist, also
// when its pods are gone.
func TestTrainJobExplained(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		trainer string
		ranks   int64
		code    codes.Code
		pod     string
		rank    int32
		says    string
	}{
		"a rank crashes": {
			ranks:   4,
			trainer: "{numNodes: 2, numProcPerNode: 2, command: [mpirun, -n, '4', ranks, --segv, '3']}",
			code:    codes.SegmentationFault, pod: "pi-node-0-0-", rank: 3, says: "signal 11",
		},
		"a rank gives up": {
			trainer: "{numNodes: 2, command: [mpirun, -n, '2', python3, -c, 'import os; r = int(os.environ[\"OMPI_COMM_WORLD_RANK\"]); assert r == 0, \"no data for rank 1\"']}",
			code:    codes.ApplicationFailed, pod: "pi-node-0-0-", rank: 1, says: "no data for rank 1",
		},
		"no such image": {
			trainer: "{numNodes: 2, image: registry.invalid/none:none, command: [mpirun, ranks]}",
			code:    codes.ImagePullFailed, rank: -1, says: "registry.invalid/none:none",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parallel(t, test.ranks)
			namespace := newNamespace(t)
			runtimeIn(t, namespace, "mpi-openmpi")
			job := trainJob(t, namespace, test.trainer)
			createTrainJob(t, job)
			report := reported(t, trainjob.Kind, namespace, "pi", "its record has the cause", func(status v1alpha1.JobReportStatus) error {
				if len(status.Findings) == 0 || status.Findings[0].Code != test.code || test.rank >= 0 && status.Failure == nil {
					return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
				}
				return nil
			})
			text, _ := yaml.Marshal(report.Status.Findings)
			t.Logf("%s", text)
			if test.rank < 0 {
				if !strings.Contains(string(text), test.says) {
					t.Errorf("it does not say %q", test.says)
				}
				return
			}
			failure := report.Status.Failure
			if failure.Rank == nil || *failure.Rank != test.rank || !strings.HasPrefix(failure.Pod, test.pod) {
				t.Errorf("it began at %+v, want rank %d on %s", failure, test.rank, test.pod)
			}
			if all := string(text) + strings.Join(failure.LogTail, "\n"); !strings.Contains(all, test.says) {
				t.Errorf("it does not say %q: %s", test.says, all)
			}
		})
	}
}

// TestAnyTrainJobReport: a TrainJob of another framework has a report with its phase, and, if it failed, with the exit code and what it
// printed last.
func TestAnyTrainJobReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command string
		phase   v1alpha1.Phase
	}{
		"done":   {command: "sleep 3", phase: v1alpha1.PhaseSucceeded},
		"failed": {command: "echo out of ideas >&2; exit 4", phase: v1alpha1.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			plainRuntimeIn(t, namespace)
			job := trainJob(t, namespace, fmt.Sprintf("{numNodes: 2, command: [sh, -c, '%s']}", test.command))
			createTrainJob(t, job)
			report := reported(t, trainjob.Kind, namespace, "pi", "its record says how it ended", inPhase(test.phase))
			if report.Status.MPI.Implementation != "" || report.Status.Workers.Wanted != 2 {
				t.Errorf("its record has %+v, %+v", report.Status.MPI, report.Status.Workers)
			}
			if test.phase != v1alpha1.PhaseFailed {
				return
			}
			text, _ := yaml.Marshal(report.Status)
			for _, want := range []string{"out of ideas", "exitCode: 4"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("its record does not say %q:\n%s", want, text)
				}
			}
		})
	}
}

// plainRuntimeIn is a runtime without MPI, named mpi like the others.
func plainRuntimeIn(t *testing.T, namespace string) {
	t.Helper()
	needTrainer(t)
	text := `
metadata: {name: mpi, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      failurePolicy: {maxRestarts: 0}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec:
                restartPolicy: Never
                securityContext: {runAsNonRoot: true, runAsUser: 1000650000, seccompProfile: {type: RuntimeDefault}}
                containers:
                - name: node
                  image: ` + image + `
                  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	object.SetNamespace(namespace)
	create(t, object)
}

// TestChangedRuntime: a runtime that is changed touches the jobs that come after, and none that is there.
func TestChangedRuntime(t *testing.T) {
	leave := parallel(t, 2)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	first := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}")
	createTrainJob(t, first)
	reported(t, trainjob.Kind, namespace, "pi", "the first job runs", inPhase(v1alpha1.PhaseRunning))
	leave()
	before := uids(t, first)

	const missing = "registry.invalid/none:none"
	all, err := runtimes()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(all["mpi-openmpi"].Object)
	if err != nil {
		t.Fatal(err)
	}
	changed := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "image: "+image, "image: "+missing)), &changed.Object); err != nil {
		t.Fatal(err)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "mpi"}, now); err != nil {
		t.Fatal(err)
	}
	now.Object["spec"] = changed.Object["spec"]
	if err := api.Update(t.Context(), now); err != nil {
		t.Fatalf("change the runtime: %v", err)
	}

	second := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")
	second.SetName("later")
	createTrainJob(t, second)
	reported(t, trainjob.Kind, namespace, "later", "the second job lacks the image", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.ImagePullFailed {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	if after := uids(t, first); !slices.Equal(before, after) {
		t.Errorf("the first job's pods were %v and are %v", before, after)
	}
	if report := reportOf(t, trainjob.Kind, namespace, "pi"); report.Status.Phase != v1alpha1.PhaseRunning || len(report.Status.Findings) > 0 {
		t.Errorf("the first job is %s with %+v", report.Status.Phase, report.Status.Findings)
	}
	suspend(t, first, true)
	eventually(t, "its pods are gone", time.Minute, func() error {
		if left := uids(t, first); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
	suspend(t, first, false)
	reported(t, trainjob.Kind, namespace, "pi", "the first job runs again as it was", inPhase(v1alpha1.PhaseRunning))
}

func uids(t *testing.T, job *unstructured.Unstructured) []string {
	t.Helper()
	var all []string
	for _, pod := range slices.Concat(trainerPods(t, job, "node"), trainerPods(t, job, "launcher")) {
		if pod.Status.Phase != corev1.PodFailed {
			all = append(all, string(pod.UID))
		}
	}
	slices.Sort(all)
	return all
}

// TestTrainJobsProbeIsReported: a startup probe that cannot be executed is reported while the job runs, since it stops nothing.
func TestTrainJobsProbeIsReported(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// The container has no port of this name.
	runtimeIn(t, namespace, "mpi-openmpi", "readinessProbe:", "startupProbe:", "port: mpi-status", "port: mpi-states")
	createTrainJob(t, trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}"))
	reported(t, trainjob.Kind, namespace, "pi", "its report names the probe", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.ProbeFailed || status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Findings)
		}
		if got := status.Findings[0].Summary; !strings.Contains(got, `the startup probe cannot be executed: port "mpi-states" not found`) || !strings.HasPrefix(status.Findings[0].Pod, "pi-node-0-0") {
			return fmt.Errorf("it says %s of %s", got, status.Findings[0].Pod)
		}
		return nil
	})
}
