package jobstate_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestForgive: an attempt that Kubernetes ended does not count, once, and only that one.
func TestForgive(t *testing.T) {
	t.Parallel()
	never := corev1.RestartPolicyNever
	removed := func(reason string, at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(at),
			})
		}
	}
	preempted := removed(corev1.PodReasonPreemptionByScheduler, mpitest.Now)
	// A kubelet sets the reason with the condition (k8s.io/kubernetes/pkg/kubelet/nodeshutdown, eviction).
	byKubelet := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			removed(corev1.PodReasonTerminationByKubelet, mpitest.Now)(p)
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
		}
	}
	byKueue := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: "TerminatedByKueue", Status: corev1.ConditionTrue, Reason: "UnschedulableOnAssignedNode", LastTransitionTime: metav1.NewTime(mpitest.Now),
		})
	}
	runs := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-time.Minute))},
		}}}
	}
	// Pod 1 was removed, and pod 2 follows it.
	failedBefore := func(second func(*corev1.Pod)) func(*jobstate.Observed) {
		return func(o *jobstate.Observed) {
			o.Launcher.Status.Failed = 1
			first, next := o.LauncherPods[0], o.LauncherPods[0].DeepCopy()
			removed(corev1.PodReasonTerminationByKubelet, mpitest.Now)(first)
			first.Status.Phase = corev1.PodFailed
			next.Name, next.CreationTimestamp = "pi-launcher-1", metav1.NewTime(mpitest.Now.Add(time.Minute))
			next.Status = corev1.PodStatus{Phase: corev1.PodPending}
			second(next)
			o.LauncherPods = append(o.LauncherPods, next)
			o.Now = mpitest.Now.Add(2 * time.Minute)
		}
	}
	// The container has failed in the pod, and is started again later.
	backsOff := func(from time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: metav1.NewTime(from)}},
			}}
		}
	}
	// The container of the next attempt is being created.
	isCreated := func(p *corev1.Pod) {
		backsOff(mpitest.Now.Add(-time.Hour))(p)
		p.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-time.Hour))
		c := &p.Status.ContainerStatuses[0]
		c.State.Waiting.Reason, c.LastTerminationState.Terminated.FinishedAt = "ContainerCreating", metav1.NewTime(mpitest.Now.Add(time.Second))
	}
	// A container beside the program's runs longer.
	isRestarted := func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-time.Hour))
		since := func(at time.Time) corev1.ContainerState {
			return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "logger", State: since(mpitest.Now.Add(-time.Hour))}, {Name: "main", RestartCount: 1, State: since(mpitest.Now.Add(time.Second))},
		}
	}
	pending := func(*corev1.Pod) {}
	tests := map[string]struct {
		policy           corev1.RestartPolicy
		limit            int32
		seen             func(*jobstate.Observed)
		worker, launcher func(*corev1.Pod)
		listed           string
		recorded         string
		earlier          string
		condition        batchv1.JobConditionType
		disrupted        string
		raised           int32
	}{
		"nothing happened":                {policy: never},
		"a worker is preempted":           {policy: never, worker: preempted, disrupted: "1", raised: 1},
		"the launcher is preempted":       {policy: never, limit: 3, launcher: preempted, disrupted: "1", raised: 4},
		"a node is drained":               {policy: never, worker: removed("EvictionByEvictionAPI", mpitest.Now), disrupted: "1", raised: 1},
		"a node is lost":                  {policy: never, worker: removed("DeletionByTaintManager", mpitest.Now), disrupted: "1", raised: 1},
		"the kubelet evicts a worker":     {policy: never, worker: byKubelet("Evicted")},
		"a node shuts down":               {policy: never, worker: byKubelet("Terminated"), disrupted: "1", raised: 1},
		"Kueue fails a worker":            {policy: never, worker: byKueue, disrupted: "1", raised: 1},
		"restarted in its pod":            {policy: corev1.RestartPolicyOnFailure, worker: preempted, disrupted: "1", raised: 2},
		"restarted in its pod, twice":     {policy: corev1.RestartPolicyOnFailure, limit: 2, worker: preempted, disrupted: "1", raised: 3},
		"entered before":                  {policy: never, limit: 1, worker: preempted, listed: "1"},
		"of an earlier attempt":           {policy: never, limit: 1, worker: removed("EvictionByEvictionAPI", mpitest.Now.Add(-time.Hour))},
		"the Job has failed":              {policy: never, worker: preempted, condition: batchv1.JobFailed},
		"the Job is about to fail":        {policy: never, worker: preempted, condition: batchv1.JobFailureTarget},
		"recorded, and not entered":       {policy: never, recorded: "1", disrupted: "1", raised: 1},
		"recorded, and entered":           {policy: never, limit: 1, worker: preempted, recorded: "1", listed: "1"},
		"of an earlier Job":               {policy: never, recorded: "1", earlier: "1"},
		"as many retries as there can be": {policy: never, limit: math.MaxInt32, worker: preempted, disrupted: "1", raised: math.MaxInt32},
		"after an earlier Job":            {policy: never, worker: preempted, recorded: "1", earlier: "1", disrupted: "2", raised: 1},
		"the next pod is pending":         {policy: never, limit: 1, recorded: "1", listed: "1", seen: failedBefore(pending)},
		"the next pod starts while a worker that is drained still ends": {policy: never, limit: 1, worker: preempted, recorded: "1", listed: "1", seen: failedBefore(pending)},
		"the next pod crashes":                             {policy: corev1.RestartPolicyOnFailure, limit: 3, worker: preempted, recorded: "1", listed: "1", seen: failedBefore(backsOff(mpitest.Now.Add(time.Minute)))},
		"created again after a drain":                      {policy: corev1.RestartPolicyOnFailure, limit: 3, worker: preempted, recorded: "1", listed: "1", launcher: isCreated},
		"restarted beside another container after a drain": {policy: corev1.RestartPolicyOnFailure, limit: 3, worker: preempted, recorded: "1", listed: "1", launcher: isRestarted},
		"crashed since a worker is preempted":              {policy: corev1.RestartPolicyOnFailure, limit: 3, worker: preempted, launcher: backsOff(mpitest.Now.Add(-time.Minute)), disrupted: "2", raised: 4},
		"crashed before a worker was preempted":            {policy: corev1.RestartPolicyOnFailure, limit: 3, worker: removed("EvictionByEvictionAPI", mpitest.Now.Add(-time.Hour)), launcher: backsOff(mpitest.Now.Add(-time.Minute))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.RestartPolicy, j.Lifecycle.BackoffLimit = test.policy, &test.limit })
			launcher := mpitest.Launcher(job)
			if test.condition != "" {
				launcher = mpitest.Launcher(job, test.condition)
			}
			launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = &test.limit, test.policy
			launcher.Annotations = map[string]string{mpi.AnnotationDisrupted: test.listed, mpi.AnnotationEarlierAttempts: test.earlier}
			change := func(f func(*corev1.Pod)) func(*corev1.Pod) {
				if f == nil {
					return func(*corev1.Pod) {}
				}
				return f
			}
			seen := jobstate.Observed{
				Now: mpitest.Now, Launcher: launcher, Config: recordOf(test.recorded, "", ""),
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, runs, change(test.launcher))},
				Workers:      []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodRunning, change(test.worker))},
			}
			if test.seen != nil {
				test.seen(&seen)
			}
			disrupted, raised, changed := jobstate.Forgive(job, seen)
			if disrupted != test.disrupted || raised != test.raised || changed != (test.disrupted != "") {
				t.Errorf("got %q, limit %d, %t; want %q, limit %d", disrupted, raised, changed, test.disrupted, test.raised)
			}
		})
	}
}

