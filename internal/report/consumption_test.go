package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// life is when a worker had a place, in seconds from the beginning.
type life struct{ from, until int }

// coreSeconds returns what lives of pods with 2 cores held between two times.
func coreSeconds(lives []life, from, until int) (sum float64) {
	for _, l := range lives {
		sum += 2 * float64(max(0, min(l.until, until)-max(l.from, from)))
	}
	return sum
}

// TestConsumptionOfAPeriodIsExact: pods of random jobs start and end at random times, reconciles happen at other times, and the
// record knows what was held in any period.
func TestConsumptionOfAPeriodIsExact(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		h := &history{t: t, job: job(8, func(j *mpi.Job) { j.Launcher.None = true })}
		lives := make([]life, 8)
		end := 0
		for i := range lives {
			from := r.IntN(5000)
			lives[i] = life{from, from + 1 + r.IntN(5000)}
			end = max(end, lives[i].until)
		}
		at := func(seconds int) time.Time { return mpitest.Now.Add(time.Duration(seconds) * time.Second) }
		see := func(now int) jobstate.Observed {
			seen := pods(h.job, corev1.PodPending, 0)
			seen.LauncherPods = nil
			for i, l := range lives {
				pod := seen.Workers[i].Pod
				if now < l.from {
					pod.Status.StartTime = nil
					continue
				}
				pod.Spec.NodeName, pod.Status.Phase, pod.Status.StartTime = "node", corev1.PodRunning, new(metav1.NewTime(at(l.from)))
				if now >= l.until {
					mpitest.Exited(0, "Completed")(pod)
					pod.Status.Phase = corev1.PodSucceeded
					pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(at(l.until))
				}
			}
			return seen
		}
		for now := 0; now < end+3000; now += 1 + r.IntN(2000) {
			h.pass(time.Duration(now)*time.Second, see(now), jobstate.Evidence{})
		}
		h.pass(time.Duration(end+4000)*time.Second, see(end+4000), jobstate.Evidence{})
		c := h.last.Status.Consumption
		if len(c.Held) > 0 {
			t.Errorf("seed %d: no pod runs, and %v is held", seed, c.Held)
		}
		for range 20 {
			from := r.IntN(end)
			until := from + 1 + r.IntN(end)
			use, isEstimate := cost.Between(c, time.Time{}, at(from), at(until))
			// Totals are whole seconds.
			if want := coreSeconds(lives, from, until); math.Abs(use.CoreHours*3600-want) > 4 || isEstimate {
				t.Fatalf("seed %d: from %d to %d, %v held %g core seconds, want %g; %d steps", seed, from, until, lives, use.CoreHours*3600, want, len(c.Steps))
			}
		}
	}
}

// TestStepsAreBounded: a job whose workers change all the time keeps its total and at most 64 steps, and devices with long names
// do not make the record large.
func TestStepsAreBounded(t *testing.T) {
	for _, devices := range []int{0, 1, 16} {
		h := &history{t: t, job: job(1, func(j *mpi.Job) {
			for i := range devices {
				name := corev1.ResourceName(fmt.Sprintf("%s-%02d.example.com/%s", longName(80), i, longName(63)))
				j.Workers.Template.Spec.Containers[0].Resources.Limits[name] = resource.MustParse("1")
			}
		})}
		for i := range 150 {
			seen := pods(h.job, corev1.PodRunning, 0)
			if i%2 == 0 {
				seen.LauncherPods = nil
				mpitest.Exited(0, "Completed")(seen.Workers[0].Pod)
				seen.Workers[0].Pod.Status.Phase = corev1.PodSucceeded
				seen.Workers[0].Pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(time.Duration(i*i-i) * time.Second))
			}
			h.pass(time.Duration(i*i)*time.Second, seen, jobstate.Evidence{})
		}
		c := h.last.Status.Consumption
		text, err := json.Marshal(c.Steps)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Steps) > 64 || len(c.Steps) < 2 || len(text) > 9<<10 {
			t.Errorf("with %d devices there are %d steps of %d bytes", devices, len(c.Steps), len(text))
		}
		if !slices.IsSortedFunc(c.Steps, func(a, b v1alpha1.ConsumptionStep) int { return a.Time.Compare(b.Time.Time) }) {
			t.Errorf("the steps are not in order: %v", c.Steps)
		}
	}
}

func longName(n int) string {
	name := make([]byte, n)
	for i := range name {
		name[i] = 'a'
	}
	return string(name)
}

