package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestLogsStayWhenPodsAreGone: the logs of all pods of an MPIJob that has succeeded can be read after its workers are deleted, after all
// pods are, and after the job is, with secrets masked.
func TestLogsStayWhenPodsAreGone(t *testing.T) {
	parallel(t, 2)
	needCommandLine(t)
	namespace := newNamespace(t)
	s := shell{t, namespace}
	s.run(0, []string{"mpijob/kept: Succeeded"}, "create", "kept", "--workers", "2", "--image", image, "--run-as-user", "1000", "--cpu", "50m", "--memory", "128Mi",
		"--wait", "--timeout", "4m", "--", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK has api_key=0123456789abcdef")
	gone := func(selector client.MatchingLabels) {
		t.Helper()
		eventually(t, "the pods are gone", 2*time.Minute, func() error {
			var pods corev1.PodList
			if err := api.List(t.Context(), &pods, client.InNamespace(namespace), selector); err != nil || len(pods.Items) == 0 {
				return err
			}
			return fmt.Errorf("%d pods are there", len(pods.Items))
		})
	}
	check := func(when string) {
		t.Helper()
		code, out, _ := plugin(t, namespace, "", "logs", "kept", "--agent")
		if code != 0 || strings.Contains(out, "0123456789abcdef") {
			t.Errorf("%s: logs ended with %d, or have the secret", when, code)
		}
		for rank := range 2 {
			if want := fmt.Sprintf("[worker-%d r%d] rank %d has api_key=****\n", rank, rank, rank); !strings.Contains(out, want) {
				t.Errorf("%s: the logs lack %q", when, want)
			}
			// It is only in the log of the worker.
			if !strings.Contains(out, fmt.Sprintf(`[worker-%d r%d] {"time":"`, rank, rank)) {
				t.Errorf("%s: the logs lack the lines of the agent of worker %d", when, rank)
			}
		}
		if _, one, _ := plugin(t, namespace, "", "logs", "kept", "--rank", "1"); !strings.Contains(one, "rank 1 has") || strings.Contains(one, "rank 0 has") {
			t.Errorf("%s: the logs of rank 1 are %q", when, one)
		}
	}
	gone(client.MatchingLabels{mpi.LabelJob: "kept", mpi.LabelRole: string(mpi.RoleWorker)})
	check("without workers")
	if err := api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: "kept"}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	gone(client.MatchingLabels{mpi.LabelJob: "kept"})
	check("without pods")
	s.run(0, nil, "delete", "kept", "--yes", "--wait")
	check("without the job")
}

// TestTrainJobsLogsStay: the logs of a TrainJob that has succeeded can be read after it is deleted.
func TestTrainJobsLogsStay(t *testing.T) {
	parallel(t, 2)
	needCommandLine(t)
	needTrainer(t)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	createTrainJob(t, trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', pi]}"))
	s := shell{t, namespace}
	s.run(0, []string{"Succeeded"}, "wait", "pi", "--timeout", "4m")
	s.run(0, nil, "delete", "pi", "--yes", "--wait")
	code, out, complaints := plugin(t, namespace, "", "logs", "trainjob/pi")
	if code != 0 || !strings.Contains(out, "pi is approximately 3.14159") || !strings.Contains(complaints, "are deleted") {
		t.Errorf("logs of a deleted TrainJob ended with %d", code)
	}
	// JobSet may have deleted the workers before their logs were read. The report shows that.
	var reports v1alpha1.JobReportList
	if err := api.List(t.Context(), &reports, client.InNamespace(namespace)); err != nil || len(reports.Items) != 1 {
		t.Fatalf("%d reports: %v", len(reports.Items), err)
	}
	if kept := reports.Items[0].Status.Logs; kept == nil || kept.Pods+kept.PodsUnread < 1 {
		t.Errorf("the report has the logs %+v", kept)
	}
}
