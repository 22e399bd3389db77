package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/report"
)

// TestOutputThatNobodyShouldWrite: a line of 10 MB, bytes that are no text, colours and a password before the cause, as a
// real kubelet keeps them.
func TestOutputThatNobodyShouldWrite(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 1, "sh", "-c", `head -c 10000000 /dev/zero | tr '\0' x; echo; head -c 300000 /dev/urandom; echo
printf '\033[31mred\033[0m \033]0;title\007\n'; echo password=hunter2hunter2; sleep 1; echo 'ValueError: the cause'; exit 3`)
	job.Spec.RunPolicy.BackoffLimit = new(int32(0))
	create(t, job)
	reported(t, kubeflow.Kind, namespace, job.Name, "the report has the end of the log", func(status v1alpha1.JobReportStatus) error {
		if err := inPhase(v1alpha1.PhaseFailed)(status); err != nil {
			return err
		}
		if status.Failure == nil || !strings.Contains(strings.Join(status.Failure.LogTail, "\n"), "ValueError: the cause") {
			return errors.New("it lacks the cause")
		}
		return nil
	})
	made := reportOf(t, kubeflow.Kind, namespace, job.Name)
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the report has %d bytes; it says %s: %s", len(data), made.Status.Reason, made.Status.Message)
	if len(data) > report.MaxSize || !utf8.Valid(data) {
		t.Errorf("the report has %d bytes", len(data))
	}
	for _, bad := range []string{`\u001b`, `\u0007`, `\u0000`, "hunter2"} {
		if strings.Contains(string(data), bad) {
			t.Errorf("the report holds %s: %s", bad, fmt.Sprintf("%.2000s", strings.Join(made.Status.Failure.LogTail, "\n")))
		}
	}
}
