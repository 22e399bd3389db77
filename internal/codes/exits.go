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
			{Text: "If the numbers match, let each rank select the GPU of its local rank.", Action: "torch.cuda.set_device(local_rank)"},
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

var exits = []Entry{
	{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "Rank {rank} ({program}) failed with exit code {code}, but the job succeeded: the launcher's command ended with 0.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Return mpirun's exit code: call mpirun last, or stop the shell at the first error.", Action: "sh -c 'set -e; mpirun ...; ...'"},
			{Text: "If the command retries by itself, check whether the last attempt succeeded.", Action: launcherLog},
		},
	},
	{
		Code: Killed, Phase: v1alpha1.PhaseRunning, Strength: Consequence, Traits: FollowsPodLoss | EndsRank,
		Summary: "{who} killed by signal 9{rankText}, usually because of memory, or because its pod was removed and did not stop in time.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Give each {role} more memory{limitText}, or use a smaller batch.", Action: memoryLimit},
			{Text: "Check the events: the pod may have been removed.", Action: listEvents},
		},
	},
	{
		Code: SegmentationFault, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program crashed{rankText} with a segmentation fault (signal 11).",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the stack trace in the log.", Action: launcherLog},
			{Text: "If it crashes at its start, the program or a Python package was built for another MPI or CUDA: rebuild it in the image."},
			{Text: "Enable Python's stack trace.", Action: "env: PYTHONFAULTHANDLER=1", Rerun: true, Changes: set("env.PYTHONFAULTHANDLER", "1")},
		},
	},
	{
		Code: BusError, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program ended{rankText} with a bus error (signal 7), usually because /dev/shm is full (64 MiB by default).",
		Remedies: []v1alpha1.Remedy{
			{Text: "Give the pods more shared memory.", Action: largerShm},
			{Text: "Or use fewer data loaders.", Action: "DataLoader(num_workers=...)"},
		},
	},
	{
		Code: IllegalInstruction, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program ended{rankText} with an illegal instruction (signal 4): it was built for a newer CPU than the node's.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Build the program for a more common CPU.", Action: "-march=x86-64-v3 instead of -march=native"},
			{Text: "Or select suitable nodes.", Action: "{field}.spec.nodeSelector"},
		},
	},
	{
		Code: Aborted, Phase: v1alpha1.PhaseRunning, Strength: Consequence, Traits: EndsRank,
		Summary: "The program aborted{rankText} with signal 6{errorText}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the last lines of the log before it.", Action: launcherLog},
		},
	},
	{
		Code: Terminated, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
		Summary: "{who} terminated (signal 15): the pod was removed or its time expired. The program reported no error.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the events: they show whether a user, an eviction or a scale-down removed it.", Action: listEvents},
			{Text: "Start the job again, from the last checkpoint if there is one.", Rerun: true},
		},
	},
	{
		Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
		Summary: "Program {program|of the mpirun command} not found in the image of {where|the launcher or a worker}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check its name and folder, also in the workers' image, where ranks start.", Action: lookForProgram},
			{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
			{Text: "If it is a script that exists, check the interpreter in its first line: it must exist, too, and the line must not end with a carriage return."},
		},
	},
	{
		Code: WindowsLineEnds, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "Script {file|of the command} has Windows line ends (CR LF): {program|the name of a program} followed by a carriage return was not found.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the script's line ends where it was written, and put it into the image or ConfigMap again.", Action: "sed -i 's/\\r$//' -- {file|SCRIPT}"},
			{Text: "If git converts them, exclude scripts.", Action: ".gitattributes: *.sh text eol=lf"},
		},
	},
	{
		Code: MPINotInPath, Phase: v1alpha1.PhaseRunning,
		Summary: "MPI's helper {program|program} not found on a worker: MPI is not in its image, or not in PATH for remote logins.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
			{Text: "Tell mpirun where MPI is installed.", Action: "mpirun --prefix /opt/openmpi"},
			{Text: "Or set PATH in the image, not in a shell profile.", Action: "ENV PATH=/opt/openmpi/bin:$PATH"},
		},
	},
	{
		Code: LibraryMissing, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "The program cannot start: shared library {library|of the program} not found.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Pass the library path to all ranks.", Action: "mpirun -x LD_LIBRARY_PATH <program>"},
			{Text: "Or install the library in the workers' image, too.", Action: "kubectl -n {namespace} exec {worker} -- ldconfig -p | grep -F -e {library|LIBRARY}"},
		},
	},
	{
		Code: ApplicationFailed, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
		Summary: "The program failed{rankText}{codeText}{errorText}.{othersEnded}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read its output before it ended. Later errors of other ranks are consequences.", Action: launcherLog},
		},
	},
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

