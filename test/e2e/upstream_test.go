package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// upstreamExample returns an example of mpi-operator as it is published in the version whose types the operator is built with, but for
// the image, which no registry has, and for requests of CPUs, where a container asks for more than a small machine has: it keeps its limit.
func upstreamExample(t *testing.T, file, sample string) *kubeflow.MPIJob {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/mpi-operator").Output()
	if err != nil {
		t.Fatalf("find mpi-operator's module: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "examples", "v2beta1", file))
	if err != nil {
		t.Fatal(err)
	}
	job := &kubeflow.MPIJob{}
	if err := yaml.UnmarshalStrict(data, job); err != nil {
		t.Fatal(err)
	}
	job.Namespace = openNamespace(t)
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Image, container.ImagePullPolicy = sampleImage(sample), corev1.PullIfNotPresent
		if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		}
	}
	return job
}

// runsUpstream runs an example of mpi-operator until it succeeds, and returns what it prints.
func runsUpstream(t *testing.T, file, sample string) string {
	t.Helper()
	job := upstreamExample(t, file, sample)
	create(t, job)
	waitForProgram(t, kubeflow.Kind, job)
	waitFor(t, job, "it succeeds", succeeded)
	return output(t, job)
}

func computesPi(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, "pi is approximately 3.1") {
		t.Errorf("it prints %q", text)
	}
}

// TestUpstreamExample runs mpi-operator's example of Open MPI.
func TestUpstreamExample(t *testing.T) {
	parallel(t, 2)
	computesPi(t, runsUpstream(t, "pi/pi.yaml", "openmpi-sshd"))
}

// TestUpstreamExamplesOfOtherMPIs runs those of MPICH and Intel MPI, whose images only this suite needs: make e2e SUITE=Upstream.
func TestUpstreamExamplesOfOtherMPIs(t *testing.T) {
	for name, test := range map[string]struct{ file, sample string }{
		"MPICH":     {"pi/pi-mpich.yaml", "mpich-sshd"},
		"Intel MPI": {"pi/pi-intel.yaml", "intelmpi-sshd"},
	} {
		t.Run(name, func(t *testing.T) {
			needImage(t, "Upstream", sampleImage(test.sample))
			parallel(t, 2)
			computesPi(t, runsUpstream(t, test.file, test.sample))
		})
	}
}

// TestUpstreamHorovod runs that of Horovod, whose image is built on the sample of TensorFlow.
func TestUpstreamHorovod(t *testing.T) {
	needImage(t, "Upstream", sampleImage("horovod-mnist"))
	parallel(t, 2)
	text := runsUpstream(t, "horovod/tensorflow-mnist.yaml", "horovod-mnist")
	losses := regexp.MustCompile(`loss = ([\d.e+-]+)`).FindAllStringSubmatch(text, -1)
	if len(losses) < 4 || !strings.Contains(text, "checkpoints for 100 into") {
		t.Fatalf("it has printed %s", text)
	}
	first, _ := strconv.ParseFloat(losses[0][1], 64)
	if last, err := strconv.ParseFloat(losses[len(losses)-1][1], 64); err != nil || last > first/5 {
		t.Errorf("the loss was %v at first and is %v at the end: %v", first, last, err)
	}
}

// TestUpstreamBenchmarks runs the example of TensorFlow's benchmarks, which asks for GPUs. Nodes without get some that are none. To build its
// image, GitHub must be reached: make e2e SUITE=UpstreamBenchmarks.
func TestUpstreamBenchmarks(t *testing.T) {
	needImage(t, "UpstreamBenchmarks", sampleImage("tensorflow-benchmarks"))
	takeRoom(t, 2)
	pretendGPUs(t, 2)
	text := runsUpstream(t, "tensorflow-benchmarks/tensorflow-benchmarks.yaml", "tensorflow-benchmarks")
	if !regexp.MustCompile(`total images/sec: \d*[1-9]`).MatchString(text) || !strings.Contains(text, "Model:       resnet101") {
		t.Errorf("it has printed %s", text)
	}
}

// pretendGPUs has nodes without GPUs report some until the test's end.
func pretendGPUs(t *testing.T, number int) {
	t.Helper()
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if _, has := node.Status.Capacity["nvidia.com/gpu"]; has {
			continue
		}
		report := func(ctx context.Context, amount string) error {
			gpus := fmt.Sprintf(`{"nvidia.com/gpu":%s}`, amount)
			return api.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"capacity":%s,"allocatable":%s}}`, gpus, gpus)))
		}
		if err := report(t.Context(), strconv.Quote(strconv.Itoa(number))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := report(context.Background(), "null"); err != nil {
				t.Error(err)
			}
		})
	}
}
