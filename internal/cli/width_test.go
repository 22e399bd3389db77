package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cli"
	"opendatahub.io/mpijob/internal/doctor"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// screen is an output of a fixed width, as a terminal has it, without colours.
type screen struct {
	bytes.Buffer
	width int
}

func (s *screen) Width() int { return s.width }

// TestWidths compares the output of commands with both kinds of jobs on terminals of 80 and 160 columns with golden files.
// Their tables fit, and a healthy job is described on one screen.
func TestWidths(t *testing.T) {
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
	policies := schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}
	if _, err := api.RESTMapper().RESTMapping(policies, "v1"); meta.IsNoMatchError(err) {
		t.Skip("SKIPPED: this API server serves no ValidatingAdmissionPolicies, as Kubernetes before 1.30, which doctor reports")
	}
	const namespace = "widths"
	now := time.Date(2026, 1, 2, 10, 10, 0, 0, time.UTC)
	prepareWidths(t, namespace)
	installOperator(t, namespace)
	folder, err := filepath.Abs(filepath.Join("testdata", "width"))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, namespace); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("TZ", "UTC")
	// The runtimes of the cluster are left over from other tests.
	runtimes := &unstructured.Unstructured{}
	runtimes.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind))
	if err := api.DeleteAllOf(t.Context(), runtimes); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	commands := []string{
		"create new --image quay.io/vision-team/resnet-training:2026-01-02 --workers 8 --gpu 2 --dry-run=server -- python train.py --epochs 10",
		"create new --runtime mpi-openmpi --workers 8 --dry-run=server -- python tune.py --epochs 10",
		"create New --image i --workers 0 --cpu many --env A",
		"create train --image i --command x",
		"plan -f jobs.yaml", "plan -f jobs.yaml --runtime-file runtime.yaml", "migrate -f old.yaml --to trainjob", "migrate -f old.yaml", "explain -f report.yaml", "usage",
		"templates show missing", "list --phase Failed", "list missing", "usage --by user",
		"list", "list -o wide", "usage --by job", "templates list", "runtimes list", "compare mpijob/train mpijob/train-2", "compare trainjob/tune trainjob/tune-2",
	}
	for _, job := range []string{"mpijob/train", "mpijob/train-2", "trainjob/tune", "trainjob/tune-2"} {
		for _, command := range []string{"describe", "explain", "events", "logs", "clone --set env.A=2 --dry-run=client", "update --set env.A=2 --dry-run=client", "suspend --dry-run=client", "cancel --dry-run=client --yes", "delete --dry-run=client --yes", "resume --dry-run=client", "get", "get -o name", "exec -- hostname", "port-forward 8080", "wait --timeout 1ms", "top"} {
			verb, flags, _ := strings.Cut(command, " ")
			commands = append(commands, strings.TrimSpace(verb+" "+job+" "+flags))
		}
	}
	commands = append(commands, "attach mpijob/train-2", "attach trainjob/tune-2", "attach missing", "version", "doctor")
	// The templates are deleted at the end, for the next width.
	for _, job := range []string{"mpijob/train", "trainjob/tune"} {
		commands = append(commands,
			"templates save resnet --from "+job+" --set image=${IMAGE:-quay.io/vision-team/resnet-training:2026-01-02} --set workers=${WORKERS} --description 'ResNet on the images of the year before'",
			"templates save resnet --from "+job, "templates list", "templates show resnet", "templates apply resnet",
			"templates apply resnet new -p WORKERS=4 --dry-run=server", "templates delete resnet",
		)
	}
	commands = append(commands, "templates delete missing", "runtimes show mpi-openmpi", "runtimes show missing", "runtimes test missing", "runtimes test mpi-openmpi --timeout 1s --cpu lots")
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			compareTranscript(t, filepath.Join(folder, fmt.Sprintf("%d.txt", width)), width, now, commands)
		})
	}
	// Running pods change what other commands print.
	prepareLoads(t, namespace)
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint("top ", width), func(t *testing.T) {
			compareTranscript(t, filepath.Join(folder, fmt.Sprintf("top-%d.txt", width)), width, now, []string{"top", "top mpijob/train", "top trainjob/tune --sort-by cpu"})
		})
	}
}

