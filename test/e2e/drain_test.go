package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// drainSeat is a resource of which each pod of the jobs of TestDrain takes one.
const drainSeat = "example.com/seat-drain"

// TestDrain: a node on which all pods of an MPIJob and of a TrainJob run that allow no second attempt, and operators, is emptied by kubectl
// drain. Both jobs run again on another node. If no other node has room, both wait without a pod on a node and do not fail, and run when the
// node is uncordoned.
func TestDrain(t *testing.T) {
	needTrainer(t)
	for name, elsewhere := range map[string]int64{"room on another node": 5, "no room": 0} {
		t.Run(name, func(t *testing.T) {
			seats(t, drainSeat, 5, 0)
			node := seatedNode(t)
			namespace := newNamespace(t)
			jobs := mpiJobAndTrainJob(t, namespace)
			// The attempts that are drained run until then, and the others end at once.
			create(t, configMap(namespace, "brief", "seconds", "1"))
			seats(t, drainSeat, 5, elsewhere)
			t.Cleanup(func() { _ = cordon(context.Background(), "uncordon", node) })
			start := time.Now()
			if err := cordon(t.Context(), "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=3m"); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s was drained in %s", node, time.Since(start).Round(100*time.Millisecond))
			if elsewhere == 0 {
				waitsForNodes(t, jobs)
				if err := cordon(t.Context(), "uncordon", node); err != nil {
					t.Fatal(err)
				}
			}
			for _, job := range jobs {
				reported(t, kindOf(job), namespace, job.GetName(), "the "+kindOf(job)+" succeeds", func(status v1alpha1.JobReportStatus) error {
					if status.Phase == v1alpha1.PhaseFailed {
						t.Fatalf("the %s has failed: %s", kindOf(job), status.Message)
					}
					return inPhase(v1alpha1.PhaseSucceeded)(status)
				})
			}
			eventually(t, "the webhooks answer", time.Minute, func() error {
				if !webhooksAnswer(t.Context()) {
					return errors.New("they do not")
				}
				return nil
			})
		})
	}
}

// seatedNode returns the name of the node that has the seats: the first one.
func seatedNode(t *testing.T) string {
	t.Helper()
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if seats := node.Status.Allocatable[drainSeat]; !seats.IsZero() {
			return node.Name
		}
	}
	t.Fatal("no node has seats")
	return ""
}

// mpiJobAndTrainJob runs a job of each kind whose ranks sleep until there is a ConfigMap brief.
func mpiJobAndTrainJob(t *testing.T, namespace string) []client.Object {
	t.Helper()
	runtimeIn(t, namespace, "mpi-openmpi")
	const command = "exec mpirun -n 2 ranks --sleep ${SECONDS_LEFT:-600}"
	mpiJob := agentJob(namespace, "mpijob", "openmpi", kubeflow.MPIImplementationOpenMPI, 2, "sh", "-c", command)
	mpiJob.Spec.SlotsPerWorker = new(int32(1))
	launcher(mpiJob).Env = []corev1.EnvVar{{Name: "SECONDS_LEFT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "brief"}, Key: "seconds", Optional: new(true),
	}}}}
	for _, container := range []*corev1.Container{launcher(mpiJob), worker(mpiJob)} {
		container.Resources.Limits[drainSeat] = resource.MustParse("1")
	}
	trainJob := seatedTrainJob(t, namespace, "trainjob", drainSeat, 2,
		"[sh, -c, '"+command+"'], env: [{name: SECONDS_LEFT, valueFrom: {configMapKeyRef: {name: brief, key: seconds, optional: true}}}]")
	jobs := []client.Object{mpiJob, trainJob}
	for _, job := range jobs {
		createTrainJob(t, job)
	}
	for _, job := range jobs {
		reported(t, kindOf(job), namespace, job.GetName(), "the ranks of the "+kindOf(job)+" run", inPhase(v1alpha1.PhaseRunning))
	}
	metricIs(t, mpiJob, 1, "mpi_agent_ranks_running", 1, time.Minute)
	return jobs
}

// waitsForNodes waits until no pod of jobs has a node, and checks that they stay so for a time, and do not fail.
func waitsForNodes(t *testing.T, jobs []client.Object) {
	t.Helper()
	check := func(job client.Object) error {
		status := reportOf(t, kindOf(job), job.GetNamespace(), job.GetName()).Status
		if status.Phase == v1alpha1.PhaseFailed || status.Phase == v1alpha1.PhaseSucceeded {
			t.Fatalf("the %s is %s although no node has room: %s", kindOf(job), status.Phase, status.Message)
		}
		placed := slices.DeleteFunc(livePods(t, job), func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed })
		if len(placed) > 0 || status.Phase == v1alpha1.PhaseRunning {
			return fmt.Errorf("it is %s, and %d of its pods have a node", status.Phase, len(placed))
		}
		return nil
	}
	for _, job := range jobs {
		eventually(t, "the "+kindOf(job)+" waits", time.Minute, func() error { return check(job) })
	}
	for range 10 {
		time.Sleep(time.Second)
		for _, job := range jobs {
			if err := check(job); err != nil {
				t.Errorf("the %s no longer waits: %v", kindOf(job), err)
			}
		}
	}
	for _, job := range jobs {
		status := reportOf(t, kindOf(job), job.GetNamespace(), job.GetName()).Status
		t.Logf("%s: %s: %s", kindOf(job), status.Phase, status.Message)
	}
}

// cordon runs a command of kubectl about a node: drain or uncordon.
func cordon(ctx context.Context, command, node string, flags ...string) error {
	out, err := exec.CommandContext(ctx, "kubectl", append([]string{command, node}, flags...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s %s: %w: %s", command, node, err, out)
	}
	return nil
}
