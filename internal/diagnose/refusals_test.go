package diagnose_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// What Kubernetes says of Jobs whose pods are made late, or not at all.
const (
	// unknownYet is Kueue's word on a pod whose Job it has not read yet.
	unknownYet = `Error creating: admission webhook "mpod.kb.io" denied the request: workload owner not found` + "\n" + `Job.batch "pi-launcher" not found`
	noQuota    = `Error creating: pods "pi-launcher-x2x4z" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10`
)

// toldOf adds an event of one of the job's Jobs, so many seconds old.
func toldOf(name string, ago time.Duration, reason, message string) func(*scene) {
	return func(s *scene) {
		s.evidence.Events = append(s.evidence.Events, jobstate.Event{
			Kind: "Job", Name: name, Warning: reason == "FailedCreate", Reason: reason, Message: message, Count: 1, Last: mpitest.Now.Add(-ago * time.Second),
		})
	}
}

func denied(ago time.Duration) func(*scene) {
	return toldOf("pi-launcher", ago, "FailedCreate", unknownYet)
}

func made(ago time.Duration) func(*scene) {
	return toldOf("pi-launcher", ago, "SuccessfulCreate", "Created pod: pi-launcher-x2x4z")
}

// createdAgo says when the launcher's Job was created.
func createdAgo(ago time.Duration) func(*scene) {
	return func(s *scene) {
		s.seen.Launcher.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-ago * time.Second))
	}
}

// startedAgo says when the launcher's Job was started, or last resumed.
func startedAgo(ago time.Duration) func(*scene) {
	return func(s *scene) {
		s.seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-ago * time.Second)}
	}
}

func suspendedLauncher(s *scene) { s.seen.Launcher.Spec.Suspend = new(true) }

// workerJob is the Job that makes the workers of a TrainJob, of which so many are there.
func workerJob(there int) func(*scene) {
	return func(s *scene) {
		s.seen.WorkerJob = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi-node-0", UID: "uid-node"}}
		s.seen.WorkerJob.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-time.Minute)}
		s.seen.Workers = s.seen.Workers[:there]
	}
}

// invalid is what JobSet reports of a Job that the API server rejects.
const invalid = `job "pi-launcher-0" creation failed with error: Job.batch "pi-launcher-0" is invalid: spec.template.spec.volumes[3].name: Duplicate value: "mpi-agent"`

// jobSet is a TrainJob of which something was changed.
func jobSet(changes ...func(*scene)) scene { return running(4).with(trainJob).with(changes...) }

func refusedJob(reason, message string) func(*scene) { return event("JobSet", "pi", reason, message) }

func withoutLauncher(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil }

// podOfJob is the launcher's pod, made by a Job of a name so many seconds ago.
func podOfJob(name string, ago time.Duration) func(*scene) {
	return func(s *scene) {
		pod := mpitest.LauncherPod(s.job, 0, corev1.PodFailed)
		pod.Name, pod.CreationTimestamp = name+"-0-x2x4z", metav1.NewTime(mpitest.Now.Add(-ago*time.Second))
		s.seen.LauncherPods = append(s.seen.LauncherPods, pod)
	}
}

