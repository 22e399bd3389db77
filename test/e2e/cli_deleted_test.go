package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestDeletedMPIJobRunsAgain: a deleted MPIJob is shown, cloned and compared by its report, which contains no secrets; the clone computes
// pi again.
func TestDeletedMPIJobRunsAgain(t *testing.T) {
	parallel(t, 2)
	needCommandLine(t)
	s := shell{t, newNamespace(t)}
	s.run(0, []string{"mpijob/pi: Succeeded"}, "create", "pi", "--workers", "2", "--image", image, "--run-as-user", "1000", "--cpu", "50m", "--memory", "128Mi",
		"--env", "HF_TOKEN=hunter2hunter2", "--env", "MODE=fast", "--label", "team=a", "--command", "pi", "--wait", "--timeout", "4m")
	s.run(0, nil, "delete", "pi", "--yes", "--wait")
	againDeleted(t, s, "mpijob/pi", "pi is approximately 3.14159")
}

// TestDeletedTrainJobRunsAgain: a deleted TrainJob is shown, cloned and compared by its report, which contains no secrets; the clone
// computes pi again, and a note says that the runtime has changed.
func TestDeletedTrainJobRunsAgain(t *testing.T) {
	parallel(t, 2)
	needCommandLine(t)
	needTrainer(t)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', pi], env: [{name: HF_TOKEN, value: hunter2hunter2}, {name: MODE, value: fast}]}")
	job.SetLabels(map[string]string{"team": "a"})
	createTrainJob(t, job)
	s := shell{t, namespace}
	s.run(0, []string{"Succeeded"}, "wait", "pi", "--timeout", "4m")
	s.run(0, nil, "delete", "pi", "--yes", "--wait")
	runtime := &unstructured.Unstructured{}
	runtime.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	runtime.SetNamespace(namespace)
	runtime.SetName("mpi")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"mlPolicy":{"mpi":{"numProcPerNode":2}}}}`))
	if err := api.Patch(t.Context(), runtime, patch); err != nil {
		t.Fatal(err)
	}
	s.run(0, []string{"note: runtime mpi has changed since trainjob/pi was created"}, "clone", "pi", "--env", "HF_TOKEN=x", "--dry-run=client")
	againDeleted(t, s, "trainjob/pi", "pi is approximately 3.14159")
}

// againDeleted clones and compares a deleted job with a masked secret, whose clone prints a text.
func againDeleted(t *testing.T, s shell, job, prints string) {
	t.Helper()
	if out := s.run(0, []string{"name: HF_TOKEN", "value: '****'", "value: fast", "team: a"}, "get", job, "-o", "yaml"); strings.Contains(out, "hunter2") {
		t.Error("the report contains the secret")
	}
	s.run(2, []string{"is deleted, and its report does not contain secrets", "variable HF_TOKEN", "--env HF_TOKEN=VALUE"}, "clone", job)
	s.run(0, []string{"pi-2 created", "Succeeded"}, "clone", job, "--env", "HF_TOKEN=hunter3hunter3", "--wait", "--timeout", "4m")
	eventually(t, "the clone's output can be read", time.Minute, func() error {
		if out := s.run(0, nil, "logs", "pi-2"); !strings.Contains(out, prints) {
			return errors.New("it is " + out)
		}
		return nil
	})
	s.run(0, []string{"note: secrets are masked", "!env[MODE]", "!team"}, "compare", job, "pi-2")
	kind, _, _ := strings.Cut(job, "/")
	s.run(0, nil, "delete", "pi-2", "--yes", "--wait")
	s.run(0, []string{"note: secrets are masked", "pi-2"}, "compare", job, kind+"/pi-2")
	s.run(0, []string{"the job is deleted, this is its report"}, "describe", job)
}

func needCommandLine(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
}
