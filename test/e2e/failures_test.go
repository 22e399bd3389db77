package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/migrate"
	"opendatahub.io/mpijob/internal/mpi"
)

// failure is a way for a job to fail, or not to get on, and what its report has to say of it.
type failure struct {
	name    string
	provoke provocation
	// shape is that of the job; nil leaves it as the provocation makes it.
	shape *shape
	want  explanation
	// ranks are how many of its ranks wait for each other at once, as parallel takes them; 0: none starts, or they sleep.
	ranks int64
	// trainJob is set where the case is tried as a TrainJob, too.
	trainJob bool
	// cured is set where the first remedy that changes the job lets it succeed.
	cured bool
}

// hangs says whether the program of a failure goes on without getting on.
func (f failure) hangs() bool {
	return slices.Contains([]codes.Code{codes.RanksWaiting, codes.RanksIdle, codes.RankGone, codes.Straggler, codes.NoOutput}, f.want.code)
}

// provocation makes a job in a namespace that admits restricted pods only, and does to it what it is to suffer from. It
// creates the job by submit.
type provocation func(t *testing.T, namespace string, submit submission) *kubeflow.MPIJob

// submission creates a job in the shape and of the kind that are tried.
type submission func(job *kubeflow.MPIJob)

// explanation is what the first finding of a report says, and where a job that failed did so.
type explanation struct {
	code codes.Code
	// pod is how the name of the pod begins in which it began; empty: there is none, or any will do.
	pod string
	// rank and exit are those of the first rank that failed; nil where there is none or any may be the first.
	rank, exit *int32
	// summary and remedy are parts of the summary and of the first remedy.
	summary, remedy string
	// removed is set where Kubernetes removes the pod and its log, mostly before anybody can read it.
	removed bool
	// fails is set where the job ends by it; otherwise it waits or goes on.
	fails bool
	// after is how long it takes at least until all of this is so.
	after time.Duration
}

// advises returns the explanation with another first remedy.
func (e explanation) advises(remedy string) explanation {
	e.remedy = remedy
	return e
}

// shape is how people write the two fields that decide what Kubernetes does with a launcher that failed, and with the
// evidence: its pod stays, is restarted in place, or is deleted.
type shape struct {
	policy kubeflow.RestartPolicy
	limit  *int32
}

// shapes are all of them. Empty and nil are fields that are not set.
func shapes() []*shape {
	var all []*shape
	for _, limit := range []*int32{new(int32(0)), new(int32(1)), nil} {
		for _, policy := range []kubeflow.RestartPolicy{kubeflow.RestartPolicyNever, kubeflow.RestartPolicyOnFailure, ""} {
			all = append(all, &shape{policy, limit})
		}
	}
	return all
}

func (s *shape) String() string {
	if s == nil {
		return ""
	}
	limit := "unset"
	if s.limit != nil {
		limit = fmt.Sprint(*s.limit)
	}
	return fmt.Sprintf(", restartPolicy %s, backoffLimit %s", cmp.Or(string(s.policy), "unset"), limit)
}

// apply writes the shape into a job. A job that is tried again need not have failed for its report to explain it; all of its
// attempts take minutes, which only the whole matrix waits for.
func (s *shape) apply(job *kubeflow.MPIJob, want *explanation, whole bool) {
	job.Spec.RunPolicy.BackoffLimit = s.limit
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = s.policy
	switch {
	case s.limit != nil && *s.limit == 0:
	case s.limit != nil && s.policy == kubeflow.RestartPolicyNever:
		want.after = 15 * time.Second
	case s.limit == nil && whole && s.policy == kubeflow.RestartPolicyNever:
		// The Job controller waits 10 s before the second attempt, and twice as long before each other one.
		want.after = 11 * time.Minute
	case s.limit == nil && whole:
		want.after = 6 * time.Minute
	case s.limit == nil:
		want.fails = false
	}
}

// TestFailures: jobs of both kinds fail for real in all known ways, and their reports explain each failure.
//
// Each failure has one of the shapes that people write, and all of them with FULL=1. Of a share, such as a quarter, one quarter is tried as
// MPIJobs and another as TrainJobs, if they are tried as such.
func TestFailures(t *testing.T) {
	t.Parallel()
	tryFailures(t, slices.DeleteFunc(failures(), failure.hangs), parallel)
}

