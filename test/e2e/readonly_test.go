package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestReadOnlyRoot: a job runs on every MPI although no container may write to its image's files: not even to /tmp, which any
// user of the image may write to otherwise.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	for _, with := range implementations {
		t.Run(with.sample, func(t *testing.T) {
			parallel(t, 4)
			const rank = `if touch /tmp/probe 2>/dev/null; then echo "rank can write to /tmp"; fi; exec pi`
			job := agentJob(newNamespace(t), "job", with.sample, with.implementation, 2, with.mpirun, "-n", "4", "sh", "-c", rank)
			for _, container := range []*corev1.Container{launcher(job), worker(job)} {
				container.SecurityContext.ReadOnlyRootFilesystem = new(true)
			}
			create(t, job)
			waitFor(t, job, "it succeeds", succeeded)
			printed := output(t, job)
			if ranks := rankOn.FindAllString(printed, -1); len(ranks) != 4 {
				t.Errorf("%d ranks ran, want 4:\n%s", len(ranks), printed)
			}
			if strings.Contains(printed, "rank can write") {
				t.Errorf("the root file system is not read-only:\n%s", printed)
			}
		})
	}
}