// TestRestartsOfTheWholeJobAreAttempts: JobSet starts a TrainJob's pods anew.
func TestRestartsOfTheWholeJobAreAttempts(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(2, func(j *mpi.Job) {
		j.External, j.Lifecycle.MaxRestarts, j.Lifecycle.BackoffLimit, j.Launcher.RestartPolicy = true, 3, new(int32), corev1.RestartPolicyNever
	})
	launcher := mpitest.Launcher(job)
	launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = new(int32), corev1.RestartPolicyNever
	seen := jobstate.Observed{Now: mpitest.Now, Launcher: launcher, LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}, Restarts: 2}
	if got := jobstate.CountAttempts(job, seen).String(); got != "attempt 3 of 4" {
		t.Errorf("it is %s", got)
	}
	launcher.Spec.BackoffLimit = new(int32(math.MaxInt32))
	if got := jobstate.CountAttempts(job, seen).Limit; got != math.MaxInt32 {
		t.Errorf("the limit is %d", got)
	}
}

// recordOf is the ConfigMap of a job with the record of its launcher's attempts.
func recordOf(disrupted, earlier, since string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		mpi.AnnotationDisrupted: disrupted, mpi.AnnotationEarlierAttempts: earlier, mpi.AnnotationActiveSince: since,
	}}}
}

