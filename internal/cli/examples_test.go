package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cli"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
)

const exampleJob = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: NAME, labels: {team: a, stage: test, sweep: lr}}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, train]}]}}}
    Worker: {replicas: 4, template: {spec: {containers: [{name: w, image: mine}]}}}
`

const exampleRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: NAME}
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpi/.ssh, runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
      - {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: r}]}}}}}
      - {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: r}]}}}}}
`

// prepareExamples makes what the examples of the help texts name: ended jobs with reports, runtimes and files.
func prepareExamples(t *testing.T, namespace, folder string) {
	t.Helper()
	ctx := t.Context()
	create := func(text string) *unstructured.Unstructured {
		objects, err := jobs.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: objects[0]}
		object.SetNamespace(namespace)
		if err := api.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pi", "train", "train-2", "train-7"} {
		job := create(strings.ReplaceAll(exampleJob, "NAME", name))
		of := mpi.Job{Kind: "MPIJob", Name: name, UID: job.GetUID()}
		ended := metav1.Now()
		report := &v1alpha1.JobReport{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of.ReportName(), Labels: of.ReportLabels()},
			Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: name, UID: of.UID}},
			Status: v1alpha1.JobReportStatus{
				Phase: v1alpha1.PhaseSucceeded, RunningTime: &ended, CompletionTime: &ended,
				PhaseTimes: []v1alpha1.PhaseTime{{Phase: v1alpha1.PhaseRunning, Since: ended}},
				Profile:    &v1alpha1.Profile{Until: ended, Ranks: 4, Milliseconds: 4000, Calls: []v1alpha1.ProfileCall{{Call: "MPI_Barrier", Count: 4}}},
				Findings: []v1alpha1.Finding{{Code: "RankFailed", Severity: v1alpha1.SeverityWarning, Summary: "x", Remedies: []v1alpha1.Remedy{
					{Text: "a"}, {Text: "b", Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "env.A", Value: "1"}}},
				}}},
			},
		}
		if err := api.Create(ctx, report); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mpi-openmpi", "mpi-horovod"} {
		create(strings.ReplaceAll(exampleRuntime, "NAME", name))
	}
	create("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: pi-2}, spec: {runtimeRef: {name: mpi-openmpi}}}")
	template := strings.ReplaceAll(strings.ReplaceAll(exampleJob, "NAME", "x"), "image: mine", `image: "${IMAGE}"`)
	template = strings.ReplaceAll(template, "replicas: 4", `replicas: "${WORKERS:-4}"`)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mpijob-template-train", Labels: map[string]string{mpi.LabelTemplate: "job"}},
		Data:       map[string]string{"job.yaml": template},
	}
	if err := api.Create(ctx, config); err != nil {
		t.Fatal(err)
	}
	job := strings.ReplaceAll(exampleJob, "NAME", "from-file")
	inspected := filepath.Join("inspect.local.123", "namespaces", namespace, "kubeflow.org", "mpijobs")
	if err := os.MkdirAll(filepath.Join(folder, inspected), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job.yaml": job, "train.yaml": job, "old-jobs.yaml": strings.ReplaceAll(job, "v2beta1", "v1"),
		"trainjob.yaml": "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune}, spec: {runtimeRef: {name: own}, trainer: {numNodes: 2, command: [mpirun, x]}}}",
		"runtime.yaml":  strings.ReplaceAll(exampleRuntime, "NAME", "own"),
		"objects.yaml":  strings.ReplaceAll(exampleJob, "NAME", "pi"), "pi-launcher-abcde.log": "started\n",
		filepath.Join(inspected, "train.yaml"): strings.ReplaceAll(exampleJob, "NAME", "train"),
		"report.yaml":                          "{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: r}, spec: {jobRef: {kind: MPIJob, name: pi}}, status: {phase: Failed}}",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const sageMakerJob = `{"TrainingJobName": "resnet", "AlgorithmSpecification": {"TrainingImage": "i", "TrainingInputMode": "File"}, "HyperParameters": {"sagemaker_mpi_enabled": "true", "sagemaker_program": "\"train.py\""}, "ResourceConfig": {"InstanceType": "ml.p3.2xlarge", "InstanceCount": 2, "VolumeSizeInGB": 1}, "OutputDataConfig": {"S3OutputPath": "s3://a/b"}, "RoleArn": "r"}`

// shellEnd is where the shell's part of an example begins.
var shellEnd = regexp.MustCompile(` (?:\||>|&&) `)

// TestExamplesRun: every example of every help text is a correct command line, and does what it says where that does not
// need pods.
func TestExamplesRun(t *testing.T) {
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
	const namespace = "examples"
	folder := t.TempDir()
	prepareExamples(t, namespace, folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, namespace); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Chdir(folder)
	// What cannot be done without pods, metrics, nodes and a registry, or with objects that others make.
	cannot := regexp.MustCompile(`mpijob (exec|port-forward|stacks|attach|top|doctor|image check|runtimes test|logs)\b`)
	// What would end other jobs of the API server, or waits for what does not come.
	changed := strings.NewReplacer("--interactive", "x --image i --command c --dry-run=client", " -A ", " ", "--watch --interval 10s", "", "--watch", "", "create train ", "create example ", "--name pi-2", "--name pi-9")
	for _, line := range cli.HelpCommands() {
		t.Run(line, func(t *testing.T) {
			_, command, _ := strings.Cut(line, "kubectl odh mpijob ")
			if end := shellEnd.FindStringIndex(command); end != nil {
				command = command[:end[0]]
			}
			command = changed.Replace(command)
			args, err := jobs.SplitCommand(command)
			if err != nil {
				t.Fatal(err)
			}
			switch args[0] + " " + args[min(1, len(args)-1)] {
			case "templates apply":
				args = append([]string{"templates", "apply", "--dry-run=server"}, args[2:]...)
			case "templates save":
				args = append(args, "--replace")
			}
			switch args[0] {
			case "create", "clone", "update", "delete", "cancel", "suspend", "resume":
				args = append([]string{args[0], "--dry-run=server"}, args[1:]...)
			case "wait":
				args = append(args, "--timeout", "1ms")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			in := strings.NewReader("yes\n")
			if strings.Contains(line, "sagemaker") {
				in = strings.NewReader(sageMakerJob)
			}
			var out, errOut bytes.Buffer
			code := cli.Main(ctx, append([]string{"kubectl-odh-mpijob"}, args...), genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut}, time.Now)
			switch {
			case code == cli.ExitDone, code == cli.ExitTimeout:
			case code == cli.ExitUsage, !cannot.MatchString(line):
				t.Errorf("exit code %d of %q:\n%s%s", code, args, out.String(), errOut.String())
			}
		})
	}
}

// TestRemedyCommands: kubectl can parse every remedy that is a command.
func TestRemedyCommands(t *testing.T) {
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, "default"); err != nil {
		t.Fatal(err)
	}
	wrong := regexp.MustCompile(`(?i)unknown (?:command|flag|shorthand)|for usage|see '|required flag|must specify|syntax error`)
	values := map[string]string{
		"namespace": "default", "pod": "p", "worker": "w", "hostPod": "w", "logPod": "l", "launcherPods": "a=b", "selector": "a=b", "node": "n", "queue": "q", "workload": "w", "service": "s",
		"job": "j", "report": "r", "kindLower": "mpijob", "object": "configmap", "name": "x", "program": "p", "library": "l", "container": "c",
	}
	for _, entry := range codes.Entries() {
		for _, remedy := range entry.Remedies {
			command := codes.FillRemedy(remedy, values).Action
			if !strings.HasPrefix(command, "kubectl ") {
				continue
			}
			t.Run(entry.Code+" "+command, func(t *testing.T) {
				run := exec.CommandContext(t.Context(), "sh", "-c", command) //nolint:gosec // the commands are our own
				run.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+string(filepath.ListSeparator)+os.Getenv("PATH"))
				out, _ := run.CombinedOutput() // the objects do not exist
				if wrong.Match(out) {
					t.Errorf("%s", out)
				}
			})
		}
	}
}