// lookForProgram is a command that looks for a program in a running pod: in its PATH, and else as a file.
const lookForProgram = `kubectl -n {namespace} exec {hostPod} -- sh -c 'command -v -- "$0" || ls -l -- "$0"' {program|PROGRAM}`

// ProgramMissingInLauncher is the definition of ProgramMissing for a program of the launcher's own command.
var ProgramMissingInLauncher = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in the image of the launcher.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the program's name or folder in the launcher's command.", Action: launcherArgs},
		{Text: "Or use an image that contains the program. The launcher's is {launcherImage|set in its pod template}.", Action: "{launcherTemplate}.spec.containers[0].image"},
		{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
	},
}

// ServerMissing is the definition of ProgramMissing for a worker whose command starts an OpenSSH server that its image does not have.
var ServerMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the command of the workers starts {program}, which is not in their image. The agent needs no sshd.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the command of the workers, and let the agent start the ranks.", Action: useAgent, Rerun: true, Changes: setAgent},
		{Text: "Or install an OpenSSH server in the workers' image.", Action: "apt-get install openssh-server, or dnf install openssh-server"},
	},
}

// PathReplaced is the definition of ProgramMissing for a container whose PATH is not that of its image.
var PathReplaced = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in the PATH of {where|the launcher or a worker}: {source} sets PATH in place of the image's.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove PATH there. Programs are then found in the PATH of the image.", Action: "{reference}"},
		{Text: "Or add the folders of the image's PATH, with that of MPI."},
	},
}

// CommandWithNUL is the definition of ProgramMissing for a command that no kernel starts.
var CommandWithNUL = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the command contains a NUL character, with which no program can be started.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the character from the command and its arguments.", Action: "{field}.spec.containers[0].command"},
	},
}

// CommandNotStarted is the definition of ProgramMissing for a command that exists.
var CommandNotStarted = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The launcher's command {program} exists, but cannot be started: {reason}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "command: [sh, {program}]"},
		{Text: "Or make the file executable: by chmod +x in the image, or by defaultMode: 0755 of a ConfigMap's volume."},
		{Text: "Check the image's CPU architecture and, of a script, the interpreter that its first line names."},
	},
}

// RankNotStarted is the definition of ProgramMissing for a rank's program that exists.
var RankNotStarted = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program|of the ranks} exists in the image of {where|a worker}, but cannot be started: {reason}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "mpirun sh {program|SCRIPT}"},
		{Text: "Make the file executable: by chmod +x in the image, or by defaultMode: 0755 of a ConfigMap's volume."},
		{Text: "If it is a binary, build it for the CPU of the nodes.", Action: "kubectl get nodes -L kubernetes.io/arch"},
	},
}

// CommandInOneWord is the definition of ProgramMissing for a command that is written as one word with spaces.
var CommandInOneWord = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The launcher's command {program} is one word, and no program has this name.",
	Remedies: []v1alpha1.Remedy{
		{
			Text: "Write each word of the command as an element of the list.", Action: "command: {words}",
			Rerun: true, Changes: set("{launcherTemplate}.spec.containers[0].command", "{words}"),
		},
	},
}
