package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// rankWithoutData is a program of which rank 1 raises an exception.
const rankWithoutData = `import os; r = int(os.environ["OMPI_COMM_WORLD_RANK"]); assert r != 1, "no data for rank 1"`

// TestSavedFiles: explain -f finds in saved objects, events and logs what the operator has found. With SAVED_FILES=FOLDER the
// files become test data of internal/offline.
func TestSavedFiles(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	mpiJob := func(change func(worker *corev1.Container, pod *corev1.PodSpec), command ...string) func(*testing.T, string) client.Object {
		return func(_ *testing.T, namespace string) client.Object {
			job := openMPI(namespace, 2, command...)
			if change != nil {
				change(worker(job), &job.Spec.MPIReplicaSpecs["Worker"].Template.Spec)
			}
			return job
		}
	}
	train := func(trainer string) func(*testing.T, string) client.Object {
		return func(t *testing.T, namespace string) client.Object {
			runtimeIn(t, namespace, "mpi-openmpi")
			return trainJob(t, namespace, trainer)
		}
	}
	for name, test := range map[string]struct {
		make func(*testing.T, string) client.Object
		code codes.Code
	}{
		"mpijob-image": {mpiJob(func(c *corev1.Container, _ *corev1.PodSpec) { c.Image = "registry.invalid/none:none" }, "mpirun", "ranks"), codes.ImagePullFailed},
		"mpijob-rank":  {mpiJob(nil, "mpirun", "-n", "2", "python3", "-c", rankWithoutData), codes.ApplicationFailed},
		"mpijob-memory": {mpiJob(func(c *corev1.Container, _ *corev1.PodSpec) {
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
		}, "mpirun", "-n", "2", "ranks", "--memory", "1:600", "--sleep", "1"), codes.OutOfMemory},
		"mpijob-nodes": {mpiJob(func(_ *corev1.Container, pod *corev1.PodSpec) {
			pod.NodeSelector = map[string]string{"disk": "fast"}
		}, "mpirun", "ranks"), ""},
		"trainjob-image":  {train("{numNodes: 2, image: registry.invalid/none:none, command: [mpirun, ranks]}"), codes.ImagePullFailed},
		"trainjob-rank":   {train("{numNodes: 2, command: [mpirun, -n, '2', python3, -c, '" + rankWithoutData + "']}"), codes.ApplicationFailed},
		"trainjob-memory": {train("{numNodes: 2, command: [mpirun, -n, '2', ranks, --memory, '1:600', --sleep, '1'], resourcesPerNode: {limits: {memory: 256Mi}}}"), codes.OutOfMemory},
		"trainjob-nodes":  {train("{numNodes: 2, command: [mpirun, ranks], resourcesPerNode: {limits: {example.com/accelerator: '1'}}}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			namespace := newNamespace(t)
			job := test.make(t, namespace)
			kind := "MPIJob"
			if strings.HasPrefix(name, "trainjob") {
				kind = trainjob.Kind
				createTrainJob(t, job)
			} else {
				create(t, job)
			}
			reported(t, kind, namespace, job.GetName(), "its report has the cause", func(status v1alpha1.JobReportStatus) error {
				switch {
				case len(status.Findings) == 0 || test.code != "" && status.Findings[0].Code != test.code:
					return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
				case test.code == codes.ApplicationFailed && (status.Failure == nil || len(status.Failure.LogTail) == 0):
					return fmt.Errorf("it has no log")
				}
				return nil
			})
			// What the operator reports may change between its report and the files.
			eventually(t, "the files show what the operator reports", time.Minute, func() error {
				folder, pods := saveFiles(t, namespace)
				operators := reportOf(t, kind, namespace, job.GetName())
				keepFiles(t, name, folder, operators)
				found := explainFiles(t, folder)
				ended := operators.Status.Failure != nil && found.Failure != nil
				if diff := cmp.Diff(outline(operators.Status, pods, ended), outline(found, pods, ended)); diff != "" {
					return fmt.Errorf("-operator +files:\n%s", diff)
				}
				return nil
			})
		})
	}
}

// keepFiles copies saved files and the operator's report to the folder SAVED_FILES, if it is set.
func keepFiles(t *testing.T, name, folder string, operators *v1alpha1.JobReport) {
	t.Helper()
	at := os.Getenv("SAVED_FILES")
	if at == "" {
		return
	}
	text, err := yaml.Marshal(operators)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "operator.report"), text, 0o600)
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(at, name))
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(at, name), os.DirFS(folder))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// saveFiles saves what kubectl prints of a namespace, and the names of its pods. Pods that end meanwhile leave no log.
func saveFiles(t *testing.T, namespace string) (folder string, names []string) {
	t.Helper()
	folder = t.TempDir()
	kubectl := func(file string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "kubectl", args...).Output()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), out, 0o600)
		}
		if err != nil && args[0] != "logs" {
			t.Fatalf("kubectl %v: %v", args, err)
		}
	}
	const kinds = "mpijobs,trainjobs,jobs,jobsets,pods,events,configmaps,services,resourcequotas,trainingruntimes"
	kubectl("objects.yaml", "get", kinds, "-n", namespace, "-o", "yaml")
	kubectl("nodes.yaml", "get", "nodes", "-o", "yaml")
	// What the nodes have left follows from the pods of all namespaces.
	kubectl("pods.yaml", "get", "pods", "--all-namespaces", "-o", "yaml")
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil || c.State.Terminated != nil {
				kubectl(pod.Name+"_"+c.Name+".log", "logs", "-n", namespace, pod.Name, "-c", c.Name, "--timestamps")
			}
			if c.LastTerminationState.Terminated != nil {
				kubectl(pod.Name+"_"+c.Name+"-previous.log", "logs", "-n", namespace, pod.Name, "-c", c.Name, "--timestamps", "--previous")
			}
		}
	}
	return folder, names
}

// explainFiles runs explain -f without a cluster.
func explainFiles(t *testing.T, folder string) v1alpha1.JobReportStatus {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), "kubectl-odh-mpijob", "explain", "-f", folder, "-o", "json")
	c.Env = append(os.Environ(), "KUBECONFIG=/nonexistent")
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	t.Logf("%s%s", stdout.String(), stderr.String())
	var found struct {
		Phase    v1alpha1.Phase
		Failure  *v1alpha1.Failure
		Findings []v1alpha1.Finding
	}
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	return v1alpha1.JobReportStatus{Phase: found.Phase, Failure: found.Failure, Findings: found.Findings}
}

// outline is what two diagnoses of a job have in common: the cause with its remedies and, if it has ended in both, the phase and where it
// happened, if that pod was there when the files were saved: Trainer deletes those of a job that is over.
func outline(status v1alpha1.JobReportStatus, pods []string, ended bool) (lines []string) {
	if ended {
		lines = append(lines, string(status.Phase))
	}
	if len(status.Findings) > 0 {
		first := status.Findings[0]
		lines = append(lines, first.Code, first.Summary)
		for _, remedy := range first.Remedies {
			lines = append(lines, remedy.Text)
		}
	}
	if failure := status.Failure; failure != nil && ended {
		lines = append(lines, failure.Code)
		if slices.Contains(pods, failure.Pod) && len(pods) > 1 {
			lines = append(lines, failure.Pod)
		}
		if failure.Rank != nil {
			lines = append(lines, fmt.Sprint("rank ", *failure.Rank))
		}
		if failure.ExitCode != nil {
			lines = append(lines, fmt.Sprint("exit code ", *failure.ExitCode))
		}
	}
	return lines
}
