package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// plugin runs a command of the plug-in in a namespace, as a user does through kubectl.
func plugin(t *testing.T, namespace, stdin string, args ...string) (code int, out, complaints string) {
	t.Helper()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), "kubectl", append(append([]string{"odh", "mpijob"}, args...), "-n", namespace)...)
	c.Env = append(os.Environ(), "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	exit := new(exec.ExitError)
	if err := c.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	t.Logf("$ %s\n%s%s(%d)", strings.Join(c.Args, " "), stdout.String(), stderr.String(), code)
	return code, stdout.String(), stderr.String()
}

// TestMigratedJobRuns: an MPIJob of the cluster becomes a TrainJob that comes to the same result, with as many ranks on
// as many pods, each with the workers' volume.
func TestMigratedJobRuns(t *testing.T) {
	parallel(t, 2)
	needTrainer(t)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := sample(t, "pi", namespace, func(job *kubeflow.MPIJob) {
		*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = 2
		launcher(job).Command = []string{"mpirun", "-n", "2", "sh", "-c", "touch /scratch/here && pi"}
		pod := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		worker(job).VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	})
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	result := func(text string) string {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "pi is approximately") {
				return strings.TrimSpace(line)
			}
		}
		t.Fatalf("there is no result in %s", text)
		return ""
	}
	want := result(output(t, job))

	code, text, said := plugin(t, namespace, "", "migrate", "pi", "--name", "pi-2", "--runtime", "trainingruntime/mpi")
	if code != 0 || !strings.Contains(said, "2 workers and a launcher without ranks become 2 nodes") {
		t.Fatal("it is not converted, or not explained")
	}
	if code, out, _ := plugin(t, namespace, "", "migrate", "pi", "--name", "pi-2", "--runtime", "trainingruntime/mpi", "--check", "-q"); code != 0 || out != "trainjob/pi-2 is valid\n" {
		t.Error("the cluster would not take it")
	}
	migrated := trainjob.New()
	if err := yaml.Unmarshal([]byte(text), &migrated.Object); err != nil {
		t.Fatal(err)
	}
	createTrainJob(t, migrated)
	ends(t, migrated, "Complete")
	log := printed(t, migrated)
	if got := result(log); got != want {
		t.Errorf("the TrainJob says %q, the MPIJob %q", got, want)
	}
	if ranks := ranksByPod(log); len(ranks) != 2 {
		t.Errorf("there are ranks on %v, want 1 on each of 2 pods", ranks)
	}
	if code, out, _ := plugin(t, namespace, "", "compare", "mpijob/pi", "trainjob/pi-2"); code != 0 || !strings.Contains(out, "Succeeded") {
		t.Error("the jobs cannot be compared")
	}
}

// TestRuntimeTestedFromTerminal: a runtime that works passes every step, one with an image without MPI fails with code 3.
func TestRuntimeTestedFromTerminal(t *testing.T) {
	t.Parallel()
	needTrainer(t)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	code, out, _ := plugin(t, namespace, "", "runtimes", "test", "trainingruntime/mpi")
	if code != 0 || strings.Count(out, "Pass  ") != 6 || !strings.Contains(out, "Latency ") || !strings.Contains(out, "Passed: The runtime works") {
		t.Error("it does not pass")
	}
	code, out, said := plugin(t, namespace, "", "runtimes", "test", "trainingruntime/mpi", "--image", cmp.Or(os.Getenv("AGENT_IMG"), "odh/mpijob-agent:dev"))
	if code != 3 || !strings.Contains(out, "Fail     ProcessStart") || !strings.Contains(out, "Failed: ") || !strings.Contains(said, "describe trainjob/rtt-") {
		t.Error("it does not fail as it should")
	}
}
