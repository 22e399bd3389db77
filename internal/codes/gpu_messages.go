package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// blockingLaunches is the remedy that lets the traceback of an error on a GPU be that of the call which caused it.
var blockingLaunches = v1alpha1.Remedy{
	Text: "GPUs compute while the program goes on: the line in the traceback may be a later one. Let each call wait for its end.", Action: "env: CUDA_LAUNCH_BLOCKING=1", Rerun: true,
	Changes: set("env.CUDA_LAUNCH_BLOCKING", "1"),
}

// gpuMessages are the kinds of errors of code on a GPU, and of the libraries that it calls. The texts are those of the CUDA runtime and driver, cuBLAS, cuDNN, NCCL,
// ROCm, and NVIDIA's compilers for OpenACC.
var gpuMessages = []OwnError{
	{
		Name: "GPU memory access", Matches: regexp.MustCompile(`illegal memory access|misaligned address|unspecified launch failure|illegal instruction was encountered|cudaError(?:IllegalAddress|MisalignedAddress|LaunchFailure|IllegalInstruction)|CUDA_ERROR_(?:ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|LAUNCH_FAILED|ILLEGAL_INSTRUCTION)|Illegal address during kernel execution|Memory access fault by GPU`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Code on the GPU used memory that is not its own. If it is code of your own, find the access with a smaller problem.", Action: "compute-sanitizer <program>"},
			blockingLaunches,
			{Text: "If it only fails on some nodes, the GPU may be broken. The kernel's log of the node has the reason: Xid 13 and 31 are errors of programs, and 48, 63, 64, 74, 79, 94 and 95 of the GPU."},
		},
	},
	{
		Name: "GPU in use", Matches: regexp.MustCompile(`CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy|cudaErrorDevicesUnavailable`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another process uses the GPU, which is in a mode for one process. Let each rank select the GPU of its local rank, and start as many ranks as the pod has GPUs.", Action: "torch.cuda.set_device(local_rank)"},
			{Text: "If only one process uses it, ask the cluster administrator whether the GPU hangs, or is in the mode Exclusive_Process.", Action: "nvidia-smi --query-gpu=compute_mode --format=csv"},
		},
	},
	{
		Name: "GPU code", Matches: regexp.MustCompile(`PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The driver of the node's GPUs is older than the CUDA with which code for them was compiled. Use an image, or a package such as CuPy or Triton, for an older CUDA.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or select nodes with a newer driver.", Action: "kubectl get nodes -L nvidia.com/cuda.driver.major"},
		},
	},
	{
		Name: "GPU initialization", Matches: regexp.MustCompile(`CUDA unknown error|CUDA error: initialization error|cudaErrorInitializationError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Set CUDA_VISIBLE_DEVICES before the program first uses CUDA, and start other processes before that, or by the method spawn.", Action: `multiprocessing.set_start_method("spawn")`},
			{Text: "If a program as small as this one fails as well, the driver of the node does not work: report the node to the cluster administrator.", Action: "python3 -c 'import torch; print(torch.zeros(1).cuda())'"},
		},
	},
	{
		Name: "GPU libraries", Matches: regexp.MustCompile(`CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|CUFFT_\w+|CUSOLVER_STATUS_\w+|CUSPARSE_STATUS_\w+`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A library of CUDA failed, often because the memory of the GPU was full: it needs some for itself. Try a smaller batch.", Action: "nvidia-smi"},
			blockingLaunches,
			{Text: "If it fails at its first call, the library may be of another version than the framework was built with. Use an image that has both.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "GPU peers", Matches: regexp.MustCompile(`peer access is not supported|peer mapping resources exhausted|cudaErrorPeerAccess\w+|mapping of buffer object failed`),
		Remedies: []v1alpha1.Remedy{
			{Text: "These GPUs cannot read each other's memory. Let NCCL copy through the memory of the node.", Action: "env: NCCL_P2P_DISABLE=1", Rerun: true, Changes: set("env.NCCL_P2P_DISABLE", "1")},
		},
	},
	{
		Name: "NCCL calls", Matches: regexp.MustCompile(`ncclInvalid(?:Usage|Argument)|ncclInternalError|NCCL error\b.*(?:invalid (?:usage|argument)|internal error)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let each rank select the GPU of its local rank, and give NCCL contiguous tensors on this GPU.", Action: "torch.cuda.set_device(local_rank)"},
			{Text: "If it does, enable NCCL's log: its first warning names the call and what is wrong with it.", Action: "env: NCCL_DEBUG=WARN", Rerun: true, Changes: set("env.NCCL_DEBUG", "WARN")},
		},
	},
}
