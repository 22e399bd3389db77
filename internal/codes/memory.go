package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var memory = []Entry{
	{
		Code: OutOfMemory, Phase: v1alpha1.PhaseRunning,
		Summary: "{who} out of memory{rankText}: {used|memory limit exceeded}{ofLimit}. The kernel killed the program, which ends the MPI job.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Increase the memory limit of each {role}{more}.", Action: memoryLimit, Rerun: true, Changes: setMemory},
			{Text: "Or use less memory: a smaller batch, fewer data loaders, or fewer ranks per worker.{largestText}", Action: "{slotsField}"},
			{Text: "If that does not help, look for the sizes that the program allocates. They may be far larger than any limit, because of a wrong argument or input."},
		},
	},
	{
		Code: MemoryGrowing, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "The memory of {whoLower|the pods} grows steadily: {used} of {usedOf} are used, {rate} more per hour. The limit is reached at about {at}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check what the program keeps from step to step, such as a list of losses with their graphs, or batches in a cache. See what each pod uses.", Action: "kubectl odh mpijob top {job} -n {namespace} --history"},
			{Text: "Write a checkpoint before that time. In a copy of the job, increase the memory limit of each {role}{more}.", Action: memoryLimit, Rerun: true, Changes: setMemory},
		},
	},
	{
		Code: GPUOutOfMemory, Phase: v1alpha1.PhaseRunning, Traits: FromProgram | FromSharedGPU,
		Summary: "GPU out of memory{rankText}: allocation of {size|memory} failed{totalText}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a smaller batch per GPU, or gradient accumulation."},
			{Text: "Or shard the model across more GPUs (FSDP or ZeRO), or use mixed precision."},
			{Text: "Or use GPUs with more memory."},
		},
	},
	{
		Code: MoreSlotsThanGPUs, Phase: v1alpha1.PhaseRunning, Traits: FromSharedGPU,
		Summary: "More slots than GPUs: {perWorker} slots and {gpus|no} GPUs per worker. Ranks share a GPU, which NCCL rejects, or find none.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use as many slots as GPUs per worker.", Action: "{slotsField}: {gpus|GPUs}", Rerun: true, Changes: set("{slotsField}", "{gpus}")},
			{
				Text: "Or request a GPU for each slot.", Action: "{workerTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]: {perWorker}", Rerun: true,
				Changes: set("{workerTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]", "{perWorker}"),
			},
		},
	},
	{
		Code: WrongGPU, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "The program selected a GPU{rankText} that the pod does not have, or that another rank of the pod uses.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Let each rank select the GPU of its local rank, its number within the pod, and not that of its rank in the job: GPUs of each pod begin with 0. With MPICH and Intel MPI, the variable is MPI_LOCALRANKID.", Action: `torch.cuda.set_device(int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]))`},
			{Text: "If the command or a pod template sets CUDA_VISIBLE_DEVICES, remove it: each pod sees only its own GPUs.", Action: "env: CUDA_VISIBLE_DEVICES"},
		},
	},
	{
		Code: GPUIdle, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "The GPUs of {whoLower|a pod} are idle: in the last 10 minutes, less than 5 % of their time was used.",
		Remedies: []v1alpha1.Remedy{
			{Text: "See what the job does instead: ranks that load data use CPUs, the network or disks. Then use more data loaders, or faster storage.", Action: "kubectl odh mpijob top {job} -n {namespace} --history"},
			{Text: "Check that the program uses its GPUs. A framework that was built for other GPUs, or for none, computes on CPUs.", Action: "torch.cuda.is_available()"},
			ShowStacks,
			{Text: "If the program needs no GPUs, or fewer, request only those: no other job can use them.", Action: "{field}.spec.containers[0].resources.limits"},
		},
	},
	{
		Code: NoGPUVisible, Phase: v1alpha1.PhaseRunning, Traits: FromProgram | FromSharedGPU,
		Summary: "No GPU visible to the program in {whoLower}{gpuText}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program uses GPUs on the launcher, run ranks there. Otherwise use GPUs only in ranks.", Action: "spec.runLauncherAsWorker: true", Rerun: true, Changes: set("spec.runLauncherAsWorker", "true")},
			{Text: "Request GPUs in the pods that use them.", Action: "{field}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
			{Text: "If the pods have GPUs, the image may lack CUDA or clear NVIDIA_VISIBLE_DEVICES."},
		},
	},
}

// LimitOfNamespace is the first remedy of OutOfMemory for a pod whose template has no memory limit, and which has one.
var LimitOfNamespace = v1alpha1.Remedy{
	Text:   "Set the memory limit of each {role}{more}: its pod template has none, so that a LimitRange of the namespace gave it this one.",
	Action: memoryLimit, Rerun: true, Changes: setMemory,
}

// LimitOfPod is the first remedy of OutOfMemory for a pod whose template limits the memory of all containers together, and not that of the first one.
var LimitOfPod = v1alpha1.Remedy{
	Text:   "Increase the memory limit of each {role}{more}: its pod template has one for all containers together.",
	Action: podMemoryLimit, Rerun: true, Changes: set(podMemoryLimit, "{moreMemory}"),
}

// FewDevices are the first remedies for ranks that do not find their device where a pod template lists fewer devices than a pod has ranks. They use
// variable, with its value, devices, their number, and programTemplate.
var FewDevices = []v1alpha1.Remedy{
	{Text: "Remove {variable}, or list as many devices as a pod has ranks: it shows {devices} to {perWorker} ranks, so that the list has none for the local rank of the others.", Action: "{programTemplate}.spec.containers[0].env"},
	{Text: "Or use as many slots as devices, or let ranks share them: take the local rank modulo the number of devices.", Action: "{slotsField}"},
}

// MoreMemoryThanNodes is the definition of OutOfMemory for a program that allocates more than any node has.
var MoreMemoryThanNodes = Entry{
	Code: OutOfMemory, Phase: v1alpha1.PhaseRunning,
	Summary: "{who} out of memory{rankText}: the program allocates {asked}, and no node has more than {largest}. A higher limit does not help.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check the size that the program allocates: it may follow from a wrong argument or input.", Action: launcherArgs},
		{Text: "Or distribute the data over more ranks and workers, each with less than {largest}.", Action: "{workersField}"},
	},
}
