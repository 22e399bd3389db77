package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestNoCommandPrintsTheAddressOfLogs: reports are printed without the signed address, and the report of the job keeps it.
func TestNoCommandPrintsTheAddressOfLogs(t *testing.T) {
	t.Parallel()
	report := &v1alpha1.JobReport{}
	report.Namespace, report.Name = "team", "pi-uid"
	report.Spec.JobRef.Kind, report.Spec.JobRef.Name = "MPIJob", "pi"
	report.Status.CompleteLogs = &v1alpha1.CompleteLogs{Index: "https://s3.example.com/index?X-Amz-Signature=5ec2e7", Lines: 12, Pods: 3}
	job := jobs.FromReport(report)
	var out bytes.Buffer
	for _, form := range []string{"yaml", "json", "jsonpath={.status}", "custom-columns=LOGS:.status.completeLogs"} {
		printed := addOutput(&cobra.Command{})
		printed.form = form
		described := describeOptions{Factory: &Factory{IOStreams: genericiooptions.IOStreams{Out: &out}}, output: printed}
		listed := listPrinter{to: &out, output: printed, records: true}
		for command, print := range map[string]func() error{
			"describe": func() error { return described.printReport(job) },
			"list":     func() error { return listed.printObjects([]jobs.Job{job}, true) },
		} {
			out.Reset()
			if err := print(); err != nil || strings.Contains(out.String(), "Signature") || !strings.Contains(out.String(), "12") {
				t.Errorf("%s -o %s prints %s: %v", command, form, &out, err)
			}
		}
	}
	if job.Status().CompleteLogs.Index == "" {
		t.Error("the job's report lost the address")
	}
}
