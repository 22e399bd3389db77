package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// needImage skips a test unless the suite was asked for, and waits until a node reports an image: only that suite loads it.
func needImage(t *testing.T, suite, image string) {
	t.Helper()
	whenAsked(t, suite)
	eventually(t, "a node reports the image "+image, time.Minute, func() error {
		var nodes corev1.NodeList
		if err := api.List(t.Context(), &nodes); err != nil {
			return err
		}
		for _, node := range nodes.Items {
			for _, has := range node.Status.Images {
				if slices.ContainsFunc(has.Names, func(name string) bool { return strings.HasSuffix(name, image) }) {
					return nil
				}
			}
		}
		return fmt.Errorf("none of %d nodes does; make e2e SUITE=%s loads it", len(nodes.Items), suite)
	})
}

// program is a job of two workers, with a rank each unless it says otherwise, in an image with programs that others wrote.
func program(t *testing.T, sample string, slots int32, command ...string) *kubeflow.MPIJob {
	t.Helper()
	needImage(t, "Programs", sampleImage(sample))
	parallel(t, 2*int64(slots))
	job := agentJob(newNamespace(t), "job", sample, kubeflow.MPIImplementationOpenMPI, 2, command...)
	job.Spec.SlotsPerWorker = &slots
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
	}
	return job
}

// asBothKinds runs a job as an MPIJob and as a TrainJob, until it succeeds, and checks what each has printed. The check returns what the
// program has computed, for the record.
func asBothKinds(t *testing.T, name string, newJob func(*testing.T) *kubeflow.MPIJob, check func(*testing.T, string) string) {
	t.Helper()
	t.Run("MPIJob", func(t *testing.T) {
		job := newJob(t)
		create(t, job)
		waitForProgram(t, kubeflow.Kind, job)
		waitFor(t, job, "it succeeds", succeeded)
		accusesNobody(t, kubeflow.Kind, job.Namespace, job.Name)
		recordRun(t, name, kubeflow.Kind, job.Namespace, check(t, output(t, job)))
	})
	t.Run("TrainJob", func(t *testing.T) {
		job := asTrainJob(t, newJob(t))
		createTrainJob(t, job)
		waitForProgram(t, trainjob.Kind, job)
		ends(t, job, "Complete")
		accusesNobody(t, trainjob.Kind, job.GetNamespace(), job.GetName())
		recordRun(t, name, trainjob.Kind, job.GetNamespace(), check(t, printed(t, job)))
	})
}

// waitForProgram waits until a job has ended. PyTorch alone takes a minute to load where all CPUs are busy.
func waitForProgram(t *testing.T, kind string, job client.Object) {
	t.Helper()
	eventuallyAfter(t, "the program ends", 5*time.Minute, time.Minute, func() error {
		report := reportOf(t, kind, job.GetNamespace(), job.GetName())
		if report == nil || report.Status.CompletionTime == nil {
			return fmt.Errorf("the report is %+v", report)
		}
		return nil
	})
}

// recordedRuns guards the file that PROGRAMS names, from which docs/proof.md is made.
var recordedRuns sync.Mutex

// recordRun adds a job named job that has succeeded to the file that PROGRAMS names, if it does.
func recordRun(t *testing.T, name, kind, namespace, result string) {
	t.Helper()
	file := os.Getenv("PROGRAMS")
	if file == "" || t.Failed() {
		return
	}
	report := reported(t, kind, namespace, "job", "its record is complete", func(status v1alpha1.JobReportStatus) error {
		if status.CompletionTime == nil || status.StartTime == nil {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	recordedRuns.Lock()
	defer recordedRuns.Unlock()
	type run struct {
		Name    string    `json:"name"`
		Kind    string    `json:"kind"`
		Result  string    `json:"result"`
		Seconds float64   `json:"seconds"`
		Date    time.Time `json:"date,omitzero"`
		Version string    `json:"version,omitempty"`
	}
	var all struct {
		Date    time.Time `json:"date,omitzero"`
		Version string    `json:"version,omitempty"`
		Runs    []run     `json:"runs"`
	}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
	}
	version, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--match", "v*", "--always", "--dirty").Output()
	if err != nil {
		t.Fatal(err)
	}
	all.Runs = append(slices.DeleteFunc(all.Runs, func(r run) bool { return r.Name == name && r.Kind == kind }), run{
		Name: name, Kind: kind, Result: result, Seconds: report.Status.CompletionTime.Sub(report.Status.StartTime.Time).Seconds(),
		Date: time.Now().UTC().Truncate(time.Second), Version: strings.TrimSpace(string(version)),
	})
	slices.SortFunc(all.Runs, func(a, b run) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind)) })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// epoch is a line that our training scripts print.
