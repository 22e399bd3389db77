package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// allowedNotices are the findings that the report of a healthy job may have: they accuse neither its program nor its user. Pods start slowly on
// a machine that other tests use, and ordinary samples have several workers on a node.
var allowedNotices = []string{codes.SlowStartupStep, codes.WorkersShareNodes}

// isAccusation reports whether an event is a finding that accuses the program of a job. All that the report of a running job warns of have an event,
// also those that are over. A node that is cordoned is nobody's fault.
func isAccusation(event string) bool {
	others := []string{codes.RankGone, codes.NoAnswer, codes.NoTransport, codes.WorkersIdle, codes.RankFailed, codes.MPINotAwaited}
	return event != codes.NodeCordoned && (codes.Has(event, codes.Warns) || slices.Contains(others, event))
}

// accusesNobody checks the record of a job that has succeeded: it has no finding but notices, and had no warning meanwhile.
func accusesNobody(t *testing.T, kind, namespace, name string) {
	t.Helper()
	status := reported(t, kind, namespace, name, "its record is complete", func(status v1alpha1.JobReportStatus) error {
		if status.CompletionTime == nil || status.Phase != v1alpha1.PhaseSucceeded {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	}).Status
	for _, found := range falseAlarms(status) {
		t.Errorf("a job that succeeded is accused: %s", found)
	}
}

// falseAlarms returns what a record says against a job that has succeeded.
func falseAlarms(status v1alpha1.JobReportStatus) (found []string) {
	for _, f := range status.Findings {
		if f.Severity != v1alpha1.SeverityInfo || !slices.Contains(allowedNotices, f.Code) {
			found = append(found, fmt.Sprintf("%s (%s): %s %v", f.Code, f.Severity, f.Summary, f.Evidence))
		}
	}
	for _, entry := range status.Timeline {
		if isAccusation(entry.Event) {
			found = append(found, fmt.Sprintf("%s at %s: %s", entry.Event, entry.Time.UTC().Format(time.TimeOnly), entry.Detail))
		}
	}
	return found
}

// TestFalseAlarmsAreFound: a warning in a record is an alarm, also one that is over; notices are none.
func TestFalseAlarmsAreFound(t *testing.T) {
	of := func(code string, severity v1alpha1.Severity) v1alpha1.JobReportStatus {
		return v1alpha1.JobReportStatus{Findings: []v1alpha1.Finding{{Code: code, Severity: severity}}}
	}
	for name, test := range map[string]struct {
		status v1alpha1.JobReportStatus
		want   int
	}{
		"none":                       {v1alpha1.JobReportStatus{Timeline: []v1alpha1.TimelineEntry{{Event: "Running"}}}, 0},
		"a notice":                   {of(codes.SlowStartupStep, v1alpha1.SeverityInfo), 0},
		"a notice as a warning":      {of(codes.SlowStartupStep, v1alpha1.SeverityWarning), 1},
		"a warning":                  {of(codes.CPUThrottled, v1alpha1.SeverityWarning), 1},
		"a hint at ranks":            {of(codes.Straggler, v1alpha1.SeverityInfo), 1},
		"a hint that is over":        {v1alpha1.JobReportStatus{Timeline: []v1alpha1.TimelineEntry{{Event: codes.RanksIdle}}}, 1},
		"a warning that came second": {v1alpha1.JobReportStatus{Timeline: []v1alpha1.TimelineEntry{{Event: codes.NodeCordoned}, {Event: codes.FigureConstant}}}, 1},
		"a code of a later time":     {of("Later", v1alpha1.SeverityInfo), 1},
	} {
		if found := falseAlarms(test.status); len(found) != test.want {
			t.Errorf("%s: %v, want %d", name, found, test.want)
		}
	}
}

// The kinds of programs that a record distinguishes.
const (
	cpuBound           = "CPU-bound"
	communicationBound = "communication-bound"
	unbalanced         = "unbalanced"
	leaking            = "leaking"
	idling             = "idle"
)

// kindOfProgram judges a program by nothing but the usage and the profile in the record of its job, which has a rank in each worker.
func kindOfProgram(status v1alpha1.JobReportStatus) string {
	usage, profile := status.Usage, status.Profile
	if usage == nil || profile == nil {
		return "not measured"
	}
	cpu, memory := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricCPU), v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricMemory)
	switch {
	case cpu == nil || memory == nil:
		return "not measured"
	case growsBy(memory.Points) > 64:
		return leaking
	// The start of Python is a second of CPU time.
	case cpu.Mean < 150*int64(usage.Pods):
		return idling
	case profile.LateRank != nil || profile.ImbalancePercent >= 30:
		return unbalanced
	case profile.CommunicationPercent >= 60:
		return communicationBound
	case profile.CommunicationPercent < 25:
		return cpuBound
	}
	return "none that stands out"
}

