package runtimetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func newTest(change ...func(*v1alpha1.RuntimeTest)) v1alpha1.RuntimeTest {
	test := v1alpha1.RuntimeTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "openmpi", UID: "0123456789"},
		Spec: v1alpha1.RuntimeTestSpec{
			RuntimeRef: v1alpha1.RuntimeReference{Name: "mpi", Kind: trainjob.ClusterRuntimeKind}, TimeoutSeconds: 300,
		},
	}
	for _, c := range change {
		c(&test)
	}
	return test
}

// newRuntime is the base of all our runtimes, changed in its text.
func newRuntime(t *testing.T, change ...string) *trainjob.Runtime {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "runtimes", "base", "runtime.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(string(data), change[i]) {
			t.Fatalf("the runtime has no %q", change[i])
		}
	}
	var found trainjob.Runtime
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(change...).Replace(string(data))), &found); err != nil {
		t.Fatal(err)
	}
	return &found
}

func TestJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		runtime []string
		change  func(*v1alpha1.RuntimeTest)
		in      Cluster
	}{
		"openmpi": {change: func(*v1alpha1.RuntimeTest) {}},
		"mpich-with-image-and-size-in-a-queue": {
			runtime: []string{"mpi-implementation: OpenMPI", "mpi-implementation: MPICH"},
			change: func(test *v1alpha1.RuntimeTest) {
				test.Labels = map[string]string{mpi.LabelQueue: "team", "other": "label"}
				test.Spec.RuntimeRef.Kind = trainjob.RuntimeKind
				test.Spec.Image = "registry.example.com/solver:1"
				test.Spec.ResourcesPerNode = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("500m")}}
			},
		},
		"launcher-without-ranks": {runtime: []string{"runLauncherAsNode: true", "runLauncherAsNode: false"}, change: func(*v1alpha1.RuntimeTest) {}},
		"required-nodes": {
			runtime: []string{"OpenMPI\nspec", "OpenMPI\n    mpi.opendatahub.io/required-node-labels: pool=mpi\nspec"}, change: func(*v1alpha1.RuntimeTest) {},
			in: Cluster{Limits: trainjob.Limits{Namespace: map[string]string{mpi.AnnotationNodeLabels: "region=west, example.com/disk=fast"}, Defaults: map[string]string{mpi.AnnotationNodeLabels: "region=east"}}},
		},
		"required-nodes-in-overrides": {
			runtime: []string{"                securityContext: &user", "                nodeSelector: {region: west}\n                securityContext: &user"}, change: func(*v1alpha1.RuntimeTest) {},
			in: Cluster{Limits: trainjob.Limits{Defaults: map[string]string{mpi.AnnotationNodeLabels: "region=west"}}, HasOverrides: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, err := Job(newTest(test.change), newRuntime(t, test.runtime...), test.in)
			if err != nil {
				t.Fatal(err)
			}
			mpitest.Golden(t, name, job.Object)
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	own := func(test *v1alpha1.RuntimeTest) { test.Spec.RuntimeRef.Kind = trainjob.RuntimeKind }
	for name, test := range map[string]struct {
		test v1alpha1.RuntimeTest
		used *trainjob.Runtime
		in   Cluster
		says string
	}{
		"no such cluster runtime": {newTest(), nil, Cluster{}, "ClusterTrainingRuntime mpi does not exist; correct the name"},
		"no such runtime":         {newTest(own), nil, Cluster{}, "TrainingRuntime mpi does not exist in namespace ns"},
		"no MPI":                  {newTest(), &trainjob.Runtime{}, Cluster{}, "is not an MPI runtime"},
		"four launchers":          {newTest(), newRuntime(t, "numNodes: 1", "numNodes: 4"), Cluster{}, "4 launchers"},
		"too few allowed": {
			newTest(), newRuntime(t, "OpenMPI\nspec", "OpenMPI\n    mpi.opendatahub.io/max-workers: '2'\nspec"), Cluster{}, "does not accept the test's job of 3 pods: spec.trainer.numNodes: Invalid value: 3: must be at most 2",
		},
		"too many required": {
			newTest(), newRuntime(t, "OpenMPI\nspec", "OpenMPI\n    mpi.opendatahub.io/min-workers: '1000'\nspec"), Cluster{}, "spec.trainer.numNodes: Invalid value: 64: must be at least 1000",
		},
		"nodes that cannot be": {
			newTest(), newRuntime(t, "OpenMPI\nspec", "OpenMPI\n    mpi.opendatahub.io/required-node-labels: pool=a,pool=b\nspec"), Cluster{}, "requires both pool=a and pool=b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, err := Job(test.test, test.used, test.in)
			if err == nil {
				t.Fatalf("it is tested by %v", job)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %q, want %q", err, test.says)
			}
		})
	}
}

