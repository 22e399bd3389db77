package mpi_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestNamesOfObjects(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(2)
	for got, want := range map[string]string{
		job.ConfigName(): "pi-config", job.SecretName(): "pi-ssh", job.LauncherName(): "pi-launcher", job.WorkerName(1): "pi-worker-1",
		job.WorkerIndex(1): "1", job.Key().Name: job.Name,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	job.Launcher.RunsRanks = true
	if got := job.WorkerIndex(1); got != "2" {
		t.Errorf("next to a launcher with ranks, the index of worker 1 is %s", got)
	}
}

// TestReportNames: a report's name is valid for every name of a job, and another for each UID.
func TestReportNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 243) + "-b"
	for name, test := range map[string]struct {
		name, uid, want, label string
	}{
		"short":            {"pi", "12345678-9abc", "pi-12345678", "pi"},
		"a short UID":      {"pi", "123", "pi-123", "pi"},
		"too long":         {long, "12345678-9abc", strings.Repeat("a", 243) + "-12345678", strings.Repeat("a", 63)},
		"a hyphen is cut":  {strings.Repeat("a", 62) + "-b", "1", strings.Repeat("a", 62) + "-b-1", strings.Repeat("a", 62)},
		"a dot before UID": {"pi.", "1", "pi-1", "pi"},
	} {
		job := mpi.Job{Kind: "MPIJob", Name: test.name, UID: types.UID(test.uid)}
		if got := job.ReportName(); got != test.want || len(got) > 253 {
			t.Errorf("%s: the report is named %s, want %s", name, got, test.want)
		}
		if got := job.ReportLabels(); got[mpi.LabelReportJob] != test.label || got[mpi.LabelReportKind] != "MPIJob" {
			t.Errorf("%s: its labels are %v", name, got)
		}
	}
}

// TestLabelsOfOtherKinds: objects of a TrainJob are not selected as those of an MPIJob of the same name.
func TestLabelsOfOtherKinds(t *testing.T) {
	t.Parallel()
	own := mpi.Job{Kind: "MPIJob", Name: "pi"}
	external := mpi.Job{Kind: "TrainJob", Name: "pi", External: true, Names: mpi.Names{PodLabel: "jobset"}}
	for key, value := range own.Selector() {
		if own.Labels()[key] != value {
			t.Errorf("the objects of an MPIJob have no label %s=%s", key, value)
		}
	}
	if _, is := external.Labels()[mpi.LabelJob]; is {
		t.Errorf("the objects of a TrainJob have the label of an MPIJob: %v", external.Labels())
	}
	if got := external.Selector(); !maps.Equal(got, map[string]string{"jobset": "pi"}) {
		t.Errorf("the pods of a TrainJob are selected by %v", got)
	}
	if got := own.PodLabels(mpi.RoleWorker)[mpi.LabelRole]; got != "worker" {
		t.Errorf("the role of a worker is %q", got)
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1)
	pod := func(uid string, controller bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: job.Kind, Name: job.Name, UID: types.UID(uid), Controller: &controller}}}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"its own": {pod(string(job.UID), true), true}, "of an earlier job of its name": {pod("earlier", true), false},
		"not controlled": {pod(string(job.UID), false), false}, "of nobody": {&corev1.Pod{}, false},
	} {
		if job.Owns(test.pod) != test.want {
			t.Errorf("%s: %t", name, !test.want)
		}
	}
}

func TestGangSize(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change                 func(*mpi.Job)
		pods, size, minWorkers int32
	}{
		"all":                       {func(*mpi.Job) {}, 5, 5, 4},
		"no launcher":               {func(j *mpi.Job) { j.Launcher.None = true }, 4, 4, 4},
		"the launcher comes later":  {func(j *mpi.Job) { j.Launcher.AfterWorkers = true }, 5, 4, 4},
		"fewer":                     {func(j *mpi.Job) { j.Gang.MinAvailable = new(int32(3)) }, 5, 3, 2},
		"fewer, the launcher later": {func(j *mpi.Job) { j.Gang.MinAvailable, j.Launcher.AfterWorkers = new(int32(3)), true }, 5, 3, 3},
		"fewer, without a launcher": {func(j *mpi.Job) { j.Gang.MinAvailable, j.Launcher.None = new(int32(3)), true }, 4, 3, 3},
		"more than there are":       {func(j *mpi.Job) { j.Gang.MinAvailable = new(int32(9)) }, 5, 5, 4},
		"none":                      {func(j *mpi.Job) { j.Gang.MinAvailable = new(int32(0)) }, 5, 1, 0},
	} {
		job := mpitest.Job(4)
		test.change(&job)
		if job.Pods() != test.pods || job.GangSize() != test.size || job.MinWorkers() != test.minWorkers {
			t.Errorf("%s: %d pods, a gang of %d, at least %d workers; want %d, %d, %d", name, job.Pods(), job.GangSize(), job.MinWorkers(), test.pods, test.size, test.minWorkers)
		}
	}
}