// failedJob is a launcher's Job that has failed for a reason after a number of its pods.
func failedJob(job mpi.Job, reason string, pods int32, annotations map[string]string) *batchv1.Job {
	launcher := mpitest.Launcher(job, batchv1.JobFailureTarget, batchv1.JobFailed)
	for i := range launcher.Status.Conditions {
		launcher.Status.Conditions[i].Reason = reason
	}
	launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = job.Lifecycle.BackoffLimit, job.Launcher.RestartPolicy
	launcher.Annotations, launcher.Status.Failed = annotations, pods
	launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-time.Minute)}
	return launcher
}

// TestFailedLauncherIsReplaced: a Job that failed because its limit could not be raised is no end of the job, unless the program failed in its
// last attempt, or time or the number of such attempts is up. The record has what the next Job starts with.
func TestFailedLauncherIsReplaced(t *testing.T) {
	t.Parallel()
	const limit = batchv1.JobReasonBackoffLimitExceeded
	since := mpitest.Now.Add(-time.Minute).Format(time.RFC3339)
	hundred := "1"
	for i := 2; i <= 100; i++ {
		hundred += fmt.Sprintf(",%d", i)
	}
	evicted := func(at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.NewTime(at),
			})
		}
	}
	for name, test := range map[string]struct {
		policy   corev1.RestartPolicy
		retries  int32
		deadline *int64
		reason   string
		failed   int32
		has      map[string]string
		record   *corev1.ConfigMap
		pod      *corev1.Pod
		change   func(*mpi.Job)
		replaced bool
		// next are the record of the disrupted and all attempts, and the retries of the next Job.
		next [3]string
	}{
		"its pod is gone":                        {failed: 1, record: recordOf("1", "", ""), replaced: true, next: [3]string{"1", "1", "0"}},
		"restarted in its pod":                   {policy: corev1.RestartPolicyOnFailure, failed: 1, record: recordOf("1", "", ""), replaced: true, next: [3]string{"1", "1", "0"}},
		"retries are left":                       {retries: 2, failed: 3, record: recordOf("3", "", ""), replaced: true, next: [3]string{"3", "3", "0"}},
		"the program failed after it":            {retries: 1, failed: 2, record: recordOf("1", "", ""), replaced: true, next: [3]string{"1", "2", "0"}},
		"its pod shows it":                       {failed: 1, pod: mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodFailed, evicted(mpitest.Now)), replaced: true, next: [3]string{"1", "1", "0"}},
		"its pod was evicted afterwards":         {failed: 1, pod: mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodFailed, evicted(mpitest.Now.Add(time.Minute)))},
		"a second Job":                           {retries: 3, failed: 2, has: map[string]string{mpi.AnnotationEarlierAttempts: "1"}, record: recordOf("1,3", "1", ""), replaced: true, next: [3]string{"1,3", "3", "2"}},
		"the limit was raised":                   {failed: 2, has: map[string]string{mpi.AnnotationDisrupted: "1"}, record: recordOf("1", "", "")},
		"the program failed":                     {failed: 1, record: recordOf("", "", "")},
		"the program failed in the next Job":     {failed: 1, has: map[string]string{mpi.AnnotationEarlierAttempts: "1"}, record: recordOf("1", "1", "")},
		"another reason":                         {reason: batchv1.JobReasonDeadlineExceeded, failed: 1, record: recordOf("1", "", "")},
		"another controller's":                   {failed: 1, record: recordOf("1", "", ""), change: func(j *mpi.Job) { j.External = true }},
		"the job has ended":                      {failed: 1, record: recordOf("1", "", ""), change: func(j *mpi.Job) { j.Recorded.Finish = &mpi.Finish{At: mpitest.Now} }},
		"its time is not over":                   {deadline: new(int64(61)), failed: 1, record: recordOf("1", "", ""), replaced: true, next: [3]string{"1", "1", "0"}},
		"its time is over":                       {deadline: new(int64(60)), failed: 1, record: recordOf("1", "", "")},
		"the time of earlier Jobs counts":        {deadline: new(int64(90)), failed: 1, has: map[string]string{mpi.AnnotationEarlierAttempts: "1"}, record: recordOf("1,2", "1", mpitest.Now.Add(-2*time.Minute).Format(time.RFC3339))},
		"a hundred attempts did not count":       {failed: 101, has: map[string]string{mpi.AnnotationEarlierAttempts: "100"}, record: recordOf(hundred, "100", ""), pod: mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodFailed, evicted(mpitest.Now))},
		"the record has more than an API allows": {failed: 101, has: map[string]string{mpi.AnnotationEarlierAttempts: "100"}, record: recordOf(hundred+",101,102", "100", "")},
		"the record is nonsense":                 {failed: 1, record: recordOf("x,-1,,99999999999", "y", "z")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpitest.Job(1, func(j *mpi.Job) {
				j.Launcher.RestartPolicy = cmp.Or(test.policy, corev1.RestartPolicyNever)
				j.Lifecycle.BackoffLimit, j.Lifecycle.Deadline = &test.retries, test.deadline
			})
			if test.change != nil {
				test.change(&job)
			}
			seen := jobstate.Observed{Now: mpitest.Now, Launcher: failedJob(job, cmp.Or(test.reason, limit), test.failed, test.has), Config: test.record}
			if test.pod != nil {
				seen.LauncherPods = []*corev1.Pod{test.pod}
			}
			if got := jobstate.IsLauncherReplaced(job, seen); got != test.replaced {
				t.Fatalf("replaced: %t, want %t", got, test.replaced)
			}
			if out := jobstate.Judge(job, seen); !job.External && (out.Finish == nil) != test.replaced {
				t.Errorf("the job is %s: %s", out.Phase, out.Message)
			}
			if !test.replaced {
				return
			}
			if jobstate.IsRecorded(job, seen) {
				t.Error("the Job is deleted before the record has its attempts")
			}
			record := jobstate.AttemptRecord(job, seen)
			if want := map[bool]string{true: since}[test.deadline != nil]; record[mpi.AnnotationActiveSince] != want {
				t.Errorf("the deadline counts from %q, want %q", record[mpi.AnnotationActiveSince], want)
			}
			seen.Config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: record}}
			if again := jobstate.AttemptRecord(job, seen); !maps.Equal(record, again) {
				t.Errorf("the record %v becomes %v", record, again)
			}
			// The Job is deleted, and then the next one is created.
			seen.Launcher, seen.LauncherPods = nil, nil
			got := [3]string{record[mpi.AnnotationDisrupted], record[mpi.AnnotationEarlierAttempts], fmt.Sprint(*jobstate.RemainingRetries(job, seen))}
			if got != test.next {
				t.Errorf("the next Job follows %v, want %v", got, test.next)
			}
			out := jobstate.Judge(job, seen)
			if out.Finish != nil || !out.LauncherMayStart || out.Launcher == nil || out.Launcher.Failed == 0 {
				t.Errorf("without a launcher, the job is %s: %s, launcher %+v", out.Phase, out.Message, out.Launcher)
			}
			if test.deadline == nil {
				return
			}
			if left := jobstate.RemainingDeadline(job, seen); *left != *test.deadline-60 {
				t.Errorf("the next Job has %d seconds", *left)
			}
			seen.Now = seen.Now.Add(jobstate.OverdueIn(job, seen))
			if out := jobstate.Judge(job, seen); out.Finish == nil || out.Finish.Reason != batchv1.JobReasonDeadlineExceeded {
				t.Errorf("after its deadline the job is %s: %s", out.Phase, out.Message)
			}
		})
	}
}

