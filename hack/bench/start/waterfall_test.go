package start

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/hack/bench/report"
)

// since is the whole second in which the observed jobs are created, and at a time after it.
var since = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return since.Add(time.Duration(seconds * float64(time.Second))) }

// addPods records the start of two pods: both exist at from, one is scheduled late, and the other one pulls its image.
func addPods(o *observation, from float64, pulls bool) {
	for _, uid := range []types.UID{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		o.add(pod, at(from))
		pod.Spec.NodeName = "node"
		late := 0.0
		if uid == "b" {
			late = 0.1
		}
		o.add(pod, at(from+0.1+late))
		event := func(reason, path string, after float64) {
			o.add(&corev1.Event{Reason: reason, InvolvedObject: corev1.ObjectReference{UID: uid, FieldPath: path}}, at(from+after+late))
		}
		event("Pulled", "spec.initContainers{a}", 0.2)
		if pulls && uid == "a" {
			event("Pulling", "spec.containers{main}", 0.3)
		}
		event("Pulled", "spec.containers{main}", 0.4)
		event("Started", "spec.containers{main}", 0.6)
		o.add(pod, at(from+0.9))
	}
	o.add(&corev1.Event{Reason: "Started", InvolvedObject: corev1.ObjectReference{UID: "of another job", FieldPath: "spec.containers{main}"}}, at(9))
}

func jobSet(suspended bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": suspended}}}
}

func TestSteps(t *testing.T) {
	reported := launch{since: since, steps: []reportedStep{
		{"Scheduled", 0, time.Second},
		{"Launch", 1300 * time.Millisecond, 100 * time.Millisecond},
		{"Connected", 1400 * time.Millisecond, 50 * time.Millisecond},
		{"MPIInit", 1450 * time.Millisecond, 150 * time.Millisecond},
	}}
	step := func(name string, start, seconds float64) report.Step {
		return report.Step{Name: name, Start: start, Seconds: seconds}
	}
	for name, test := range map[string]struct {
		observe  func(*observation)
		reported launch
		want     []report.Step
	}{
		"an MPIJob": {func(o *observation) { addPods(o, 0.6, false) }, reported, []report.Step{
			step("operator: pods created", 0, 0.1), step("scheduler", 0.1, 0.2), step("kubelet: volumes and network", 0.2, 0.4),
			step("containerd: containers started", 0.5, 0.3), step("mpirun: until it connects", 0.8, 0.1), step("agent: all workers connected", 0.9, 0.05),
			step("MPI's daemons: until ranks run", 0.95, 0.15), step("MPI_Init and the program: first line", 1.1, 0.4),
		}},
		"a cold image, without a report": {func(o *observation) { addPods(o, 0.6, true) }, launch{}, []report.Step{
			step("operator: pods created", 0, 0.1), step("scheduler", 0.1, 0.2), step("kubelet: volumes and network", 0.2, 0.4),
			step("kubelet: image pulled", 0.4, 0.2), step("containerd: containers started", 0.5, 0.3), step("ssh, MPI and the program: first line", 0.8, 0.7),
		}},
		"a TrainJob whose JobSet is resumed": {func(o *observation) {
			o.add(jobSet(true), at(0.6))
			o.add(&batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}, at(0.65))
			o.add(jobSet(false), at(0.7))
			o.add(jobSet(false), at(0.75))
			o.add(&batchv1.Job{}, at(0.8))
			o.add(&batchv1.Job{Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: since}}}, at(0.9))
			addPods(o, 1, false)
		}, launch{}, []report.Step{
			step("Trainer: JobSet created", 0, 0.1), step("operator: JobSet resumed", 0.1, 0.1), step("JobSet: Jobs created", 0.2, 0.1),
			step("Job controller: pods created", 0.3, 0.2), step("scheduler", 0.5, 0.2), step("kubelet: volumes and network", 0.6, 0.4),
			step("containerd: containers started", 0.9, 0.3), step("ssh, MPI and the program: first line", 1.2, 0.3),
		}},
		"ranks that end at once": {func(o *observation) { addPods(o, 0.6, false) }, launch{since: since, steps: reported.steps[:3]}, []report.Step{
			step("operator: pods created", 0, 0.1), step("scheduler", 0.1, 0.2), step("kubelet: volumes and network", 0.2, 0.4),
			step("containerd: containers started", 0.5, 0.3), step("mpirun: until it connects", 0.8, 0.1), step("agent: all workers connected", 0.9, 0.05),
			step("MPI's daemons and the program: first line", 0.95, 0.55),
		}},
		"nothing was observed": {func(*observation) {}, launch{}, nil},
	} {
		o := &observation{pods: map[types.UID]*podTimes{}}
		test.observe(o)
		if diff := cmp.Diff(test.want, o.steps(at(0.5), at(2), test.reported), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestReadLaunch(t *testing.T) {
	of := func(startup map[string]any) map[string]any {
		return map[string]any{"status": map[string]any{"startup": startup}}
	}
	good := map[string]any{"since": "2026-11-29T10:00:00Z", "steps": []any{map[string]any{"name": "MPIInit", "startMilliseconds": int64(1450), "milliseconds": int64(150)}}}
	found, err := readLaunch(of(good))
	if err != nil || !found.since.Equal(since) || !found.has("MPIInit") || found.steps[0].start != 1450*time.Millisecond || found.steps[0].taken != 150*time.Millisecond {
		t.Errorf("it is %+v (%v)", found, err)
	}
	if found, err := readLaunch(map[string]any{}); err != nil || found.has("MPIInit") {
		t.Errorf("without a status it is %+v (%v)", found, err)
	}
	for name, odd := range map[string]map[string]any{
		"since": {"since": "yesterday"}, "steps": {"since": "2026-11-29T10:00:00Z", "steps": "none"}, "a step": {"since": "2026-11-29T10:00:00Z", "steps": []any{"none"}},
	} {
		if _, err := readLaunch(of(odd)); err == nil {
			t.Errorf("%s is odd, without an error", name)
		}
	}
}

// TestStepsOfTheMedianRun: the parts that are recorded are those of the run whose value is the median.
func TestStepsOfTheMedianRun(t *testing.T) {
	m := measurements{values: map[string]map[string][]report.Value{}, steps: map[string]map[string][][]report.Step{}}
	for _, seconds := range []float64{3, 1, 2} {
		m.add("first-line/4", Ours, time.Duration(seconds*float64(time.Second)), []report.Step{{Name: "all", Seconds: seconds}})
		m.add("first-line/4", Floor, time.Duration(seconds*float64(time.Second)), nil)
	}
	want := map[string][]report.Step{Ours: {{Name: "all", Seconds: 2}}}
	if diff := cmp.Diff(want, m.newCase("first-line/4").Steps); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
