package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// tested makes a test of the runtime mpi in a namespace, with an image of its own or none, waits until it is over, and
// until nothing is left of its job.
func tested(t *testing.T, namespace, image string) v1alpha1.RuntimeTestStatus {
	t.Helper()
	test := &v1alpha1.RuntimeTest{}
	test.Namespace, test.Name = namespace, "mpi"
	test.Spec = v1alpha1.RuntimeTestSpec{RuntimeRef: v1alpha1.RuntimeReference{Name: "mpi", Kind: trainjob.RuntimeKind}, Image: image}
	create(t, test)
	eventually(t, "the test is over", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(test), test); err != nil {
			return err
		}
		if test.Status.CompletionTime == nil {
			return fmt.Errorf("it is %s: %s", test.Status.Phase, test.Status.Message)
		}
		return nil
	})
	text, _ := yaml.Marshal(test.Status)
	t.Logf("%s", text)
	eventually(t, "nothing is left of its job", time.Minute, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.Kind + "List"))
		if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if left := children(t, namespace); len(left)+len(list.Items) > 0 {
			return fmt.Errorf("left are %v and %d TrainJobs", left, len(list.Items))
		}
		return nil
	})
	if got := test.Annotations[mpi.AnnotationCreator]; got == "" {
		t.Error("nobody has created the test")
	}
	return test.Status
}

// results are those of a test's checks, in one line.
func results(status v1alpha1.RuntimeTestStatus) string {
	var all []string
	for _, c := range status.Checks {
		all = append(all, fmt.Sprintf("%s %s", c.Name, c.Result))
	}
	return strings.Join(all, ", ")
}

// TestRuntimeTestPasses: each of our runtimes passes its test, in a namespace that enforces restricted.
func TestRuntimeTestPasses(t *testing.T) {
	t.Parallel()
	for _, with := range implementations {
		t.Run(with.sample, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			if with.sample == "mpich" {
				// The pods of the test request the nodes that are required of all jobs.
				limited := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"kubernetes.io/os=linux"}}}`, mpi.AnnotationNodeLabels)
				if err := api.Patch(t.Context(), limited, client.RawPatch("application/merge-patch+json", patch)); err != nil {
					t.Fatal(err)
				}
			}
			runtimeIn(t, namespace, strings.Replace("mpi-"+with.sample, "intelmpi", "intel", 1))
			status := tested(t, namespace, "")
			const want = "ImagePull Pass, Keys Pass, Connection Pass, ProcessStart Pass, RanksDistinct Pass, Communication Pass"
			if got := results(status); status.Phase != v1alpha1.TestPassed || got != want {
				t.Fatalf("it is %s: %s", status.Phase, got)
			}
			// Only one of the images has mpi4py, and none has a compiler.
			if figures := status.Communication; figures == nil || figures.LatencyNanoseconds > int64(time.Second) || figures.BytesPerSecond < 1_000_000 ||
				!strings.HasPrefix(figures.Method, with.version) {
				t.Errorf("the ranks measured %+v: %s", figures, status.Checks[5].Message)
			}
			for _, pod := range []string{"-launcher-0-0", "-node-0-0", "-node-0-1"} {
				if last := status.Checks[4].Message; !strings.Contains(last, status.JobRef.Name+pod) {
					t.Errorf("it has no rank on %s: %s", pod, last)
				}
			}
			if report := reportOf(t, trainjob.Kind, namespace, status.JobRef.Name); report == nil || report.Spec.JobRef.UID != status.JobRef.UID {
				t.Errorf("the record of its job is %+v", report)
			}
			table, err := exec.CommandContext(t.Context(), "kubectl", "get", "rtt", "-n", namespace).CombinedOutput()
			t.Logf("%s", table)
			if err != nil || !strings.Contains(string(table), "Passed") {
				t.Errorf("kubectl lists %q: %v", table, err)
			}
		})
	}
}

// TestRuntimeTestFails: the first step that goes wrong is named, with its finding and what to do.
func TestRuntimeTestFails(t *testing.T) {
	t.Parallel()
	const indent = "\n                  "
	for name, test := range map[string]struct {
		runtime string
		change  []string
		image   string
		failed  v1alpha1.CheckName
		code    codes.Code
		want    string
	}{
		"no such image": {
			runtime: "mpi-openmpi", image: "registry.invalid/none:none", failed: v1alpha1.CheckImagePull, code: codes.ImagePullFailed,
			want: "ImagePull Fail, Keys Unknown, Connection Unknown, ProcessStart Unknown, RanksDistinct Unknown, Communication Unknown",
		},
		"no mpirun in the image": {
			runtime: "mpi-openmpi", image: cmp.Or(os.Getenv("AGENT_IMG"), "odh/mpijob-agent:dev"), failed: v1alpha1.CheckProcessStart, code: codes.ProgramMissing,
			want: "ImagePull Pass, Keys Unknown, Connection Unknown, ProcessStart Fail, RanksDistinct Unknown, Communication Unknown",
		},
		"workers listen elsewhere": {
			runtime: "mpi-openmpi", failed: v1alpha1.CheckConnection, code: codes.WorkerUnreachable,
			change: []string{"- serve", "- serve" + indent + "- :2299", "- name: MPI_AGENT_KEY", "- {name: MPI_AGENT_WAIT, value: 20s}" + indent + "- name: MPI_AGENT_KEY"},
			want:   "ImagePull Pass, Keys Unknown, Connection Fail, ProcessStart Unknown, RanksDistinct Unknown, Communication Unknown",
		},
		"the list of hosts is not read": {
			runtime: "mpi-openmpi5", failed: v1alpha1.CheckRanksDistinct, code: codes.NotEnoughSlots,
			change: []string{"PRTE_MCA_prte_default_hostfile", "IGNORED"},
			want:   "ImagePull Pass, Keys Unknown, Connection Unknown, ProcessStart Unknown, RanksDistinct Fail, Communication Unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			runtimeIn(t, namespace, test.runtime, test.change...)
			status := tested(t, namespace, test.image)
			if got := results(status); status.Phase != v1alpha1.TestFailed || got != test.want {
				t.Fatalf("it is %s: %s; want %s", status.Phase, got, test.want)
			}
			for _, check := range status.Checks {
				if check.Name == test.failed && (check.Finding != test.code || len(check.Remedies) == 0) {
					t.Errorf("the finding is %+v, want %s", check, test.code)
				}
			}
		})
	}
}
