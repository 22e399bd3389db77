package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// shell runs commands of the command line in a namespace.
type shell struct {
	t         *testing.T
	namespace string
}

// run runs a command, and checks its exit code and that its output contains some words, and does not contain those with a
// "!" before them. It returns standard output.
func (s shell) run(code int, wants []string, args ...string) string {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(s.t.Context(), "kubectl", append([]string{"odh", "mpijob", args[0], "-n", s.namespace}, args[1:]...)...)
	c.Env, c.Stdin = append(os.Environ(), "NO_COLOR=1"), strings.NewReader("yes\n")
	c.Stdout, c.Stderr = &stdout, &stderr
	got, exit := 0, new(exec.ExitError)
	if err := c.Run(); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	both := stdout.String() + stderr.String()
	s.t.Logf("$ %s\n%s(%d)", strings.Join(c.Args, " "), both, got)
	if got != code {
		s.t.Fatalf("%s ended with %d, want %d", strings.Join(args, " "), got, code)
	}
	for _, want := range wants {
		unwanted, not := strings.CutPrefix(want, "!")
		switch {
		case not && strings.Contains(both, unwanted):
			s.t.Errorf("%s prints %q", strings.Join(args, " "), unwanted)
		case !not && !strings.Contains(both, want):
			s.t.Errorf("%s does not print %q", strings.Join(args, " "), want)
		}
	}
	return stdout.String()
}

// awaitRuntime waits until a job of a new runtime is accepted in a dry run: Trainer's webhook hears of the runtime a little later.
func (s shell) awaitRuntime(args ...string) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		out := exec.CommandContext(s.t.Context(), "kubectl", append([]string{"odh", "mpijob", args[0], "-n", s.namespace}, args[1:]...)...)
		if text, err := out.CombinedOutput(); err == nil {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("the job is not accepted: %v: %s", err, text)
		}
	}
}

// TestTrainJobsFolderAndUser: all ranks of a TrainJob, on the launcher and on the worker, run in the folder and as the user that were
// chosen for them.
func TestTrainJobsFolderAndUser(t *testing.T) {
	parallel(t, 2)
	needTrainer(t)
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	if !takesPatches(t) {
		t.Skip("SKIPPED: this version of Kubeflow Trainer has no runtimePatches, by which a TrainJob chooses a user")
	}
	s := shell{t, newNamespace(t)}
	runtimeIn(t, s.namespace, "mpi-openmpi")
	create := func(more ...string) []string {
		return append(append([]string{"create", "where", "--runtime", "mpi", "--workers", "2", "--cpu", "50m", "--memory", "128Mi", "--workdir", "/var/tmp", "--run-as-user", "4711"}, more...),
			"--", "sh", "-c", `echo "rank $OMPI_COMM_WORLD_RANK of user $(id -u) in $(pwd) on $(hostname)"`)
	}
	s.awaitRuntime(create("--dry-run=server")...)
	s.run(0, []string{"trainjob/where created"}, create()...)
	job := trainJob(t, s.namespace, "{}")
	job.SetName("where")
	ends(t, job, "Complete")
	text := printed(t, job)
	for _, want := range []string{"rank 0 of user 4711 in /var/tmp on where-launcher-0-0", "rank 1 of user 4711 in /var/tmp on where-node-0-0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the ranks print %q, want %q", text, want)
		}
	}
	for _, pod := range append(trainerPods(t, job, "launcher"), trainerPods(t, job, "node")...) {
		if user := pod.Spec.Containers[0].SecurityContext.RunAsUser; user == nil || *user != 4711 {
			t.Errorf("pod %s runs as user %v", pod.Name, user)
		}
	}
}

