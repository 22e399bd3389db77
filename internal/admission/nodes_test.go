package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestCheckNodes: a job that no node can hold is refused, unless that may change before it runs.
func TestCheckNodes(t *testing.T) {
	tests := map[string]struct {
		change      func(*mpi.Job)
		mayGetNodes bool
		errs        int
		warned      string
	}{
		"today's nodes are all":    {errs: 1, warned: "[unmatched]"},
		"an autoscaler":            {mayGetNodes: true, warned: `[spec.cpu: Invalid value: "512": too large. The cluster has an autoscaler, which may add larger nodes unmatched]`},
		"a queue adds tolerations": {change: func(j *mpi.Job) { j.Queue = "team" }, warned: `[spec.cpu: Invalid value: "512": too large unmatched]`},
		"suspended":                {change: func(j *mpi.Job) { j.Lifecycle.Suspended = true }, warned: `[spec.cpu: Invalid value: "512": too large unmatched]`},
		"it runs elsewhere":        {change: func(j *mpi.Job) { j.ManagedBy = "kueue.x-k8s.io/multikueue" }, warned: "[]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			if test.change != nil {
				test.change(&job)
			}
			found := cluster.Preflight{TooLarge: field.ErrorList{field.Invalid(field.NewPath("spec", "cpu"), "512", "too large")}, Unmatched: []string{"unmatched"}}
			errs, warnings := checkNodes(job, found, test.mayGetNodes)
			if got := "[" + strings.Join(warnings, " ") + "]"; len(errs) != test.errs || got != test.warned {
				t.Errorf("%d errors and the warnings %s, want %d and %s", len(errs), got, test.errs, test.warned)
			}
		})
	}
}