// TestHangs: programs of jobs of both kinds hang for real in all known ways, and the jobs' reports explain each.
//
// These tests wait for more than they compute: one after the other they take the time of a few of the other tests, which go on beside them.
func TestHangs(t *testing.T) {
	t.Parallel()
	tryFailures(t, slices.DeleteFunc(failures(), func(f failure) bool { return !f.hangs() }), takeRoom)
}

// tryFailures tries failures, each when start has made room for its ranks.
func tryFailures(t *testing.T, tried []failure, start func(t *testing.T, ranks int64) (leave func())) {
	t.Helper()
	whole, tries := os.Getenv("FULL") == "1", mustShare(t)
	var outcome tally
	t.Cleanup(func() { fmt.Printf("explained %d of %d\n", outcome.explained, outcome.tried) })
	all := shapes()
	next := 0
	for i, f := range tried {
		asMPIJob := []*shape{nil}
		switch {
		case !f.want.fails || f.want.removed:
			// What holds a job up does not depend on how it is tried again; nor is it tried when its time is over.
		case whole:
			asMPIJob = all
		default:
			asMPIJob = all[next%len(all):][:1]
			next++
		}
		if !tries.has(i) {
			asMPIJob = nil
		}
		for _, s := range asMPIJob {
			shaped := f
			shaped.shape = s
			t.Run(f.name+s.String(), func(t *testing.T) {
				start(t, f.ranks)
				outcome.run(t, shaped, whole)
			})
		}
		if f.trainJob && tries.has(i+tries.of/2) {
			t.Run(f.name+", TrainJob", func(t *testing.T) {
				start(t, f.ranks)
				outcome.runTrainJob(t, f)
			})
		}
	}
}

// TestFailuresOfNodes is the same for those of which other jobs would suffer too.
func TestFailuresOfNodes(t *testing.T) {
	var outcome tally
	for _, f := range nodeFailures() {
		t.Run(f.name, func(t *testing.T) { outcome.run(t, f, false) })
	}
	fmt.Printf("explained %d of %d\n", outcome.explained, outcome.tried)
}

// tally counts failures and those that were explained.
type tally struct {
	mu               sync.Mutex
	tried, explained int
}

func (c *tally) run(t *testing.T, f failure, whole bool) {
	c.count(t)
	want := f.want
	job := f.provoke(t, newNamespace(t), func(job *kubeflow.MPIJob) {
		if f.shape != nil {
			f.shape.apply(job, &want, whole)
		}
		create(t, job)
	})
	want.await(t, func() (*v1alpha1.JobReport, error) { return record(t, job) })
	if report, err := record(t, job); err == nil {
		remediesWork(t, report)
		explainedRemediesWork(t, job)
	}
	if f.cured && !t.Failed() {
		applyRemedy(t, job)
	}
}

// runTrainJob runs a failure as a TrainJob, whose first pod is the launcher with the first ranks. JobSet deletes the other pods
// as soon as the launcher has failed: the rank tells where it was.
func (c *tally) runTrainJob(t *testing.T, f failure) {
	c.count(t)
	job := f.provoke(t, newNamespace(t), func(job *kubeflow.MPIJob) { createTrainJob(t, asTrainJob(t, job)) })
	want := f.want
	want.pod = strings.NewReplacer("job-worker-0", "job-launcher-0-0-", "job-worker-1", "job-", "job-launcher-", "job-launcher-0-0-", "job-worker-", "job-").Replace(want.pod)
	want.await(t, func() (*v1alpha1.JobReport, error) {
		if report := reportOf(t, trainjob.Kind, job.Namespace, job.Name); report != nil {
			return report, nil
		}
		return nil, errors.New("there is no report")
	})
	if report := reportOf(t, trainjob.Kind, job.Namespace, job.Name); report != nil {
		remediesWork(t, report)
	}
}

// count counts a failure, and whether it was explained, when its test has ended.
func (c *tally) count(t *testing.T) {
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tried++
		if !t.Failed() {
			c.explained++
		}
	})
}

