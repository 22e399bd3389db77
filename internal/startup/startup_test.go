package startup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/startup"
)

// at returns a time of the start, in seconds since the launcher was created.
func at(seconds float64) time.Time {
	return mpitest.Now.Add(time.Duration(seconds * float64(time.Second)))
}

// timed sets the times of a pod: created, scheduled, networked, initialized, started and ready. A negative time is unknown.
func timed(created, scheduled, networked, initialized, started, ready float64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(at(created)), "node-of-"+pod.Name
		pod.Status.Conditions = nil
		for kind, seconds := range map[corev1.PodConditionType]float64{
			corev1.PodScheduled: scheduled, corev1.PodReadyToStartContainers: networked, corev1.PodInitialized: initialized, corev1.PodReady: ready,
		} {
			if seconds >= 0 {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(seconds))})
			}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
		if started >= 0 {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(started))}
		}
	}
}

func started(job mpi.Job) jobstate.Observed {
	return jobstate.Observed{
		Now: at(60), Launcher: mpitest.Launcher(job),
		LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, timed(0, 0, 1, 1, 2, 3))},
		Workers: []jobstate.Worker{
			mpitest.Worker(job, 0, corev1.PodRunning, timed(0, 0, 1, 1, 2, 3)),
			mpitest.Worker(job, 1, corev1.PodRunning, timed(1, 5, 6, 6, 30, 31)),
		},
	}
}

func step(name v1alpha1.StartupStepName, milliseconds, median int64, pod string) v1alpha1.StartupStep {
	s := v1alpha1.StartupStep{Name: name, Milliseconds: milliseconds, MedianMilliseconds: median, Pod: pod}
	if pod != "" {
		s.Node = "node-of-" + pod
	}
	return s
}

// after sets when a step began, in milliseconds since the start.
func after(start int64, s v1alpha1.StartupStep) v1alpha1.StartupStep {
	s.StartMilliseconds = start
	return s
}