type epoch struct {
	Epoch    int     `json:"epoch"`
	Accuracy float64 `json:"accuracy"`
	Ranks    int     `json:"ranks"`
	Resumed  int     `json:"resumed"`
}

// epochs returns the lines of a training script; launchers put the number of the rank before each.
func epochs(text string) []epoch {
	var found []epoch
	for line := range strings.Lines(text) {
		var e epoch
		if i := strings.Index(line, "{"); i >= 0 && json.Unmarshal([]byte(line[i:]), &e) == nil && (e.Epoch > 0 || e.Resumed > 0) {
			found = append(found, e)
		}
	}
	return found
}

// trained checks that a training script has trained two ranks in five epochs, to the accuracy that it demands.
func trained(t *testing.T, text string) string {
	t.Helper()
	lines := epochs(text)
	if len(lines) != 5 || lines[4].Ranks != 2 || lines[4].Accuracy < 0.95 {
		t.Fatalf("it has trained %+v: %s", lines, text)
	}
	return fmt.Sprintf("accuracy %.3f after 5 epochs, 2 ranks", lines[4].Accuracy)
}

// TestProgramsHorovod: Horovod trains a model of PyTorch, started by mpirun and by horovodrun.
func TestProgramsHorovod(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"mpirun":           {"mpirun", "-n", "2", "train_horovod.py"},
		"horovodrun":       {"horovodrun", "-np", "2", "--hostfile", "/etc/mpi/hostfile", "train_horovod.py"},
		"horovodrun, Gloo": {"horovodrun", "--gloo", "-np", "2", "--hostfile", "/etc/mpi/hostfile", "train_horovod.py"},
	} {
		t.Run(name, func(t *testing.T) {
			asBothKinds(t, "Horovod 0.28, PyTorch 1.13: "+name, func(t *testing.T) *kubeflow.MPIJob {
				t.Helper()
				return program(t, "pytorch", 1, command...)
			}, trained)
		})
	}
}

// TestProgramsTensorFlow: Horovod trains a model of Keras, started by mpirun and by horovodrun.
func TestProgramsTensorFlow(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"mpirun":     {"mpirun", "-n", "2", "train_tensorflow.py"},
		"horovodrun": {"horovodrun", "-np", "2", "--hostfile", "/etc/mpi/hostfile", "train_tensorflow.py"},
	} {
		t.Run(name, func(t *testing.T) {
			asBothKinds(t, "Horovod 0.28, TensorFlow 2.13: "+name, func(t *testing.T) *kubeflow.MPIJob {
				t.Helper()
				return program(t, "tensorflow", 1, command...)
			}, trained)
		})
	}
}

// trainDDP trains as train_horovod.py does, with PyTorch's own DistributedDataParallel. torchrun starts it.
const trainDDP = `
import json, torch, torch.distributed as dist
from torch import nn

def points(seed, count):
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return x, (x.norm(dim=1) > 1).long()

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
torch.set_num_threads(1)
x, y = points(1, 6000)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
share = len(x) // size
for epoch in range(1, 6):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    for batch in order[rank * share : (rank + 1) * share].split(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    test_x, test_y = points(1000 + rank, 2000)
    with torch.no_grad():
        right = (model(test_x).argmax(dim=1) == test_y).float().mean()
    dist.all_reduce(right)
    if rank == 0:
        print(json.dumps({"epoch": epoch, "accuracy": round(float(right) / size, 4), "ranks": size}), flush=True)
`