// growsBy returns by how many MiB a series of memory has grown from its second point, when programs have started, to its maximum; 0 if it shrank
// in between. What follows are ranks that end.
func growsBy(points []int64) int64 {
	points = slices.DeleteFunc(slices.Clone(points), func(point int64) bool { return point < 0 })
	if len(points) < 3 {
		return 0
	}
	points = points[1 : max(1, slices.Index(points, slices.Max(points)))+1]
	if !slices.IsSorted(points) {
		return 0
	}
	return points[len(points)-1] - points[0]
}

// recordedPrograms run for about half a minute each: as long as their records take to have several points.
var recordedPrograms = map[string]string{
	cpuBound: `
end = time.time() + 30
while time.time() < end: pass`,
	communicationBound: `
end, other = time.time() + 30, 1 - comm.rank
sent, received = bytearray(1 << 20), bytearray(1 << 20)
while not comm.allreduce(time.time() > end, MPI.LOR):
    for i in range(20): comm.Sendrecv(sent, other, recvbuf=received, source=other)`,
	unbalanced: `
for step in range(60):
    if comm.rank == 1:
        end = time.time() + 0.5
        while time.time() < end: pass
    comm.allreduce(step)`,
	leaking: `
kept = []
for step in range(60):
    if comm.rank == 1: kept.append(b"x" * (8 << 20))
    time.sleep(0.5)`,
	idling: `
time.sleep(30)`,
}

// TestProgramsAreToldByTheRecord: the record of a job is enough to say that its program computes, communicates, has uneven work, leaks memory
// or does nothing. It is run when asked for: make e2e SUITE=ToldByTheRecord.
func TestProgramsAreToldByTheRecord(t *testing.T) {
	whenAsked(t, "ToldByTheRecord")
	t.Parallel()
	for want, program := range recordedPrograms {
		t.Run(want, func(t *testing.T) {
			if want == leaking || want == idling {
				t.Parallel()
			} else {
				parallel(t, 2)
			}
			namespace := newNamespace(t)
			job := openMPI(namespace, 2, "mpirun", "-n", "2", "--map-by", "node", "python3", "-c", "import time\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD"+program)
			job.Annotations = map[string]string{mpi.AnnotationProfile: "true"}
			worker(job).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
			create(t, job)
			reported(t, kubeflow.Kind, namespace, job.Name, "the job runs", inPhase(v1alpha1.PhaseRunning))
			status := reported(t, kubeflow.Kind, namespace, job.Name, "the record is complete", func(status v1alpha1.JobReportStatus) error {
				if status.CompletionTime == nil {
					return fmt.Errorf("it is %s", status.Phase)
				}
				return hasProfile(status)
			}).Status
			if got := kindOfProgram(status); got != want {
				t.Errorf("by its record, the program is %s, want %s: %+v %+v", got, want, status.Usage, status.Profile)
			}
			if rank := mostMemory(status); want == leaking && rank != 1 {
				t.Errorf("by its record, rank %d uses the most memory, want 1: %+v", rank, status.Usage.PerRank)
			}
		})
	}
}

// mostMemory returns the rank that used the most memory by a record; -1 if there is none.
func mostMemory(status v1alpha1.JobReportStatus) int32 {
	rank, most := int32(-1), int64(0)
	for _, r := range status.Usage.PerRank {
		if r.MemoryMiB > most {
			rank, most = r.Rank, r.MemoryMiB
		}
	}
	return rank
}
