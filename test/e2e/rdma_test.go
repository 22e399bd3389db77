package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	network = "k8s.v1.cni.cncf.io/networks"
	// overTCP is a line of NCCL's, which a job here prints in its stead.
	overTCP = "NCCL INFO Using network Socket"
)

// offer has the cluster's nodes offer a device, as a device plugin does.
func offer(t *testing.T, device string) {
	t.Helper()
	onThisMachine(t)
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"capacity":{%[1]q:"8"},"allocatable":{%[1]q:"8"}}}`, device))
		if err := api.Status().Patch(t.Context(), node, patch); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			away := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"capacity":{%[1]q:null},"allocatable":{%[1]q:null}}}`, device))
			_ = api.Status().Patch(context.Background(), node, away)
		})
	}
}

// TestRDMA: devices and networks reach launcher and workers of both kinds as they are written; and a job that has the
// device and does without is warned, although it succeeds.
func TestRDMA(t *testing.T) {
	t.Parallel()
	const device = "rdma/e2e"
	offer(t, device)
	namespace := newNamespace(t)
	passed := func(kind string, pods []corev1.Pod) {
		t.Helper()
		for i := range pods {
			if have := pods[i].Spec.Containers[0].Resources.Limits[device]; have.Value() != 1 || pods[i].Annotations[network] != "fabric/rdma" {
				t.Errorf("%s of a %s has %s of the device and the network %q", pods[i].Name, kind, have.String(), pods[i].Annotations[network])
			}
		}
	}
	warned := func(kind, name string) {
		t.Helper()
		reported(t, kind, namespace, name, "it is warned that RDMA is not used", func(status v1alpha1.JobReportStatus) error {
			if status.CompletionTime == nil || len(status.Findings) != 1 || status.Findings[0].Code != codes.RDMANotUsed || status.Findings[0].Severity != v1alpha1.SeverityWarning {
				return fmt.Errorf("it says %+v", status)
			}
			return nil
		})
	}
	command := []string{"mpirun", "-n", "2", "sh", "-c", "echo " + overTCP + "; sleep 3"}

	job := openMPI(namespace, 2, command...)
	for _, role := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
		template := &job.Spec.MPIReplicaSpecs[role].Template
		template.Annotations = map[string]string{network: "fabric/rdma"}
		template.Spec.Containers[0].Resources.Limits[device] = resource.MustParse("1")
	}
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	passed("MPIJob", append(podsOf(t, job, mpi.RoleLauncher), podsOf(t, job, mpi.RoleWorker)...))
	warned("MPIJob", job.Name)

	runtimeIn(t, namespace, "mpi-openmpi", "annotations:\n                  sidecar", "annotations:\n                  "+network+": fabric/rdma\n                  sidecar")
	train := trainJob(t, namespace, "{numNodes: 3, command: ['"+strings.Join(command, "', '")+"'], resourcesPerNode: {limits: {"+device+": 1}}}")
	createTrainJob(t, train)
	var seen []corev1.Pod
	eventually(t, "all of its pods are there", time.Minute, func() error {
		seen = append(trainerPods(t, train, "launcher"), trainerPods(t, train, "node")...)
		if len(seen) != 3 {
			return fmt.Errorf("it has %d", len(seen))
		}
		return nil
	})
	passed("TrainJob", seen)
	ends(t, train, "Complete")
	warned("TrainJob", train.GetName())
}

// TestRDMANotOffered: jobs of both kinds that request an RDMA device which no node offers run over TCP, as their reports show. A job that
// insists waits, with the reason.
func TestRDMANotOffered(t *testing.T) {
	t.Parallel()
	asking := func(namespace, name string) *kubeflow.MPIJob {
		job := openMPI(namespace, 1, "mpirun", "hostname")
		job.Name = name
		worker(job).Resources.Limits["rdma/none-has-it"] = resource.MustParse("1")
		return job
	}
	finds := func(t *testing.T, kind string, object client.Object, code codes.Code) {
		t.Helper()
		reported(t, kind, object.GetNamespace(), object.GetName(), "the report says so", func(status v1alpha1.JobReportStatus) error {
			if len(status.Findings) == 0 || status.Findings[0].Code != code {
				return fmt.Errorf("findings are %+v", status.Findings)
			}
			return nil
		})
	}
	t.Run("insists", func(t *testing.T) {
		if isQueued() {
			t.Skip("SKIPPED: its queue has no quota for it; TestQueuedWithoutRDMA")
		}
		t.Parallel()
		job := asking(newNamespace(t), "insists")
		job.Annotations = map[string]string{mpi.AnnotationRDMA: mpi.RDMARequired}
		create(t, job)
		finds(t, "MPIJob", job, codes.RDMANotOffered)
	})
	t.Run("MPIJob", func(t *testing.T) {
		t.Parallel()
		job := asking(newNamespace(t), "falls-back")
		create(t, job)
		waitFor(t, job, "it succeeds", succeeded)
		finds(t, "MPIJob", job, codes.RDMAFallback)
	})
	t.Run("TrainJob", func(t *testing.T) {
		t.Parallel()
		job := asTrainJob(t, asking(newNamespace(t), "falls-back"))
		createTrainJob(t, job)
		ends(t, job, "Complete")
		finds(t, "TrainJob", job, codes.RDMAFallback)
	})
}