// TestProgramsTorchrun: torchrun, which mpirun starts in each pod, trains a model of PyTorch. This PyTorch is older than its stores by libuv,
// without which Debian's PyTorch 2.6 is built.
func TestProgramsTorchrun(t *testing.T) {
	t.Parallel()
	// The torchrun of rank 0 opens the port by which all find each other, at the address that the first mpirun finds: of a TrainJob, rank 0 runs
	// with the launcher, which is not the first in the hostfile. Without a redirection this torchrun fails with the image's Python, in which a flag of
	// zero is no member of its class.
	const onEachPod = `exec python3 -m torch.distributed.run --nnodes 2 --node_rank "$OMPI_COMM_WORLD_RANK" --nproc_per_node 1 --redirects 1 --tee 1 ` +
		`--rdzv_backend static --master_addr "$1" --master_port 29500 --no_python python3 -c "$2"`
	asBothKinds(t, "PyTorch 1.13: torchrun", func(t *testing.T) *kubeflow.MPIJob {
		t.Helper()
		return program(t, "pytorch", 1, "sh", "-ec", `exec mpirun -n 2 sh -ec "$1" sh "$(mpirun -n 1 hostname -i)" "$2"`, "sh", onEachPod, trainDDP)
	}, trained)
}

// TestProgramsDeepSpeed: DeepSpeed trains with ZeRO, started by mpirun and by the launcher `deepspeed`.
func TestProgramsDeepSpeed(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"mpirun":    {"mpirun", "-n", "2", "train_deepspeed.py"},
		"deepspeed": {"deepspeed", "--launcher", "openmpi", "--hostfile", "/etc/mpi/hostfile", "/usr/local/bin/train_deepspeed.py"},
	} {
		t.Run(name, func(t *testing.T) {
			asBothKinds(t, "DeepSpeed 0.19, PyTorch 2.6: "+name, func(t *testing.T) *kubeflow.MPIJob {
				t.Helper()
				return program(t, "deepspeed", 1, command...)
			}, trained)
		})
	}
}

// TestProgramsResume: a job of Horovod that loses a worker goes on from its checkpoint.
func TestProgramsResume(t *testing.T) {
	job := program(t, "pytorch", 1, "mpirun", "-n", "2", "train_horovod.py", "--epochs", "12", "--epoch-seconds", "3", "--checkpoint", "/data")
	folder := claim(t, job.Namespace)
	mountClaim(job)
	job.Spec.RunPolicy.BackoffLimit = new(int32(3))
	create(t, job)
	saved := filepath.Join(folder, "horovod.pt")
	eventually(t, "a checkpoint is written", time.Minute, func() error { _, err := os.Stat(saved); return err })
	pods := podsOf(t, job, "worker")
	if err := api.Delete(t.Context(), &pods[len(pods)-1], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, job, "it succeeds", succeeded)
	lines := epochs(output(t, job))
	if len(lines) < 2 || lines[0].Resumed < 1 || lines[1].Epoch != lines[0].Resumed+1 || lines[len(lines)-1].Epoch != 12 {
		t.Fatalf("the last attempt has trained %+v", lines)
	}
	recordRun(t, "Horovod 0.28, PyTorch 1.13: mpirun, a worker lost", kubeflow.Kind, job.Namespace, fmt.Sprintf("resumed after epoch %d, 12 epochs", lines[0].Resumed))
}

// TestProgramsElastic: a job of elastic Horovod grows from two workers to three and shrinks again while it trains.
func TestProgramsElastic(t *testing.T) {
	job := program(t, "pytorch", 1, "horovodrun", "-np", "2", "--min-np", "2", "--max-np", "3", "--slots-per-host", "1",
		"--host-discovery-script", "/etc/mpi/discover_hosts.sh", "train_horovod.py", "--elastic", "--epochs", "100", "--epoch-seconds", "2")
	create(t, job)
	waitFor(t, job, "it runs", func(job *kubeflow.MPIJob) error {
		if condition(job, kubeflow.JobRunning).Status != corev1.ConditionTrue {
			return fmt.Errorf("conditions are %+v", job.Status.Conditions)
		}
		return nil
	})
	trainsWith := func(ranks int) {
		t.Helper()
		eventuallyAfter(t, fmt.Sprintf("the last epoch has %d ranks", ranks), 2*time.Minute, time.Minute, func() error {
			lines := epochs(output(t, job))
			if len(lines) == 0 || lines[len(lines)-1].Ranks != ranks {
				return fmt.Errorf("it has trained %+v", lines)
			}
			return nil
		})
	}
	scale := func(workers int32) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":%d}}}}`, workers)
		if err := api.Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	trainsWith(2)
	scale(3)
	trainsWith(3)
	scale(2)
	trainsWith(2)
	waitForProgram(t, kubeflow.Kind, job)
	waitFor(t, job, "it succeeds", succeeded)
	recordRun(t, "Horovod 0.28, PyTorch 1.13: horovodrun, elastic", kubeflow.Kind, job.Namespace, "2, 3 and 2 ranks while it trains")
}

