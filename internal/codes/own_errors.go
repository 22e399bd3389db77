package codes

import (
	"regexp"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// OwnError is a kind of error that programs report. Its texts are those of the C library (strerror(3)), which
// programs in all languages show, and of Python's exceptions.
type OwnError struct {
	// Name is unique.
	Name string
	// Matches is what such an error contains. Its named groups are figures of the remedies, without digits at the end of their names.
	Matches *regexp.Regexp
	// Source is what a line of the program in the traceback contains, if the error alone does not tell this kind; nil if it does.
	Source *regexp.Regexp
	// Remedies replace those of ApplicationFailed. They may use the figures of FillRemedy and
	// programTemplate, the pod template of the pods in which the program ran, and file, module and variable: what the error names.
	Remedies []v1alpha1.Remedy
	// QuotesContent is set if such an error quotes what it has read: quoted text is a file only where the message calls it one.
	QuotesContent bool
	// OnlyInLauncher are the remedies instead if the file is on a volume that only the launcher mounts; nil if that does not matter.
	// They may also use volume.
	OnlyInLauncher []v1alpha1.Remedy
}

const (
	programVolumes = "{programTemplate}.spec.volumes"
	launcherArgs   = "{launcherTemplate}.spec.containers[0].command"
)

// OwnErrors are the kinds of errors of programs. The first that matches is the most specific.
var OwnErrors = slices.Concat(callErrors, inputErrors, valueErrors, exactErrors, mpiErrors, frameworkErrors, gpuErrors, gpuMessages, softwareErrors, serviceErrors, systemErrors, environmentErrors, ownErrors, programErrors, pythonErrors, exceptionErrors, otherKey, failedChecks)

// ownErrors are those of any program.
var ownErrors = []OwnError{
	{
		Name: "user", Matches: regexp.MustCompile(`uid not found: \d+|cannot find name for user ID|No such user|unknown userid`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The pods run as a user without an entry in /etc/passwd of the image. Set what the program looks for.", Action: "env: USER, LOGNAME, HOME"},
			{Text: "Or let the program work without the user's name, or add an entry to /etc/passwd when the container starts."},
		},
	},
	{
		// Python's own modules, without which it does not start (Python/pylifecycle.c).
		Name: "python", Matches: regexp.MustCompile(`No module named '(?:encodings|codecs|io|site)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Python does not find its own library: a variable names the folder of another Python. Remove it from the pod templates, the command and the image.", Action: "env: PYTHONHOME, PYTHONPATH"},
		},
	},
	{
		Name: "module", Matches: regexp.MustCompile(`No module named|cannot import name|partially initialized module|consider renaming|module '[\w.]+' has no attribute`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install {module|the module}{packageText} in the image of every pod in which ranks run.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "If it is a module of your own, mount it in the workers as well, and set PYTHONPATH there.", Action: "env: PYTHONPATH"},
		},
	},
	{
		Name: "program", Matches: regexp.MustCompile(`Exec format error|cannot execute binary file`),
		Remedies: []v1alpha1.Remedy{
			{Text: "If it is a binary, build it for the CPU of the nodes.", Action: "kubectl get nodes -L kubernetes.io/arch"},
			{Text: "If it is a script, name its interpreter in its first line.", Action: "#!/bin/sh"},
		},
	},
	{
		// The last two are those of dash (src/exec.c, src/redir.c).
		Name: "file", Matches: regexp.MustCompile(`No such file or directory|FileNotFoundError|NotADirectoryError|MPI_ERR_NO_SUCH_FILE|can't cd to|cannot open \S+: No such file|Directory nonexistent`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the path of {file|the file}. It must exist in every pod in which a rank opens it: in the image, or on a volume that this pod mounts.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
		},
		OnlyInLauncher: []v1alpha1.Remedy{
			{Text: "Mount volume {volume} in the workers as well: {file} is on it, and only the launcher mounts it.", Action: "{workerTemplate}.spec.containers[0].volumeMounts"},
		},
	},
	{
		// mpicc and the like of Open MPI (opal/tools/wrappers/help-opal-wrapper.txt).
		Name: "compiler", Matches: regexp.MustCompile(`unable to find the specified compiler`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Compile the program when the image is built: this image has no compiler, and other pods would not have the result.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or use an image with the compiler, and compile to a volume that all pods mount."},
		},
	},
	{
		// The kernel's own settings, which containers see as read-only (runc).
		Name: "kernel settings", Matches: regexp.MustCompile(`(?:^|[\s'":=])(?:/proc/(?:sys|irq|bus|sysrq)|/sys/)\S*['":]*:? .*(?:Read-only file system|[Pp]ermission denied)|(?:Read-only file system|Permission denied):? ['"]?(?:/proc/(?:sys|irq|bus|sysrq)|/sys/)|sysctl: (?:setting key|permission denied)|sysctl: cannot`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove this line: a container cannot change settings of the kernel, which all pods of the node share. An administrator can set them on the nodes, and allow some for each pod.", Action: launcherArgs},
		},
	},
	{
		Name: "read-only", Matches: regexp.MustCompile(`Read-only file system|MPI_ERR_READ_ONLY`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write to a volume, or mount one where {file|the file} is to be, such as an emptyDir.", Action: "volumes: [{name: scratch, emptyDir: {}}], mounted there"},
		},
	},
	{
		Name: "privilege", Matches: regexp.MustCompile(`Operation not permitted`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Leave this call out, or let it fail. Pods do not run as root: their users may not raise a priority, bind or lock memory, trace other processes, or change the owner or mode of files of other users."},
			{Text: "If the program needs it, ask the cluster administrator to allow the capability. It only helps programs that run as root.", Action: "securityContext: {capabilities: {add: [SYS_NICE]}} (SYS_PTRACE to trace)"},
		},
	},
	{
		Name: "permission", Matches: regexp.MustCompile(`[Pp]ermission denied|PermissionError|MPI_ERR_ACCESS|forrtl: severe \(9\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write to a folder that the pod's user may write to, such as a volume or /tmp. Pods do not run as root, and on OpenShift as a user ID of the namespace.", Action: programVolumes},
			{Text: "If {file|the file} is on a volume, give its group access.", Action: "{programTemplate}.spec.securityContext.fsGroup"},
		},
	},
	{
		Name: "space", Matches: regexp.MustCompile(`No space left on device|Disk quota exceeded|Not enough free space to write|\d+ requested and \d+ written|\bENOSPC\b|\bEDQUOT\b|\[Errno (?:28|122)\]|errno = 28\b|database or disk is full|MPI_ERR_(?:NO_SPACE|QUOTA)|forrtl: severe \(38\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write less, or to a larger volume. An emptyDir may have a sizeLimit, and /dev/shm has 64 MiB if no volume is mounted there.", Action: programVolumes},
		},
	},
	{
		Name: "memory", Matches: regexp.MustCompile(`MemoryError|Cannot allocate memory|bad_alloc|Unable to allocate|Error allocating \d+ bytes|forrtl: severe \(41\)` +
			// TensorFlow, JAX and PETSc.
			`|ResourceExhaustedError|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|Out of memory\. This could be due`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Allocate less at once: use smaller arrays or batches, or distribute the data over the ranks."},
			{Text: "If a little more is enough, increase the memory limit{limitText}.", Action: memoryLimit},
		},
	},
	{
		// The variables of Slurm, PBS, LSF, Grid Engine, PALS and Flux.
		Name: "scheduler variables", Matches: missingVariable(`(?:SLURM|PBS|LSB|LSF|SGE|PALS|FLUX)_\w+`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Take the rank and the number of ranks from MPI: {variable|this variable} is one of a batch system, which does not run here.", Action: "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE (PMI_RANK, PMI_SIZE with MPICH and Intel MPI)"},
			{Text: "mpi4py works with every MPI.", Action: "MPI.COMM_WORLD.Get_rank()"},
		},
	},
	{
		Name: "variable", Matches: unsetVariable,
		Remedies: []v1alpha1.Remedy{
			{Text: "If {variable|the name} is an environment variable, set it in both pod templates. Open MPI passes a variable of the launcher on only with -x.", Action: "mpirun -x {variable|NAME} <program>"},
		},
	},
	{
		Name: "input", Matches: regexp.MustCompile(`EOF when reading`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Read from a file. A pod has no standard input, and MPI passes one on to rank 0 only."},
		},
	},
	{
		// The errors of getaddrinfo(3), curl, Go, Java and aiohttp for an unknown name.
		Name: "host name", Matches: regexp.MustCompile(`Name or service not known|failure in name resolution|nodename nor servname|No address associated with hostname|UnknownHostException|no such host|NameResolutionError|Unknown host\b|(?i:(?:failed|unable) to resolve|(?:could not|cannot|couldn.t|can.t) resolve)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the host's name{address| in this address}, or create its Service. A name without a dot is that of a Service in the job's own namespace; one of another namespace needs it in its name.", Action: "NAME.NAMESPACE.svc"},
			{Text: "See the Services of this namespace.", Action: "kubectl -n {namespace} get services"},
		},
	},
	{
		Name: "proxy that does not answer", Matches: regexp.MustCompile(`(?:Cannot|Unable to) connect to proxy|Could not resolve proxy|ProxyConnectionError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct or remove the variables that name the proxy: it does not answer, and the host in the address is not asked.", Action: "env: HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy"},
			{Text: "For addresses in the cluster, leave the proxy out.", Action: "env: NO_PROXY, no_proxy: localhost,.svc,.cluster.local"},
		},
	},
	{
		Name: "network", Matches: regexp.MustCompile(`(?i:connection timed out|connection refused)|Cannot assign requested address|EADDRNOTAVAIL|Network is unreachable|Max retries exceeded|No route to host|Could(?:n't| not) connect to|download timed out|[Ff]ailed to connect to|socket\.timeout|TimeoutError: (?:timed out|\[Errno 110\])|ConnectTimeout|urlopen error|timeout expired|[Cc]ouldn't connect to 'https?:` +
			// Drivers of databases and queues, and what Go, Java and gRPC report.
			`|Can't connect to (?:\w+ )*server|Cannot connect to host|[Cc]onnection timeout to|(?i:timeout connecting to|connect timed out|connection attempt timed out|connect timeout)|ServerSelectionTimeoutError|NoBrokersAvailable|dial tcp |ORA-12170|java\.net\.\w*(?:Timeout|Connect)\w*Exception|Connection to \S+ (?:timed out|failed)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check {address|the address}. If jobs are isolated, pods reach the job's own pods, DNS and port 443; who administers the namespace allows other destinations.", Action: listPolicies},
		},
	},
	{
		Name: "arguments", Matches: regexp.MustCompile(`unrecognized argument|unknown option|arguments are required|invalid choice|unrecognized option|invalid option|argument \S+: invalid|No such (?:option|command)\b|Missing (?:option|argument|parameter)\b|Unknown command line flag|Got unexpected extra argument|Invalid value for '|\((?i:usage): `),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the arguments of the command.", Action: launcherArgs},
		},
	},
	{
		// numpy.load takes a file without the magic string of its formats for pickled data (numpy/lib/_npyio_impl.py).
		Name: "array file", QuotesContent: true, Matches: regexp.MustCompile(`Cannot load file containing pickled data|Failed to interpret file .* as a pickle|magic string is not correct|cannot identify image file|Unable to synchronously open file \(file signature not found\)|invalid load key|not a (?:valid )?(?:HDF5|Parquet|TFRecord) file|Parquet magic bytes not found|UnpicklingError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check {file|the file that the program reads}: it has another format than its name promises. It may be the pointer of Git LFS (get the data with git lfs pull), an error page that was downloaded, or cut off. If the pods are gone, see it in a job with the command head.", Action: "kubectl -n {namespace} exec {worker} -- head -c 200 {file|FILE}"},
		},
	},
	{
		Name: "joined lines", Matches: regexp.MustCompile("(?:export|declare|readonly|local): [`'].*not a valid identifier"),
		Remedies: []v1alpha1.Remedy{
			{Text: "If the script is a block in YAML, write it with | in place of >, which joins its lines: the words of the next command became names of variables.", Action: launcherArgs},
		},
	},
	{
		Name: "service variable", Matches: regexp.MustCompile(`['"=: ]tcp://\d+\.\d+\.\d+\.\d+:\d+['"]`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program reads a variable that Kubernetes has set: for each Service of the namespace there are variables such as NAME_PORT=tcp://ADDRESS:PORT. Set the program's own variable in the pod templates, which comes first, or give it another name.", Action: "{programTemplate}.spec.containers[0].env"},
			{Text: "Or turn those variables off.", Action: "{programTemplate}.spec.enableServiceLinks: false"},
		},
	},
	{
		// Quotation marks come in pairs: what is between two quoted texts is quoted by none.
		Name: "blank at the end", Matches: regexp.MustCompile(`\w(?:Error|Exception): (?:(?:[^'"]|n't |'[^']*'|"[^"]*")*[ :=(\[,])?(?:'[^' ,;:)][^']*(?:\\n|\\r| )'|"[^" ,;:)][^"]*(?:\\n|\\r| )")(?:\W|$)|(?:InvalidHeader: .*header value: |Invalid header value )b?['"].*\\[nr]['"]`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The value ends with a line end or a blank. In YAML, write it without the block sign |, or with |-; in a shell, use printf or echo -n in place of echo. Or let the program strip it."},
		},
	},
	{
		Name: "script", Matches: regexp.MustCompile(`Unterminated quoted string|unexpected EOF while looking|(?i:syntax error near|syntax error: )`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the shell script: a quotation mark, a bracket or a word is missing or too many.", Action: launcherArgs},
		},
	},
	{
		Name: "text", QuotesContent: true, Matches: regexp.MustCompile(`JSONDecodeError|TOMLDecodeError|ParserError|ScannerError|UnicodeDecodeError|unexpected end of (?:file|JSON)|not in gzip format|Unexpected EOF in archive|BadZipFile|BadGzipFile|crc error|file is truncated`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check {file|what the program reads}: it may be empty, cut off, or of another format or encoding than the program expects."},
		},
	},
	{
		Name: "source", Matches: regexp.MustCompile(`SyntaxError|IndentationError|TabError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the script, or use an image with the Python version that it is written for.", Action: "python3 -m py_compile SCRIPT"},
		},
	},
	{
		Name: "files", Matches: regexp.MustCompile(`Too many open files`),
		Remedies: []v1alpha1.Remedy{
			{Text: "If the command sets a limit, raise or remove it.", Action: "ulimit -n"},
			{Text: "Open fewer files at once, for example with fewer data loaders.", Action: "DataLoader(num_workers=...)"},
		},
	},
}

// Remedies for errors of programs whose cause the job itself shows. They may use the figures of OwnError, with volume, mounted, the
// object on the volume and its mode, and policy and address.
var (
	// KnownError are those for an error of none of these kinds.
	KnownError = []v1alpha1.Remedy{
		{Text: "This is an error of the program itself: correct the program or its input. Later errors of other ranks are consequences.", Action: launcherLog},
	}
	// FullVolume are those for a write for which there is no space in a job with an emptyDir of a limited size. They may also use volume and
	// size, that of the volume.
	FullVolume = []v1alpha1.Remedy{
		{Text: "If it writes to volume {volume}, an emptyDir of {size} in each pod, increase its sizeLimit. With medium Memory, its files count as memory of the pod.", Action: "{programTemplate}.spec.volumes: sizeLimit"},
		{Text: "Or write less: delete what is not needed any more, or write to a claim."},
	}
	// VolumeFull are those for a write to a file that is on an emptyDir with a limited size. They may also use medium. ClaimFull are those for one on another
	// volume, and may also use mounted.
	VolumeFull = []v1alpha1.Remedy{
		{Text: "Volume {volume} is full: {file} is on it, an emptyDir{medium} of {size} in each pod. Increase its sizeLimit.{memory}", Action: "{programTemplate}.spec.volumes: sizeLimit"},
		{Text: "Or write less: keep only the last checkpoints, let one rank write them, or write to a claim."},
	}
	ClaimFull = []v1alpha1.Remedy{
		{Text: "Volume {volume}{mounted} is full, or its quota is used up: {file} is on it. Delete what is not needed any more, or enlarge the volume.", Action: "kubectl -n {namespace} exec {worker} -- df -h"},
		{Text: "Or write less: keep only the last checkpoints, and let one rank write them."},
	}
	// HostOfJob are those for a host name that looks like one of the job's and is none of them. They may also use host, what the program looks up, hosts, the
	// names that the job has, and first, that of rank 0.
	HostOfJob = []v1alpha1.Remedy{
		{Text: "Correct the host name {host}: no pod of this job has it. The hosts of the job are {hosts}.", Action: "{first}"},
		{Text: "Or let rank 0 send its own name, which fits every kind of job.", Action: "host = comm.bcast(socket.getfqdn(), root=0)"},
	}
	// ShadowedModule are those for a name that a module lacks whose file is in none of Python's folders. They may also use module and file.
	ShadowedModule = []v1alpha1.Remedy{
		{Text: "If {file|a file of the program} is not the module {module|that the program imports}, rename it: Python looks in the program's own folder first, and its name hides the other module."},
		{Text: "Otherwise define the name there. Two modules that import each other do not see what is defined later."},
	}
	// ShadowedStandard are those for a name that a module of Python's standard library lacks, because a file of the program has its name. They
	// may also use module and file. NewerStandard are those if the module itself has changed. They may also use name.
	ShadowedStandard = []v1alpha1.Remedy{
		{Text: "Rename {file}, or the folder {module} there: Python looks in the folder of the script and in PYTHONPATH first, and imports it in place of its own module {module}."},
		{Text: "If there is no such file, {module} has changed: use an image with the Python version that the program is written for.", Action: "{programTemplate}.spec.containers[0].image"},
	}
	NewerStandard = []v1alpha1.Remedy{
		{Text: "Use an image with the Python version that the program is written for: not every version has {name}. Or change the program.", Action: "{programTemplate}.spec.containers[0].image"},
	}
	// ModuleVersion are those for a name that an installed module lacks. They may also use module.
	ModuleVersion = []v1alpha1.Remedy{
		{Text: "Install the version of {module|the module} that the program is written for: the one in the image lacks this name.", Action: "{programTemplate}.spec.containers[0].image"},
	}
	// CommandOfProgram are those for a command that the program starts and that is not in its image. They may also use file.
	CommandOfProgram = []v1alpha1.Remedy{
		{Text: "The program starts the command {file}. Install it in the image of every pod in which ranks run, or do without it.", Action: "{programTemplate}.spec.containers[0].image"},
	}
	// FolderOnlyInLauncher are those for a folder that the launcher's command makes, while ranks run on the workers. They may also use
	// folder.
	FolderOnlyInLauncher = []v1alpha1.Remedy{
		{Text: "Make {folder} where the ranks run: the launcher's command does that in the launcher's pod only. Let the program do it, or each rank's command.", Action: "mpirun sh -c 'mkdir -p \"$0\" && exec \"$@\"' {folder} <program>"},
		{Text: "Or mount a volume that all pods share.", Action: "{workerTemplate}.spec.volumes"},
	}
	// FolderOfOnePod are those for a file in a folder such as /tmp, which each pod has of its own. They may also use folder.
	FolderOfOnePod = []v1alpha1.Remedy{
		{Text: "Write {file} where every rank that reads it runs: each pod has its own {folder}. Put it on a volume that all pods mount.", Action: "{programTemplate}.spec.volumes"},
		{Text: "Or let one rank of each host make it, before the others read it.", Action: "MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)"},
	}
	// FolderOfInitContainer are those for a file in a folder that an init container makes in its own file system. They may also use container
	// and folder.
	FolderOfInitContainer = []v1alpha1.Remedy{
		{Text: "Mount one emptyDir at {folder} in init container {container} and in the container of the ranks: the containers of a pod have file systems of their own, and share only volumes.", Action: "{programTemplate}.spec.volumes: [{name: scratch, emptyDir: {}}]"},
	}
	// FolderExists are those for a folder that a script makes with mkdir.
	FolderExists = []v1alpha1.Remedy{
		{Text: "Write mkdir -p, which allows that {file|the folder} exists: all ranks run the same lines, and those of one pod share its files. An earlier attempt of the job may have made it, too.", Action: "mkdir -p {file|FOLDER}"},
	}
	// NoToken and NoTokenOfTrainJob are those for the API token of a service account, which pods of jobs do not have unless their templates
	// ask for it (docs/isolation.md). The patches of a TrainJob have only the account.
	NoToken = []v1alpha1.Remedy{
		{Text: "Let the pods have the token, and name a service account that may do what the program asks for: pods of jobs have no token by default.", Action: "{programTemplate}.spec: automountServiceAccountToken: true, serviceAccountName: NAME"},
	}
	NoTokenOfTrainJob = []v1alpha1.Remedy{
		{Text: "Let the pods have the token of a service account that may do what the program asks for: pods of jobs have no token by default. A patch that names the account mounts it.", Action: "spec.runtimePatches, for the jobs launcher and node: spec.serviceAccountName: NAME"},
		{Text: "Or let the runtime's pod templates set it.", Action: "spec.automountServiceAccountToken: true, spec.serviceAccountName: NAME"},
	}
	// UnexpandedReference are those for a text in which a reference to a variable remains. They may also use variable.
	UnexpandedReference = []v1alpha1.Remedy{
		{Text: "Check the name: Kubernetes keeps the text $({variable}) where no variable {variable} is defined. Define it in the list env, before other variables that refer to it.", Action: "{programTemplate}.spec.containers[0].env"},
		{Text: "In a shell, $({variable}) runs a command of that name; a variable is ${variable} there."},
	}
	// ReferenceInArguments are those for an argument that the program got as it is, since no shell runs the command. They may also use variable
	// and option, the argument.
	ReferenceInArguments = []v1alpha1.Remedy{
		{Text: "Write $({variable}), which Kubernetes replaces by the variable of the list env: no shell runs this command, so that the program got the text {option}.", Action: launcherArgs},
		{Text: "Or let a shell run the command.", Action: "command: [sh, -c, ...]"},
	}
	// MisspelledOfMPI and MisspelledVariable are those for a variable whose name is close to one that the MPI or the job sets. They may also use
	// variable and meant.
	MisspelledOfMPI = []v1alpha1.Remedy{
		{Text: "Write {meant} in place of {variable}: {setBy} sets the variable {meant} for each rank, and no {variable}.", Action: "{meant}"},
	}
	MisspelledVariable = []v1alpha1.Remedy{
		{Text: "Write {meant} in place of {variable}, if that is meant: the job sets {meant}, and no {variable}.", Action: "{meant}"},
		{Text: "Otherwise set {variable}, which no pod template sets.", Action: "{programTemplate}.spec.containers[0].env"},
	}
	// UnsetVariable are those for a variable that neither the pod templates nor the launcher's command set. They may also use assign, what to do
	// with it, and others, the variables that the container of the program has.
	UnsetVariable = []v1alpha1.Remedy{
		{Text: "{assign}: no pod template sets {variable}{others}.", Action: "{programTemplate}.spec.containers[0].env: [{name: {variable}, value: ...}]"},
		{Text: "If your manifest sets it, write all variables into one list env. Where a container has two, the last one replaces the first."},
	}
	// VariableOfCommand are those for a variable that only the launcher's command sets, with Open MPI.
	VariableOfCommand = []v1alpha1.Remedy{
		{Text: "Let mpirun pass {variable} on: no pod template sets it, and Open MPI passes a variable of the launcher's command on only with -x.", Action: "mpirun -x {variable} <program>"},
		{Text: "Or set it in the pod template of the ranks.", Action: "{programTemplate}.spec.containers[0].env"},
	}
	// VariableOnlyInWorkers are those for a variable that only the workers' pod template sets, and a program of the launcher lacks.
	VariableOnlyInWorkers = []v1alpha1.Remedy{
		{Text: "Set {variable} in the launcher as well: only the workers' pod template sets it.", Action: "{launcherTemplate}.spec.containers[0].env"},
	}
	// OneProcess are those for such an error of a command that does not call MPI.
	OneProcess = []v1alpha1.Remedy{
		{Text: "The command ran as one process in the launcher, and nothing ran on the workers. Start the program by mpirun.", Action: "mpirun -n {ranks} <program>"},
		{Text: "If it is to run as one process, correct the program or its input.", Action: launcherLog},
	}
	// VariableOnlyInLauncher are those for a variable that only the launcher's pod template sets.
	VariableOnlyInLauncher = []v1alpha1.Remedy{
		{Text: "Set {variable} in the workers as well: only the launcher's pod template sets it.", Action: "{workerTemplate}.spec.containers[0].env"},
		{Text: "Or let mpirun pass it on: Open MPI does so only with -x.", Action: "mpirun -x {variable} <program>"},
	}
	// PythonElsewhere are those for a Python that looks for its own library where a variable says. They may also use value and source.
	PythonElsewhere = []v1alpha1.Remedy{
		{Text: "Remove {variable}. It is {value}, where Python does not find its own library. {source|The command, the image or an object of envFrom sets it.}", Action: "env: {variable}"},
	}
	// OwnLimit is the remedy for a limit that the command of a job sets itself. It may use role, field and limitSet.
	OwnLimit = v1alpha1.Remedy{Text: "The command of the {role} sets this limit: {limitSet}. Raise or remove it.", Action: "{field}.spec.containers[0].command"}
	// UnreadableObject are those for a file of a Secret or ConfigMap that the pod's user may not read.
	UnreadableObject = []v1alpha1.Remedy{
		{Text: "Let the pod's user read it: {file} is on volume {volume}, {mounted}. Set fsGroup, so that the group of the file is one of the pod's.", Action: "{programTemplate}.spec.securityContext.fsGroup"},
		{Text: "Or set defaultMode of the volume so that the group, or everyone, can read its files.", Action: "{programTemplate}.spec.volumes: defaultMode: 0444"},
	}
	// WrongSubPath are those for a file of a ConfigMap or Secret that is a folder, since its subPath is no key. They also use mounted and key.
	WrongSubPath = []v1alpha1.Remedy{
		{Text: "Correct subPath {key}: {mounted} has no such key, and Kubernetes then mounts an empty folder as {file}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	}
	// MissingOnVolume are those for a file that is missing in a folder at which a volume is mounted. They may also use folder and mounted.
	MissingOnVolume = []v1alpha1.Remedy{
		{Text: "Check the path of {file}: it is on volume {volume}{mounted}, which is mounted at {folder}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
		{Text: "If the file is in the image, mount the volume at another folder: it hides everything that the image has below {folder}."},
	}
	// FilledBySidecar are those for such a file if an init container with restartPolicy: Always mounts the volume, for whose end the program does
	// not wait, and FilledByContainer if another container of the pod does. They may also use container and its field.
	FilledBySidecar = []v1alpha1.Remedy{
		{Text: "If init container {container} writes {file} and then ends, remove its restartPolicy: Always. It makes {container} a sidecar: the program starts while it still runs, and volume {volume} may not have the file yet. The init container is repeated if it fails without this, too.", Action: "{containerField}.restartPolicy"},
		{Text: "If it writes the file and has to keep running, let its startupProbe fail until the file is complete: the program starts only after that.", Action: "{containerField}.startupProbe"},
		{Text: "If {container} does not write it, check the path of {file}: it is on volume {volume}{mounted}, which is mounted at {folder}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	}
	FilledByContainer = []v1alpha1.Remedy{
		{Text: "If container {container} writes {file}, do that in an init container: the containers of a pod start together, and volume {volume} may not have the file yet when the program starts.", Action: "{programTemplate}.spec.initContainers"},
		{Text: "If {container} does not write it, check the path of {file}: it is on volume {volume}{mounted}, which is mounted at {folder}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	}
	// ReferredTooEarly are those for a reference to a variable that is defined after it. They may also use variable and meant, which refers to it.
	ReferredTooEarly = []v1alpha1.Remedy{
		{Text: "Move {variable} before {meant} in the list env: Kubernetes replaces $({variable}) only where {variable} is defined before.", Action: "{programTemplate}.spec.containers[0].env"},
	}
	// ReducedToRoot are the last for a division by zero in another rank than 0 of a program that reduces to one rank.
	ReducedToRoot = []v1alpha1.Remedy{
		{Text: "If the divisor is the result of MPI_Reduce, call MPI_Allreduce in its place, or MPI_Bcast after it: MPI_Reduce gives the result to the root only, and other ranks keep what their buffer had.", Action: "MPI_Allreduce"},
	}
	// NameOfProxy are those for a host name that is unknown while a variable names a proxy. They may also use variable, proxy, its host,
	// variableField, the pod template that sets it, and service, the job's own domain.
	NameOfProxy = []v1alpha1.Remedy{
		{Text: "Check {proxy}, the proxy that {variable} names: with it, a program resolves the name of the proxy, and not of the host in its address. Correct or remove {variable}.", Action: "{variableField}.spec.containers[0].env"},
		{Text: "For addresses in the cluster, such as those of the job's own pods, leave the proxy out.", Action: "env: NO_PROXY, no_proxy: localhost,.svc,.cluster.local,{service}"},
		{Text: "If the program does not use the proxy, correct the host's name{address| in this address}, or create its Service."},
	}
	// ReplacedTooEarly, VariableOfOtherMPI and EmptyVariable are those for a file whose name lacks the value of a variable. They may also use
	// option, the word of the command with the variable, and meant and setBy as MisspelledOfMPI.
	ReplacedTooEarly = []v1alpha1.Remedy{
		{Text: "Write {variable} so that the shell of each rank replaces it, and not that of the launcher, where it is empty: put the script of the ranks in single quotes, or a backslash before the sign $. Without its value, {option} became {file}.", Action: `\${variable}`},
	}
	VariableOfOtherMPI = []v1alpha1.Remedy{
		{Text: "Write {meant} in place of {variable}: {setBy} sets {meant} for each rank, and no {variable}. Without its value, {option} became {file}.", Action: "{meant}"},
	}
	EmptyVariable = []v1alpha1.Remedy{
		{Text: "Set {variable}: it was empty, so that {option} became {file}. No pod template and no line of the command sets it.", Action: "{programTemplate}.spec.containers[0].env"},
		{Text: "If MPI is to set it, check its name.", Action: "OMPI_COMM_WORLD_RANK (PMI_RANK with MPICH and Intel MPI)"},
	}
	// ArgumentsInOneWord are those for arguments that are one word of the list. They may also use option, the word, and words, those that were meant.
	ArgumentsInOneWord = []v1alpha1.Remedy{
		{Text: "Write each argument as an element of the list: {option} is one argument, with the blanks in it.", Action: "{words}"},
	}
	// MountedElsewhere are those for a file on a volume that the pods of the program do not mount. They may also use templateName and otherTemplate.
	MountedElsewhere = []v1alpha1.Remedy{
		{Text: "Mount volume {volume}{mounted} at {folder} in the pod template of {templateName} as well: only that of {otherTemplate} does, and {rankLower|the program} ran in a pod of {templateName}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	}
	// MissingKey are those for such a file on a ConfigMap or Secret. They may also use object, its kind and name, and key.
	MissingKey = []v1alpha1.Remedy{
		{Text: "Check the keys of {mounted}, which are the files in {folder}: the pod had no {key} there, so that it is none of them, or the list items of the volume leaves it out.", Action: "kubectl -n {namespace} describe {object}"},
		{Text: "If the file is in the image, mount the volume at another folder: it hides everything that the image has below {folder}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	}
	// RefusedConnection are those for a connection that was refused: what the address names was reached. They may also use host.
	RefusedConnection = []v1alpha1.Remedy{
		{Text: "Check that a program listens at {address|this address and port}, and that it is started before the others connect to it: the pod or server was reached, and refused."},
		{Text: "If the address is localhost, it is each pod itself. For the ranks of other pods, name the host of the rank that listens.", Action: "{host|HOST}"},
	}
	// ReadOnlyVolume are those for a file on a volume that cannot be written to. They may also use mounted.
	ReadOnlyVolume = []v1alpha1.Remedy{
		{Text: "Write {file} elsewhere: it is on volume {volume}{mounted}, which cannot be written to. Use a claim, or an emptyDir for files that the job alone needs.", Action: programVolumes},
	}
	// ReadOnlyMount are those for a file on a volume that is mounted so that it cannot be written to. They may also use folder.
	ReadOnlyMount = []v1alpha1.Remedy{
		{Text: "Remove readOnly from the mount of volume {volume} at {folder}, if the program is to write {file}.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
		{Text: "Or write it to another volume."},
	}
	// FileNotExecutable are those for a file that a shell may not execute.
	FileNotExecutable = []v1alpha1.Remedy{
		{Text: "Start {file} by its interpreter, which does not need the mode.", Action: "command: [sh, {file}]"},
		{Text: "Or make it executable: by defaultMode: 0755 of a ConfigMap's volume, or by chmod +x in the image.", Action: programVolumes},
	}
	// RenamedByAnother are those for a file that is missing when the program renames it.
	RenamedByAnother = []v1alpha1.Remedy{
		{Text: "Let one rank alone write {file}, or give each rank a file of its own: all ranks run the same lines, and another rank of the pod has renamed or removed it already.", Action: "if MPI.COMM_WORLD.Get_rank() == 0:"},
		{Text: "If only one rank writes it, check that it is written before it is renamed."},
	}
	// IsolatedNetwork are those for a connection from a job that the operator isolates.
	IsolatedNetwork = []v1alpha1.Remedy{
		{Text: "Check whether the job may connect to {address|this address}{ofURL}. NetworkPolicy {policy} isolates it: its pods reach the job's own pods, DNS, port 443 and what an administrator allows.", Action: "kubectl -n {namespace} get networkpolicy {policy} -o yaml"},
		{Text: "Who administers the namespace or the runtime can allow other destinations by this annotation.", Action: "metadata.annotations[mpi.opendatahub.io/allow-egress]"},
	}
)

// OwnErrorOf returns the kind of an error that a program reported, nil if it is none of OwnErrors. Kinds that also follow from the program's
// lines are left out.
func OwnErrorOf(text string) *OwnError { return OwnErrorIn(text, "") }

// OwnErrorIn is OwnErrorOf for an error of which the lines of the program in its traceback are known.
func OwnErrorIn(text, source string) *OwnError {
	var found *OwnError
	for i := range OwnErrors {
		kind := &OwnErrors[i]
		if !kind.Matches.MatchString(text) || kind.Source != nil && !kind.Source.MatchString(source) {
			continue
		}
		if kind.Source != nil {
			return kind
		}
		if found == nil {
			found = kind
		}
	}
	return found
}