// compareTranscript runs commands on a terminal of a width at a time, and compares what they print with a golden file.
func compareTranscript(t *testing.T, golden string, width int, now time.Time, commands []string) {
	t.Helper()
	const mostLines = 30
	var transcript strings.Builder
	for _, command := range commands {
		out, errOut := &screen{width: width}, &screen{width: width}
		args, err := jobs.SplitCommand(command)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code := cli.Main(ctx, append([]string{"kubectl-odh-mpijob"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, func() time.Time { return now })
		cancel()
		fmt.Fprintf(&transcript, "$ kubectl odh mpijob %s\n%s%s(%d)\n\n", command, normalize(out.String()), errOut, code)
		wide := strings.Contains(command, "-o wide")
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, " \n")); n > width && !wide && fits(command, line) {
				t.Errorf("%s prints a line of %d columns on a terminal of %d:\n%s", command, n, width, line)
			}
		}
		isHealthy := strings.HasSuffix(command, "/train") || strings.HasSuffix(command, "/tune")
		if lines := strings.Count(out.String(), "\n"); strings.HasPrefix(command, "describe") && isHealthy && lines > mostLines {
			t.Errorf("%s prints %d lines for a healthy job, want %d at most", command, lines, mostLines)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(transcript.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden) //nolint:gosec // a file of this test
	if err != nil || string(want) != transcript.String() {
		t.Errorf("the output is not that of %s (%v); run go test -update, and read the diff:\n%s", golden, err, transcript.String())
	}
}

var variable = []struct {
	pattern *regexp.Regexp
	fixed   string
}{
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "https://127.0.0.1:40000"},
	{regexp.MustCompile(`Kubernetes v[0-9.]+`), "Kubernetes v1.37.1"},
	{regexp.MustCompile(`(?m)^Client: .*(\n .*)*`), "Client:    v0.1.0 (go1.26.0, linux/amd64)"},
}

// normalize replaces the versions of the build and of the API server, and its address, by fixed ones.
func normalize(text string) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.fixed)
	}
	return text
}

// installOperator creates the operator's Deployment until the test ends.
func installOperator(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "mpijob-operator"}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mpijob-operator", Labels: maps.Clone(labels)}}
	operator.Labels["app.kubernetes.io/version"] = "v0.1.0"
	operator.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	operator.Spec.Template.Labels = labels
	operator.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "operator", Image: "quay.io/opendatahub/mpijob-operator:v0.1.0", Env: []corev1.EnvVar{{Name: "AGENT_IMAGE", Value: "quay.io/opendatahub/mpijob-agent:v0.1.0"}},
	}}
	if err := api.Create(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	operator.Status.Replicas, operator.Status.ReadyReplicas = 1, 1
	if err := api.Status().Update(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), operator) })
}

// fits reports whether a line should be as wide as the terminal at most: commands, addresses, diffs and logs are printed whole,
// for copying.
func fits(command, line string) bool {
	isLog := strings.HasPrefix(strings.TrimSpace(line), "[")
	return !isLog && !strings.HasPrefix(command, "clone") && !strings.HasPrefix(command, "update") && !strings.Contains(line, "kubectl ") &&
		!strings.HasPrefix(strings.TrimSpace(line), "More: https://")
}