// TestJobHasAsManyNodesAsRequired: a runtime with a minimum is tested with that number.
func TestJobHasAsManyNodesAsRequired(t *testing.T) {
	t.Parallel()
	job, err := Job(newTest(), newRuntime(t, "OpenMPI\nspec", "OpenMPI\n    mpi.opendatahub.io/min-workers: '5'\nspec"), Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	if Ranks(job) != 5 || !strings.Contains(fmt.Sprint(job.Object["spec"]), " -n 5 ") {
		t.Errorf("it is %v", job.Object["spec"])
	}
}

// TestCommand runs what each rank runs.
func TestCommand(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, variables := range [][]string{{"OMPI_COMM_WORLD_RANK=1"}, {"PMI_RANK=1"}, {}} {
		run := exec.CommandContext(t.Context(), "sh", "-c", rankScript)
		run.Env = variables
		text, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if hosts := Hosts("before\n" + string(text) + string(text)); !slices.Equal(hosts, []string{host, host}) {
			t.Errorf("with %v it prints %q, which is read as %v", variables, text, hosts)
		}
	}
}

var began = mpitest.Now

func pods(phases ...corev1.PodPhase) func(*v1alpha1.JobReportStatus) {
	return func(s *v1alpha1.JobReportStatus) {
		for i, phase := range phases {
			s.Pods = append(s.Pods, v1alpha1.PodStatus{Name: fmt.Sprint("pod-", i), Phase: string(phase)})
		}
	}
}

func ended(phase v1alpha1.Phase, after time.Duration) func(*v1alpha1.JobReportStatus) {
	return func(s *v1alpha1.JobReportStatus) {
		s.Phase, s.Message = phase, "It has ended."
		s.CompletionTime = new(metav1.NewTime(began.Add(after)))
	}
}

func found(code codes.Code, severity v1alpha1.Severity) func(*v1alpha1.JobReportStatus) {
	return func(s *v1alpha1.JobReportStatus) {
		s.Findings = append(s.Findings, v1alpha1.Finding{
			Code: code, Severity: severity, Summary: "This is wrong.", Remedies: []v1alpha1.Remedy{{Text: "Do that."}},
		})
	}
}

func reached(n int32) func(*v1alpha1.JobReportStatus) {
	return func(s *v1alpha1.JobReportStatus) {
		s.MPI = v1alpha1.MPIStatus{SlotsExpected: 2, SlotsFound: n, ConnectMilliseconds: 250, InitMilliseconds: 40}
	}
}

func report(change ...func(*v1alpha1.JobReportStatus)) *v1alpha1.JobReportStatus {
	status := &v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseInitializing, Message: "Pods start."}
	for _, c := range change {
		c(status)
	}
	return status
}

