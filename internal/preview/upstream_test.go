package preview

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/agent/mpirun"
)

// upstreamExamples returns the folder with the examples of mpi-operator, in the version whose types the operator is built with. They are
// read from the module cache; this repository has no copy of them.
func upstreamExamples(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/mpi-operator").Output()
	if err != nil {
		t.Fatalf("find mpi-operator's module: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(folder)), "examples", "v2beta1")
}

// TestUpstreamExamples: all examples of mpi-operator are accepted as they are published, with these objects and warnings. A worker's
// command is kept, and workers without one run the agent, which finds the program of the ranks in the launcher's command.
func TestUpstreamExamples(t *testing.T) {
	t.Parallel()
	base := func(name, launcher, worker, total string, more ...string) []string {
		return slices.Concat([]string{
			"Service | " + name + " | by the operator | host names of the pods", "ConfigMap | " + name + "-config | by the operator | hostfile with 2 slots",
			"Secret | " + name + "-ssh | by the operator | SSH keys of the job", "NetworkPolicy | " + name + " | by the operator | isolates the job",
			"Job | " + name + "-launcher | by the operator | launcher: " + launcher,
			"Pod | " + name + "-worker-0 | by the operator | worker, 1 slot: " + worker, "Pod | " + name + "-worker-1 | by the operator | worker, 1 slot: " + worker,
		}, more, []string{"3 pods, " + total})
	}
	pi := base("pi", "cpu 1, memory 1Gi", "cpu 1, memory 1Gi", "cpu 3, memory 3Gi")
	for file, test := range map[string]struct {
		want []string
		// sshd is whether the workers run the image's sshd, and program what the ranks run.
		sshd    bool
		program string
	}{
		"pi/pi.yaml":                    {want: pi, sshd: true, program: "/home/mpiuser/pi"},
		"pi/pi-intel.yaml":              {want: pi, sshd: true, program: "/home/mpiuser/pi"},
		"pi/pi-mpich.yaml":              {want: pi, sshd: true, program: "/home/mpiuser/pi"},
		"horovod/tensorflow-mnist.yaml": {want: base("tensorflow-mnist", "cpu 1, memory 2Gi", "cpu 2, memory 4Gi", "cpu 5, memory 10Gi"), program: "python"},
		"tensorflow-benchmarks/tensorflow-benchmarks.yaml": {
			want: base("tensorflow-benchmarks", "no requests", "nvidia.com/gpu 1", "nvidia.com/gpu 2"), program: "python",
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(upstreamExamples(t), file))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: parse(t, string(text))}
			object.SetNamespace("ns")
			p, errs := MPIJob(object, settings)
			if len(errs) > 0 {
				t.Fatalf("it is refused: %v", errs)
			}
			if diff := cmp.Diff(test.want, lines(p, p.Objects)); diff != "" {
				t.Errorf("what it creates differs (-want +got):\n%s", diff)
			}
			for _, o := range p.Objects {
				switch made := o.object.(type) {
				case *batchv1.Job:
					main := made.Spec.Template.Spec.Containers[0]
					command := slices.Concat(main.Command, main.Args)
					at := slices.Index(command, "mpirun")
					if at < 0 || mpirun.ProgramOf(command[at+1:], func(name string) bool { return name == test.program }) != test.program {
						t.Errorf("the launcher runs %q", command)
					}
				case *corev1.Pod:
					main := made.Spec.Containers[0]
					if command := slices.Concat(main.Command, main.Args); (command[0] == "/usr/sbin/sshd") != test.sshd || len(made.Spec.InitContainers) == 0 != test.sshd {
						t.Errorf("the worker runs %q, with %d init containers", command, len(made.Spec.InitContainers))
					}
				}
			}
		})
	}
}

// TestUpstreamExamplesAreKnown: a new version of mpi-operator has no example that is not tried.
func TestUpstreamExamplesAreKnown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(upstreamExamples(t), "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	slices.Sort(names)
	want := []string{"pi-intel.yaml", "pi-mpich.yaml", "pi.yaml", "tensorflow-benchmarks.yaml", "tensorflow-mnist.yaml"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("mpi-operator's examples differ (-want +got):\n%s", diff)
	}
}
