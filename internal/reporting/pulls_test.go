package reporting

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpitest"
)

// TestFailedPulls: a registry is the cause if several other jobs could not pull from it in the last minutes.
func TestFailedPulls(t *testing.T) {
	t.Parallel()
	var pulls failedPulls
	for _, step := range []struct {
		after         time.Duration
		job, registry string
		want          bool
	}{
		{0, "a", "one.example.com", false},
		{0, "b", "one.example.com", false},
		{0, "b", "one.example.com", false},
		{0, "c", "two.example.com", false},
		{0, "d", "", false},
		{time.Minute, "d", "one.example.com", true},
		{time.Minute, "a", "one.example.com", true},
		{6 * time.Minute, "b", "one.example.com", true},
		{7 * time.Minute, "b", "one.example.com", false},
	} {
		if got := pulls.areShared(types.UID(step.job), step.registry, mpitest.Now.Add(step.after)); got != step.want {
			t.Errorf("after %s, job %s, registry %q: %v", step.after, step.job, step.registry, got)
		}
	}
	if len(pulls.jobs) != 1 {
		t.Errorf("kept are %v", pulls.jobs)
	}
}
