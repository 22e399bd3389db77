package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// nameMPI and chooseRuntime are what to do about an image whose MPI is not the one that the job, or its runtime, names.
var (
	nameMPI = []v1alpha1.Remedy{
		{Text: "Name the MPI of the image.", Action: "spec.mpiImplementation: {value}", Rerun: true, Changes: set("spec.mpiImplementation", "{value}")},
		{Text: "Or use an image with {expected}.", Action: BothImages},
	}
	chooseRuntime = []v1alpha1.Remedy{
		{Text: "Use a runtime for the MPI of the image, such as {runtime|another one}, if it is installed: see kubectl odh mpijob runtimes list.", Action: "spec.runtimeRef.name: {runtime|NAME}"},
		{Text: "Or use an image with {expected}.", Action: "spec.trainer.image"},
	}
)

// OtherMPI is the definition of HostfileIgnored for an image whose MPI is not the one that the job names, and OtherMPIRefused that for one whose
// launcher failed before a rank ran.
var (
	OtherMPI = Entry{
		Code: HostfileIgnored, Phase: v1alpha1.PhaseFailed, Severity: v1alpha1.SeverityError,
		Summary:  "The image has {found}, and the job is set up for {expected}: MPI read no list of hosts, and all ranks ran on the launcher.",
		Remedies: nameMPI,
	}
	OtherMPIRefused = refusedLaunch("the image has {found}, but the job is set up for {expected}.", nameMPI...)
)

// OtherMPIThanRuntime and OtherMPIRefusedByRuntime are these for a job whose runtime names the MPI. They may also use runtime, the shipped one for
// the MPI of the image.
var (
	OtherMPIThanRuntime = Entry{
		Code: HostfileIgnored, Phase: v1alpha1.PhaseFailed, Severity: v1alpha1.SeverityError,
		Summary:  "The image has {found}, and the job's runtime is for {expected}: MPI read no list of hosts, and all ranks ran on the launcher.",
		Remedies: chooseRuntime,
	}
	OtherMPIRefusedByRuntime = refusedLaunch("the image has {found}, but the job's runtime is for {expected}.", chooseRuntime...)
)

// bindingSettings are the variables that bind ranks to cores, or map them to cores.
var bindingSettings = []string{
	"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy", "PRTE_MCA_rmaps_default_mapping_policy",
	"OMPI_MCA_hwloc_base_cpu_list", "PRTE_MCA_hwloc_default_cpu_list", "OMPI_MCA_rmaps_rank_file_path",
}

// BindingOption is the first remedy of TooFewCores if the command itself binds or maps ranks. It uses option, the flag with its value.
var BindingOption = v1alpha1.Remedy{Text: "Remove {option} from the command. Ranks are not bound without it, and the container's CPU limit applies anyway.", Action: launcherArgs, Rerun: true, Changes: changeCommand}

// hostfileSettings are the variables that name the hosts or their file.
var hostfileSettings = []string{
	"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_HOSTS", "HYDRA_HOSTS",
}

