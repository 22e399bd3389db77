package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// reinstallHorovod and useMPIRun are remedies that several errors share.
const (
	reinstallHorovod = "HOROVOD_WITH_MPI=1 pip install --no-cache-dir --force-reinstall horovod"
	useMPIRun        = "mpirun <program>"
)

// frameworkErrors are the kinds of errors of Horovod, DeepSpeed, PyTorch and MPI that a program reports as its own: their phrases are
// those of horovod/runner and horovod/common, deepspeed/launcher, deepspeed/runtime/config.py and op_builder, torch/distributed, and
// the error handlers of Open MPI and MPICH.
var frameworkErrors = []OwnError{
	{
		Name: "horovod build", Matches: regexp.MustCompile(`Extension \S+ has not been built|(?:MPI|Gloo|NCCL)(?: nor Gloo)? support (?:has not been built|is required)|HorovodVersionMismatchError|Framework \S+ installed with version`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install Horovod in the image again, after MPI and the frameworks, with a variable for each part: HOROVOD_WITH_MPI, _GLOO, _PYTORCH, _TENSORFLOW.", Action: reinstallHorovod},
			{Text: "See with what it was built.", Action: "horovodrun --check-build"},
		},
	},
	{
		Name: "horovod MPI", Matches: regexp.MustCompile(`does not find an installed MPI|could not connect to some hosts via ssh`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the ranks by mpirun in place of horovodrun. It reads the job's hostfile, and the agent connects the hosts.", Action: useMPIRun},
		},
	},
	{
		Name: "horovod start", Matches: regexp.MustCompile(`--start-timeout parameter`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the ranks by mpirun in place of horovodrun, which needs connections of its own between the hosts.", Action: useMPIRun},
			{Text: "Or wait longer for hosts that start slowly.", Action: "horovodrun --start-timeout 300"},
		},
	},
	{
		Name: "horovod tensor", Matches: regexp.MustCompile(`name as another tensor that is currently being processed`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give each tensor a name of its own, and start an operation with it after the previous one has ended."},
		},
	},
	{
		Name: "horovod tensors", Matches: regexp.MustCompile(`Mismatched [\w/ -]+: One rank\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let all ranks call the same operations with tensors of the same shapes and types, in the same order: they differ between two ranks. Conditions on the rank, and parts of data that differ in length, are usual causes."},
			{Text: "For tensors that may differ in their first dimension, use allgather."},
		},
	},
	{
		Name: "another rank", Matches: regexp.MustCompile(`Horovod has been shut down|HorovodInternalError: (?:.*gloo/|ncclRemoteError|MPI_\w+ failed, see MPI output)|ncclRemoteError|gloo/\S+: (?:Connection closed by peer|Read error|Write error)|remote process exited|MPI_ERR_(?:PROC_(?:FAILED|ABORTED)|REVOKED)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "This is a consequence: another rank ended before. Find the first error of another rank.", Action: launcherLog},
		},
	},
	{
		Name: "deepspeed launcher", Matches: regexp.MustCompile(`launcher '\S+' not installed|was not reachable via ssh|Unable to detect suitable \S+ address`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the ranks by mpirun in place of the deepspeed command, which needs pdsh or ssh.", Action: "mpirun python <program> --deepspeed"},
			{Text: "Or let deepspeed call Open MPI.", Action: "deepspeed --launcher openmpi --no_ssh_check --hostfile /etc/mpi/hostfile <program>"},
		},
	},
	{
		Name: "deepspeed hosts", Matches: regexp.MustCompile(`Hostfile (?:contains|is empty)|not found in hostfile|No slot '\S+' specified on host|no extra nodes available via hostfile|Unable to proceed, no GPU resources available|does not support (?:worker include/exclusion|limiting num nodes)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the ranks by mpirun in place of the deepspeed command. It reads the job's hostfile, and uses the GPUs of the workers.", Action: "mpirun python <program> --deepspeed"},
			{Text: "Or give deepspeed the job's hostfile, and remove --include, --exclude, --num_nodes and --num_gpus. It reads the form of Open MPI (HOST slots=N).", Action: "deepspeed --launcher openmpi --no_ssh_check --hostfile /etc/mpi/hostfile <program>"},
		},
	},
	{
		Name: "deepspeed compiler", Matches: regexp.MustCompile(`ninja not being installed|Ninja is required to load|CUDA_HOME (?:does not exist|environment variable is not set)|unable to compile CUDA op|MissingCUDAException`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image with the CUDA toolkit (devel, not runtime), a C++ compiler and ninja.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or build the operations into the image.", Action: "DS_BUILD_OPS=1 pip install deepspeed"},
		},
	},
	{
		Name: "deepspeed build", Matches: regexp.MustCompile(`CUDAMismatchException|does not match the version torch was compiled with|version mismatch! DeepSpeed ops`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image in which PyTorch, DeepSpeed and the CUDA toolkit have the same CUDA version, and install DeepSpeed last.", Action: "pip install --no-cache-dir --force-reinstall deepspeed"},
		},
	},
	{
		Name: "deepspeed batch", Matches: regexp.MustCompile(`Check batch related parameters|World size \(\d+\) is not valid|micro_batch_per_gpu`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let DeepSpeed compute the batch: set train_micro_batch_size_per_gpu and gradient_accumulation_steps, and omit train_batch_size. It is their product with the number of ranks ({ranks})."},
			{Text: "If the world size in the message is not {ranks}, the ranks do not know each other: start the program by mpirun.", Action: "mpirun python <program> --deepspeed"},
		},
	},
	{
		Name: "deepspeed configuration", Matches: regexp.MustCompile(`DeepSpeedConfigError|existing deepspeed config|Duplicate keys in DeepSpeed config|ElasticityConfigError|Unknown launcher`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the configuration of DeepSpeed, and check that its file is in every pod in which ranks run.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
		},
	},
	{
		Name: "weights only", Matches: regexp.MustCompile(`Weights only load failed|Unsupported global: GLOBAL`),
		Remedies: []v1alpha1.Remedy{
			{Text: "If you trust the file, let PyTorch load all of its types. Since version 2.6 it loads only tensors and plain types by default.", Action: "torch.load(PATH, weights_only=False)"},
			{Text: "Or allow the types that the message names.", Action: "torch.serialization.add_safe_globals([TYPE])"},
		},
	},
	{
		// The errors of pickle, gzip, PyTorch, safetensors and HDF5 for a file that ends too early.
		Name: "cut off", QuotesContent: true, Matches: regexp.MustCompile(`Ran out of input|end-of-stream marker was reached|pickle data was truncated|PytorchStreamReader failed|failed finding central directory|MetadataIncompleteBuffer|HeaderTooSmall|unexpected EOF, expected \d+ more bytes|truncated file: eof`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Delete {file|the file that the program reads}, and write or download it again, or start from an earlier checkpoint: it is cut off. A job may have ended while it wrote the file, or several ranks wrote it at once."},
			{Text: "Let rank 0 alone write checkpoints, under a temporary name that it then changes: a file with its final name is complete.", Action: "os.replace(PATH + \".tmp\", PATH)"},
			{Text: "If it is the pointer of Git LFS or an error page that was downloaded, get the data again. Its first bytes show that.", Action: "kubectl -n {namespace} exec {worker} -- head -c 200 {file|FILE}"},
		},
	},
	{
		Name: "weights", Matches: regexp.MustCompile(`loading state_dict|key\(s\) in state_dict|size mismatch for \S+: copying a param`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Load the weights into the model that they are from. Names that begin with module. are those of DistributedDataParallel's wrapper: save the model within it.", Action: "torch.save(model.module.state_dict(), PATH)"},
		},
	},
	{
		Name: "torch variables", Matches: regexp.MustCompile(`environment variable \w+ expected, but not set|requires the LOCAL_RANK environment|KeyError: '(?:LOCAL_)?(?:RANK|WORLD_SIZE)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Set {variable|RANK, WORLD_SIZE and LOCAL_RANK} in the program, from the variables of MPI.", Action: `os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"] (PMI_RANK with MPICH and Intel MPI)`},
			{Text: "MASTER_ADDR is the host of rank 0, and MASTER_PORT a free port. The launcher's command can pass them on.", Action: "mpirun -x MASTER_ADDR -x MASTER_PORT <program>"},
		},
	},
	{
		Name: "torch port", Matches: regexp.MustCompile(`server socket has failed to (?:listen|bind)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let only rank 0 of the job open the port: each rank needs another RANK, and none may be started twice."},
			{Text: "Or use another port.", Action: "mpirun -x MASTER_PORT=29501 <program>"},
		},
	},
	{
		Name: "torch rendezvous", Matches: regexp.MustCompile(`waiting for (?:clients|workers)\. \d+/\d+|client socket has (?:timed out|failed to connect)|TCPStore|RendezvousTimeoutError|DistStoreError|DistNetworkError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check MASTER_ADDR: in all ranks it must be the host of rank 0, which is usually the first worker.", Action: "mpirun -x MASTER_ADDR={worker}.{service} <program>"},
			{Text: "Check WORLD_SIZE and RANK: the job has {ranks} ranks, each with a number of its own."},
			{Text: "Allow all traffic between the job's own pods, on every port.", Action: listPolicies},
		},
	},
	{
		Name: "torch backend", Matches: regexp.MustCompile(`Distributed package doesn't have|(?i:(?:unknown|invalid) (?:c10d )?backend)|No backend type associated with device`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a backend that the image's PyTorch has: nccl on GPUs, gloo on CPUs. Packages of PyTorch contain no mpi.", Action: "torch.distributed.init_process_group(backend=\"gloo\")"},
			{Text: "Or build PyTorch from its sources in an image with MPI.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		// mpi4py's wheels load the library of MPI when they are imported.
		Name: "MPI library", Matches: regexp.MustCompile(`cannot load MPI library`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image whose MPI is in the path of the loader: mpi4py found none.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "If the image has an MPI elsewhere, pass the path of its libraries to all ranks.", Action: "mpirun -x LD_LIBRARY_PATH <program>"},
			{Text: "Or build mpi4py with the image's MPI.", Action: "pip install --no-binary=mpi4py --force-reinstall mpi4py"},
		},
	},
	{
		Name: "OpenMP twice", Matches: regexp.MustCompile(`OMP: Error #15\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program loads OpenMP twice, from packages of two sources. Install NumPy, PyTorch and the like from one source, conda or pip, in the image.", Action: "{programTemplate}.spec.containers[0].image"},
			{
				Text: "Until then, allow it. Results are seldom affected, and crashes are possible.", Action: "env: KMP_DUPLICATE_LIB_OK=TRUE",
				Rerun: true, Changes: set("env.KMP_DUPLICATE_LIB_OK", "TRUE"),
			},
		},
	},
	{
		Name: "MPI finalized", Matches: regexp.MustCompile(`after MPI_FINALIZE was invoked|MPI_FINALIZE was already invoked`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Call {call|this function} before MPI_Finalize. What runs at the program's end calls it too late: functions of atexit, destructors of global objects, and __del__ of Python. Call MPI_Finalize after them, or these functions before it.", Action: "MPI_Finalized(&flag)"},
		},
	},
	{
		Name: "MPI not initialized", Matches: regexp.MustCompile(`(?:before|after) MPI_\w+ was invoked|before initializing or after finalizing|MPI not initialized|attempted to initialize MPI|MPI_FINALIZE was invoked|Cannot call MPI_INIT`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Call MPI_Init before all other functions of MPI, and none after MPI_Finalize. In Python, import mpi4py.MPI first."},
			{Text: "If the program does, it is linked to two MPIs: build it with the image's.", Action: "ldd <program> | grep mpi"},
		},
	},
	{
		Name: "spawn", Matches: regexp.MustCompile(`MPI_ERR_SPAWN|MPI_Comm_spawn\b.*(?:failed|error|[Uu]nable)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let the program start fewer processes: MPI starts them in the free slots of the job, which has {ranks|few} slots, and the ranks that mpirun starts use some of these. MPIPoolExecutor spawns max_workers processes.", Action: "MPIPoolExecutor(max_workers=...)"},
			{Text: "Or give the job more slots.", Action: "{slotsField}"},
			{Text: "Or let mpirun start all processes, and use them as the pool.", Action: "mpirun ... python -m mpi4py.futures SCRIPT"},
		},
	},
	{
		Name: "MPI arguments", Matches: regexp.MustCompile(`(?:\b(?:P?MPI|internal)_\w+|MPI\.Exception): (?:Invalid|Null)|MPI_ERR_(?:ARG|GROUP|INFO\w*|KEYVAL|WIN|DISP|SIZE|ASSERT|LOCKTYPE|RMA\w*)\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the arguments of {call|this MPI call}. The program may expect another number of ranks than {ranks}."},
			otherHeader,
		},
	},
	{
		Name: "launcher in a rank", Matches: regexp.MustCompile(`does not support recursive calls`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Call mpirun once. The launcher's command starts a script by mpirun that itself calls mpirun: start the script without mpirun, or remove mpirun from the script.", Action: launcherArgs},
		},
	},
	{
		Name: "time limit", Matches: regexp.MustCompile(`time limit for job execution has been reached|APPLICATION TIMED OUT`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the time limit of the launcher's command (--timeout), or increase it.", Action: launcherArgs},
			{Text: "It may also be set in the environment.", Action: "env: MPIEXEC_TIMEOUT"},
			{Text: "The deadline of a job is set here.", Action: "{deadlineField}"},
		},
	},
}