func TestMeasure(t *testing.T) {
	job := mpitest.Job(2)
	const launcher, last = "pi-launcher-0", "pi-worker-1"
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{launcher: {FirstAt: at(33.5)}}}
	status := startup.Launch{ConnectMilliseconds: 28250, InitMilliseconds: 400}
	got := startup.Measure(job, started(job), evidence, status, at(-4))
	want := &v1alpha1.Startup{
		Since: metav1.NewTime(at(0).UTC()), Milliseconds: 33500,
		Steps: []v1alpha1.StartupStep{
			after(-4000, step(v1alpha1.StepAdmission, 4000, 0, "")),
			step(v1alpha1.StepPodsCreated, 1000, 0, last),
			after(1000, step(v1alpha1.StepScheduled, 4000, 0, last)),
			step(v1alpha1.StepVolumes, 1000, 1000, launcher),
			after(6000, step(v1alpha1.StepContainers, 24000, 1000, last)),
			after(2000, step(v1alpha1.StepReady, 1000, 1000, launcher)),
			after(30000, step(v1alpha1.StepConnected, 250, 0, "")),
			after(30250, step(v1alpha1.StepMPIInit, 400, 0, "")),
			after(2000, step(v1alpha1.StepFirstLine, 31500, 0, launcher)),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	const line = "33.5s: admission 4s, creating pods 1s, scheduling 4s, volumes and network 1s, images and containers 24s (pi-worker-1), " +
		"readiness 1s, connecting to all workers 250ms, starting ranks 400ms, first line of output 31.5s"
	if text := startup.Text(got); text != line {
		t.Errorf("got  %s\nwant %s", text, line)
	}
}

// TestExactLaunch: the times that the launcher's agent reports are exact, and replace those of the kubelet that are known before.
func TestExactLaunch(t *testing.T) {
	job := mpitest.Job(2)
	const launcher = "pi-launcher-0"
	seen := started(job)
	timed(0, 0, 1, 1, 2, 3)(seen.Workers[1].Pod)
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{launcher: {FirstAt: at(3.5)}}}
	before := startup.Measure(job, seen, evidence, startup.Launch{}, time.Time{})
	exact := startup.Launch{Started: at(2.4), Connecting: at(2.55), ConnectMilliseconds: 150, InitMilliseconds: 300}
	of := func(s *v1alpha1.Startup) []v1alpha1.StartupStep { return s.Steps[len(s.Steps)-4:] }
	want := []v1alpha1.StartupStep{
		after(2400, step(v1alpha1.StepLaunch, 150, 0, launcher)),
		after(2550, step(v1alpha1.StepConnected, 150, 0, "")),
		after(2700, step(v1alpha1.StepMPIInit, 300, 0, "")),
		after(2400, step(v1alpha1.StepFirstLine, 1100, 0, launcher)),
	}
	now := startup.Measure(job, seen, evidence, exact, time.Time{})
	for name, got := range map[string]*v1alpha1.Startup{"measured once": now, "merged": startup.Merge(before, now), "merged again": startup.Merge(startup.Merge(before, now), now)} {
		if diff := cmp.Diff(want, of(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if got.Milliseconds != 3500 {
			t.Errorf("%s: it took %d ms", name, got.Milliseconds)
		}
	}
	// The program can write the report of the agent.
	for name, odd := range map[string]startup.Launch{
		"unknown":                    {Started: at(2.4)},
		"before the container":       {Started: at(1), Connecting: at(2)},
		"long after it":              {Started: at(1e6), Connecting: at(1e6)},
		"it connects before":         {Started: at(2.5), Connecting: at(2.4)},
		"it connects after a decade": {Started: at(2.5), Connecting: at(3e8)},
	} {
		if got := startup.Measure(job, seen, evidence, odd, time.Time{}); !cmp.Equal(got, before) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Workers that start late are waited for, which is no connecting.
	timed(0, 0, 1, 1, 30, 31)(seen.Workers[1].Pod)
	late := startup.Measure(job, seen, evidence, startup.Launch{Started: at(2.4), Connecting: at(2.5), ConnectMilliseconds: 27600, InitMilliseconds: 300}, time.Time{})
	if diff := cmp.Diff(after(30000, step(v1alpha1.StepConnected, 100, 0, "")), of(late)[1]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestWaterfall: each part has a bar from its begin to its end, and the program's begins with its ranks.
func TestWaterfall(t *testing.T) {
	of := &v1alpha1.Startup{Milliseconds: 10000, Steps: []v1alpha1.StartupStep{
		after(-2000, step(v1alpha1.StepAdmission, 2000, 0, "")),
		step(v1alpha1.StepPodsCreated, 0, 0, "a"),
		after(1000, step(v1alpha1.StepContainers, 4000, 1000, "a")),
		after(5000, step(v1alpha1.StepConnected, 20, 0, "")),
		after(5020, step(v1alpha1.StepMPIInit, 2980, 0, "")),
		after(5000, step(v1alpha1.StepFirstLine, 5000, 0, "b")),
	}}
	want := []string{
		"admission                        2s  ██",
		"images and containers (a)        4s     ████",
		"connecting to all workers      20ms         █",
		"starting ranks                   3s         ███",
		"first line of output             2s            ██",
	}
	if diff := cmp.Diff(want, startup.Waterfall(of, len("connecting to all workers")+8+4+12)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if lines := startup.Waterfall(of, 40); lines != nil {
		t.Errorf("there is room for %q", lines)
	}
	if startup.Waterfall(nil, 100) != nil || startup.Waterfall(&v1alpha1.Startup{Steps: of.Steps[:2]}, 100) != nil {
		t.Error("a start of fewer than two parts is drawn")
	}
}

func TestMeasureWhatIsKnown(t *testing.T) {
	job := mpitest.Job(2)
	measure := func(change func(*jobstate.Observed)) *v1alpha1.Startup {
		seen := started(job)
		change(&seen)
		return startup.Measure(job, seen, jobstate.Evidence{}, startup.Launch{}, time.Time{})
	}
	for name, change := range map[string]func(*jobstate.Observed){
		"a worker is missing":           func(o *jobstate.Observed) { o.Workers = o.Workers[:1] },
		"a worker has not started":      func(o *jobstate.Observed) { timed(0, 0, 1, 1, -1, -1)(o.Workers[0].Pod) },
		"a worker's container restarts": func(o *jobstate.Observed) { o.Workers[0].Pod.Status.ContainerStatuses[0].RestartCount = 1 },
		"there are no pods":             func(o *jobstate.Observed) { o.Workers, o.LauncherPods = nil, nil },
	} {
		if got := measure(change); got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	got := measure(func(o *jobstate.Observed) { timed(0, 0, -1, 1, 2, -1)(o.Workers[0].Pod) })
	for _, s := range got.Steps {
		if s.Name == v1alpha1.StepVolumes || s.Name == v1alpha1.StepReady {
			t.Errorf("%s is known though it is not of one pod", s.Name)
		}
	}
	skewed := measure(func(o *jobstate.Observed) { timed(9, 3, 2, 1, 0, 0)(o.Workers[0].Pod) })
	for _, s := range skewed.Steps {
		if s.Milliseconds < 0 || s.MedianMilliseconds < 0 {
			t.Errorf("a step takes less than no time: %+v", s)
		}
	}
	withInit := measure(func(o *jobstate.Observed) {
		for _, pod := range o.AllPods() {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "agent"}}
		}
		timed(0, 0, 1, 8, 9, 9)(o.Workers[0].Pod)
	})
	at := func(name v1alpha1.StartupStepName) (found v1alpha1.StartupStep) {
		for _, s := range withInit.Steps {
			if s.Name == name {
				found = s
			}
		}
		return found
	}
	if s := at(v1alpha1.StepInitContainers); s.Milliseconds != 7000 || s.Pod != "pi-worker-0" {
		t.Errorf("init containers: %+v", s)
	}
}

// TestMerge: an earlier measurement of the same start stays, since times of pods are lost when containers end.
func TestMerge(t *testing.T) {
	job := mpitest.Job(2)
	first := startup.Measure(job, started(job), jobstate.Evidence{}, startup.Launch{}, at(-4))
	ended := started(job)
	for _, pod := range ended.AllPods() {
		timed(0, 0, -1, 1, 2, -1)(pod)
	}
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {FirstAt: at(40)}}}
	second := startup.Measure(job, ended, evidence, startup.Launch{ConnectMilliseconds: 250}, time.Time{})
	merged := startup.Merge(first, second)
	want := append(append([]v1alpha1.StartupStep(nil), first.Steps...), after(2000, step(v1alpha1.StepConnected, 250, 0, "")), after(2000, step(v1alpha1.StepFirstLine, 38000, 0, "pi-launcher-0")))
	if diff := cmp.Diff(want, merged.Steps); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if merged.Milliseconds != 40000 {
		t.Errorf("it took %d ms", merged.Milliseconds)
	}
	if again := startup.Merge(merged, second); !cmp.Equal(again, merged) {
		t.Errorf("merged again it differs: %+v", again)
	}
	if kept := startup.Merge(merged, nil); kept != merged {
		t.Error("it is dropped when nothing can be measured")
	}
	later := *second
	later.Since = metav1.NewTime(at(100))
	if other := startup.Merge(merged, &later); len(other.Steps) != len(later.Steps) {
		t.Error("another start keeps steps of the earlier one")
	}
}

func TestSlow(t *testing.T) {
	of := func(steps ...v1alpha1.StartupStep) *v1alpha1.Startup { return &v1alpha1.Startup{Steps: steps} }
	for name, test := range map[string]struct {
		startup *v1alpha1.Startup
		summary string
	}{
		"unknown":                {},
		"fast":                   {startup: of(step(v1alpha1.StepContainers, 30000, 25000, "a"))},
		"long in the queue":      {startup: of(step(v1alpha1.StepAdmission, 1e7, 0, ""))},
		"a program that loads":   {startup: of(step(v1alpha1.StepFirstLine, 1e7, 0, "a"))},
		"a little slower":        {startup: of(step(v1alpha1.StepScheduled, 19000, 0, "a"))},
		"slower, but all are":    {startup: of(step(v1alpha1.StepContainers, 100000, 60000, "a"))},
		"all images are large":   {of(step(v1alpha1.StepContainers, 130000, 120000, "a")), "The start was slow: images and containers took 2m10s in pod a on node node-of-a, the median of all pods is 2m0s."},
		"one node is slow":       {of(step(v1alpha1.StepContainers, 30000, 2000, "a")), "The start was slow: images and containers took 30s in pod a on node node-of-a, the median of all pods is 2s."},
		"names resolve late":     {of(step(v1alpha1.StepConnected, 16000, 0, "")), "The start was slow: connecting to all workers took 16s."},
		"the slowest of several": {of(step(v1alpha1.StepConnected, 16000, 0, ""), step(v1alpha1.StepPodsCreated, 150000, 0, "a")), "The start was slow: creating pods took 2m30s in pod a on node node-of-a."},
	} {
		t.Run(name, func(t *testing.T) {
			finding, slow := startup.Finding("ns", test.startup)
			if slow != (test.summary != "") || finding.Summary != test.summary {
				t.Errorf("got %t: %s", slow, finding.Summary)
			}
			for _, remedy := range finding.Remedies {
				if remedy.Text == "" || len(finding.Affected) == 0 && remedy.Action != "" {
					t.Errorf("remedy %+v", remedy)
				}
			}
			if slow && finding.Severity != v1alpha1.SeverityInfo {
				t.Errorf("a healthy job has a finding of severity %s", finding.Severity)
			}
		})
	}
}