// prepareWidths creates the jobs, reports and templates of testdata/width/objects.yaml.
func prepareWidths(t *testing.T, namespace string) {
	t.Helper()
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "width", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	err = eachDocument(text, func(document []byte) error {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		object.SetNamespace(namespace)
		if object.GetKind() == "JobReport" {
			var err error
			if object, err = completeReport(t.Context(), object); err != nil {
				return err
			}
		}
		return api.Create(t.Context(), object)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// prepareLoads creates the running pods and their usage of loads.yaml in the working directory.
func prepareLoads(t *testing.T, namespace string) {
	t.Helper()
	text, err := os.ReadFile("loads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	err = eachDocument(text, func(document []byte) error {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		object.SetNamespace(namespace)
		if err := api.Create(t.Context(), object); err != nil || object.GetKind() != "Pod" {
			return err
		}
		object.Object["status"] = map[string]any{"phase": "Running"}
		return api.Status().Update(t.Context(), object)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// completeReport gives a report the name and the labels that belong to its job.
func completeReport(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var report v1alpha1.JobReport
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &report)
	ref := &report.Spec.JobRef
	job := &unstructured.Unstructured{}
	job.SetAPIVersion(ref.APIVersion)
	job.SetKind(ref.Kind)
	if err := errors.Join(err, api.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}, job)); err != nil {
		return nil, err
	}
	ref.UID = job.GetUID()
	of := mpi.Job{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
	report.Name, report.Labels = of.ReportName(), of.ReportLabels()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&report)
	return &unstructured.Unstructured{Object: fields}, err
}

// TestRuntimeChecksFit: the results of a runtime's test are wrapped at the width of the terminal.
func TestRuntimeChecksFit(t *testing.T) {
	test := v1alpha1.RuntimeTest{Status: v1alpha1.RuntimeTestStatus{Phase: v1alpha1.TestFailed, Message: "The image of the runtime cannot be pulled on 2 of 3 nodes, and no rank was started.", Checks: []v1alpha1.RuntimeCheck{
		{Name: "ImagePull", Result: v1alpha1.CheckFail, Message: "The registry does not have the image quay.io/me/mpich:2, or it is private.", Remedies: []v1alpha1.Remedy{{Text: "Correct the name of the image, or add a pull secret.", Action: "kubectl edit trainingruntime mine"}}},
		{Name: "Keys", Result: v1alpha1.CheckPass, Message: "Known.", Milliseconds: 1200},
	}}}
	for width, want := range map[int]string{
		80: `Fail     ImagePull      The registry does not have the image quay.io/me/mpich:2,
                        or it is private.
                        - Correct the name of the image, or add a pull secret.
                          kubectl edit trainingruntime mine
Pass     Keys           Known. (1.2s)
Failed: The image of the runtime cannot be pulled on 2 of 3 nodes, and no rank
was started.
`,
		160: `Fail     ImagePull      The registry does not have the image quay.io/me/mpich:2, or it is private.
                        - Correct the name of the image, or add a pull secret.
                          kubectl edit trainingruntime mine
Pass     Keys           Known. (1.2s)
Failed: The image of the runtime cannot be pulled on 2 of 3 nodes, and no rank was started.
`,
	} {
		out := &screen{width: width}
		cli.PrintRuntimeTest(out, test)
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", width, diff)
		}
	}
}

// TestChecksFit: the checks of doctor are wrapped at the width of the terminal, below their first line.
func TestChecksFit(t *testing.T) {
	results := []doctor.Result{
		{Check: "API server", Verdict: doctor.OK, Found: "Kubernetes v1.37.1 at https://api.example.com:6443"},
		{Check: "Admission", Verdict: doctor.Warn, Found: "the operator's webhook does not respond: jobs are not validated, and fail later", Remedy: "Check that the operator is running, and that the API server can reach port 9443 of its pods."},
	}
	for width, want := range map[int]string{
		80: `ok    API server       Kubernetes v1.37.1 at https://api.example.com:6443
warn  Admission        the operator's webhook does not respond: jobs are not
                       validated, and fail later
                       > Check that the operator is running, and that the API
                         server can reach port 9443 of its pods.

Jobs can run in namespace team, with 1 of 2 checks giving warnings.
`,
		160: `ok    API server       Kubernetes v1.37.1 at https://api.example.com:6443
warn  Admission        the operator's webhook does not respond: jobs are not validated, and fail later
                       > Check that the operator is running, and that the API server can reach port 9443 of its pods.

Jobs can run in namespace team, with 1 of 2 checks giving warnings.
`,
	} {
		out := &screen{width: width}
		if err := cli.PrintChecks(out, "team", results); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", width, diff)
		}
	}
}
