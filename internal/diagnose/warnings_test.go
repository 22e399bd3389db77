package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// withDeadline gives a job a deadline and how long ago its launcher was started.
func withDeadline(deadline, started time.Duration) func(*scene) {
	return func(s *scene) {
		s.job.Lifecycle.Deadline = new(int64(deadline.Seconds()))
		s.seen.Launcher.Status.StartTime = new(metav1.NewTime(mpitest.Now.Add(-started)))
		for _, pod := range s.seen.LauncherPods {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: s.job.Launcher.Template.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *s.seen.Launcher.Status.StartTime}},
			}}
		}
	}
}

// printed is the progress that a program has just printed.
func printed(training v1alpha1.Training) func(*scene) {
	return func(s *scene) {
		training.At = metav1.NewTime(mpitest.Now)
		s.evidence.Training = training
	}
}

// limitedBy gives the job a queue that ends it some time after it has let it in.
func limitedBy(limit, admitted, past time.Duration) func(*scene) {
	return func(s *scene) {
		at := mpitest.Now.Add(-admitted)
		s.job.Queue = "team-a"
		s.seen.Queue = &jobstate.QueueState{Name: "team-a", Object: "mpijob-pi-1a2b3", Admitted: true, AdmittedAt: at, Limit: limit, EndsAt: at.Add(limit - past)}
		for _, pod := range s.seen.LauncherPods {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: s.job.Launcher.Template.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
			}}
		}
	}
}

// TestQueueEndsJob: a job that its queue ends before it is done is warned, of either kind; one that is done in time, or has no limit, is not.
func TestQueueEndsJob(t *testing.T) {
	late := printed(v1alpha1.Training{Progress: "25%"})
	check(t, map[string]expect{
		"queue-limit-too-short": {codes.QueueEndsJob, running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 0), late)},
		"queue-limit-soon":      {codes.QueueEndsJob, running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 110*time.Minute))},
	})
	for name, test := range map[string]struct {
		s    scene
		want bool
	}{
		"in time":                    {running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 0), printed(v1alpha1.Training{Progress: "60%"})), false},
		"far away":                   {running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 0)), false},
		"late after another attempt": {running(2).with(limitedBy(4*time.Hour, 2*time.Hour, time.Hour), printed(v1alpha1.Training{Progress: "60%"})), true},
		"no limit":                   {running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 0), late, func(s *scene) { s.seen.Queue.EndsAt = time.Time{} }), false},
		"no queue":                   {running(2).with(late), false},
		"has succeeded":              {running(2).with(limitedBy(4*time.Hour, 2*time.Hour, 0), late, succeededLauncher), false},
	} {
		for _, kind := range []string{mpi.KindMPIJob, mpi.KindTrainJob} {
			test.s.job.Kind = kind
			if found := test.s.findings(); slices.ContainsFunc(found, func(f v1alpha1.Finding) bool { return f.Code == codes.QueueEndsJob }) != test.want {
				t.Errorf("%s of kind %s: %+v, want a warning: %v", name, kind, found, test.want)
			}
		}
	}
}

func TestDeadlineNear(t *testing.T) {
	check(t, map[string]expect{
		"deadline-too-short": {codes.DeadlineNear, running(2).with(withDeadline(4*time.Hour, 2*time.Hour), printed(v1alpha1.Training{Progress: "25%"}))},
		"deadline-soon":      {codes.DeadlineNear, running(2).with(withDeadline(4*time.Hour, 3*time.Hour+40*time.Minute))},
	})
}

// stoppedByDeadline ends the launcher's Job by its deadline, now.
func stoppedByDeadline(s *scene) {
	s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
	s.seen.Launcher.Status.Conditions[0].LastTransitionTime = metav1.NewTime(mpitest.Now)
}

