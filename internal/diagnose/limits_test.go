package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestFindingsAreBounded(t *testing.T) {
	s := failed(1, strings.Repeat("x", 1<<20)+"\n\x1b[31m\xff\xfeValueError: \r\n"+strings.Repeat("Segmentation fault\n", 100))
	s.job.Workers.Count = 1000
	s.seen.Workers = nil
	for i := range 1000 {
		s.seen.Workers = append(s.seen.Workers, mpitest.Worker(s.job, i, corev1.PodPending, mpitest.Waiting("ErrImagePull", strings.Repeat("y", 100_000)), onNode("node-a")))
	}
	for i := range 10_000 {
		event("Pod", fmt.Sprintf("pi-worker-%d", i%1000), "FailedMount", strings.Repeat("z", 1000))(&s)
	}
	found := s.findings()
	if len(found) == 0 || found[0].Code != codes.ImagePullFailed {
		t.Fatalf("the first finding is not %s", codes.ImagePullFailed)
	}
	if n := len(found[0].Affected); n != 17 || found[0].Affected[16] != "and 984 more" {
		t.Errorf("%d are affected, the last %q", n, found[0].Affected[n-1])
	}
	for _, f := range found {
		sound(t, f)
	}
}

func TestOneFindingOfEachCode(t *testing.T) {
	s := failed(1, "ssh: connect to host pi-worker-1.pi.ns.svc port 2222: Connection timed out\nssh: connect to host pi-worker-2.pi.ns.svc port 2222: No route to host", sshd)
	found := s.findings()
	if len(found) != 1 || len(found[0].Affected) != 2 {
		t.Errorf("want one finding about two workers, got %+v", found)
	}
}

// What texts are there for is what the flavors' symptoms can show: none may go without words.
func TestEverySymptomHasWords(t *testing.T) {
	for _, name := range mpi.Implementations {
		for _, symptom := range implementation.For(name).Symptoms() {
			s := failed(1, "nothing", func(j *mpi.Job) { j.Implementation = name })
			if symptom.Pattern == nil {
				s = failed(1, symptom.Text, func(j *mpi.Job) { j.Implementation = name })
			}
			for _, f := range s.findings() {
				if strings.HasPrefix(f.Summary, "Something is wrong") {
					t.Errorf("%s: code %s has no text", name, f.Code)
				}
			}
		}
	}
}

func FuzzJob(f *testing.F) {
	f.Add("ssh: connect to host a port 2222: Connection refused", `{"role":"launcher","code":"RankFailed","ranks":[{"rank":-3,"exitCode":-1}]}`, "0/3 nodes are available: 1 Insufficient cpu", int32(-7), int32(1))
	f.Add("[1,2]<stderr>: ValueError: {x|y}", `{"role":"worker","oomKills":9}`, `exceeded quota: a, requested: , used: , limited: `, int32(139), int32(0))
	f.Fuzz(func(t *testing.T, log, termination, message string, code, slots int32) {
		s := failed(code, log, func(j *mpi.Job) { j.SlotsPerWorker = slots })
		s.seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.Message = termination
		s = s.with(
			worker(0, corev1.PodPending, unschedulable(message)), worker(1, corev1.PodPending, mpitest.Waiting("ErrImagePull", message)),
			worker(2, corev1.PodFailed, evicted(message)), refusal("Pod", "pi-worker-3", message), event("Pod", "pi-worker-1", "FailedMount", message),
		)
		found := s.findings()
		if len(found) == 0 {
			t.Error("a failed job has no findings")
		}
		for _, f := range found {
			if f.Summary == "" || len(f.Remedies) == 0 {
				t.Errorf("finding %s says nothing", f.Code)
			}
		}
		s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobComplete)
		s.findings()
	})
}

func BenchmarkJob(b *testing.B) {
	s := failed(1, strings.Repeat("[1,3]<stdout>: epoch 3 step 1234 loss 0.123 accuracy 0.9 throughput 1234.5 images/s\n", 200))
	for i := range 4 {
		s.evidence.Logs[fmt.Sprintf("pi-worker-%d", i)] = jobstate.Log{Lines: s.evidence.Logs["pi-launcher-0"].Lines}
	}
	for b.Loop() {
		s.findings()
	}
}