func TestPriorityClass(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1, func(j *mpi.Job) { j.Gang.PriorityClass = "gang" })
	if got := job.PriorityClass(mpi.RoleLauncher); got != "gang" {
		t.Errorf("without a class in the template it is %q", got)
	}
	job.Launcher.Template.Spec.PriorityClassName = "own"
	if launcher, worker := job.PriorityClass(mpi.RoleLauncher), job.PriorityClass(mpi.RoleWorker); launcher != "own" || worker != "gang" {
		t.Errorf("the launcher has %q, the workers have %q", launcher, worker)
	}
}

func TestWaitsForQuota(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job  mpi.Job
		want bool
	}{
		"by default": {mpi.Job{}, false}, "requested": {mpi.Job{WaitForQuota: true}, true}, "in a queue": {mpi.Job{Queue: "team"}, true}, "a gang": {mpi.Job{Gang: mpi.Gang{Wanted: true}}, true},
		"another controller creates its pods": {mpi.Job{External: true, WaitForQuota: true, Gang: mpi.Gang{Wanted: true}}, false},
		"another controller, in a queue":      {mpi.Job{External: true, Queue: "team"}, true},
		"another controller, with a gate":     {mpi.Job{External: true, Gated: true, WaitForQuota: true}, true},
	} {
		if test.job.WaitsForQuota() != test.want {
			t.Errorf("%s: %t", name, !test.want)
		}
	}
	for text, want := range map[string]bool{"true": true, "false": false} {
		if got, errs := mpi.ParseWaitForQuota(map[string]string{mpi.AnnotationWaitForQuota: text}); got != want || len(errs) > 0 {
			t.Errorf("%q: %t, %v", text, got, errs)
		}
	}
	if got, errs := mpi.ParseWaitForQuota(nil); got || len(errs) > 0 {
		t.Errorf("without the annotation: %t, %v", got, errs)
	}
	if _, errs := mpi.ParseWaitForQuota(map[string]string{mpi.AnnotationWaitForQuota: "yes"}); len(errs) != 1 || !strings.Contains(errs.ToAggregate().Error(), `supported values: "true", "false"`) {
		t.Errorf("a wrong value: %v", errs)
	}
}

func TestParseSilence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "10s": 10 * time.Second, "9s": 0, "-1m": 0, "soon": 0, "": 0} {
		got, errs := mpi.ParseSilence(map[string]string{mpi.AnnotationSilence: text})
		if want == 0 {
			if got != 15*time.Minute || len(errs) != 1 || !strings.Contains(errs[0].Error(), "must be a duration of at least 10s") {
				t.Errorf("%q: %s, %v", text, got, errs)
			}
			continue
		}
		if got != want || len(errs) > 0 {
			t.Errorf("%q: %s, %v", text, got, errs)
		}
	}
	if got, errs := mpi.ParseSilence(nil); got != 15*time.Minute || len(errs) > 0 {
		t.Errorf("the default is %s: %v", got, errs)
	}
}

func TestAgentSummaryOfTheLatestRun(t *testing.T) {
	t.Parallel()
	ended := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}
	}
	if _, found := mpi.AgentSummary(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{}, {State: ended("panic: x")}}}}); found {
		t.Error("the last words of a program are taken for a summary")
	}
}