// TestCommandLineRunsTrainJobs runs every command with a TrainJob of Kubeflow Trainer: mostly with one, while it runs.
func TestCommandLineRunsTrainJobs(t *testing.T) {
	leave := parallel(t, 4)
	needTrainer(t)
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	if err := api.Create(t.Context(), configMap(namespace, "settings", "rate", "0.1")); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"user": "me"}}); err != nil {
		t.Fatal(err)
	}
	s := shell{t, namespace}

	s.run(0, []string{"mpi ", "OpenMPI"}, "runtimes", "list")
	s.run(0, []string{"OpenMPI"}, "runtimes", "show", "mpi")
	const program = `echo "rate $(cat /settings/rate) user $(cat /keys/user) in $(pwd)"; touch /scratch/here; df -m /dev/shm | tail -1; until [ -e /tmp/go ]; do sleep 0.2; done; echo bye`
	create := []string{
		"create", "tune", "--runtime", "mpi", "--workers", "2", "--slots", "2", "--cpu", "50m", "--memory", "128Mi", "--label", "sweep=lr", "--env", "LR=1",
		"--volume", "configmap/settings:/settings", "--volume", "secret/keys:/keys:ro", "--volume", "scratch/16Mi:/scratch", "--shm", "16Mi",
		"--node-selector", "kubernetes.io/os=linux", "--toleration", "gpu:NoSchedule", "--image-pull-secret", "keys", "--service-account", "default", "--grace-period", "5s",
	}
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	s.awaitRuntime(with(with(create, "--dry-run=server"), "--", "sh", "-c", program)...)
	s.run(0, []string{"trainjob/tune created", "mpirun --tag-output -n 4"}, with(create, "--", "sh", "-c", program)...)
	s.run(0, []string{"Running"}, "wait", "tune", "--for", "phase=Running", "--timeout", "4m")
	leave()

	s.run(0, []string{"tune", "TrainJob", "Running"}, "list", "-l", "sweep=lr")
	s.run(0, []string{"OpenMPI", "tune"}, "list", "-o", "wide", "--runtime", "mpi", "--kind", "trainjob", "--sort-by", "age")
	s.run(0, []string{"kind: TrainJob"}, "get", "tune", "-o", "yaml")
	described := s.run(0, []string{"TrainJob tune in namespace", "PODS", "TIMELINE", "RESOURCES", "4 ranks: 2 each on 1 worker and the launcher"}, "describe", "tune")
	if lines := strings.Count(described, "\n"); lines > 30 {
		t.Errorf("describe prints %d lines for a healthy job, want 30 at most", lines)
	}
	s.run(0, []string{"PodsPlaced"}, "describe", "tune", "--all")
	s.run(0, []string{"Running"}, "explain", "tune")
	s.run(0, []string{"Scheduled", "pod/tune-launcher-0-0"}, "events", "tune")
	s.run(0, []string{"\"items\""}, "events", "tune", "-o", "json")
	s.run(0, []string{"tune"}, "usage", "--by", "job")
	s.run(0, []string{"tune-node-0-0"}, "exec", "tune", "--rank", "2", "--", "sh", "-c", "hostname; ls /scratch/here")
	eventually(t, "rank 3 prints", time.Minute, func() error {
		if out := s.run(0, nil, "logs", "tune"); !strings.Contains(out, "r3] rate 0.1 user me") {
			return errors.New("it has not")
		}
		return nil
	})
	if out := s.run(0, []string{"[worker-0 r3] rate 0.1 user me"}, "logs", "tune", "--rank", "3"); strings.Contains(out, "r0]") || strings.Contains(out, "<stdout>") || strings.Contains(out, "shm          64") {
		t.Error("logs --rank 3 prints other ranks, tags or the default size of /dev/shm")
	}
	if out := s.run(0, nil, "logs", "tune"); strings.Contains(out, `"logger":`) {
		t.Error("logs shows the agent's lines")
	}
	forwarded(t, namespace, "tune", "--worker", "0")
	if _, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetrics"}); err == nil {
		s.run(0, []string{"tune"}, "top")
	} else {
		s.run(1, []string{"metrics"}, "top", "tune")
	}
	s.run(0, []string{"LR"}, "clone", "tune", "--set", "env.LR=2", "--dry-run=server")
	s.run(0, []string{"LR"}, "update", "tune", "--set", "env.LR=2", "--dry-run=server")
	s.run(0, []string{"sweep"}, "templates", "save", "sweep", "--from", "tune", "--set", "env.LR=${LR:-3}")
	s.run(0, []string{"sweep"}, "templates", "list")
	s.run(0, []string{"LR"}, "templates", "show", "sweep")
	s.run(0, []string{"created"}, "templates", "apply", "sweep", "from-template", "-p", "LR=4", "--dry-run=server")
	s.run(0, []string{"deleted"}, "templates", "delete", "sweep")
	folder := t.TempDir()
	file, runtimeFile := filepath.Join(folder, "job.yaml"), filepath.Join(folder, "runtime.yaml")
	saved := s.run(0, nil, "clone", "tune", "offline", "--no-diff", "--dry-run=client", "-o", "yaml")
	runtime, err := exec.CommandContext(t.Context(), "kubectl", "-n", namespace, "get", "trainingruntime", "mpi", "-o", "yaml").Output()
	if err := errors.Join(err, os.WriteFile(file, []byte(saved), 0o600), os.WriteFile(runtimeFile, runtime, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.run(0, []string{"offline"}, "plan", "-f", file, "--runtime-file", runtimeFile)
	s.run(0, []string{"offline"}, "create", "-f", file, "--dry-run=server")

	// Its ranks end when they find a file.
	s.run(0, nil, "exec", "tune", "--", "touch", "/tmp/go")
	s.run(0, nil, "exec", "tune", "--worker", "0", "--", "touch", "/tmp/go")
	s.run(0, []string{"r2] bye", "trainjob/tune: Succeeded"}, "attach", "tune")
	s.run(0, []string{"trainjob/tune: Succeeded"}, "wait", "tune")
	s.run(3, []string{"Failed", "!detached"}, "clone", "tune", "broken", "--command", "mpirun --tag-output -n 4 sh -c 'echo no data; exit 5'", "--logs")
	s.run(0, []string{"broken", "command"}, "compare", "tune", "broken")
	s.run(0, []string{"WHY", "exit code 5", "WHAT TO DO"}, "explain", "broken")
	remediesWork(t, trainReport(t, namespace, "broken"))

	s.run(0, []string{"trainjob/later created"}, "create", "later", "--runtime", "mpi", "--workers", "1", "--cpu", "50m", "--suspend", "--quiet", "--", "sleep", "600")
	s.run(0, []string{"later"}, "resume", "later")
	s.run(0, []string{"later"}, "suspend", "later")
	s.run(0, []string{"later"}, "cancel", "later", "--grace-period", "1s", "--yes", "--wait", "--timeout", "2m")
	s.run(0, []string{"tune", "broken"}, "delete", "--all", "--yes", "--wait", "--timeout", "2m")
	s.run(0, []string{"the job is deleted, this is its report"}, "describe", "tune")
	s.run(0, []string{"tune"}, "list", "--gone")
	eventually(t, "the remedies of a deleted job work", time.Minute, func() error { return failingRemedy(t, trainReport(t, namespace, "broken")) })
	s.run(0, []string{"Client:", "Operator:"}, "version")
}

// trainReport returns the report of a TrainJob, which may be deleted.
func trainReport(t *testing.T, namespace, name string) *v1alpha1.JobReport {
	t.Helper()
	var list v1alpha1.JobReportList
	labels := mpi.Job{Kind: trainjob.Kind, Name: name}.ReportLabels()
	if err := api.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil || len(list.Items) == 0 {
		t.Fatalf("%s has no report: %v", name, err)
	}
	return &list.Items[len(list.Items)-1]
}

// remediesWork runs each command that a report suggests. Pods may be deleted meanwhile: then the report changes, too.
func remediesWork(t *testing.T, report *v1alpha1.JobReport) {
	t.Helper()
	if !hasCommandLine() {
		return
	}
	eventually(t, "the remedies work", 30*time.Second, func() error {
		var now v1alpha1.JobReport
		if err := api.Get(t.Context(), types.NamespacedName{Namespace: report.Namespace, Name: report.Name}, &now); err != nil {
			return err
		}
		return failingRemedy(t, &now)
	})
}

// explainedRemediesWork runs each command that explain prints for a job: besides those of its report, those that run the job
// again with a change.
func explainedRemediesWork(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	if !hasCommandLine() {
		return
	}
	eventually(t, "the commands of explain work", 30*time.Second, func() error {
		explained, err := exec.CommandContext(t.Context(), "kubectl", "odh", "mpijob", "explain", "mpijob/"+job.Name, "-n", job.Namespace).CombinedOutput() //nolint:gosec // a job of this test
		if err != nil {
			return fmt.Errorf("explain: %w: %s", err, explained)
		}
		var wrong []error
		for line := range strings.Lines(string(explained)) {
			if _, command, found := strings.Cut(line, " $ "); found {
				wrong = append(wrong, failingCommand(t, strings.TrimSpace(command)))
			}
		}
		return errors.Join(wrong...)
	})
}

// hasCommandLine reports whether commands of the command line can run.
func hasCommandLine() bool {
	_, err := exec.LookPath("kubectl-odh-mpijob")
	return err == nil
}

var (
	// changes are commands that must not really run.
	changes = regexp.MustCompile(`^kubectl (?:-n \S+ )?(?:delete|patch|create|label|annotate|scale) |^(?:kubectl|oc) odh mpijob (?:clone|create|update|delete|suspend|resume) `)
	// missing are errors of commands that run a program in a pod whose image does not have it. No remedy may need such a program.
	missing = regexp.MustCompile(`executable file not found|not found in \$PATH|sh: .*not found|exit code 12[67]\b`)
	// acceptable are results of programs in pods, and errors of commands that need what is not installed in the cluster: metrics,
	// Kueue and Multus.
	acceptable = regexp.MustCompile(`Metrics API not available|the server doesn't have a resource type|metrics not available|command terminated with exit code`)
	// placeholder is what users have to replace, such as the name of a Secret.
	placeholder = regexp.MustCompile(`\b(NAME|REGISTRY|USER|TOKEN)\b`)
	// silent are commands that fail without output if they find nothing.
	silent = regexp.MustCompile(`\| grep `)
)

// failingRemedy runs the commands in a report and returns an error for those that fail.
func failingRemedy(t *testing.T, report *v1alpha1.JobReport) error {
	t.Helper()
	var wrong []error
	for _, finding := range report.Status.Findings {
		for _, remedy := range finding.Remedies {
			if strings.HasPrefix(remedy.Action, "kubectl ") {
				if err := failingCommand(t, remedy.Action); err != nil {
					wrong = append(wrong, fmt.Errorf("remedy of %s: %w", finding.Code, err))
				}
			}
		}
	}
	return errors.Join(wrong...)
}

// failingCommand runs a command, or tries it where it would change something, and returns an error if it fails.
func failingCommand(t *testing.T, command string) error {
	t.Helper()
	typed := command
	command = placeholder.ReplaceAllStringFunc(command, strings.ToLower)
	if changes.MatchString(command) {
		command += " --dry-run=server"
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput() //nolint:gosec // the commands are our own
	t.Logf("$ %s\n%.400s(%v)", command, out, err)
	if err != nil && missing.Match(out) {
		return fmt.Errorf("%s: needs a program that is not in the image: %s", typed, out)
	}
	if err == nil || acceptable.Match(out) || silent.MatchString(typed) && len(bytes.TrimSpace(out)) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", typed, err, out)
}
