package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// refused begins the summaries of LaunchRefused.
const refused = "MPI's launcher did not start the program: "

// refusedLaunch returns the definition of LaunchRefused for one reason.
func refusedLaunch(reason string, remedies ...v1alpha1.Remedy) Entry {
	return Entry{Code: LaunchRefused, Phase: v1alpha1.PhaseRunning, Summary: refused + reason, Remedies: remedies}
}

// These are the definitions of LaunchRefused for what the launcher lacks or cannot combine.
var (
	MappingConflict = refusedLaunch("the command requests {slots|more} ranks, but its mapping {option|(--map-by, -N or -npernode)} allows fewer.",
		v1alpha1.Remedy{Text: "Remove the mapping. MPI then fills the slots of all workers.", Action: "mpirun -np {ranks} <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or allow as many ranks on each host as workers have slots.", Action: "mpirun --map-by ppr:{perWorker}:node <program>"},
	)
	HostNotInJob = refusedLaunch("the command names {host|a host} that is not in the job's hostfile, whose hosts are {jobHosts}.",
		v1alpha1.Remedy{Text: "Remove --host, --hostfile and other host settings from the command and the image.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "If the command needs a hostfile, use the job's. Host names must be spelled as there.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
	)
	// HostByPlace, RankByPlace, PlaceBeyondHosts, PlaceInvalid and EmptyHostsMissing are for hosts that a file or the command names by their place in
	// an allocation, such as +n0. They may use option, the place, host, the first host of the job, hostPlaces, the places of its hosts, and missing.
	HostByPlace = refusedLaunch("its hostfile or --host names a host by its place ({option|+n0}), which needs a batch system. The hosts are {jobHosts}.",
		v1alpha1.Remedy{Text: "Remove the hostfile from the command: MPI reads the job's hostfile by itself.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or name the hosts as the job's hostfile does, from the first one on.", Action: "{host|HOST} slots={perWorker}"},
	)
	RankByPlace = refusedLaunch("its rankfile names a host by its place ({option|+n0}), which needs a batch system. The job's hosts are {jobHosts}.",
		v1alpha1.Remedy{Text: "Remove the rankfile. MPI then fills the slots of all workers.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or name the hosts in it as the job's hostfile does, from the first one on.", Action: "rank 0={host|HOST} slot=0"},
	)
	PlaceBeyondHosts = refusedLaunch("its command or rankfile names a host by its place {option|in the job}, and the job has only {hostsText}: {hostPlaces}.",
		v1alpha1.Remedy{Text: "Remove the option that names hosts (--host, --hostfile or --rankfile). MPI then fills the slots of all workers.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or correct the place. The first host is +n0.", Action: "mpirun --host +n0 <program>"},
	)
	PlaceInvalid = refusedLaunch("{option|a host of its command} is no place of a host: +n and a number is one, counted from 0, and +e stands for empty hosts.",
		v1alpha1.Remedy{Text: "Remove the option that names hosts (--host or --hostfile). MPI then fills the slots of all workers.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or correct the place: the job has {hostPlaces}.", Action: "mpirun --host +n0 <program>"},
	)
	EmptyHostsMissing = refusedLaunch("its command asks for empty hosts (+e), of which {missing|some} are missing: the job has {hostsText}.",
		v1alpha1.Remedy{Text: "Remove the option that names hosts (--host or --hostfile). MPI then fills the slots of all workers.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or ask for fewer: +e:N stands for N hosts that no program of the command uses before.", Action: "mpirun --host +e:1 <program>"},
	)
	// BindingConflict may use option, the policy.
	BindingConflict = refusedLaunch("its mapping gives each rank several cores (PE=N), to which it must be bound, and the binding policy is {option|another one}.",
		v1alpha1.Remedy{Text: "Bind the ranks to cores. They are not bound by default, since the pods of a node share its cores.", Action: "mpirun --bind-to core --map-by slot:PE=N <program>"},
		v1alpha1.Remedy{Text: "Or remove PE=N, and set the number of threads of each rank.", Action: "mpirun -x OMP_NUM_THREADS=N <program>"},
	)
	RankfileInvalid = refusedLaunch("the rankfile {file|of its command} cannot be read, or does not fit the job's hosts and ranks.",
		v1alpha1.Remedy{Text: "Remove the rankfile. MPI then fills the slots of all workers.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		v1alpha1.Remedy{Text: "Or correct it: a line for each rank, and host names as in the job's hostfile.", Action: "rank 0=HOST slot=0"},
	)
	ProgramNotNamed = refusedLaunch("its command names no program, or not how many ranks each program has.",
		v1alpha1.Remedy{Text: "Name the program after the options. An option without its value takes the program as its value.", Action: launcherArgs},
		v1alpha1.Remedy{Text: "If several programs are separated by a colon, give each its -np."},
	)
	// OptionOfOther may use option, and others, the implementations that have it.
	OptionOfOther = refusedLaunch("{option} is an option of {others}, and not of the job's MPI.",
		v1alpha1.Remedy{Text: "{first|Remove it.}", Action: launcherArgs},
		v1alpha1.Remedy{Text: "Or, if the image has the other MPI, choose it in the job.", Action: "{mpiField}"},
	)
	// ScriptInManyWords may use words, the list of words that were meant.
	ScriptInManyWords = refusedLaunch("the shell runs only the first word after -c; the others are no part of its script.",
		v1alpha1.Remedy{
			Text: "Remove the shell, which the command does not need.", Action: "command: {words}",
			Rerun: true, Changes: set("{launcherTemplate}.spec.containers[0].command", "{words}"),
		},
		v1alpha1.Remedy{Text: "Or write the whole script as one word.", Action: "command: [sh, -c, \"mpirun ...\"]"},
	)
	// OptionsInOneWord may use option, the word, and words, the command as it was meant.
	OptionsInOneWord = refusedLaunch("{option} is one word of its command. Each option, each value and the program must be a word of its own.",
		v1alpha1.Remedy{
			Text: "Write each as an element of the list.", Action: "command: {words}",
			Rerun: true, Changes: set("{launcherTemplate}.spec.containers[0].command", "{words}"),
		},
	)
	// ReferenceInCommand may use variable, and option, the word of the command that refers to it.
	ReferenceInCommand = refusedLaunch("its command contains {option}, a reference to a variable that nothing has replaced.",
		v1alpha1.Remedy{Text: "Define {variable} in env of the launcher, or write its value. Kubernetes replaces only $(NAME) of a variable in that list; variables of the image do not count.", Action: "{launcherTemplate}.spec.containers[0].env"},
		v1alpha1.Remedy{Text: "Write $({variable}) where no shell runs the command: only a shell replaces ${variable}.", Action: launcherArgs},
	)
	// UndefinedInScript may use variable.
	UndefinedInScript = refusedLaunch("the shell probably replaced ${variable} by nothing. Neither the launcher's pod template nor the command sets it.",
		v1alpha1.Remedy{Text: "Set {variable} in env of the launcher, or correct its name in the command.", Action: "{launcherTemplate}.spec.containers[0].env"},
	)
	// LauncherMessage may use said, what the launcher printed.
	LauncherMessage = refusedLaunch("{said}",
		v1alpha1.Remedy{Text: "Correct the command as this message says: it is of MPI's launcher, which started no rank.", Action: launcherArgs},
		v1alpha1.Remedy{Text: "Read the whole message.", Action: launcherLog},
	)
	WorkingDirMissing = refusedLaunch("the working directory {file|of its command} does not exist on {host|a worker}, or is not accessible.",
		v1alpha1.Remedy{Text: "Mount the volume with this folder in the workers as well, or create the folder in their image.", Action: "{workerTemplate}.spec.containers[0].volumeMounts"},
		v1alpha1.Remedy{Text: "Or start the ranks in another folder.", Action: "mpirun --wdir /tmp <program>"},
	)
	VersionsDiffer = refusedLaunch("the launcher and {host|a worker} have different versions of Open MPI.",
		v1alpha1.Remedy{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
		v1alpha1.Remedy{Text: "If the image has several, name one.", Action: "mpirun --prefix /opt/openmpi"},
	)
	SystemLimit = refusedLaunch("{host|a host} cannot start its ranks: {reason|a limit of the system is reached}.",
		v1alpha1.Remedy{Text: "Use fewer slots per worker, or fewer threads per rank.", Action: "{slotsField}"},
		v1alpha1.Remedy{Text: "See the limits of a worker.", Action: "kubectl -n {namespace} exec {worker} -- sh -c 'ulimit -a; cat /sys/fs/cgroup/pids.max'"},
	)
	NoTemporaryDir = refusedLaunch("it cannot create {file|its folder for temporary files}.",
		v1alpha1.Remedy{Text: "Mount a volume that all users may write to.", Action: "volumes: [{name: tmp, emptyDir: {}}], mounted at /tmp, in both pod templates"},
		v1alpha1.Remedy{Text: "Or select a folder that the pods may write to.", Action: "env: TMPDIR"},
	)
	TemporaryPathTooLong = refusedLaunch("the path of its folder for temporary files is too long for a socket.",
		v1alpha1.Remedy{Text: "Use a short folder.", Action: "env: TMPDIR=/tmp", Rerun: true, Changes: set("env.TMPDIR", "/tmp")},
	)
)

// HostfileInvalid is the definition of HostfileMissing for a file that exists.
var HostfileInvalid = Entry{
	Code: HostfileMissing, Phase: v1alpha1.PhaseRunning, Settings: hostfileSettings,
	Summary: "MPI's launcher cannot read the hostfile {file|of its command}: a line is not valid.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the hostfile from the command: MPI reads the job's hostfile by itself.", Action: "mpirun <program>", Rerun: true, Changes: changeCommand},
		{Text: "Or correct the line. MPI implementations spell slots differently.", Action: "HOST slots=2 (Open MPI), HOST:2 (MPICH and Intel MPI)"},
	},
}

// BindingImpossible is the definition of TooFewCores for hosts that lack what ranks are mapped or bound to.
var BindingImpossible = Entry{
	Code: TooFewCores, Phase: v1alpha1.PhaseRunning, Settings: bindingSettings,
	Summary: "mpirun cannot map or bind ranks as its options request: {host|a host} lacks the cores, sockets or NUMA domains.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Ranks are not mapped or bound to hardware by default: remove the flag, variable or parameter of Open MPI that does it, also in the image and in scripts. Or override it.", Action: "mpirun --map-by slot --bind-to none"},
		{Text: "Or see the hardware of a worker, and change --map-by, --bind-to and PE.", Action: "kubectl -n {namespace} exec {worker} -- lscpu"},
	},
}