// TestReplacementsAreBounded: a job whose node is drained in each attempt, while its Job can never be changed, fails after 101 attempts. Its
// program's failures count over all Jobs.
func TestReplacementsAreBounded(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		job := mpitest.Job(1, func(j *mpi.Job) { j.Launcher.RestartPolicy, j.Lifecycle.BackoffLimit = policy, new(int32) })
		seen := jobstate.Observed{Now: mpitest.Now}
		attempts := 0
		for ; attempts < 200; attempts++ {
			retries := jobstate.RemainingRetries(job, seen)
			launcher := mpitest.Launcher(job)
			launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = retries, policy
			launcher.Annotations = map[string]string{mpi.AnnotationEarlierAttempts: strconv.Itoa(int(jobstate.EarlierAttempts(seen)))}
			seen.Launcher = launcher
			seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, attempts, corev1.PodRunning, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: p.CreationTimestamp}}
			})}
			seen.Config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: jobstate.AttemptRecord(job, seen)}}
			failed := failedJob(job, batchv1.JobReasonBackoffLimitExceeded, 1, launcher.Annotations)
			failed.Spec.BackoffLimit = retries
			seen.Launcher, seen.LauncherPods = failed, nil
			if jobstate.Judge(job, seen).Finish != nil {
				break
			}
			seen.Config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: jobstate.AttemptRecord(job, seen)}}
			seen.Launcher = nil
		}
		if attempts != 100 {
			t.Errorf("%s: %d attempts did not count, want 100", policy, attempts)
		}
	}
}