// asTrainJob converts a job as `kubectl odh mpijob migrate` does, and creates the runtime of its MPI. All pods of a TrainJob
// have the same image and variables: those of the workers. Changes are made in the pods of the runtime.
func asTrainJob(t *testing.T, job *kubeflow.MPIJob, changes ...runtimeChange) *unstructured.Unstructured {
	t.Helper()
	name := "mpi-openmpi"
	switch {
	case job.Spec.MPIImplementation == kubeflow.MPIImplementationMPICH:
		name = "mpi-mpich"
	case job.Spec.MPIImplementation == kubeflow.MPIImplementationIntel:
		name = "mpi-intel"
	case strings.Contains(launcher(job).Image, "pytorch"), strings.Contains(launcher(job).Image, "tensorflow"):
		name = "mpi-horovod"
	case strings.Contains(launcher(job).Image, "deepspeed"):
		name = "mpi-deepspeed"
	case strings.Contains(launcher(job).Image, "openmpi5"):
		name = "mpi-openmpi5"
	}
	runtimeWith(t, job.Namespace, name, changes)
	launcher(job).Image, launcher(job).Env, launcher(job).Resources = worker(job).Image, worker(job).Env, worker(job).Resources
	job.SetGroupVersionKind(kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	result, errs := migrate.ToTrainJob(object, migrate.Options{Runtime: trainjob.RuntimeRef{Name: "mpi", Kind: trainjob.RuntimeKind}})
	if len(errs) > 0 {
		t.Fatalf("the job cannot be a TrainJob: %v", errs.ToAggregate())
	}
	return &unstructured.Unstructured{Object: result.Object}
}

// applyRemedy runs a job again with the first remedy of its report that changes it, as `explain --apply` does, and waits until
// that job has succeeded.
func applyRemedy(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	library := jobs.NewClient(api, nil, time.Now)
	failed, err := library.Find(t.Context(), job.Namespace, "mpijob/"+job.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, remedy := range failed.Status().Findings[0].Remedies {
		changes, can := jobs.RemedyChanges(failed, remedy)
		if !can || len(changes) == 0 {
			continue
		}
		t.Logf("carrying out %q: %v", remedy.Text, changes)
		clone, err := library.Clone(t.Context(), failed, "", changes...)
		if err != nil {
			t.Fatal(err)
		}
		if err := library.Create(t.Context(), clone.Job, jobs.DryRunNone); err != nil {
			t.Fatal(err)
		}
		waitFor(t, &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: clone.Job.GetName()}}, "the job succeeds with the remedy", succeeded)
		return
	}
	t.Errorf("no remedy changes the job: %+v", failed.Status().Findings[0].Remedies)
}