// InterfaceMissing is the definition of NoTransport for a network interface that the pods do not have.
var InterfaceMissing = Entry{
	Code: NoTransport, Phase: v1alpha1.PhaseRunning,
	Settings: []string{"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_oob_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE", "HYDRA_IFACE", "I_MPI_HYDRA_IFACE", "FI_TCP_IFACE", "FI_SOCKETS_IFACE"},
	Summary:  "The pods have no network interface {interface|of the name that the command or the environment sets}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the option that names it, or name the pod network.", Action: "mpirun --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0", Rerun: true, Changes: changeCommand},
		{Text: "It may also be set in the environment, or in the image.", Action: "env: OMPI_MCA_btl_tcp_if_include, OMPI_MCA_oob_tcp_if_include, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME, HOROVOD_GLOO_IFACE"},
		{Text: "See the interfaces of a worker.", Action: "kubectl -n {namespace} exec {worker} -- ls /sys/class/net"},
	},
}

// InterfaceNotSelected is the definition of NoTransport for a setting that selects none of the pods' network interfaces.
var InterfaceNotSelected = Entry{
	Code: NoTransport, Phase: v1alpha1.PhaseRunning,
	Summary: "The ranks have no network: {setting} is {value}, which leaves none of the pods' interfaces ({interfaces}).",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the setting from the command, the environment and the image. Pods reach each other on eth0.", Action: "{settingText}", Rerun: true, Changes: changeCommand},
		{Text: "If the job is to use another network, attach it to its pods by the annotation k8s.v1.cni.cncf.io/networks.", Action: "{workerTemplate}.metadata.annotations"},
		{Text: "See the interfaces of a worker.", Action: "kubectl -n {namespace} exec {worker} -- ls /sys/class/net"},
	},
}