var libraries = []Entry{
	{
		Code: LaunchRefused, Phase: v1alpha1.PhaseRunning,
		Summary: refused + "it does not accept {option|an option of its command}, which is unknown, incomplete or given twice.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the option. Write options of the launcher before the program's name, and options of the program after it.", Action: launcherArgs},
			{Text: "See the options of this version.", Action: "kubectl -n {namespace} exec {worker} -- mpirun --help"},
			{Text: "Options may also be set in the environment.", Action: "env: OMPI_MCA_*, PRTE_MCA_*, HYDRA_*, I_MPI_*"},
		},
	},
	{
		Code: NotEnoughSlots, Phase: v1alpha1.PhaseRunning,
		Summary: "mpirun requested {slots|more} ranks, but the job has room for {ranks}: {hostsText} with {slotsText} each.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request {ranks} ranks, or omit -np to use every slot.", Action: "mpirun -np {ranks}", Rerun: true, Changes: changeCommand},
			{Text: "Or give the job more slots: more workers, or more slots per worker.", Action: "{slotsField}"},
			{Text: "If the numbers match, MPI did not read the job's hostfile: remove --host and --hostfile from the command."},
		},
	},
	{
		Code: TooFewCores, Phase: v1alpha1.PhaseRunning, Settings: bindingSettings,
		Summary: "mpirun could not bind each of {slots|its} ranks to a core of its own: the node has too few cores.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Ranks are not bound by default: remove the flag, variable or parameter of Open MPI that binds them, also in the image and in scripts. Or override it.", Action: "mpirun --bind-to none"},
			{Text: "Or use no more slots per worker than nodes have cores.", Action: "{slotsField}"},
		},
	},
	{
		Code: HostfileIgnored, Phase: v1alpha1.PhaseFailed, Severity: v1alpha1.SeverityError,
		Summary: "MPI used {found} of {expected} slots: all ranks ran on the launcher, none on the job's {workers} workers.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove --host, --hostfile and other host settings from the command and the image.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
			{Text: "Set the MPI implementation that the image contains.", Action: "spec.mpiImplementation: OpenMPI, Intel or MPICH"},
			{Text: "If the command needs a hostfile, use the job's.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
		},
	},
	{
		Code: WorkersIdle, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "No rank ran on {idle} of the job's {hosts}. The job had their resources for nothing.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Start as many ranks as the job has slots: remove -n from the command, or set it to {ranks}.", Action: "mpirun -n {ranks} <program>", Rerun: true, Changes: changeCommand},
			{Text: "If the command names hosts, remove them: MPI reads the job's hostfile by itself."},
			{Text: "Or request fewer workers.", Action: "{workersField}"},
		},
	},
	{
		Code: HostfileMissing, Phase: v1alpha1.PhaseRunning, Settings: hostfileSettings,
		Summary: "mpirun could not open the hostfile {file|of its command}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove --hostfile from the command: MPI reads the job's hostfile by itself.", Action: "mpirun <program>"},
			{Text: "Or use the job's hostfile.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
		},
	},
	{
		Code: MixedMPI, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "Every process ran as rank 0 of 1, {times} times the same work: the program uses another MPI than mpirun.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check which MPI the program is linked to, and which mpirun is called.", Action: "ldd <program> | grep mpi; mpirun --version"},
			{Text: "Build the program, or mpi4py, with the image's MPI.", Action: "pip install --no-binary=mpi4py --force-reinstall mpi4py"},
		},
	},
	{
		Code: WrongInterface, Phase: v1alpha1.PhaseRunning, Traits: FollowsPodLoss, Settings: []string{"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude", "OMPI_MCA_oob_tcp_if_include"},
		Summary: "Ranks could not connect to each other{hostText}: MPI chose a wrong network, or a policy drops the connections.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Select the pod network.", Action: "mpirun --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"},
			{Text: "Allow all traffic between the job's own pods, on every port.", Action: listPolicies},
		},
	},
	{
		Code: NoTransport, Phase: v1alpha1.PhaseRunning, Settings: []string{"OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude", "OMPI_MCA_pml", "OMPI_MCA_mtl"},
		Summary: "MPI has no transport between some of the ranks: the command excludes TCP, or names a network interface that the pods do not have.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the option for the transport or the interface (btl, btl_tcp_if_include, pml). Pods reach each other by TCP, on eth0.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
			{Text: "It may also be set in the environment.", Action: "env: OMPI_MCA_btl, OMPI_MCA_btl_tcp_if_include, OMPI_MCA_pml"},
		},
	},
	{
		Code: NotFinalized, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program ended{rankText} without MPI_Finalize, although with exit code 0. MPI then ended all other ranks.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Let every rank reach MPI_Finalize. In Python, do not end a rank by os._exit, and see why it ends before the others.", Action: launcherLog},
			{Text: "If a rank is to end early, tell the others first, or end all by MPI_Abort with a code."},
		},
	},
	{
		Code: CountOverflow, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "An MPI call{rankText} got a count that it does not take: a negative one, or more than the limit of 2,147,483,647 elements.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Print the count of the call on each rank. A negative one often is that of a rank without a part of the data, or has become so as an int; a larger array has to be sent in parts."},
			{Text: "In a framework, use a smaller bucket or fusion size.", Action: "HOROVOD_FUSION_THRESHOLD, or DeepSpeed's reduce_bucket_size"},
		},
	},
	{
		Code: DataTypeUnsupported, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "PyTorch's MPI backend does not support the data type of the tensors, usually fp16 or bf16.",
		Remedies: []v1alpha1.Remedy{
			{Text: "On GPUs use the NCCL backend, and MPI only to start the ranks.", Action: "torch.distributed.init_process_group(backend=\"nccl\")"},
			{Text: "Or convert tensors to float32 before communication."},
		},
	},
	{
		Code: LockedMemoryLimit, Phase: v1alpha1.PhaseRunning,
		Summary: "The locked-memory limit (RLIMIT_MEMLOCK) of the pods is too small for RDMA. MPI fails or uses a slower network.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Ask the cluster administrator to raise the limit for containers.", Action: "LimitMEMLOCK=infinity for the container runtime"},
			{Text: "Or add the capability to the pods, if permitted. It only helps programs that run as root.", Action: "securityContext: {capabilities: {add: [IPC_LOCK]}}"},
		},
	},
	{
		Code: RDMANotUsed, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "RDMA ({resource}) {is|is not used}: {how}. {expect|The job is slower.}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first}", Action: "{firstAction}"},
			{Text: "{second}", Action: "{secondAction}"},
			{Text: "Check that the pods have the device and may lock memory (unlimited).", Action: "kubectl -n {namespace} exec {worker} -- sh -c 'ls /dev/infiniband; ulimit -l'"},
			{Text: "Let MPI fail if RDMA is not available.", Action: "{insist}"},
			{Text: "If TCP is fast enough, remove the request, so that other jobs can use the device.", Action: "{workerTemplate}.spec.containers[0].resources.limits[{resource}]"},
		},
	},
	{
		Code: CollectiveTimeout, Phase: v1alpha1.PhaseRunning, Traits: FollowsPodLoss | FromSharedGPU,
		Summary: "{rankWho|A rank} timed out in a collective operation: another rank is stuck, has ended, or skipped the operation.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Find the rank that reports no timeout: it is stuck or has ended.", Action: launcherLog + " | grep -o 'Rank [0-9]*' | sort | uniq -c"},
			{Text: "Check the program for conditions under which only some ranks call a collective (saving, evaluation, uneven data)."},
			{Text: "If long steps are expected, increase the timeout.", Action: "init_process_group(timeout=timedelta(minutes=60))"},
		},
	},
	{
		Code: NCCLSystemError, Phase: v1alpha1.PhaseRunning, Traits: FollowsPodLoss | FromSharedGPU,
		Summary: "NCCL reported a system error, usually a wrong network interface or too little shared memory.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Enable NCCL's log, and check its first warning.", Action: "env: NCCL_DEBUG=INFO", Rerun: true, Changes: set("env.NCCL_DEBUG", "INFO")},
			{Text: "Select the pod network.", Action: "env: NCCL_SOCKET_IFNAME=eth0", Rerun: true, Changes: set("env.NCCL_SOCKET_IFNAME", "eth0")},
			{Text: "Give the pods more shared memory.", Action: largerShm},
		},
	},
	{
		Code: RootRefused, Phase: v1alpha1.PhaseRunning,
		Summary: "mpirun refuses to run as root.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Run the pods as another user.", Action: "securityContext: {runAsUser: 1000}"},
			{
				Text: "Or allow root, which is no additional risk in a container.", Action: "env: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", Rerun: true,
				Changes: set("env.OMPI_ALLOW_RUN_AS_ROOT", "1", "env.OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
			},
		},
	},
}

