package diagnose_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// asking has workers ask for a device.
func asking(device corev1.ResourceName) func(*scene) {
	return func(s *scene) {
		s.job.Workers.Template.Spec.Containers[0].Resources.Limits[device] = resource.MustParse("1")
	}
}

// says is what the launcher has printed so far.
func says(lines ...string) func(*scene) {
	return func(s *scene) {
		s.evidence.Logs = map[string]jobstate.Log{s.seen.LauncherPods[0].Name: {Lines: lines, LastAt: mpitest.Now}}
	}
}

func having(name string, devices ...corev1.ResourceName) func(*scene) {
	return func(s *scene) {
		node(name, "16", "16", "2", "2", func(n *jobstate.Node) {
			for _, device := range devices {
				n.Allocatable[device], n.Free[device] = resource.MustParse("64"), resource.MustParse("64")
			}
		})(s)
	}
}

// Lines as NCCL, UCX, libibverbs, Intel MPI and Open MPI print them.
const (
	ncclNoDevice = "[1,0]<stdout>:pi-worker-0:31:38 [0] NCCL INFO NET/IB : No device found."
	ncclSocket   = "[1,0]<stdout>:pi-worker-0:31:38 [0] NCCL INFO Using network Socket"
	ncclIB       = "[1,0]<stdout>:pi-worker-0:31:38 [0] NCCL INFO Using network IB"
	ucxMemlock   = "[1736959004.001121] [pi-worker-0:31:0]        ib_iface.c:1060 UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)"
	ucxNoDevice  = "[1669031880.738755] [pi-worker-0:31:0]     ucp_context.c:969  UCX  WARN  network device 'mlx5_0:1' is not available, please use one or more of: 'eth0'(tcp), 'lo'(tcp)"
	ucxOther     = "[1669031880.738755] [pi-worker-0:31:0]     ucp_context.c:969  UCX  WARN  network device 'mlx5_1:1' is not available, please use one or more of: 'eth0'(tcp), 'mlx5_0:1'(ib)"
	openib       = "No OpenFabrics connection schemes reported that they were able to be"
	verbs        = "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0"
	intelTCP     = "[0] MPI startup(): libfabric provider: tcp;ofi_rxm"
)

func TestRDMA(t *testing.T) {
	const device = "rdma/hca"
	none := unschedulable("0/2 nodes are available: 2 Insufficient rdma/hca. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")
	over := func(s *scene) {
		s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobComplete)
		s.seen.LauncherPods[0].Status.Phase = corev1.PodSucceeded
	}
	ofTrainJob := func(s *scene) {
		s.job.Kind = "TrainJob"
		s.job.Fields.LauncherTemplate, s.job.Fields.WorkerTemplate = field.NewPath("spec", "trainer"), field.NewPath("spec", "trainer")
	}
	optional := func(s *scene) { s.job = s.job.WithoutRDMA() }
	required := func(s *scene) { s.job.RDMA.Optional = false }
	check(t, map[string]expect{
		"rdma-none":             {codes.RDMANotOffered, starting(4, none).with(asking(device), having("node-a"), having("node-b"), required)},
		"rdma-of-another-name":  {codes.RDMANotOffered, starting(4, none).with(asking(device), having("node-a", "rdma/hca_shared_devices_a"), having("node-b", "rdma/hca_shared_devices_a"), required)},
		"rdma-none-of-trainjob": {codes.RDMANotOffered, starting(4, none).with(asking(device), having("node-a"), ofTrainJob, required)},
		"rdma-taken": {codes.InsufficientResources, starting(4, none).with(asking(device), having("node-a", device), func(s *scene) {
			s.evidence.Nodes[0].Free[device] = resource.MustParse("0")
		})},
		"rdma-nccl-finds-none":         {codes.RDMANotUsed, running(2).with(asking(device), says(ncclNoDevice, ncclSocket, "epoch 1"))},
		"rdma-nccl-over-tcp":           {codes.RDMANotUsed, running(2).with(over, asking("openshift.io/mlx5_rdma_vf"), says(ncclSocket, "done"))},
		"rdma-memlock":                 {codes.RDMANotUsed, running(2).with(asking(device), says(ucxMemlock, openib))},
		"rdma-ucx-finds-none":          {codes.RDMANotUsed, running(2).with(asking(device), says(ucxNoDevice))},
		"rdma-driver-missing":          {codes.RDMANotUsed, running(2).with(asking(device), says(verbs, openib))},
		"rdma-openib":                  {codes.RDMANotUsed, running(2).with(over, asking(device), says(openib, "used on a specific port.  As such, the openib BTL (OpenFabrics"))},
		"rdma-intel-over-tcp":          {codes.RDMANotUsed, running(2, intelMPI).with(asking(device), says(intelTCP))},
		"rdma-not-used-by-trainjob":    {codes.RDMANotUsed, running(2).with(asking(device), says(ncclSocket), ofTrainJob)},
		"rdma-fallback":                {codes.RDMAFallback, running(2).with(asking(device), optional)},
		"rdma-fallback-done":           {codes.RDMAFallback, running(2).with(asking(device), optional, over)},
		"rdma-fallback-trainjob":       {codes.RDMAFallback, running(2).with(asking(device), ofTrainJob, optional)},
		"rdma-fallback-and-failed":     {codes.Killed, failed(137, "").with(asking(device), optional)},
		"rdma-none-of-another-runtime": {codes.RDMANotOffered, starting(4, none).with(asking(device), having("node-a"), ofTrainJob, func(s *scene) { s.job.RDMA.Fixed = true })},
		"rdma-none-anymore":            {codes.RDMANotOffered, starting(4, none).with(asking(device), having("node-a"), func(s *scene) { s.job.RDMA.Optional = true })},
		"rdma-beside-a-failure": {codes.GPUOutOfMemory, failed(1, ncclNoDevice+"\n"+ncclSocket+"\n"+
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.31 GiB is free.").with(asking(device))},
		"network-missing": {codes.NetworkMissing, starting(2, onNode("node-a")).with(event("Pod", "pi-worker-1", "NoNetworkFound",
			`cannot find a network-attachment-definition (rdma) in namespace (ns): network-attachment-definitions.k8s.cni.cncf.io "rdma" not found`))},
	})
}

// TestRDMAInUse: jobs that have not asked for RDMA, or that use it, or of which nothing is known, are well.
func TestRDMAInUse(t *testing.T) {
	for name, s := range map[string]scene{
		"not asked for":            running(2).with(says(ncclNoDevice, ncclSocket)),
		"of GPUs alone":            running(2).with(asking("nvidia.com/mig-1g.5gb"), says(ncclSocket)),
		"used by NCCL":             running(2).with(asking("rdma/hca"), says(openib, ncclIB)),
		"by another device of UCX": running(2).with(asking("rdma/hca"), says(ucxOther)),
		"by a plug-in":             running(2).with(asking("vpc.amazonaws.com/efa"), says(ncclNoDevice, strings.Replace(ncclIB, "IB", "AWS Libfabric", 1))),
		"silent":                   running(2).with(asking("rdma/hca"), says("epoch 1")),
	} {
		t.Run(name, func(t *testing.T) {
			if found := s.findings(); len(found) > 0 {
				t.Errorf("it has findings: %+v", found)
			}
		})
	}
}
