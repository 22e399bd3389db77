package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// TestProgressIsReported: while a job trains its report tells how far it has come, and goes on telling; when it has
// ended the report has the last word.
func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 1, "mpirun", "-n", "1", "sh", "-c",
		`i=0; until [ -e /tmp/enough ]; do i=$((i+1)); echo "{\"epoch\": 1, \"step\": $i, \"loss\": 0.$i}"; sleep 1; done; echo '{"epoch": 2, "step": 999999, "loss": 0.01, "accuracy": 0.99}'`)
	create(t, job)
	step := func(status v1alpha1.JobReportStatus) int {
		if status.Phase != v1alpha1.PhaseRunning || status.Training == nil {
			return 0
		}
		n, _ := strconv.Atoi(status.Training.Step)
		return n
	}
	report := reported(t, "MPIJob", namespace, job.Name, "the report of the running job tells step and loss", func(status v1alpha1.JobReportStatus) error {
		if step(status) > 0 && status.Training.Loss != "" {
			return nil
		}
		return fmt.Errorf("it is %s, its training %+v", status.Phase, status.Training)
	})
	first := step(report.Status)
	reported(t, "MPIJob", namespace, job.Name, "the report tells a later step", func(status v1alpha1.JobReportStatus) error {
		if step(status) > first {
			return nil
		}
		return fmt.Errorf("it is %s, its training %+v, after step %d", status.Phase, status.Training, first)
	})
	if out, err := exec.CommandContext(t.Context(), "kubectl", "exec", "-n", namespace, "job-worker-0", "--", "touch", "/tmp/enough").CombinedOutput(); err != nil {
		t.Fatalf("have the program end: %v: %s", err, out)
	}
	waitFor(t, job, "the job succeeds", succeeded)
	reported(t, "MPIJob", namespace, job.Name, "the report has the last word", func(status v1alpha1.JobReportStatus) error {
		if status.Training != nil && status.Training.Step == "999999" && status.Training.Accuracy == "0.99" {
			return nil
		}
		return fmt.Errorf("its training is %+v", status.Training)
	})
}