// TestRefusedPods: that a Job's pod was refused is told while that keeps the pod from being made, and not after.
func TestRefusedPods(t *testing.T) {
	// The launcher's pod is missing: its Job was started a minute ago.
	waits := func(changes ...func(*scene)) scene {
		s := running(4).with(func(s *scene) { s.seen.LauncherPods = nil }, startedAgo(60))
		return s.with(changes...)
	}
	ofWorkers := func(ago time.Duration, reason string) func(*scene) { return toldOf("pi-node-0", ago, reason, noQuota) }
	placing := func(state jobstate.GangState) func(*scene) { return func(s *scene) { s.seen.Gang = &state } }
	failed := func(s *scene) {
		s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobFailed)
		s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
		startedAgo(60)(s)
	}
	tests := map[string]struct {
		in scene
		// codes are of all findings.
		codes []codes.Code
	}{
		"denied":                                {waits(denied(60)), []codes.Code{codes.AdmissionDenied}},
		"a webhook does not know the new Job":   {waits(startedAgo(20), createdAgo(20), denied(19)), nil},
		"a webhook still does not know the Job": {waits(startedAgo(90), createdAgo(90), denied(1)), []codes.Code{codes.AdmissionDenied}},
		"a new Job is denied":                   {waits(startedAgo(20), createdAgo(20), toldOf("pi-launcher", 19, "FailedCreate", noQuota)), []codes.Code{codes.QuotaExceeded}},
		"denied twice":                          {waits(denied(60), denied(30)), []codes.Code{codes.AdmissionDenied}},
		"denied first, then short of quota":     {waits(denied(60), toldOf("pi-launcher", 30, "FailedCreate", noQuota)), []codes.Code{codes.QuotaExceeded}},
		"denied, then made":                     {waits(denied(60), made(59)), nil},
		"denied, then made in the same second":  {waits(denied(60), made(60)), nil},
		"made, then denied":                     {waits(made(60), denied(20)), []codes.Code{codes.AdmissionDenied}},
		"denied, made, denied again":            {waits(denied(60), made(59), denied(20)), []codes.Code{codes.AdmissionDenied}},
		"denied before it was resumed":          {waits(startedAgo(20), denied(60)), nil},
		"denied after it was resumed":           {waits(startedAgo(20), denied(60), denied(19)), []codes.Code{codes.AdmissionDenied}},
		"denied as it was started":              {waits(startedAgo(20), denied(20)), []codes.Code{codes.AdmissionDenied}},
		"denied, not known when it was started": {waits(denied(60), func(s *scene) { s.seen.Launcher.Status.StartTime = nil }), []codes.Code{codes.AdmissionDenied}},
		"denied, and the launcher is suspended": {waits(denied(60), suspendedLauncher), nil},
		"denied, and the launcher is not there": {waits(denied(60), func(s *scene) { s.seen.Launcher = nil }), nil},
		"denied, and held by a gang":            {waits(denied(60), placing(jobstate.GangState{Wanted: 5, Placed: 4, Hold: true})), nil},
		"denied, and evicted by a gang":         {waits(denied(60), placing(jobstate.GangState{Wanted: 5, Placed: 4, Evict: true})), nil},
		"denied, and placed as a gang":          {waits(denied(60), placing(jobstate.GangState{Wanted: 5, Placed: 4})), []codes.Code{codes.AdmissionDenied}},
		"denied, and pods of an earlier job left": {waits(denied(60), func(s *scene) {
			s.seen.Earlier = []*corev1.Pod{mpitest.Worker(s.job, 0, corev1.PodRunning, mpitest.Leaving).Pod}
		}), []codes.Code{codes.EarlierJobLeaving}},
		"denied until the deadline":      {waits(failed, denied(60)), []codes.Code{codes.AdmissionDenied, codes.DeadlineExceeded}},
		"denied, made, and failed since": {waits(failed, denied(60), made(59)), []codes.Code{codes.DeadlineExceeded}},

		"a Job refused":                              {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid)), []codes.Code{codes.ObjectRefused}},
		"the launcher's Job refused":                 {jobSet(workerJob(4), withoutLauncher, refusedJob("JobCreationFailed", invalid)), []codes.Code{codes.ObjectRefused}},
		"a Job refused, and created since":           {jobSet(workerJob(4), refusedJob("JobCreationFailed", invalid)), nil},
		"a Job refused, that made a pod since":       {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), toldOf("pi-launcher-0", 0, "SuccessfulCreate", "Created pod: pi-launcher-0-0-x2x4z")), nil},
		"a Job refused, whose pod is there":          {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), podOfJob("pi-launcher-0", 0)), nil},
		"a Job refused, whose pod is from before":    {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), podOfJob("pi-launcher-0", 600)), []codes.Code{codes.ObjectRefused}},
		"a Job refused, and a pod of another there":  {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), podOfJob("pi-node-0", 0)), []codes.Code{codes.ObjectRefused}},
		"a Job refused, and another made a pod":      {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), toldOf("pi-node-0", 0, "SuccessfulCreate", "Created pod: pi-node-0-0-x2x4z")), []codes.Code{codes.ObjectRefused}},
		"a Job refused, that had made a pod before":  {jobSet(withoutJobs, refusedJob("JobCreationFailed", invalid), toldOf("pi-launcher-0", 600, "SuccessfulCreate", "Created pod: pi-launcher-0-0-x2x4z")), []codes.Code{codes.ObjectRefused}},
		"a Job refused, of a job without a launcher": {jobSet(withoutJobs, func(s *scene) { s.job.Launcher.None = true }, refusedJob("JobCreationFailed", invalid)), []codes.Code{codes.ObjectRefused}},
		"a Job refused by a quota":                   {jobSet(withoutJobs, refusedJob("JobCreationFailed", `jobs.batch "pi-node-0" is forbidden: exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5`)), []codes.Code{codes.QuotaExceeded}},
		"a Job that exists":                          {jobSet(withoutJobs, refusedJob("JobCreationFailed", `jobs.batch "pi-node-0" already exists`)), nil},
		"a JobSet that was changed":                  {jobSet(withoutJobs, event("TrainJob", "pi", "TrainJobResourcesCreationFailed", "Operation cannot be fulfilled on jobsets: the object has been modified")), nil},
		"a JobSet refused":                           {jobSet(withoutJobs, event("TrainJob", "pi", "TrainJobResourcesCreationFailed", "no")), []codes.Code{codes.ObjectRefused}},
		"a JobSet refused, and Jobs created since":   {jobSet(workerJob(4), withoutLauncher, event("TrainJob", "pi", "TrainJobResourcesCreationFailed", "no")), nil},
		"another event of a JobSet":                  {jobSet(withoutJobs, refusedJob("ExclusivePlacementViolation", "no")), nil},
		"an MPIJob":                                  {running(4).with(withoutJobs, refusedJob("JobCreationFailed", invalid)), nil},

		"workers denied": {running(4).with(workerJob(0), ofWorkers(60, "FailedCreate")), []codes.Code{codes.QuotaExceeded}},
		"workers denied that others left no room for":    {running(4).with(workerJob(2), ofWorkers(60, "FailedCreate"), ofWorkers(60, "SuccessfulCreate")), []codes.Code{codes.QuotaExceeded}},
		"workers denied, and made a second later":        {running(4).with(workerJob(2), ofWorkers(60, "FailedCreate"), ofWorkers(59, "SuccessfulCreate")), nil},
		"workers denied, of which none is missing":       {running(4).with(workerJob(4), ofWorkers(60, "FailedCreate")), nil},
		"workers denied in an earlier try of the JobSet": {running(4).with(workerJob(2), ofWorkers(90, "FailedCreate")), nil},
		"workers denied, launchers made":                 {running(4).with(workerJob(2), ofWorkers(60, "FailedCreate"), made(30)), []codes.Code{codes.QuotaExceeded}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := test.in.findings()
			var codes []codes.Code
			for _, f := range found {
				codes = append(codes, f.Code)
			}
			if !slices.Equal(codes, test.codes) || len(found) > 0 && len(found[0].Evidence) > 1 {
				t.Errorf("it finds %+v, want %v and what was said last", found, test.codes)
			}
		})
	}
}