// TestPaceOfDeadline: how long all of a program takes is only told if it made progress.
func TestPaceOfDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		line     string
		training v1alpha1.Training
		want     string
		// at are the steps or thousandths of epochs of the curve, and enough is the deadline to set.
		at     []int64
		enough string
		// earlier is the number of attempts before.
		earlier string
	}{
		"epochs":             {"epoch 3/10 loss 0.3", v1alpha1.Training{Epoch: "3/10"}, "was stopped at epoch 3/10: at this pace, all of it takes about 2000 seconds", []int64{1000, 2000, 3000}, "2520", ""},
		"after a suspension": {"epoch 3/10 loss 0.3", v1alpha1.Training{Epoch: "3/10"}, "at this pace, all of it takes at least 2000 seconds", []int64{1000, 2000, 3000}, "", "1"},
		"from a checkpoint":  {"step 55/100 loss 0.3", v1alpha1.Training{Step: "55/100"}, "was stopped at step 55/100: at this pace, all of it takes about 12000 seconds", []int64{51, 52, 53, 54, 55}, "15000", ""},
		"no curve":           {"epoch 3/10", v1alpha1.Training{Epoch: "3/10"}, "at this pace, all of it takes at least 2000 seconds", nil, "", ""},
		"one point":          {"step 55/100 loss 0.3", v1alpha1.Training{Step: "55/100"}, "at this pace, all of it takes at least 1091 seconds", []int64{55}, "", ""},
		"no figure":          {line: "loss 0.3", want: "and was stopped."},
		"no number":          {line: "epoch 3", training: v1alpha1.Training{Epoch: "3"}, want: "and was stopped."},
		"all of it":          {line: "epoch 10/10", training: v1alpha1.Training{Epoch: "10/10"}, want: "and was stopped."},
		"ranks stuck":        {line: "mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1", training: v1alpha1.Training{Epoch: "3/10"}, want: "and was stopped."},
	} {
		s := failed(143, test.line, func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(600)) }).with(printed(test.training), stoppedByDeadline)
		s.seen.Launcher.Annotations = map[string]string{mpi.AnnotationEarlierAttempts: test.earlier}
		if by := v1alpha1.CurveByEpoch; test.at != nil {
			if test.training.Step != "" {
				by = v1alpha1.CurveByStep
			}
			s.evidence.Curves = &v1alpha1.TrainingCurves{Until: metav1.NewMicroTime(mpitest.Now), Figures: []v1alpha1.TrainingCurve{{Name: "loss", By: by, Width: 1, At: test.at}}}
		}
		found := s.findings()
		if len(found) == 0 || found[0].Code != codes.DeadlineExceeded || !strings.Contains(found[0].Summary, test.want) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		changes := found[0].Remedies[0].Changes
		if hasPace := strings.Contains(test.want, "pace"); hasPace && (test.enough == "" && len(changes) > 0 || test.enough != "" && (len(changes) != 1 || changes[0].Value != test.enough)) {
			t.Errorf("%s: changes are %+v, want %q", name, changes, test.enough)
		}
		sound(t, found[0])
	}
}

// TestDeadlineIsWorthAWarning: a job that is expected to end in time is not warned, nor one whose deadline is far away and whose pace is
// unknown.
func TestDeadlineIsWorthAWarning(t *testing.T) {
	const deadline = 4 * time.Hour
	for name, test := range map[string]struct {
		ran      time.Duration
		training v1alpha1.Training
		want     bool
	}{
		"in time":                        {2 * time.Hour, v1alpha1.Training{Progress: "60%"}, false},
		"in time, at the last moment":    {3*time.Hour + 50*time.Minute, v1alpha1.Training{Progress: "98%"}, false},
		"a little late":                  {2 * time.Hour, v1alpha1.Training{Progress: "48%"}, false},
		"late":                           {2 * time.Hour, v1alpha1.Training{Progress: "0.4"}, true},
		"late by epochs":                 {2 * time.Hour, v1alpha1.Training{Epoch: "2/10"}, true},
		"an epoch without their number":  {2 * time.Hour, v1alpha1.Training{Epoch: "2"}, false},
		"the pace of the first minutes":  {4 * time.Minute, v1alpha1.Training{Progress: "1/100"}, false},
		"the pace of the first steps":    {30 * time.Minute, v1alpha1.Training{Progress: "1%"}, false},
		"odd progress":                   {2 * time.Hour, v1alpha1.Training{Progress: "-1/0"}, false},
		"more than all of it":            {2 * time.Hour, v1alpha1.Training{Progress: "2500%"}, false},
		"no number":                      {2 * time.Hour, v1alpha1.Training{Progress: "NaN%"}, false},
		"no progress":                    {3 * time.Hour, v1alpha1.Training{}, false},
		"no progress, soon":              {3*time.Hour + 40*time.Minute, v1alpha1.Training{}, true},
		"all done long ago, and runs on": {3*time.Hour + 40*time.Minute, v1alpha1.Training{Progress: "100%"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			isNear := func(f v1alpha1.Finding) bool { return f.Code == codes.DeadlineNear }
			s := running(2).with(withDeadline(deadline, test.ran), printed(test.training))
			if found := s.findings(); slices.ContainsFunc(found, isNear) != test.want {
				t.Errorf("%+v, want a warning: %v", found, test.want)
			}
			// A TrainJob's deadline counts from its creation or resumption, whatever its launcher's Job says.
			s.job.Lifecycle.DeadlineFrom, s.seen.Launcher.Status.StartTime = s.seen.Launcher.Status.StartTime.Time, nil
			if found := s.findings(); slices.ContainsFunc(found, isNear) != test.want {
				t.Errorf("TrainJob: %+v, want a warning: %v", found, test.want)
			}
			s.job.Lifecycle.Deadline = nil
			if found := s.findings(); slices.ContainsFunc(found, isNear) {
				t.Errorf("without a deadline: %+v", found)
			}
		})
	}
}

