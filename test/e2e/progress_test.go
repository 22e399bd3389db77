package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
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

// TestCurvesAreKept: the figures that a program prints become curves, a loss that is no number is warned of while the job runs, and both
// are kept when the job has succeeded.
func TestCurvesAreKept(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 1, "mpirun", "-n", "1", "sh", "-c",
		`i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "{\"training\": {\"step\": $i, \"loss\": 0.$((999-i)), \"grad_norm\": $i}}"; done
sleep 5; until [ -e /tmp/enough ]; do i=$((i+1)); echo "{\"training\": {\"step\": $i, \"loss\": \"nan\", \"grad_norm\": 1}}"; sleep 1; done`)
	create(t, job)
	diverged := func(status v1alpha1.JobReportStatus) bool {
		return slices.ContainsFunc(status.Findings, func(f v1alpha1.Finding) bool {
			return f.Code == "TrainingDiverged" && f.Severity == v1alpha1.SeverityWarning && strings.Contains(f.Summary, "loss is NaN since step")
		})
	}
	curve := func(status v1alpha1.JobReportStatus, name string) v1alpha1.TrainingCurve {
		if status.Curves != nil {
			for _, figure := range status.Curves.Figures {
				if figure.Name == name {
					return figure
				}
			}
		}
		return v1alpha1.TrainingCurve{}
	}
	reported(t, "MPIJob", namespace, job.Name, "the report warns of the loss while the job runs", func(status v1alpha1.JobReportStatus) error {
		if status.Phase == v1alpha1.PhaseRunning && diverged(status) {
			return nil
		}
		return fmt.Errorf("it is %s, its curves %+v, its findings %+v", status.Phase, status.Curves, status.Findings)
	})
	if out, err := exec.CommandContext(t.Context(), "kubectl", "exec", "-n", namespace, "job-worker-0", "--", "touch", "/tmp/enough").CombinedOutput(); err != nil {
		t.Fatalf("have the program end: %v: %s", err, out)
	}
	waitFor(t, job, "the job succeeds", succeeded)
	reported(t, "MPIJob", namespace, job.Name, "the report keeps the curves", func(status v1alpha1.JobReportStatus) error {
		loss, norm := curve(status, "loss"), curve(status, "grad_norm")
		if status.Phase == v1alpha1.PhaseSucceeded && diverged(status) && loss.By == v1alpha1.CurveByStep && len(loss.At) > 20 && len(loss.At) <= 120 &&
			loss.NotFiniteAt != nil && loss.Values[len(loss.Values)-1] == "NaN" && len(norm.Values) == len(loss.Values) {
			return nil
		}
		return fmt.Errorf("it is %s, its curves %+v, its findings %+v", status.Phase, status.Curves, status.Findings)
	})
	out, err := exec.CommandContext(t.Context(), "kubectl", "odh", "mpijob", "top", job.Name, "-n", namespace, "--history").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "grad_norm") {
		t.Errorf("the history is %s (%v)", out, err)
	}
}