// ComponentMissing is the definition of NoTransport for a component of Open MPI that the image lacks.
var ComponentMissing = Entry{
	Code: NoTransport, Phase: v1alpha1.PhaseRunning,
	Settings: []string{"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl"},
	Summary:  "MPI cannot use {component|the component} for communication: the image's MPI lacks it, or the pods lack the device or a library for it.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the component from the command (pml, btl, mtl). MPI then uses what the pods have.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
		{Text: "It may also be set in the environment.", Action: "env: OMPI_MCA_pml, OMPI_MCA_btl, OMPI_MCA_mtl"},
		{Text: "See which components the image has.", Action: "kubectl -n {namespace} exec {worker} -- ompi_info"},
	},
}

// ProviderMissing is the definition of NoTransport for MPICH and Intel MPI, which communicate by libfabric.
var ProviderMissing = Entry{
	Code: NoTransport, Phase: v1alpha1.PhaseRunning,
	Settings: []string{"FI_PROVIDER", "FI_PROVIDER_PATH", "I_MPI_FABRICS", "I_MPI_OFI_PROVIDER", "I_MPI_OFI_LIBRARY", "I_MPI_OFI_LIBRARY_INTERNAL", "MPIR_CVAR_OFI_USE_PROVIDER"},
	Summary:  "MPI found no usable network provider of libfabric: the selected one needs a device that the pods do not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use TCP.", Action: "env: FI_PROVIDER=tcp", Rerun: true, Changes: set("env.FI_PROVIDER", "tcp")},
		{Text: "Remove other settings of the network from the job and the image.", Action: "env: I_MPI_FABRICS, I_MPI_OFI_PROVIDER, FI_PROVIDER_PATH"},
		{Text: "If the job is to use RDMA, request the device in the pods.", Action: "{workerTemplate}.spec.containers[0].resources.limits"},
	},
}