// TestRecordOfNextJob: the attempts of a Job that was deleted for another reason than a drain are none of the next Job. What is not needed is
// emptied only where it is.
func TestRecordOfNextJob(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1)
	for name, test := range map[string]struct{ has, want map[string]string }{
		"nothing":              {},
		"the Job was deleted":  {map[string]string{mpi.AnnotationDisrupted: "1,2"}, map[string]string{mpi.AnnotationDisrupted: ""}},
		"the Job was replaced": {map[string]string{mpi.AnnotationDisrupted: "1", mpi.AnnotationEarlierAttempts: "1"}, map[string]string{mpi.AnnotationDisrupted: "1", mpi.AnnotationEarlierAttempts: "1"}},
		"then it was deleted":  {map[string]string{mpi.AnnotationDisrupted: "1,3", mpi.AnnotationEarlierAttempts: "2"}, map[string]string{mpi.AnnotationDisrupted: "1", mpi.AnnotationEarlierAttempts: "2"}},
		"emptied before":       {map[string]string{mpi.AnnotationDisrupted: ""}, map[string]string{mpi.AnnotationDisrupted: ""}},
		"nonsense":             {map[string]string{mpi.AnnotationEarlierAttempts: "y", mpi.AnnotationActiveSince: "z"}, map[string]string{mpi.AnnotationEarlierAttempts: "", mpi.AnnotationActiveSince: ""}},
	} {
		seen := jobstate.Observed{Now: mpitest.Now, Config: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: test.has}}}
		record := jobstate.AttemptRecord(job, seen)
		if !maps.Equal(record, test.want) {
			t.Errorf("%s: the record is %q, want %q", name, record, test.want)
		}
		seen.Config.Annotations = record
		if !jobstate.IsRecorded(job, seen) {
			t.Errorf("%s: it is written again", name)
		}
	}
}