func TestJudge(t *testing.T) {
	t.Parallel()
	running, failed := corev1.PodRunning, corev1.PodFailed
	three := []string{"j-launcher-0-0", "j-node-0-0", "j-node-0-1"}
	const passed, broken, unknown, pending = v1alpha1.CheckPass, v1alpha1.CheckFail, v1alpha1.CheckUnknown, v1alpha1.CheckPending
	const skipped = v1alpha1.CheckSkipped
	type results = [6]v1alpha1.CheckResult
	const early, later, late = 10 * time.Second, time.Minute, 5 * time.Minute
	for name, test := range map[string]struct {
		after  time.Duration
		report *v1alpha1.JobReportStatus
		hosts  []string
		phase  v1alpha1.TestPhase
		checks results
		says   string
	}{
		"nothing yet":             {early, nil, nil, v1alpha1.TestRunning, results{pending, pending, pending, pending, pending, pending}, "Kubeflow Trainer is creating"},
		"Trainer makes nothing":   {late, nil, nil, v1alpha1.TestFailed, results{unknown, unknown, unknown, unknown, unknown, unknown}, "Timed out after 300 s. Kubeflow Trainer did not create"},
		"pods start":              {early, report(pods(running, corev1.PodPending)), nil, v1alpha1.TestRunning, results{pending, pending, pending, pending, pending, pending}, "Initializing: Pods start."},
		"pods run":                {early, report(pods(running, running, running)), nil, v1alpha1.TestRunning, results{passed, pending, pending, pending, pending, pending}, "Pods start."},
		"all is well":             {early, report(pods(running, running, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second), reached(2)), three, v1alpha1.TestPassed, results{passed, passed, passed, passed, passed, skipped}, "The runtime works: 3 ranks ran on 3 pods, 10 s after"},
		"well without the agent":  {early, report(pods("Gone", "Gone", corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second)), three, v1alpha1.TestPassed, results{passed, passed, passed, passed, passed, skipped}, "The runtime works"},
		"output not read yet":     {early, report(pods(running, running, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second), reached(2)), nil, v1alpha1.TestRunning, results{passed, passed, passed, pending, pending, pending}, "It has ended."},
		"output never read":       {later, report(pods(running, running, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second), reached(2)), nil, v1alpha1.TestFailed, results{passed, passed, passed, broken, unknown, unknown}, "No process (rank) printed its host"},
		"one rank is silent":      {early, report(pods(running, running, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second), reached(2)), three[:2], v1alpha1.TestFailed, results{passed, passed, passed, broken, unknown, unknown}, "2 of 3 processes"},
		"all on the launcher":     {early, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.HostfileIgnored, v1alpha1.SeverityError)), []string{"a", "a", "a"}, v1alpha1.TestFailed, results{passed, unknown, unknown, passed, broken, unknown}, "RanksDistinct: This is wrong."},
		"all on one, unexplained": {early, report(pods(running, running, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second)), []string{"a", "a", "a"}, v1alpha1.TestFailed, results{passed, unknown, unknown, passed, broken, unknown}, "ran on 1 pods (a) instead of 3"},
		"list of hosts not read":  {early, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.NotEnoughSlots, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{passed, unknown, unknown, unknown, broken, unknown}, "RanksDistinct: MPI did not read the hostfile"},
		"image may still come":    {early, report(pods(corev1.PodPending), found(codes.ImagePullFailed, v1alpha1.SeverityError)), nil, v1alpha1.TestRunning, results{pending, pending, pending, pending, pending, pending}, "Pods start."},
		"no image":                {later, report(pods(corev1.PodPending), found(codes.ImagePullFailed, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{broken, unknown, unknown, unknown, unknown, unknown}, "ImagePull: This is wrong."},
		"no image for some":       {later, report(pods(running, corev1.PodPending), found(codes.ImagePullFailed, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{broken, unknown, unknown, unknown, unknown, unknown}, "ImagePull: This is wrong."},
		"key refused":             {early, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.KeyRefused, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{passed, broken, unknown, unknown, unknown, unknown}, "Keys: This is wrong."},
		"unreachable":             {early, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.WorkerUnreachable, v1alpha1.SeverityError), reached(1)), nil, v1alpha1.TestFailed, results{passed, unknown, broken, unknown, unknown, unknown}, "Connection: This is wrong."},
		"no mpirun":               {early, report(pods(corev1.PodPending, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.ProgramMissing, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{passed, unknown, unknown, broken, unknown, unknown}, "ProcessStart: This is wrong."},
		"failed, cause to come":   {early, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second)), nil, v1alpha1.TestRunning, results{passed, pending, pending, pending, pending, pending}, "It has ended."},
		"failed of nothing known": {later, report(pods(running, running, failed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.Unknown, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{passed, unknown, unknown, broken, unknown, unknown}, "ProcessStart: This is wrong."},
		"no pods by policy":       {later, report(found(codes.PodSecurityDenied, v1alpha1.SeverityError)), nil, v1alpha1.TestFailed, results{unknown, unknown, unknown, unknown, unknown, unknown}, "This is wrong."},
		"no room may pass":        {later, report(pods(corev1.PodPending), found(codes.InsufficientResources, v1alpha1.SeverityWarning)), nil, v1alpha1.TestRunning, results{pending, pending, pending, pending, pending, pending}, "Pods start."},
		"no room until the end":   {late, report(pods(corev1.PodPending), found(codes.InsufficientResources, v1alpha1.SeverityWarning)), nil, v1alpha1.TestFailed, results{unknown, unknown, unknown, unknown, unknown, unknown}, "Timed out after 300 s. The job was Initializing: Pods start. This is wrong."},
		"hangs":                   {late, report(pods(running, running, running)), nil, v1alpha1.TestFailed, results{passed, unknown, unknown, broken, unknown, unknown}, "ProcessStart: All pods run, but"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := newTest()
			object.Status = Start(object.Status, began)
			before := object.DeepCopy()
			got := Judge(object, Seen{Now: began.Add(test.after), Ranks: 3, Report: test.report, Hosts: test.hosts})
			if diff := cmp.Diff(before.Status, object.Status); diff != "" {
				t.Errorf("it changed the status that it was given: %s", diff)
			}
			var checks results
			for i, c := range got.Checks {
				checks[i] = c.Result
				if (c.Result == pending) != (c.Message == "") {
					t.Errorf("%s is %s and says %q", c.Name, c.Result, c.Message)
				}
			}
			if got.Phase != test.phase || checks != test.checks || !strings.Contains(got.Message, test.says) {
				t.Errorf("it is %s with %v: %s; want %s with %v: %s", got.Phase, checks, got.Message, test.phase, test.checks, test.says)
			}
			if done := got.Phase != v1alpha1.TestRunning; done != (got.CompletionTime != nil) {
				t.Errorf("it is %s and ended at %v", got.Phase, got.CompletionTime)
			}
		})
	}
}

// TestJudgeTells shows in golden files what people read.
func TestJudgeTells(t *testing.T) {
	t.Parallel()
	object := newTest()
	object.Status = Start(object.Status, began)
	well := report(pods(corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded), ended(v1alpha1.PhaseSucceeded, 9*time.Second), reached(2))
	mpitest.Golden(t, "passed", Judge(object, Seen{Now: began.Add(12 * time.Second), Ranks: 3, Report: well, Hosts: []string{"j-node-0-1", "j-launcher-0-0", "j-node-0-0"}}))
	missing := report(pods(corev1.PodPending, corev1.PodRunning, corev1.PodFailed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.ProgramMissing, v1alpha1.SeverityError))
	mpitest.Golden(t, "no-mpirun", Judge(object, Seen{Now: began.Add(12 * time.Second), Ranks: 3, Report: missing}))
	unread := report(pods(corev1.PodRunning, corev1.PodRunning, corev1.PodFailed), ended(v1alpha1.PhaseFailed, 9*time.Second), found(codes.NotEnoughSlots, v1alpha1.SeverityError))
	mpitest.Golden(t, "hosts-not-read", Judge(object, Seen{Now: began.Add(12 * time.Second), Ranks: 3, Report: unread}))
}

// TestPassedStays: what has passed is not judged again when its pods are gone.
func TestPassedStays(t *testing.T) {
	t.Parallel()
	object := newTest()
	object.Status = Start(object.Status, began)
	run := report(pods(corev1.PodRunning, corev1.PodRunning, corev1.PodRunning))
	object.Status = Judge(object, Seen{Now: began.Add(time.Second), Ranks: 3, Report: run})
	gone := report(pods("Gone", "Gone", corev1.PodPending))
	if got := Judge(object, Seen{Now: began.Add(2 * time.Second), Ranks: 3, Report: gone}); got.Checks[0].Result != v1alpha1.CheckPass {
		t.Errorf("%+v", got.Checks[0])
	}
}