// NothingStarted is the definition of WorkersIdle for a command that does not call MPI.
var NothingStarted = Entry{
	Code: WorkersIdle, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
	Summary: "Nothing ran on the job's {hosts}: the launcher's command does not call mpirun. The workers run only what MPI starts there.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start the program by mpirun in the launcher's command. This replaces torchrun and similar launchers.", Action: "mpirun -n {ranks} <program>"},
		{Text: "Or, if the program needs no other pod, request no workers.", Action: "{workersField}"},
	},
}

// FoldedScript is the definition of WorkersIdle for a script in which MPI's launcher is an argument of another command. It may use builtin,
// that command.
var FoldedScript = Entry{
	Code: WorkersIdle, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
	Summary: "MPI was never started, and no rank ran on {idle} of the job's {hosts}: mpirun is an argument of {builtin}, in the same line of the script.",
	Remedies: []v1alpha1.Remedy{
		{Text: "If the script is a block in YAML, write it with | in place of >, which joins its lines.", Action: launcherArgs},
		{Text: "Otherwise begin a line with mpirun, or write ; or && before it."},
	},
}

// HostfileNotRead is the definition of NotEnoughSlots for a job that has enough slots.
var HostfileNotRead = Entry{
	Code: NotEnoughSlots, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI did not read the job's hostfile, or the command restricts it: no room for {slots} ranks, but the job has room for {ranks} " +
		"({hostsText} with {slotsText} each).",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove --host, --hostfile, --map-by and other host settings from the command and the image.", Action: "mpirun -np {slots} <program>", Rerun: true, Changes: changeCommand},
		{Text: "If the command needs a hostfile, use the job's.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
		{Text: "Check whether something overwrites the variables that Open MPI 4 and 5 read.", Action: "env: OMPI_MCA_orte_default_hostfile, PRTE_MCA_prte_default_hostfile"},
	},
}