// TestProgramsScience: GROMACS, LAMMPS and HPC Challenge compute the same with four ranks in two pods as with one rank, and mpi4py's own
// tests pass.
func TestProgramsScience(t *testing.T) {
	t.Parallel()
	const folder = "/usr/local/share/science"
	onRankZero := func(command, file string) []string {
		script := `cd /tmp && ` + command + ` && if [ $OMPI_COMM_WORLD_RANK = 0 ]; then cat ` + file + `; fi`
		return []string{"sh", "-ec", `for ranks in 1 4; do echo "== $ranks"; mpirun -n $ranks sh -c '` + script + `'; done`}
	}
	for name, test := range map[string]struct {
		command []string
		check   func(*testing.T, string) string
	}{
		"LAMMPS": {
			command: onRankZero("lmp -in "+folder+"/melt.lammps -log melt.log >/dev/null", "melt.log"),
			check: func(t *testing.T, text string) string {
				t.Helper()
				// The order of additions differs, and the motion is chaotic: later steps drift apart.
				return sameFigures(t, text, regexp.MustCompile(`(?m)^\s+(?:0|50|100)\s+(\S+)\s+(\S+)\s+\S+\s+(\S+)\s+(\S+)`), 12, 1e-4)
			},
		},
		"GROMACS": {
			command: onRankZero("gmx_mpi mdrun -quiet -ntomp 1 -s "+folder+"/water.tpr -deffnm water >/dev/null 2>&1", "water.log"),
			check: func(t *testing.T, text string) string {
				t.Helper()
				return sameFigures(t, text, regexp.MustCompile(`Coul\. recip\.\s+Potential.*\n\s+\S+\s+\S+\s+\S+\s+(\S+)`), 3, 1e-3)
			},
		},
		"HPC Challenge": {
			command: []string{"mpirun", "-n", "4", "sh", "-c", `cd /tmp && cp ` + folder + `/hpccinf.txt . && hpcc && if [ $OMPI_COMM_WORLD_RANK = 0 ]; then cat hpccoutf.txt; fi`},
			check: func(t *testing.T, text string) string {
				t.Helper()
				if !strings.Contains(text, "Success=1") || strings.Contains(text, "FAILED") || !strings.Contains(text, "CommWorldProcs=4") {
					t.Errorf("it has printed %s", text)
				}
				return "all tests passed, 4 ranks"
			},
		},
		"mpi4py": {
			command: []string{
				"mpirun", "-n", "4", "python3", folder + "/mpi4py/test/runtests.py", "--no-threads",
				"-i", "test_cco_buf", "-i", "test_cco_obj", "-i", "test_p2p_buf", "-i", "test_p2p_obj", "-i", "test_comm",
			},
			check: func(t *testing.T, text string) string {
				t.Helper()
				if ran := regexp.MustCompile(`Ran \d\d+ tests in`).FindAllString(text, -1); len(ran) != 4 || strings.Contains(text, "FAILED") {
					t.Errorf("it has printed %s", text)
				}
				return "its own tests of communication passed, 4 ranks"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asBothKinds(t, name, func(t *testing.T) *kubeflow.MPIJob {
				t.Helper()
				return program(t, "science", 2, test.command...)
			}, test.check)
		})
	}
}

// sameFigures checks that what follows "== 1" has a number of figures, which are the groups of a pattern, and what follows "== 4" has the
// same, but for a relative difference.
func sameFigures(t *testing.T, text string, pattern *regexp.Regexp, number int, difference float64) string {
	t.Helper()
	_, text, _ = strings.Cut(text, "== 1\n")
	one, four, _ := strings.Cut(text, "== 4\n")
	figures := func(text string) []float64 {
		var all []float64
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			for _, group := range match[1:] {
				figure, err := strconv.ParseFloat(group, 64)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, figure)
			}
		}
		return all
	}
	want, got := figures(one), figures(four)
	if len(want) < number || len(got) != len(want) {
		t.Fatalf("one rank has computed %v, four ranks %v: %s", want, got, text)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > difference*math.Abs(want[i]) {
			t.Errorf("figure %d is %v with one rank, and %v with four", i, want[i], got[i])
		}
	}
	return fmt.Sprintf("%d figures as with one rank within %g, 4 ranks", len(want), difference)
}
