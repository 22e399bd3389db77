package diagnose_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// scene is what a test diagnoses.
type scene struct {
	job      mpi.Job
	seen     jobstate.Observed
	evidence jobstate.Evidence
}

// findings diagnoses the scene as the operator does: by what its caches keep of pods and Jobs.
func (s scene) findings() []diagnose.Finding {
	s.seen = asCached(s.seen)
	s.seen.Now = mpitest.Now
	outcome := jobstate.Judge(s.job, s.seen).Refused(s.job, s.evidence.Refusals)
	return diagnose.Job(s.job, s.seen, s.evidence, outcome)
}

// asCached returns what the operator's caches keep of objects.
func asCached(seen jobstate.Observed) jobstate.Observed {
	pod := func(of *corev1.Pod) *corev1.Pod {
		kept := of.DeepCopy()
		cluster.AsCached(logs.Masker{}, kept)
		return kept
	}
	for _, pods := range []*[]*corev1.Pod{&seen.LauncherPods, &seen.Initializers, &seen.Earlier} {
		*pods = slices.Clone(*pods)
		for i := range *pods {
			(*pods)[i] = pod((*pods)[i])
		}
	}
	for _, workers := range []*[]jobstate.Worker{&seen.Workers, &seen.Replaced} {
		*workers = slices.Clone(*workers)
		for i := range *workers {
			(*workers)[i].Pod = pod((*workers)[i].Pod)
		}
	}
	for _, job := range []**batchv1.Job{&seen.Launcher, &seen.WorkerJob} {
		if *job != nil {
			*job = (*job).DeepCopy()
			cluster.AsCached(logs.Masker{}, *job)
		}
	}
	return seen
}

// with changes a scene.
func (s scene) with(changes ...func(*scene)) scene {
	for _, change := range changes {
		change(&s)
	}
	return s
}

// running is a job of so many workers that is well.
func running(workers int32, change ...func(*mpi.Job)) scene {
	job := mpitest.Job(workers, append([]func(*mpi.Job){withResources}, change...)...)
	return scene{job: job, seen: jobstate.Observed{
		Launcher:     mpitest.Launcher(job),
		LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)},
		Workers:      mpitest.Workers(job, corev1.PodRunning),
	}}
}

// failed is a job whose launcher has ended with a code, and said so.
func failed(code int32, log string, change ...func(*mpi.Job)) scene {
	s := running(4, change...)
	s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobFailed)
	s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonBackoffLimitExceeded
	s.seen.Launcher.Status.Conditions[0].Message = "Job has reached the specified backoff limit"
	s.seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(s.job, 0, corev1.PodFailed, mpitest.Exited(code, "Error"))}
	s.evidence.Logs = map[string]jobstate.Log{s.seen.LauncherPods[0].Name: {Lines: strings.Split(strings.TrimSpace(log), "\n"), LastAt: mpitest.Now.Add(-time.Minute)}}
	return s
}

// starting is a job of so many workers whose pods wait.
func starting(workers int32, change ...func(*corev1.Pod)) scene {
	s := running(workers)
	s.seen.Workers = nil
	for i := range int(workers) {
		s.seen.Workers = append(s.seen.Workers, mpitest.Worker(s.job, i, corev1.PodPending, change...))
	}
	return s
}

func withResources(j *mpi.Job) {
	j.SlotsPerWorker = 2
	j.Fields.Slots, j.Fields.Deadline = field.NewPath("spec", "slotsPerWorker"), field.NewPath("spec", "runPolicy", "activeDeadlineSeconds")
	specs := field.NewPath("spec", "mpiReplicaSpecs")
	j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = specs.Key("Launcher").Child("template"), specs.Key("Worker").Child("template")
	j.Fields.WorkerCount = specs.Key("Worker").Child("replicas")
	resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), "nvidia.com/gpu": resource.MustParse("2"),
	}}
	j.Workers.Template.Spec.Containers[0].Resources = resources
}

// withDNSPolicy has the pods ask the name servers of their nodes.
func withDNSPolicy(j *mpi.Job) {
	j.Launcher.Template.Spec.DNSPolicy, j.Workers.Template.Spec.DNSPolicy = corev1.DNSDefault, corev1.DNSDefault
}

func sshd(j *mpi.Job)     { j.Launch = mpi.LaunchSSHD }
func mpich(j *mpi.Job)    { j.Implementation = mpi.MPICH }
func intelMPI(j *mpi.Job) { j.Implementation = mpi.IntelMPI }

// left is what an agent has left in a pod's container, which has ended.
func left(s agentapi.Summary, code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		message, _ := json.Marshal(s)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: string(message)}},
		}}
	}
}

