package codes

import (
	"regexp"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// gpuErrors are the kinds of errors of programs that a GPU, its driver or NCCL causes: the phrases are those of the CUDA runtime, of NVML,
// PyTorch and NCCL.
var gpuErrors = []OwnError{
	{
		// Without any driver, the CUDA runtime reports one that is insufficient: see GPUNotRequested.
		Name: "GPU driver", Matches: regexp.MustCompile(`CUDA driver version is insufficient|NVIDIA driver on your system is too old|Error 80[34]: |forward compatibility was attempted|unsupported display driver`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The driver of the node's GPUs is older than the CUDA of the image. Use an image with an older CUDA.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or select nodes with a newer driver.", Action: "kubectl get nodes -L nvidia.com/cuda.driver.major"},
			{Text: "Errors 803 and 804 also follow from libraries of the image in place of the driver's: remove /usr/local/cuda/compat from this variable.", Action: "env: LD_LIBRARY_PATH"},
		},
	},
	{
		Name: "broken GPU", Matches: regexp.MustCompile(`uncorrectable ECC error|cudaErrorECCUncorrectable|Error 802: |system not yet initialized|Driver/library version mismatch|GPU is lost|fallen off the bus|Unable to determine the device handle|GPU requires reset|NVRM: Xid`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The GPU or its driver on {onNode|the node of this rank} does not work. Report the node to the cluster administrator."},
			{Text: "Until it is repaired, start the job on other nodes, by an affinity of its pods.", Action: "{programTemplate}.spec.affinity.nodeAffinity: kubernetes.io/hostname NotIn [{node|NODE}]"},
		},
	},
	{
		Name: "NCCL and CUDA", Matches: regexp.MustCompile(`unhandled cuda error|ncclUnhandledCudaError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let each rank select the GPU of its local rank before the first collective operation.", Action: "torch.cuda.set_device(local_rank)"},
			{Text: "If it does, enable NCCL's log: its first warning names the error of CUDA.", Action: "env: NCCL_DEBUG=WARN", Rerun: true, Changes: set("env.NCCL_DEBUG", "WARN")},
		},
	},
}

// GPUNotRequested are the remedies for a program that needs a GPU in pods that have none.
var GPUNotRequested = []v1alpha1.Remedy{
	{Text: "Request a GPU for each pod in which ranks run, and use an image whose framework is built for GPUs.", Action: "{programTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
	{Text: "Or run the program on CPUs."},
}

// GPUTakenAtStart is the definition of GPUOutOfMemory for TensorFlow and JAX.
var GPUTakenAtStart = Entry{
	Code: GPUOutOfMemory, Phase: v1alpha1.PhaseRunning,
	Summary: "GPU out of memory{rankText}: allocation of {size|memory} failed{totalText}.",
	Remedies: []v1alpha1.Remedy{
		{
			Text: "If several ranks see the same GPU, let each take only what it needs: TensorFlow and JAX take most of the memory of all GPUs that they see.", Action: "env: TF_FORCE_GPU_ALLOW_GROWTH=true, XLA_PYTHON_CLIENT_PREALLOCATE=false",
			Rerun: true, Changes: set("env.TF_FORCE_GPU_ALLOW_GROWTH", "true", "env.XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
		},
		{Text: "Or let each see only the GPU of its local rank.", Action: "CUDA_VISIBLE_DEVICES, from OMPI_COMM_WORLD_LOCAL_RANK (MPI_LOCALRANKID with MPICH and Intel MPI)"},
		{Text: "Otherwise use a smaller batch per GPU, or GPUs with more memory."},
	},
}

// NCCLWithoutGPU is the definition of NoGPUVisible for PyTorch's backend nccl.
var NCCLWithoutGPU = Entry{
	Code: NoGPUVisible, Phase: v1alpha1.PhaseRunning,
	Summary: "No GPU visible to the program in {whoLower}{gpuText}. PyTorch's backend nccl needs one.",
	Remedies: []v1alpha1.Remedy{
		{Text: "On CPUs, use the backend gloo.", Action: "torch.distributed.init_process_group(backend=\"gloo\")"},
		{Text: "Or request GPUs in the pods in which ranks run.", Action: "{workerTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
		{Text: "If the pods have GPUs, the image may lack CUDA or clear NVIDIA_VISIBLE_DEVICES."},
	},
}

// unlimitedShm is the remedy for a full /dev/shm that is a volume without a size limit.
var unlimitedShm = v1alpha1.Remedy{Text: "Give the pods more memory. Without a sizeLimit, it limits the volume.", Action: memoryLimit}

// WithUnlimitedShm returns the definition of a problem with /dev/shm, for pods in which that is a volume without a size limit.
func (e Entry) WithUnlimitedShm() Entry {
	e.Remedies = slices.Clone(e.Remedies)
	for i := range e.Remedies {
		if e.Remedies[i].Action == largerShm {
			e.Remedies[i] = unlimitedShm
		}
	}
	return e
}

// NCCLSharedMemory is the definition of NCCLSystemError for shared memory that NCCL could not allocate.
var NCCLSharedMemory = Entry{
	Code: NCCLSystemError, Phase: v1alpha1.PhaseRunning,
	Summary: "NCCL could not allocate shared memory: /dev/shm is full ({shmText|64 MiB by default}).",
	Remedies: []v1alpha1.Remedy{
		{Text: "Give the pods more shared memory.", Action: largerShm},
		{Text: "Or let the ranks of a pod exchange data without shared memory, which is slower.", Action: "env: NCCL_SHM_DISABLE=1", Rerun: true, Changes: set("env.NCCL_SHM_DISABLE", "1")},
	},
}