func TestConnectionSources(t *testing.T) {
	t.Parallel()
	got := mpi.ConnectionSources([]string{"data", "model"})
	if len(got) != 2 || got[0].SecretRef.Name != "data" || got[1].SecretRef.Name != "model" || got[0].Prefix != "" {
		t.Errorf("%+v", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	gpus := func(j *mpi.Job, limits string) {
		j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(limits)}
	}
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		want   string
	}{
		"none":                            {func(*mpi.Job) {}, ""},
		"a policy without effect":         {func(j *mpi.Job) { j.Workers.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways }, `"Always" has no effect; set restartPolicy next to replicas`},
		"no slots":                        {func(j *mpi.Job) { j.SlotsPerWorker = 0 }, "with 0 slots mpirun cannot start ranks; use 1 or more"},
		"fewer ranks than GPUs":           {func(j *mpi.Job) { gpus(j, "4"); j.SlotsPerWorker = 1 }, "1 rank per worker with 4 GPUs; most MPI programs for GPUs need one rank per GPU"},
		"a rank per GPU":                  {func(j *mpi.Job) { gpus(j, "2"); j.SlotsPerWorker = 2 }, ""},
		"another manager without a queue": {func(j *mpi.Job) { j.ManagedBy = "kueue.x-k8s.io/multikueue" }, "kueue.x-k8s.io/multikueue runs this job, and not this operator; without a queue it never starts: name a queue, or remove the field"},
		"another manager with a queue":    {func(j *mpi.Job) { j.ManagedBy, j.Queue = "kueue.x-k8s.io/multikueue", "team" }, ""},
		"a profile with sshd":             {func(j *mpi.Job) { j.Profile, j.Launch = true, mpi.LaunchSSHD }, "profile]: has no effect, because the agent does not start"},
		"workers that sleep": {func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Command = []string{"sh", "-c", "tail -f /dev/null"}
		}, "sh runs in place of the agent, and starts no ranks"},
		"workers whose first container is another": {func(j *mpi.Job) {
			spec := &j.Workers.Template.Spec
			spec.Containers = append([]corev1.Container{{Name: "metrics-exporter", Command: []string{"sh", "-c", "while true; do sleep 5; done"}}}, spec.Containers...)
		}, "sh runs in place of the agent, and starts no ranks; ranks run in the first container, here metrics-exporter: put that of the program first"},
		"workers that serve": {func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Command = []string{"sh", "-c", "exec /usr/sbin/sshd -De"}
		}, ""},
		"workers with a script": {func(j *mpi.Job) { j.Workers.Template.Spec.Containers[0].Command = []string{"bash", "start.sh"} }, ""},
		"connections with sshd": {func(j *mpi.Job) { j.Connections, j.Launch = []string{"data"}, mpi.LaunchSSHD }, mpi.ConnectionsWithoutAgent},
		"a host name": {
			func(j *mpi.Job) { j.Workers.Template.Spec.Hostname = strings.Repeat("a", 64) },
			`hostname: "` + strings.Repeat("a", 64) + `" has no effect; the operator sets the host names of all pods, such as pi-launcher.pi.ns.svc`,
		},
		"a launcher beside": {func(j *mpi.Job) { j.Gang.Wanted, j.Launcher.AfterWorkers = true, true }, "the launcher is not one of the 2 pods that are scheduled together"},
	} {
		job := mpitest.Job(2)
		test.change(&job)
		switch got := mpi.Warnings(job); {
		case test.want == "" && len(got) > 0, test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestParseTTL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "60": time.Minute, "2147483647": 2147483647 * time.Second, "2147483648": -1, "-1": -1, "1.5": -1, "1h": -1, "": -1,
	} {
		got, errs := mpi.ParseTTL(map[string]string{mpi.AnnotationTTL: text})
		switch {
		case want < 0 && (got != nil || len(errs) != 1 || !strings.Contains(errs[0].Error(), "must be an integer from 0 to 2147483647")):
			t.Errorf("%q: %v, %v", text, got, errs)
		case want >= 0 && (got == nil || *got != want || len(errs) > 0):
			t.Errorf("%q: %v, %v", text, got, errs)
		}
	}
	if got, errs := mpi.ParseTTL(nil); got != nil || len(errs) > 0 {
		t.Errorf("without the annotation: %v, %v", got, errs)
	}
}

func TestParseMaxRestarts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{"0": 0, "3": 3, "100": 100, "-1": -1, "101": -1, "1.5": -1, "often": -1, "": -1} {
		got, errs := mpi.ParseMaxRestarts(map[string]string{mpi.AnnotationMaxRestarts: text})
		switch {
		case want < 0 && (got != nil || len(errs) != 1 || !strings.Contains(errs[0].Error(), "must be an integer from 0 to 100")):
			t.Errorf("%q: %v, %v", text, got, errs)
		case want >= 0 && (got == nil || *got != want || len(errs) > 0):
			t.Errorf("%q: %v, %v", text, got, errs)
		}
	}
	if got, errs := mpi.ParseMaxRestarts(nil); got != nil || len(errs) > 0 {
		t.Errorf("without the annotation: %v, %v", got, errs)
	}
}