// await waits until a job's report explains what is wrong with it, and prints what it says. A failed job's cause is not
// waited for longer than the operator looks for it.
func (e explanation) await(t *testing.T, record func() (*v1alpha1.JobReport, error)) {
	t.Helper()
	const late = time.Minute
	within := maxWait + e.after
	start := time.Now()
	var report *v1alpha1.JobReport
	wrong := errors.New("there is no report")
	for time.Since(start) < within {
		if now, err := record(); err != nil {
			wrong = err
		} else {
			report, wrong = now, e.differs(now)
			if over := report.Status.CompletionTime; wrong == nil || over != nil && time.Since(over.Time) > late {
				break
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
	t.Logf("after %s\n%s", time.Since(start).Round(100*time.Millisecond), told(report))
	if wrong != nil {
		t.Errorf("it is not explained: %v", wrong)
	}
}

// record reads a job's report. A busy API server is asked again.
func record(t *testing.T, job *kubeflow.MPIJob) (*v1alpha1.JobReport, error) {
	found := &v1alpha1.JobReport{}
	name := mpi.Job{Name: job.Name, UID: job.UID}.ReportName()
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: job.Namespace, Name: name}, found); err != nil {
		return nil, err
	}
	return found, nil
}

// differs tells what in a report is not as it should be.
func (e explanation) differs(report *v1alpha1.JobReport) error {
	status := &report.Status
	if len(status.Findings) == 0 {
		return fmt.Errorf("there is no finding; the job is %s: %s", status.Phase, status.Message)
	}
	root := status.Findings[0]
	var wrong []error
	expect := func(what, got, want string, right bool) {
		if !right {
			wrong = append(wrong, fmt.Errorf("the %s is %q, want %q", what, got, want))
		}
	}
	expect("code", root.Code, e.code, root.Code == e.code)
	expect("summary", root.Summary, e.summary, strings.Contains(root.Summary, e.summary))
	remedy := ""
	if len(root.Remedies) > 0 {
		remedy = root.Remedies[0].Text
	}
	expect("first remedy", remedy, e.remedy, e.remedy != "" && strings.Contains(remedy, e.remedy))
	if e.pod != "" {
		expect("first pod affected", strings.Join(root.Affected, " "), e.pod, len(root.Affected) > 0 && strings.HasPrefix(root.Affected[0], e.pod))
	}
	switch failure := status.Failure; {
	case !e.fails:
		expect("rank", number(root.Rank), number(e.rank), e.rank == nil || number(root.Rank) == number(e.rank))
		expect("exit code", number(root.ExitCode), number(e.exit), e.exit == nil || number(root.ExitCode) == number(e.exit))
	case failure == nil:
		wrong = append(wrong, fmt.Errorf("the job has not failed: it is %s", status.Phase))
	default:
		for _, line := range failure.LogTail {
			expect("log", line, "lines of a program", !strings.Contains(line, "unable to retrieve container logs"))
		}
		expect("number of lines of logs", fmt.Sprint(len(failure.LogTail)), "more", len(failure.LogTail) > 0 || e.removed)
		expect("failure's code", failure.Code, e.code, failure.Code == e.code)
		expect("failure's pod", failure.Pod, e.pod, strings.HasPrefix(failure.Pod, e.pod))
		expect("rank", number(failure.Rank), number(e.rank), e.rank == nil || number(failure.Rank) == number(e.rank))
		expect("exit code", number(failure.ExitCode), number(e.exit), e.exit == nil || number(failure.ExitCode) == number(e.exit))
	}
	return errors.Join(wrong...)
}

func number(n *int32) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// told is a report's findings as a person reads them.
func told(report *v1alpha1.JobReport) string {
	if report == nil {
		return "there is no report"
	}
	var text strings.Builder
	status := &report.Status
	fmt.Fprintf(&text, "%s: %s\n", status.Phase, status.Message)
	if f := status.Failure; f != nil {
		fmt.Fprintf(&text, "failed: %s pod %s rank %s exit code %s, %d lines of logs\n", f.Code, f.Pod, number(f.Rank), number(f.ExitCode), len(f.LogTail))
	}
	for _, f := range status.Findings {
		fmt.Fprintf(&text, "%s %s of %s\n  %s\n", f.Severity, f.Code, strings.Join(f.Affected, ", "), f.Summary)
		for _, line := range f.Evidence {
			fmt.Fprintf(&text, "  | %s\n", line)
		}
		for i, r := range f.Remedies {
			fmt.Fprintf(&text, "  %d. %s [%s]\n", i+1, r.Text, r.Action)
		}
	}
	return text.String()
}

// machines are the names of the cluster's ready nodes, at least two; the test is skipped where there are fewer.
func machines(t *testing.T) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) < 2 {
		t.Skip("SKIPPED: it takes two nodes")
	}
	return list.Items
}

// on places a role's pods on a node.
func on(job *kubeflow.MPIJob, role kubeflow.MPIReplicaType, node corev1.Node) {
	job.Spec.MPIReplicaSpecs[role].Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}
}

// ownCluster runs a command on the one-machine cluster; the test is skipped where the cluster is another one.
func ownCluster(t *testing.T) func(arguments ...string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(root, "bin", "cluster")
	if _, err := os.Stat(program); err != nil || os.Getenv("KUBECONFIG") != filepath.Join(root, ".cluster", "kubeconfig") {
		t.Skip("SKIPPED: only parts of the one-machine cluster can be stopped")
	}
	return func(arguments ...string) {
		t.Helper()
		// What was stopped has to be started again after the test's context has ended, too.
		command := exec.CommandContext(context.Background(), program, arguments...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("cluster %v: %v: %s", arguments, err, out)
		}
	}
}

// isOurs reports whether the cluster's nodes share this machine's network.
func isOurs() bool {
	return strings.HasSuffix(os.Getenv("KUBECONFIG"), filepath.Join(".cluster", "kubeconfig"))
}

// ranksRun waits until the ranks of all of a job's workers run, two on each.
func ranksRun(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	waitFor(t, job, "it runs", runs)
	for i := range int(*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas) {
		metricIs(t, job, i, "mpi_agent_ranks_running", 2, time.Minute)
	}
}

// configMap holds one file.
func configMap(namespace, name, file, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{file: content}}
}