// launcherLeft lets the launcher's agent have left a summary.
func launcherLeft(summary agentapi.Summary, code int32) func(*scene) {
	summary.Role = agentapi.RoleLauncher
	return func(s *scene) { left(summary, code)(s.seen.LauncherPods[0]) }
}

func worker(index int, phase corev1.PodPhase, change ...func(*corev1.Pod)) func(*scene) {
	return func(s *scene) { s.seen.Workers[index] = mpitest.Worker(s.job, index, phase, change...) }
}

func event(kind, name, reason, message string) func(*scene) {
	return func(s *scene) {
		s.evidence.Events = append(s.evidence.Events, jobstate.Event{Kind: kind, Name: name, Warning: true, Reason: reason, Message: message, Count: 3, Last: mpitest.Now})
	}
}

func refusal(kind, name, message string) func(*scene) {
	return func(s *scene) {
		s.evidence.Refusals = append(s.evidence.Refusals, jobstate.Refusal{Kind: kind, Name: name, Message: message})
	}
}

func unschedulable(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	}
}

func disrupted(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
	}
}

func evicted(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = "Evicted", message }
}

func onNode(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = name }
}

func created(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-ago)) }
}

func node(name, cpu, freeCPU, gpu, freeGPU string, change ...func(*jobstate.Node)) func(*scene) {
	return func(s *scene) {
		list := func(cpu, gpu string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "nvidia.com/gpu": resource.MustParse(gpu)}
		}
		n := jobstate.Node{Name: name, Allocatable: list(cpu, gpu), Free: list(freeCPU, freeGPU), Ready: true}
		for _, c := range change {
			c(&n)
		}
		s.evidence.Nodes = append(s.evidence.Nodes, n)
	}
}

// expect is a scene and the code of its first finding.
type expect struct {
	code codes.Code
	in   scene
}

// check runs a table: each row's first finding has its code, and all of its findings are as in the golden file.
func check(t *testing.T, table map[string]expect) {
	t.Helper()
	for name, row := range table {
		t.Run(name, func(t *testing.T) {
			found := row.in.findings()
			if len(found) == 0 || found[0].Code != row.code {
				t.Errorf("the first finding is not %s: %+v", row.code, found)
			}
			for _, f := range found {
				sound(t, f)
			}
			mpitest.Golden(t, name, found)
			for _, difference := range slices.Concat(otherKind(row.in, found), carriedOut(row.in, found)) {
				t.Error(difference)
			}
		})
	}
}

// onlyMPIJobs are codes that no TrainJob can have: Trainer makes its keys, and it does not wait for quota.
var onlyMPIJobs = map[codes.Code]bool{codes.KeyGenerationFailed: true, codes.QuotaExhausted: true}

// otherKind diagnoses a scene of an MPIJob as one of a TrainJob, and returns what it lacks or has in addition: both kinds have the same
// problems, and remedies that can be carried out.
func otherKind(s scene, want []diagnose.Finding) (differences []string) {
	if s.job.Kind == mpi.KindTrainJob || len(want) > 0 && onlyMPIJobs[want[0].Code] {
		return nil
	}
	s.seen.Now = mpitest.Now
	if finish := jobstate.Judge(s.job, s.seen).Finish; finish != nil {
		// Kubeflow Trainer decides when a TrainJob has ended.
		s.job.Recorded.Finish = &mpi.Finish{Succeeded: finish.Succeeded, Reason: finish.Reason, Message: finish.Message, At: finish.At}
	}
	makeTrainJob(&s.job)
	if s.job.UsesAgent() && !s.job.Workers.HasCommand() {
		// The runtimes' workers have it.
		s.job.Launch, s.job.Workers.Template = mpi.LaunchAgent, *s.job.Workers.Template.DeepCopy()
		s.job.Workers.Template.Spec.Containers[0].Command = []string{agentapi.Binary, "serve"}
	}
	got := s.findings()
	differences = carriedOut(s, got)
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			differences = append(differences, "a TrainJob lacks finding "+want[i].Code)
		case i >= len(want):
			differences = append(differences, "a TrainJob has finding "+got[i].Code+" in addition")
		case got[i].Code != want[i].Code:
			differences = append(differences, "a TrainJob has finding "+got[i].Code+" instead of "+want[i].Code)
		case !slices.Equal(withoutFields(got[i].Evidence), withoutFields(want[i].Evidence)):
			differences = append(differences, fmt.Sprintf("a TrainJob's %s has the evidence %q, want %q", got[i].Code, got[i].Evidence, want[i].Evidence))
		}
	}
	return differences
}

// withoutFields returns evidence without the fields of warnings, which the kinds have in other places.
func withoutFields(evidence []string) (texts []string) {
	for _, text := range evidence {
		texts = append(texts, fieldOfWarning.ReplaceAllString(text, "$1"))
	}
	return texts
}

