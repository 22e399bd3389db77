package reporting

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestUsageIsReadWhenDue: the usage of a job is read when its agents have reported it, less often if it has run for long, and not while
// as many others are being read as may be.
func TestUsageIsReadWhenDue(t *testing.T) {
	t.Parallel()
	reads := 0
	reader := newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage {
		reads++
		return &agentapi.Usage{Until: int64(reads)}
	})
	job := mpitest.Job(2)
	seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)}
	for _, step := range []struct {
		after time.Duration
		want  bool
		next  time.Duration
	}{
		{0, false, launchTime},
		{launchTime + time.Second, true, firstUsage - launchTime - time.Second},
		{time.Minute, false, 15 * time.Second},
		{80 * time.Second, true, time.Minute},
		{100 * time.Second, false, 40 * time.Second},
		{141 * time.Second, true, time.Minute},
		{time.Hour, true, 5 * time.Minute},
		{time.Hour + 4*time.Minute, false, time.Minute},
		{time.Hour + 5*time.Minute, true, 5 * time.Minute},
	} {
		seen.Now = mpitest.Now.Add(step.after)
		if got, next := reader.readIfDue(t.Context(), job, seen); (got != nil) != step.want || next != step.next {
			t.Errorf("after %s: %+v, next after %s", step.after, got, next)
		}
	}
	seen.Now = mpitest.Now.Add(2 * time.Hour)
	for range maxReaders {
		reader.slots <- struct{}{}
	}
	if got, next := reader.readIfDue(t.Context(), job, seen); got != nil || next != usageRetry {
		t.Errorf("while too many others are read: %+v, next after %s", got, next)
	}
	<-reader.slots
	if got, _ := reader.readIfDue(t.Context(), job, seen); got == nil {
		t.Error("it is not read afterwards")
	}
	reader.forget(job.UID)
	if got, _ := reader.readIfDue(t.Context(), job, seen); got != nil {
		t.Error("a job that begins to run is read at once")
	}
	seen.Now = seen.Now.Add(time.Hour)
	for name, other := range map[string]mpi.Job{"no agent": mpitest.Job(2, func(j *mpi.Job) { j.Launch = mpi.LaunchSSHD })} {
		other.UID = "other"
		reader.readIfDue(t.Context(), other, seen)
		seen.Now = seen.Now.Add(time.Hour)
		if got, next := reader.readIfDue(t.Context(), other, seen); got != nil || next != 0 {
			t.Errorf("%s: the usage is read", name)
		}
	}
}
