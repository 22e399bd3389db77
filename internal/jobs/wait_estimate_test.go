package jobs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

func TestEstimateWait(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	var reports []v1alpha1.JobReport
	add := func(status v1alpha1.JobReportStatus) {
		report := v1alpha1.JobReport{Status: status}
		report.Spec.JobRef.UID = types.UID(fmt.Sprint(len(reports)))
		reports = append(reports, report)
	}
	waited := func(backend, queue string, pods int32, seconds int64) {
		add(v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseSucceeded, Waited: &v1alpha1.Waited{
			Backend: backend, Queue: queue, Pods: pods, Seconds: seconds, Until: metav1.NewTime(start.Add(time.Duration(len(reports)) * time.Minute)),
		}})
	}
	waits := func(phase v1alpha1.Phase, queue string) {
		add(v1alpha1.JobReportStatus{Phase: phase, Scheduling: &v1alpha1.SchedulingStatus{Queue: queue}})
	}
	for i := range 12 {
		waited("kueue", "gpu", 5, int64(60*(i+1)))
		waited("embedded", "", 5, 0)
	}
	waited("kueue", "gpu", 100, 86400)
	waited("kueue", "few", 5, 60)
	waits(v1alpha1.PhaseQueued, "gpu")
	waits(v1alpha1.PhaseQueued, "gpu")
	waits(v1alpha1.PhaseQueued, "few")
	waits(v1alpha1.PhaseRunning, "gpu")
	runs := func(phase v1alpha1.Phase, queue string) {
		add(v1alpha1.JobReportStatus{Phase: phase, Waited: &v1alpha1.Waited{Backend: "kueue", Queue: queue, Pods: 5, Until: metav1.NewTime(start)}})
	}
	runs(v1alpha1.PhaseRunning, "full")
	runs(v1alpha1.PhaseInitializing, "full")
	runs(v1alpha1.PhaseSuspended, "full")
	runs(v1alpha1.PhaseRunning, "busy")
	waits(v1alpha1.PhaseQueued, "busy")
	runs(v1alpha1.PhasePending, "held")
	reports[len(reports)-1].Status.Reason = codes.WaitingForQuota
	runs(v1alpha1.PhaseRunning, "held")
	for name, test := range map[string]struct {
		queue string
		pods  int32
		want  string
	}{
		"comparable jobs":         {"gpu", 5, "2 jobs wait in queue gpu; half of the last 12 jobs of 3 to 10 pods waited at most 6m, nine in ten 11m"},
		"too few comparable jobs": {"few", 5, "1 job waits in queue few"},
		"other sizes":             {"gpu", 50, "2 jobs wait in queue gpu"},
		"no job waits yet":        {"full", 5, "no job waits, 2 run in queue full"},
		"jobs wait and run":       {"busy", 5, "1 job waits, 1 runs in queue busy"},
		"a job waits for quota":   {"held", 5, "1 job waits, 1 runs in queue held"},
		"an unknown queue":        {"other", 5, ""},
		"no queue and no waits":   {"", 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := estimateWait(reports, test.queue, test.pods).String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
	quota := v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Phase: v1alpha1.PhasePending, Reason: codes.WaitingForQuota}}
	if got, want := estimateWait(append(slices.Clone(reports), quota), "", 5).String(), "1 job waits in this namespace; half of the last 12 jobs of 3 to 10 pods waited at most 0s, nine in ten 0s"; got != want {
		t.Errorf("while a job waits for quota: %q, want %q", got, want)
	}
	for range 12 {
		waited("embedded", "", 5, 30)
	}
	if got, want := estimateWait(reports, "", 5).String(), "half of the last 24 jobs of 3 to 10 pods waited at most 0s, nine in ten 30s in this namespace"; got != want {
		t.Errorf("without a queue: %q, want %q", got, want)
	}
}

// TestEstimateWaitCountsPods: the launcher of a TrainJob is one of its nodes, and that of an MPIJob is none of its workers.
func TestEstimateWaitCountsPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job  string
		want int32
	}{
		"MPIJob": {`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: j}, spec: {mpiReplicaSpecs: {
Launcher: {template: {spec: {containers: [{name: l, image: i}]}}}, Worker: {replicas: 4, template: {spec: {containers: [{name: w, image: i}]}}}}}}`, 5},
		"TrainJob": {`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j}, spec: {runtimeRef: {name: r}, trainer: {numNodes: 4, resourcesPerNode: {}}}}`, 4},
	} {
		size, known := SizeOf(object(t, test.job))
		if got := size.Pods(); !known || got != test.want {
			t.Errorf("%s: %d pods, want %d", name, got, test.want)
		}
	}
}