var fieldOfWarning = regexp.MustCompile(`^(Warning at the job's creation: )\S+: `)

var unfilled = regexp.MustCompile(`\{[a-zA-Z]+(?:\|[^}]*)?\}`)

// sound checks what holds for every finding.
func sound(t *testing.T, f diagnose.Finding) {
	t.Helper()
	if f.Summary == "" || len(f.Evidence) == 0 || len(f.Remedies) == 0 || f.Severity == "" {
		t.Errorf("finding %s lacks a summary, evidence, remedies or severity: %+v", f.Code, f)
	}
	if len(f.Summary) > diagnose.MaxText || len(f.Evidence) > diagnose.MaxEvidence || len(f.Remedies) > diagnose.MaxRemedies || len(f.Affected) > diagnose.MaxAffected+1 {
		t.Errorf("finding %s is too large", f.Code)
	}
	for _, r := range f.Remedies {
		if unfilled.MatchString(r.Text + r.Action) {
			t.Errorf("finding %s has a remedy with a hole: %+v", f.Code, r)
		}
	}
	for _, text := range append([]string{f.Summary}, f.Evidence...) {
		if unfilled.MatchString(text) && text == f.Summary || strings.ContainsAny(text, "\n\r\x1b") {
			t.Errorf("finding %s has an unclean text: %q", f.Code, text)
		}
	}
}

func TestHealthyJobsHaveNoFindings(t *testing.T) {
	noisy := map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"retrying: Connection refused", "Segmentation fault in a test, as expected", "epoch 3"}, LastAt: mpitest.Now}}
	succeeded := running(2)
	succeeded.seen.Launcher = mpitest.Launcher(succeeded.job, batchv1.JobComplete)
	suspended := running(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true })
	started := starting(2, created(time.Minute))
	tests := map[string]scene{
		"running":                          running(3).with(func(s *scene) { s.evidence.Logs = noisy }),
		"ranks continue after they waited": hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3", "mpi-agent: no progress: over", "step 42"),
		"a program prints a line of an agent with its own words": hanging("mpi-agent: no progress: 3 of 4 ranks wait for rank 2 (slower: your account is locked, call 555), since 10:00:00 UTC; busy: 2; polling: 0, 1, 3"),
		"an agent left words of a program":                       failed(0, "done").with(launcherLeft(agentapi.Summary{ExitCode: new(int32(0)), HostsReached: 4, RanksSeen: 8, LeftRunning: "mpirun, and your account is locked"}, 0), succeededLauncher),
		"succeeded":                                              succeeded.with(func(s *scene) { s.evidence.Logs = noisy }),
		"suspended":                                              suspended,
		"starting":                                               started,
		"workers become ready": running(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }).with(
			func(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil }, worker(1, corev1.PodRunning, notReadyFor(20*time.Second)),
		),
		"a worker is not ready, which the launcher does not wait for": running(2).with(worker(1, corev1.PodRunning, notReadyFor(time.Minute))),
		"a startup probe times out, and the launcher does not wait for it": running(2).with(worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored: rpc error: code = DeadlineExceeded desc = failed to exec in container: timeout 1s exceeded: context deadline exceeded")),
		"a startup probe was not executed at first": running(2).with(event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored and resulted in Unknown state: "+runcLacks), worker(1, corev1.PodRunning, func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})),
		"a liveness probe was not executed for a while": running(2).with(event("Pod", "pi-worker-1", "Unhealthy", "Liveness probe errored and resulted in Unknown state: "+runcLacks),
			func(s *scene) { s.evidence.Events[0].Last = mpitest.Now.Add(-time.Hour) }),
		"no pods": {job: mpitest.Job(2)},
		"resumed while all pods from before are on their way out": running(2).with(event("Pod", "pi-launcher-xyz", "Killing", "Stopping container main"), func(s *scene) {
			mpitest.Leaving(s.seen.LauncherPods[0])
			for _, w := range s.seen.Workers {
				created(time.Hour)(w.Pod)
				mpitest.Leaving(w.Pod)
			}
		}),
		"resumed with new workers while the launcher from before is on its way out": running(2).with(func(s *scene) {
			mpitest.Leaving(s.seen.LauncherPods[0])
			for _, w := range s.seen.Workers {
				created(-time.Minute)(w.Pod)
			}
		}),
		"resumed": running(2).with(event("Pod", "pi-launcher-xyz", "Killing", "Stopping container main"), func(s *scene) {
			for _, w := range s.seen.Workers {
				created(-time.Minute)(w.Pod)
			}
		}),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			if found := s.findings(); len(found) > 0 {
				t.Errorf("a job that is well has findings: %+v", found)
			}
		})
	}
}