// TestTimeOfNextJob: the deadline continues from a recorded time that can be true, and does not start again if the job was put back meanwhile.
func TestTimeOfNextJob(t *testing.T) {
	t.Parallel()
	ago := func(minutes time.Duration) string {
		return mpitest.Now.Add(-minutes * time.Minute).Format(time.RFC3339)
	}
	for name, test := range map[string]struct {
		earlier, since string
		change         func(*mpi.Job, *jobstate.Observed)
		record         string
		before         string
		left           int64
	}{
		"it continues":         {earlier: "1", since: ago(10), record: ago(10), left: 3000},
		"no Job was replaced":  {since: ago(10), left: 3600},
		"before the job":       {earlier: "1", since: ago(31), left: 3600},
		"in the future":        {earlier: "1", since: "9999-01-01T00:00:00Z", left: 3600},
		"no time":              {earlier: "1", since: "soon", left: 3600},
		"the gang is evicted":  {earlier: "1", since: ago(10), change: func(_ *mpi.Job, o *jobstate.Observed) { o.Gang = &jobstate.GangState{Evict: true} }, before: "600", left: 3000},
		"the job is suspended": {earlier: "1", since: ago(10), change: func(j *mpi.Job, _ *jobstate.Observed) { j.Lifecycle.Suspended = true }, before: "600", left: 3000},
	} {
		job := mpitest.Job(1, func(j *mpi.Job) {
			j.Created, j.Lifecycle.Deadline = mpitest.Now.Add(-30*time.Minute), new(int64(3600))
		})
		seen := jobstate.Observed{Now: mpitest.Now, Config: recordOf("", test.earlier, test.since)}
		if test.change != nil {
			test.change(&job, &seen)
		}
		record := jobstate.AttemptRecord(job, seen)
		if got := record[mpi.AnnotationActiveSince]; got != test.record {
			t.Errorf("%s: the record has %q, want %q", name, got, test.record)
		}
		if got := record[mpi.AnnotationActiveBefore]; got != test.before {
			t.Errorf("%s: the record has %q seconds, want %q", name, got, test.before)
		}
		seen.Config.Annotations = record
		if left := *jobstate.RemainingDeadline(job, seen); left != test.left {
			t.Errorf("%s: the next Job has %d seconds, want %d", name, left, test.left)
		}
	}
}

// TestActiveTimeIsBounded: a job whose launcher's Job was replaced has the time of its deadline once, however often it is suspended and
// resumed. The time that it is suspended does not count.
func TestActiveTimeIsBounded(t *testing.T) {
	t.Parallel()
	const minutes = 60
	job := mpitest.Job(1, func(j *mpi.Job) { j.Created, j.Lifecycle.Deadline = mpitest.Now, new(int64(minutes*60)) })
	seen := jobstate.Observed{Now: mpitest.Now.Add(time.Minute), Config: recordOf("1", "1", mpitest.Now.Format(time.RFC3339))}
	launcher := mpitest.Launcher(job)
	launcher.Annotations = map[string]string{mpi.AnnotationEarlierAttempts: "1"}
	launcher.Status.StartTime = &metav1.Time{Time: seen.Now}
	seen.Launcher = launcher
	write := func() {
		maps.Copy(seen.Config.Annotations, jobstate.AttemptRecord(job, seen))
		if !jobstate.IsRecorded(job, seen) {
			t.Errorf("the record %v is written again", seen.Config.Annotations)
		}
	}
	for active := int64(1); active < minutes; active += 10 {
		write()
		seen.Now = seen.Now.Add(10 * time.Minute)
		// It is suspended while its pods end, for a day, and resumed.
		job.Lifecycle.Suspended = true
		write()
		launcher.Spec.Suspend = new(true)
		write()
		seen.Now = seen.Now.Add(24 * time.Hour)
		write()
		job.Lifecycle.Suspended = false
		write()
		if jobstate.IsOverdue(job, seen) {
			t.Errorf("after %d minutes its time is over", active+10)
		}
		want := max(1, (minutes-active-10)*60)
		if left := *jobstate.RemainingDeadline(job, seen); left != want {
			t.Errorf("after %d minutes there are %d seconds left, want %d", active+10, left, want)
		}
		launcher.Spec.Suspend, launcher.Status.StartTime = nil, nil
		write()
		launcher.Status.StartTime = &metav1.Time{Time: seen.Now}
		write()
	}
	if !jobstate.IsOverdue(job, seen) {
		t.Error("its time is not over")
	}
	// Users can write the record.
	for _, text := range []string{"-1", "x", "99999999999"} {
		seen.Config.Annotations[mpi.AnnotationActiveSince], seen.Config.Annotations[mpi.AnnotationActiveBefore] = "", text
		if jobstate.IsOverdue(job, seen) {
			t.Errorf("%q seconds are taken", text)
		}
	}
}
