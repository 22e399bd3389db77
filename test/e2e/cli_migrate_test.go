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

// Jobs of other APIs that users may still have. IMAGE is that of the sample.
const (
	jobOfV1 = `
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: old}
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  runPolicy: {backoffLimit: 1}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers: [{name: mpi, image: IMAGE, command: [mpirun, -np, "2", --allow-run-as-root, -bind-to, none, -map-by, slot, ranks]}]
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: mpi, image: IMAGE, command: [sleep, infinity]}]
`
	jobOfV1alpha2 = `
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: old}
spec:
  slotsPerWorker: 1
  backoffLimit: 3
  cleanPodPolicy: All
  mpiDistribution: open_mpi
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          initContainers: [{name: kubectl-delivery, image: "mpioperator/kubectl-delivery:latest"}]
          containers:
          - name: mpi
            image: IMAGE
            command: [mpirun, -np, "2", ranks]
            env: [{name: OMPI_MCA_plm_rsh_agent, value: /etc/mpi/kubexec.sh}]
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: mpi, image: IMAGE}]
`
	imageOfAWS     = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/solver:1"
	jobOfSageMaker = `{
  "TrainingJobName": "Old",
  "AlgorithmSpecification": {"TrainingImage": "` + imageOfAWS + `", "TrainingInputMode": "File", "ContainerEntrypoint": ["ranks"]},
  "HyperParameters": {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "1", "lines": "3"},
  "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 1},
  "RoleArn": "arn:aws:iam::123456789012:role/trainer",
  "StoppingCondition": {"MaxRuntimeInSeconds": 600}
}`
)

// TestConvertedJobsRun: jobs of v1, of v1alpha2 and of SageMaker succeed once they are converted, with one rank on each of 2 pods. Users of
// SageMaker replace the image, which only AWS has, and request less than an instance has where nodes are smaller.
func TestConvertedJobsRun(t *testing.T) {
	t.Parallel()
	moved := []string{imageOfAWS, image, `cpu: "1"`, "cpu: 100m", "memory: 7Gi", "memory: 256Mi"}
	for name, test := range map[string]struct {
		old, target string
		edits       []string
		says, want  string
	}{
		"v1":                    {old: jobOfV1, target: "v2beta1", says: `"sleep infinity" is removed`, want: "sum 1"},
		"v1alpha2":              {old: jobOfV1alpha2, target: "v2beta1", says: "kubectl is not needed", want: "sum 1"},
		"SageMaker":             {old: jobOfSageMaker, target: "v2beta1", edits: moved, says: "renamed from Old to old", want: "out 1 000002"},
		"SageMaker to TrainJob": {old: jobOfSageMaker, target: "trainjob", edits: moved, says: "the image is in a private registry of AWS", want: "out 1 000002"},
		"v1 to TrainJob":        {old: jobOfV1, target: "trainjob", says: "become 2 nodes", want: "sum 1"},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			toTrainJob := test.target == "trainjob"
			if toTrainJob {
				needTrainer(t)
			}
			namespace := openNamespace(t)
			args := []string{"migrate", "-f", "-", "--to", test.target}
			if toTrainJob {
				runtimeIn(t, namespace, "mpi-openmpi")
				args = append(args, "--runtime", "trainingruntime/mpi")
			}
			code, text, said := plugin(t, namespace, strings.ReplaceAll(test.old, "IMAGE", image), args...)
			if code != 0 || !strings.Contains(said, test.says) {
				t.Fatalf("it is not converted, or not explained by %q", test.says)
			}
			for i := 0; i < len(test.edits); i += 2 {
				if !strings.Contains(text, test.edits[i]) {
					t.Fatalf("the new job has no %q", test.edits[i])
				}
			}
			printed := runsConverted(t, namespace, strings.NewReplacer(test.edits...).Replace(text), toTrainJob)
			if ranks := ranksByPod(printed); len(ranks) != 2 || !strings.Contains(printed, test.want) {
				t.Errorf("there are ranks on %v, want 1 on each of 2 pods, and %q in what it prints:\n%s", ranks, test.want, printed)
			}
		})
	}
}

// runsConverted creates a job that migrate has printed, waits until it has succeeded, and returns what it has printed.
func runsConverted(t *testing.T, namespace, text string, isTrainJob bool) string {
	t.Helper()
	if isTrainJob {
		job := trainjob.New()
		if err := yaml.Unmarshal([]byte(text), &job.Object); err != nil {
			t.Fatal(err)
		}
		job.SetNamespace(namespace)
		createTrainJob(t, job)
		ends(t, job, "Complete")
		return printed(t, job)
	}
	job := &kubeflow.MPIJob{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	job.Namespace = namespace
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	return output(t, job)
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
