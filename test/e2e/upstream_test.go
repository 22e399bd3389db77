package e2e

import (
	"context"
	"encoding/json"
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

// published returns an example of mpi-operator: without a version, of the one whose types the operator is built with.
func published(t *testing.T, version, file string) []byte {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/kubeflow/mpi-operator"+version).Output()
	if err != nil {
		t.Fatalf("find mpi-operator's module: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(text, &module); err != nil {
		t.Fatalf("find mpi-operator's module: %v: %s", err, text)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// runsUpstream runs an example of mpi-operator as it is published, until it succeeds, and returns what it prints. Another image is used, because
// no registry has the example's, and fewer CPUs are requested than containers are limited to: a small machine has fewer.
func runsUpstream(t *testing.T, example []byte, sample string) string {
	t.Helper()
	job := &kubeflow.MPIJob{}
	if err := yaml.UnmarshalStrict(example, job); err != nil {
		t.Fatal(err)
	}
	job.Namespace = openNamespace(t)
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Image, container.ImagePullPolicy = sampleImage(sample), corev1.PullIfNotPresent
		if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		}
	}
	create(t, job)
	waitForProgram(t, kubeflow.Kind, job)
	waitFor(t, job, "it succeeds", succeeded)
	return output(t, job)
}

// lossFalls checks that the loss that a program prints, which is the first group of the pattern, has fallen.
func lossFalls(t *testing.T, text, pattern string) {
	t.Helper()
	losses := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(losses) < 4 {
		t.Fatalf("it has printed %s", text)
	}
	first, _ := strconv.ParseFloat(losses[0][1], 64)
	if last, err := strconv.ParseFloat(losses[len(losses)-1][1], 64); err != nil || last > first/5 {
		t.Errorf("the loss was %v at first and is %v at the end: %v", first, last, err)
	}
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
	computesPi(t, runsUpstream(t, published(t, "", "v2beta1/pi/pi.yaml"), "openmpi-sshd"))
}

// TestUpstreamExamplesOfOtherMPIs runs those of MPICH and Intel MPI, whose images only this suite needs: make e2e SUITE=Upstream.
func TestUpstreamExamplesOfOtherMPIs(t *testing.T) {
	for name, test := range map[string]struct{ file, sample string }{
		"MPICH":     {"v2beta1/pi/pi-mpich.yaml", "mpich-sshd"},
		"Intel MPI": {"v2beta1/pi/pi-intel.yaml", "intelmpi-sshd"},
	} {
		t.Run(name, func(t *testing.T) {
			needImage(t, "Upstream", sampleImage(test.sample))
			parallel(t, 2)
			computesPi(t, runsUpstream(t, published(t, "", test.file), test.sample))
		})
	}
}

// TestUpstreamHorovod runs that of Horovod, whose image is built on the sample of TensorFlow.
func TestUpstreamHorovod(t *testing.T) {
	needImage(t, "Upstream", sampleImage("horovod-mnist"))
	parallel(t, 2)
	text := runsUpstream(t, published(t, "", "v2beta1/horovod/tensorflow-mnist.yaml"), "horovod-mnist")
	lossFalls(t, text, `loss = ([\d.e+-]+)`)
	if !strings.Contains(text, "checkpoints for 100 into") {
		t.Errorf("it has printed %s", text)
	}
}

// TestUpstreamGitElastic runs that of elastic Horovod, to which mpi-operator refers. It is for an earlier version of the API, and is converted.
// Its program and that of TensorFlow's benchmarks are in no package, so that GitHub must be reached to build their images: make e2e
// SUITE=UpstreamGit.
func TestUpstreamGitElastic(t *testing.T) {
	needImage(t, "UpstreamGit", sampleImage("horovod-elastic"))
	parallel(t, 2)
	code, example, complaints := plugin(t, "default", string(published(t, "@v0.3.0", "horovod/tensorflow-mnist-elastic.yaml")), "migrate", "-f", "-", "--to", "v2beta1")
	if code != 0 {
		t.Fatal(complaints)
	}
	lossFalls(t, runsUpstream(t, []byte(example), "horovod-elastic"), `Step #\d+\s+Loss: ([\d.]+)`)
}

// TestUpstreamGitBenchmarks runs the example of TensorFlow's benchmarks, which asks for GPUs. Nodes without get some that are none.
func TestUpstreamGitBenchmarks(t *testing.T) {
	needImage(t, "UpstreamGit", sampleImage("tensorflow-benchmarks"))
	takeRoom(t, 2)
	pretendGPUs(t, 2)
	text := runsUpstream(t, published(t, "", "v2beta1/tensorflow-benchmarks/tensorflow-benchmarks.yaml"), "tensorflow-benchmarks")
	if !regexp.MustCompile(`total images/sec: \d*\.?\d*[1-9]`).MatchString(text) || !strings.Contains(text, "Model:       resnet101") {
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
