package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

// versionTable is the table of docs/kubernetes.md, with one row for each minor version.
const versionTable = "| Kubernetes | OpenShift | pi as MPIJob | the agent is delivered by | gangs are scheduled by | policies | limits of namespaces | RuntimeTests |\n" +
	"|---|---|---|---|---|---|---|---|\n"

// TestKubernetesVersion looks at what the operator uses of this cluster and compares it with the cluster's row in
// docs/kubernetes.md. UPDATE=1 writes the row.
func TestKubernetesVersion(t *testing.T) {
	parallel(t, 4)
	version, err := logs.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if serves(t, schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")) {
		t.Skip("SKIPPED: the rows are of clusters as Kubernetes starts them, without the feature gate of PodGroups")
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		t.Fatalf("the minor version of the API server is %q", version.Minor)
	}
	pi, delivery := runPi(t)
	row := []string{
		version.GitVersion, openShift(minor), pi, delivery, schedulesGangs(t),
		one(serves(t, admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy")), "enforced", "not served"),
		one(enforcesLimits(t), "enforced", "**not enforced**"), one(runsRuntimeTests(t), "run", "fail with the reason"),
	}
	got := "| " + strings.Join(row, " | ") + " |\n"

	path := filepath.Join("..", "..", "docs", "kubernetes.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rows, after, err := splitTable(string(document))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") != "" {
		rows[minor] = got
		if err := os.WriteFile(path, []byte(before+joinTable(rows)+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, known := rows[minor]
	if !known {
		t.Skipf("SKIPPED: docs/kubernetes.md has no row for 1.%d; UPDATE=1 make e2e SUITE=TestKubernetesVersion writes it", minor)
	}
	// A patch release changes the version, which is the first cell, and nothing else.
	if patch := regexp.MustCompile(`^\| \S+`); patch.ReplaceAllString(got, "") != patch.ReplaceAllString(want, "") {
		t.Errorf("docs/kubernetes.md has the row\n%swant\n%sUPDATE=1 make e2e SUITE=TestKubernetesVersion writes it", want, got)
	}
}

// splitTable returns the rows of a document's table of versions by their minor versions, and what is around it.
func splitTable(document string) (before string, rows map[int]string, after string, err error) {
	before, rest, found := strings.Cut(document, versionTable)
	if !found {
		return "", nil, "", fmt.Errorf("the document has no table with the heading\n%s", versionTable)
	}
	rows = map[int]string{}
	row := regexp.MustCompile(`^\| v1\.(\d+)\.\S+ \|.*\n`)
	for {
		match := row.FindStringSubmatch(rest)
		if match == nil {
			return before, rows, rest, nil
		}
		minor, err := strconv.Atoi(match[1])
		if err != nil {
			return "", nil, "", err
		}
		rows[minor], rest = match[0], rest[len(match[0]):]
	}
}

func joinTable(rows map[int]string) string {
	table := versionTable
	minors := make([]int, 0, len(rows))
	for minor := range rows {
		minors = append(minors, minor)
	}
	slices.Sort(minors)
	for _, minor := range minors {
		table += rows[minor]
	}
	return table
}

// openShift is the version of OpenShift with a minor version of Kubernetes, as far as it is published.
func openShift(minor int) string {
	if minor < 29 || minor > 33 {
		return "-"
	}
	return fmt.Sprintf("4.%d", minor-13)
}

func one(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// serves reports whether the API server serves a kind.
func serves(t *testing.T, kind schema.GroupVersionKind) bool {
	t.Helper()
	_, err := api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil && !apimeta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

// runPi runs the sample job, and returns whether it succeeds, and how its pods got the agent.
func runPi(t *testing.T) (result, delivery string) {
	t.Helper()
	job := sample(t, "pi", newNamespace(t))
	create(t, job)
	delivery = "nothing"
	eventually(t, "the job has workers", maxWait, func() error {
		pods := podsOf(t, job, mpi.RoleWorker)
		if len(pods) == 0 {
			return errors.New("it has none")
		}
		if slices.ContainsFunc(pods[0].Spec.InitContainers, func(c corev1.Container) bool { return c.Name == agentapi.Container }) {
			delivery = "init container"
		}
		if slices.ContainsFunc(pods[0].Spec.Volumes, func(v corev1.Volume) bool { return v.Name == agentapi.Volume && v.Image != nil }) {
			delivery = "image volume"
		}
		return nil
	})
	waitFor(t, job, "the job succeeds", succeeded)
	return "succeeds", delivery
}

// schedulesGangs returns what schedules the pods of a job together: that of a job that no node has room for.
func schedulesGangs(t *testing.T) string {
	t.Helper()
	job := seated(newNamespace(t), "gang", "example.com/nobody-has-it", 1, "600")
	create(t, job)
	report := reported(t, "MPIJob", job.Namespace, job.Name, "the report has the scheduler", func(status v1alpha1.JobReportStatus) error {
		if status.Scheduling == nil || status.Scheduling.Backend == "" {
			return fmt.Errorf("it waits as %+v", status.Scheduling)
		}
		return nil
	})
	return one(report.Status.Scheduling.Backend == gang.Embedded, "the operator", report.Status.Scheduling.Backend)
}

// enforcesLimits reports whether a job beyond the limit of its namespace is refused.
func enforcesLimits(t *testing.T) bool {
	t.Helper()
	namespace := newNamespace(t)
	limited := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"mpi.opendatahub.io/max-workers":"1"}}}`))
	if err := api.Patch(t.Context(), limited, patch); err != nil {
		t.Fatal(err)
	}
	job := sample(t, "pi", namespace, func(job *kubeflow.MPIJob) { job.GenerateName, job.Name = "limited-", "" })
	err := api.Create(t.Context(), job, client.DryRunAll)
	if err != nil && !strings.Contains(err.Error(), "max-workers") {
		t.Fatal(err)
	}
	return err != nil
}

// runsRuntimeTests reports whether a test of a runtime begins, or waits for Kubeflow Trainer, instead of being refused by the
// operator.
func runsRuntimeTests(t *testing.T) bool {
	t.Helper()
	test := &v1alpha1.RuntimeTest{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "version"}}
	test.Spec.RuntimeRef = v1alpha1.RuntimeReference{Name: "mpi", Kind: "TrainingRuntime"}
	if err := api.Create(t.Context(), test); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	eventually(t, "the test has a status", maxWait, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(test), test); err != nil {
			return err
		}
		if test.Status.Message == "" {
			return errors.New("it has none")
		}
		return nil
	})
	return !strings.Contains(test.Status.Message, "require Kubernetes")
}

// TestVersionTable: the rows are kept by version, and the text around them stays as it is.
func TestVersionTable(t *testing.T) {
	t.Parallel()
	document := "Before.\n\n" + versionTable + "| v1.37.1 | - | x |\n| v1.29.15 | 4.16 | y |\n\nAfter | v1.1.1 |\n"
	before, rows, after, err := splitTable(document)
	if err != nil {
		t.Fatal(err)
	}
	rows[31] = "| v1.31.14 | 4.18 | z |\n"
	want := "Before.\n\n" + versionTable + "| v1.29.15 | 4.16 | y |\n| v1.31.14 | 4.18 | z |\n| v1.37.1 | - | x |\n\nAfter | v1.1.1 |\n"
	if got := before + joinTable(rows) + after; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, _, _, err := splitTable("no table"); err == nil {
		t.Error("a document without the table is no error")
	}
}