// TestSteadyJobsHaveFewSteps: a record does not grow with the time that a job runs.
func TestSteadyJobsHaveFewSteps(t *testing.T) {
	h := &history{t: t, job: job(2)}
	for i := range 100 {
		h.pass(time.Duration(i)*time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	}
	if n := len(h.last.Status.Consumption.Steps); n != 1 {
		t.Errorf("there are %d steps: %v", n, h.last.Status.Consumption.Steps)
	}
	if held := h.last.Status.Consumption.Held; held.Cpu().String() != "4500m" {
		t.Errorf("held is %v", held)
	}
}

// TestUsageOfARecordOfAnEarlierVersion: what it counted is spread over the time since the job ran; what follows is exact.
func TestUsageOfARecordOfAnEarlierVersion(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.pass(time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.last.Status.Consumption.Steps, h.last.Status.Consumption.Held = nil, nil
	h.pass(2*time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	for _, hour := range []time.Duration{0, 1} {
		use, _ := cost.Between(h.last.Status.Consumption, time.Time{}, mpitest.Now.Add(hour*time.Hour), mpitest.Now.Add((hour+1)*time.Hour))
		if math.Abs(use.CoreHours-4.5) > 0.01 {
			t.Errorf("in hour %d, %g core hours were used, want 4.5", hour, use.CoreHours)
		}
	}
}

// TestADeletedJobIsChargedUntilItsEnd: but not for a time in which no operator could see it.
func TestADeletedJobIsChargedUntilItsEnd(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.pass(time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	for later, want := range map[time.Duration]int64{30 * time.Minute: 9 * 2700, 72 * time.Hour: 9 * 3600} {
		closed := report.Closed(*h.last, mpitest.Now.Add(time.Hour+later)).Status.Consumption
		if got := closed.CPUCoreSeconds; got != want || len(closed.Held) > 0 {
			t.Errorf("closed after %s, %d core seconds are counted and %v is held, want %d and nothing", later, got, closed.Held, want)
		}
	}
}

// TestStepsAfterTheClockWentBack: the total stays, and time goes forward in the steps.
func TestStepsAfterTheClockWentBack(t *testing.T) {
	h := &history{t: t, job: job(2)}
	for _, at := range []time.Duration{0, 10 * time.Hour, time.Hour, 2 * time.Hour} {
		h.pass(at, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	}
	c := h.last.Status.Consumption
	use, _ := cost.Between(c, time.Time{}, time.Time{}, time.Time{})
	parts, _ := cost.Between(c, time.Time{}, time.Time{}, mpitest.Now.Add(90*time.Minute))
	rest, _ := cost.Between(c, time.Time{}, mpitest.Now.Add(90*time.Minute), time.Time{})
	if math.Abs(use.CoreHours-49.5) > 0.01 || math.Abs(parts.Plus(rest).CoreHours-use.CoreHours) > 1e-9 {
		t.Errorf("%g core hours are counted, in parts %g and %g, want 49.5", use.CoreHours, parts.CoreHours, rest.CoreHours)
	}
	for i := 1; i < len(c.Steps); i++ {
		if c.Steps[i].Time.Before(&c.Steps[i-1].Time) {
			t.Errorf("the steps are not in order: %v", c.Steps)
		}
	}
}

// TestPodsThatOutliveTheirJobAreCharged: the workers of a finished job hold what they requested until they end or are deleted, and
// what they hold is written once an hour.
func TestPodsThatOutliveTheirJobAreCharged(t *testing.T) {
	after := func(hours float64) time.Time { return mpitest.Now.Add(time.Duration(hours * float64(time.Hour))) }
	finished := func(job mpi.Job, workersEnd float64) jobstate.Observed {
		seen := pods(job, corev1.PodRunning, 0)
		exit := func(pod *corev1.Pod, when time.Time) {
			mpitest.Exited(0, "Completed")(pod)
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(when)
		}
		exit(seen.LauncherPods[0], after(1))
		for _, worker := range seen.Workers {
			if workersEnd > 0 {
				exit(worker.Pod, after(workersEnd))
			}
		}
		return ended(seen, job, batchv1.JobComplete, time.Hour)
	}
	wait := func() *history {
		h := &history{t: t, job: job(8)}
		h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
		writes := 0
		for quarter := 4; quarter <= 4*73; quarter++ {
			written := h.last
			if next := h.pass(time.Duration(quarter)*15*time.Minute, finished(h.job, 0), jobstate.Evidence{}); report.Changed(written, *next) {
				writes++
			} else {
				h.last = written
			}
		}
		if writes < 70 || writes > 76 {
			t.Errorf("in 72 hours, the report was written %d times", writes)
		}
		return h
	}
	const want = 8 * 73 * 3600
	check := func(how string, record *v1alpha1.JobReport) {
		t.Helper()
		c := record.Status.Consumption
		if got := c.GPUSeconds["nvidia.com/gpu"]; got != want || report.Holds(record) {
			t.Errorf("%s: %d GPU seconds are charged, want %d; %v is held", how, got, want, c.Held)
		}
		if day, _ := cost.Between(c, time.Time{}, after(24), after(48)); math.Abs(day.GPUHours()-8*24) > 0.1 {
			t.Errorf("%s: a day is charged with %g GPU hours", how, day.GPUHours())
		}
	}

	deleted := wait()
	closed := report.Closed(*deleted.last, after(73))
	if !report.Changed(deleted.last, closed) {
		t.Error("the end of a job whose pods held resources is not written")
	}
	check("the job is deleted", &closed)
	if again := report.Closed(closed, after(80)); report.Changed(&closed, again) {
		t.Error("a record that is closed is closed again")
	}

	exited := wait()
	written := exited.last
	if next := exited.pass(74*time.Hour, finished(exited.job, 73), jobstate.Evidence{}); !report.Changed(written, *next) {
		t.Error("the end of the last pods is not written")
	}
	check("the workers end", exited.last)
	until := exited.last.Status.Consumption.Until
	exited.pass(200*time.Hour, ended(jobstate.Observed{}, exited.job, batchv1.JobComplete, time.Hour), jobstate.Evidence{})
	check("the pods are deleted", exited.last)
	if got := exited.last.Status.Consumption.Until; !got.Equal(&until) {
		t.Errorf("the job is part of a period until %s, although it held nothing after %s", got, until)
	}
}

// TestPodsAreChargedWithWhatTheyHold: the API server and others add requests to those of the template, and initializers have a template
// that the job does not have.
func TestPodsAreChargedWithWhatTheyHold(t *testing.T) {
	h := &history{t: t, job: job(2)}
	see := func() jobstate.Observed {
		seen := pods(h.job, corev1.PodRunning, 0)
		asks := func(cpu string) *corev1.ResourceRequirements {
			return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "nvidia.com/gpu": resource.MustParse("2")}}
		}
		seen.LauncherPods[0].Spec.Resources = asks("1")
		seen.Workers[0].Pod.Spec.Resources, seen.Workers[1].Pod.Spec.Resources = asks("3"), asks("3000m")
		initializer := seen.Workers[1].Pod.DeepCopy()
		initializer.Name, initializer.Spec.Resources = "pi-dataset-initializer", asks("500m")
		seen.Initializers = []*corev1.Pod{initializer}
		return seen
	}
	h.pass(0, see(), jobstate.Evidence{})
	h.pass(100*time.Second, see(), jobstate.Evidence{})
	c := h.last.Status.Consumption
	if c.CPUCoreSeconds != 750 || c.GPUSeconds["nvidia.com/gpu"] != 800 || c.Held.Cpu().String() != "7500m" {
		t.Errorf("%d core seconds and %v are counted, and %v is held", c.CPUCoreSeconds, c.GPUSeconds, c.Held)
	}
	// All pods but one vanish.
	left := see()
	left.LauncherPods, left.Initializers, left.Workers = nil, nil, left.Workers[:1]
	h.pass(200*time.Second, left, jobstate.Evidence{})
	if c := h.last.Status.Consumption; c.CPUCoreSeconds != 1500 || c.Held.Cpu().String() != "3" {
		t.Errorf("after pods vanished, %d core seconds are counted, and %v is held", c.CPUCoreSeconds, c.Held)
	}
}

// TestPodsThatVanishWithoutAnOperatorAreNotChargedForLong: until the job ended or was suspended, and for an hour at most.
func TestPodsThatVanishWithoutAnOperatorAreNotChargedForLong(t *testing.T) {
	for name, test := range map[string]struct {
		condition batchv1.JobConditionType
		at        time.Duration
		want      time.Duration
	}{
		"nothing is known":       {"", 0, time.Hour},
		"the job was suspended":  {batchv1.JobSuspended, 10 * time.Minute, 10 * time.Minute},
		"the launcher completed": {batchv1.JobComplete, 20 * time.Minute, 20 * time.Minute},
		"it completed later":     {batchv1.JobComplete, 3 * time.Hour, time.Hour},
		"it is suspended again":  {batchv1.JobSuspended, -time.Minute, time.Hour},
	} {
		h := &history{t: t, job: job(2)}
		h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
		gone := jobstate.Observed{Launcher: mpitest.Launcher(h.job)}
		if test.condition != "" {
			gone.Launcher = mpitest.Launcher(h.job, test.condition)
			gone.Launcher.Status.Conditions[0].LastTransitionTime = metav1.NewTime(mpitest.Now.Add(test.at))
		}
		h.pass(24*time.Hour, gone, jobstate.Evidence{})
		if got, want := h.last.Status.Consumption.CPUCoreSeconds, int64(4.5*test.want.Seconds()); got != want {
			t.Errorf("%s: %d core seconds are counted, want %d", name, got, want)
		}
	}
}