// onNodes are the nodes of the workers, of which some are cordoned.
func onNodes(cordoned ...string) func(*scene) {
	return func(s *scene) {
		for i, worker := range s.seen.Workers {
			worker.Pod.Spec.NodeName = "node-" + string(rune('a'+i))
		}
		s.evidence.Cordoned = cordoned
	}
}

func TestNodeCordoned(t *testing.T) {
	check(t, map[string]expect{
		"node-cordoned":  {codes.NodeCordoned, running(3).with(onNodes("node-b"))},
		"nodes-cordoned": {codes.NodeCordoned, running(3).with(onNodes("node-a", "node-c"))},
	})
	for name, s := range map[string]scene{
		"another job's node": running(3).with(onNodes("node-x")), "none": running(3).with(onNodes()), "succeeded": running(3).with(onNodes("node-a"), succeededLauncher),
	} {
		for _, f := range s.findings() {
			if f.Code == codes.NodeCordoned {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// recentUsage is the usage of two workers with a metric, in thousandths: the mean of all samples, and that of the last minutes in each worker.
func recentUsage(metric v1alpha1.MetricName, limit, mean int64, recent ...*int64) func(*scene) {
	return func(s *scene) {
		s.evidence.Used = &v1alpha1.Usage{Since: metav1.NewTime(mpitest.Now.Add(-5 * time.Hour)), Until: metav1.NewTime(mpitest.Now)}
		for i, pod := range []string{"pi-worker-0", "pi-worker-1", "another"} {
			s.evidence.Used.PerPod = append(s.evidence.Used.PerPod, v1alpha1.PodUsage{Pod: pod, Metrics: []v1alpha1.UsageMetric{
				{Metric: metric, Mean: mean, Limit: limit, Recent: recent[min(i, len(recent)-1)]},
			}})
		}
	}
}

// TestThrottlingWhileRunning: a CPU limit is worth a warning if it stops ranks now, whatever it did for hours before.
func TestThrottlingWhileRunning(t *testing.T) {
	throttled := func(mean int64, second *int64) func(*scene) {
		return recentUsage(v1alpha1.MetricThrottled, 0, mean, new(int64(30)), second)
	}
	check(t, map[string]expect{"cpu-throttling": {codes.CPUThrottled, running(2).with(throttled(20, new(int64(437))))}})
	for name, s := range map[string]scene{
		"less than a fifth": running(2).with(throttled(20, new(int64(199)))), "over for ten minutes": running(2).with(throttled(900, new(int64(10)))),
		"of an agent of an earlier version, in periods": running(2).with(throttled(950, nil)),
		"over": running(2).with(throttled(20, new(int64(437))), succeededLauncher), "not measured": running(2),
	} {
		for _, f := range s.findings() {
			if f.Code == codes.CPUThrottled {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// gpus has workers request GPUs of AMD.
func gpus(s *scene) {
	of := corev1.ResourceRequirements{Limits: corev1.ResourceList{"amd.com/gpu": resource.MustParse("2")}}
	s.job.Workers.Template.Spec.Containers[0].Resources = of
	for _, worker := range s.seen.Workers {
		worker.Pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: of}}
	}
}

// noGPUs has workers request none.
func noGPUs(j *mpi.Job) {
	j.Workers.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
}

// gpuClaims has workers request GPUs by claims.
func gpuClaims(s *scene) {
	noGPUs(&s.job)
	s.job.Workers.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("two")}}
}

// TestGPUsIdle: GPUs that a pod has requested and does not use now are worth a warning, whatever it did with them before.
func TestGPUsIdle(t *testing.T) {
	used := func(mean int64, recent ...*int64) func(*scene) {
		return recentUsage(v1alpha1.MetricGPU, 2000, mean, recent...)
	}
	busy, idle := new(int64(1400)), new(int64(99))
	check(t, map[string]expect{
		"gpu-idle":            {codes.GPUIdle, running(2).with(gpus, used(1500, busy, idle))},
		"gpu-of-a-claim-idle": {codes.GPUIdle, running(2).with(gpuClaims, used(1500, busy, idle))},
		"gpus-idle":           {codes.GPUIdle, running(2).with(gpus, used(0, new(int64(0)), new(int64(0))))},
	})
	for name, s := range map[string]scene{
		"a twentieth is used": running(2).with(gpus, used(90, new(int64(100)))), "they were idle before": running(2).with(gpus, used(10, busy)),
		"of other jobs, in a privileged pod": running(2, noGPUs).with(used(0, idle)), "the first minutes": running(2).with(gpus, used(0, idle), func(s *scene) {
			s.evidence.Used.Since = metav1.NewTime(mpitest.Now.Add(-9 * time.Minute))
		}),
		"not measured lately": running(2).with(gpus, used(0, nil)), "succeeded": running(2).with(gpus, used(0, idle), succeededLauncher), "not measured": running(2).with(gpus),
	} {
		for _, f := range s.findings() {
			if f.Code == codes.GPUIdle {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// launchedAgain has the launcher's container start again so long ago. The workers go on, with their figures.
func launchedAgain(ago time.Duration) func(*scene) {
	return func(s *scene) {
		s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-ago))}},
		}}
	}
}

// TestWarningsOfAnEarlierRun: what the job used before its launcher started again is no reason for a warning.
func TestWarningsOfAnEarlierRun(t *testing.T) {
	ended := func(ago time.Duration) func(*scene) {
		return func(s *scene) { s.evidence.Used.Until = metav1.NewTime(mpitest.Now.Add(-ago)) }
	}
	idle := func() scene { return running(2).with(gpus, recentUsage(v1alpha1.MetricGPU, 2000, 0, new(int64(0)))) }
	throttled := func() scene { return running(2).with(recentUsage(v1alpha1.MetricThrottled, 0, 900, new(int64(900)))) }
	growing := func() scene { return running(2).with(memoryUsed(40, 8192, leak...)) } // for an hour
	for name, test := range map[string]struct {
		in   scene
		want codes.Code
	}{
		"idle GPUs":                             {idle().with(launchedAgain(time.Hour)), codes.GPUIdle},
		"idle GPUs, partly before":              {idle().with(launchedAgain(9 * time.Minute)), ""},
		"throttled":                             {throttled().with(launchedAgain(6 * time.Minute)), codes.CPUThrottled},
		"throttled, mostly before":              {throttled().with(launchedAgain(4 * time.Minute)), ""},
		"growing":                               {growing().with(launchedAgain(50 * time.Minute)), codes.MemoryGrowing},
		"growing, partly before":                {growing().with(launchedAgain(20 * time.Minute)), ""},
		"idle GPUs, not reported since":         {idle().with(launchedAgain(time.Hour), ended(2*time.Hour)), ""},
		"throttled, not reported since":         {throttled().with(launchedAgain(time.Hour), ended(2*time.Hour)), ""},
		"growing, not reported since the start": {growing().with(launchedAgain(time.Minute), ended(2*time.Minute)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := codes.Code("")
			for _, f := range test.in.findings() {
				got = f.Code
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