// UCXTransportMissing is the definition of NoTransport for MPI on UCX.
var UCXTransportMissing = Entry{
	Code: NoTransport, Phase: v1alpha1.PhaseRunning,
	Settings: []string{"UCX_TLS", "UCX_NET_DEVICES"},
	Summary:  "UCX has no transport between some of the ranks: its settings name devices or transports that the pods do not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use TCP and shared memory.", Action: "env: UCX_TLS=tcp,sm,self", Rerun: true, Changes: set("env.UCX_TLS", "tcp,sm,self")},
		{Text: "Remove the devices from the settings.", Action: "env: UCX_NET_DEVICES"},
	},
}

// PeersUnreachable is the definition of WrongInterface for libraries that connect ranks without MPI.
var PeersUnreachable = Entry{
	Code: WrongInterface, Phase: v1alpha1.PhaseRunning,
	Summary: "Ranks could not connect to each other with Gloo or NCCL{hostText}: a wrong network, or a policy drops the connections.",
	Remedies: []v1alpha1.Remedy{
		{
			Text: "Select the pod network.", Action: "env: GLOO_SOCKET_IFNAME=eth0 and NCCL_SOCKET_IFNAME=eth0", Rerun: true,
			Changes: set("env.GLOO_SOCKET_IFNAME", "eth0", "env.NCCL_SOCKET_IFNAME", "eth0"),
		},
		{Text: "Allow all traffic between the job's own pods, on every port.", Action: listPolicies},
	},
}

// TensorsMissing is the definition of CollectiveTimeout for Horovod's limit.
var TensorsMissing = Entry{
	Code: CollectiveTimeout, Phase: v1alpha1.PhaseRunning,
	Summary: "Horovod ended the job: some ranks did not submit a tensor for which the others waited.",
	Remedies: []v1alpha1.Remedy{
		{Text: "See which ranks and tensors were missing.", Action: launcherLog + " | grep -A 8 'Missing ranks'"},
		{Text: "Check the program for conditions under which only some ranks call a collective (saving, evaluation, uneven data)."},
		{Text: "If long steps are expected, increase the limit.", Action: "env: HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"},
	},
}

// OwnSetting is the remedy for a variable that can cause the problem and that a pod template sets. It may use ownVariable, the variable with
// its value, setBy, the pod templates, and variableField.
var OwnSetting = v1alpha1.Remedy{
	Text: "Remove {ownVariable} from {setBy}. {replaces|It replaces} what the image or the operator may set.", Action: "{variableField}.spec.containers[0].env",
}

// SettingInCommand is OwnSetting for a variable that the launcher's command gives to the ranks.
var SettingInCommand = v1alpha1.Remedy{Text: OwnSetting.Text, Action: launcherArgs}

// RemoveSettings returns OwnSetting with the changes that remove variables from the job.
func RemoveSettings(names ...string) v1alpha1.Remedy {
	remedy := OwnSetting
	remedy.Rerun = true
	for _, name := range names {
		remedy.Changes = append(remedy.Changes, v1alpha1.FieldChange{Field: "env." + name})
	}
	return remedy
}

// SetOnWorkers is the remedy for a variable that only the launcher's pod template sets, and that Open MPI does not pass on to the ranks.
var SetOnWorkers = v1alpha1.Remedy{
	Text: "Or set {variable} in the pod template of the workers, too.", Action: "{workerTemplate}.spec.containers[0].env",
}

// BatchLauncher is the definition of LaunchRefused for a command or variable that has MPI start its processes by a batch system.
var BatchLauncher = Entry{
	Code: LaunchRefused, Phase: v1alpha1.PhaseRunning,
	Summary: "The setting {setting} has MPI start its processes by {option}, a part of a batch system that pods do not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the setting {setting}. The operator sets how MPI reaches the workers.", Action: "{launcherTemplate}.spec.containers[0].{at|command}"},
	},
}

// SpawnWithoutSlots is the definition of NotEnoughSlots for processes that the program itself starts. It may use rankText and placeText.
var SpawnWithoutSlots = Entry{
	Code: NotEnoughSlots, Phase: v1alpha1.PhaseRunning,
	Summary: "The program starts more processes{rankText} by MPI_Comm_spawn{placeText} than there are free slots: the job has {ranks|few}, and the ranks that mpirun starts use some of them.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Let the program start fewer processes. MPIPoolExecutor starts max_workers.", Action: "MPIPoolExecutor(max_workers=...)"},
		{Text: "Or give the job more slots: one for each process that mpirun and the program start.", Action: "{slotsField}"},
		{Text: "Or let mpirun start all processes, and use them as the pool.", Action: "mpirun ... python -m mpi4py.futures SCRIPT"},
	},
}
