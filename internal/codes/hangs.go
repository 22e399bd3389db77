package codes

import (
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
)

var stalls = []Entry{
	{
		Code: RankGone, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
		Summary: "{rankWho|A rank} failed{errorText}{placeText}, but the job continues: {message|the other ranks wait for it}.{places}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the output of the rank that failed.", Action: launcherLog},
			{Text: "Python: let an exception end all ranks.", Action: ByMPI4Py},
			setDeadline,
			EndWaiting,
		},
	},
	{
		Code: RanksWaiting, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "All {ranksNow|ranks} wait since {since}: none computes or transfers data ({message}). {alone|The job is probably stuck.}{places}",
		Remedies: []v1alpha1.Remedy{
			{Text: "See what the kernel reports of each rank: its state, and the system call in which it waits.", Action: processStates},
			ShowStacks,
			{Text: "Check that each receive has a matching send, and that all ranks call the same collective operations in the same order."},
			setDeadline,
		},
	},
	{
		Code: RanksIdle, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo, Traits: Warns,
		Summary: "{ranksNow|The ranks} idle since {since}: none computes or transfers data ({message}). {reason|It may be on purpose: the kernel does not show what they wait for.}{places}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what the program printed last: it may say what it waits for.", Action: launcherLog},
			ShowStacks,
			setDeadline,
		},
	},
	{
		Code: NoAnswer, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "{rankWho} gets no answer from {address|an address} since {since}{ranksText}: packets to it are dropped, or nothing has this address.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the address, and whether a NetworkPolicy or a firewall allows the connection. A policy that does not allow it drops its packets.", Action: listPolicies},
			{Text: "Read what the program printed last.", Action: launcherLog},
			setDeadline,
		},
	},
	{
		Code: Straggler, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo, Traits: Warns,
		Summary: "{ranksNow|The other ranks} wait since {since} for {rankWho|one rank} ({message}), which may have more work than the others, be slower, or be in an endless loop.{places}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what the program printed last, and check what the program does on that rank between two messages.", Action: launcherLog},
			ShowStacks,
			{Text: "Check whether another program uses the CPUs of its node.", Action: "kubectl -n {namespace} top pods -l {selector}"},
			{Text: "If only one rank has work, as when it loads the data, divide it among the ranks."},
			setDeadline,
		},
	},
	{
		Code: CPUThrottled, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "The CPU limit of the workers slows the ranks down: the kernel stopped them for {seconds} s, {share} % of the time that they needed.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Increase the CPU limit to one CPU per rank, or remove it.", Action: "{workerTemplate}.spec.containers[0].resources.limits.cpu", Rerun: true, Changes: set("{workerTemplate}.spec.containers[0].resources.limits.cpu", "{moreCPU}")},
			{Text: "Or use as many slots as CPUs.", Action: "{slotsField}"},
		},
	},
	{
		Code: RanksShareCores, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "{boundRanks} of {boundPods} on {nodeText} are bound to the same {cores}, although they could use {usable}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Do not bind the ranks: replace {by|what binds them} by --bind-to none, or -bind-to none with MPICH, or set I_MPI_PIN to 0 with Intel MPI.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
			{Text: "Or give each pod cores of its own, on nodes whose kubelet has the static CPU manager: whole CPUs, and requests of CPU and memory that equal the limits.", Action: "{workerTemplate}.spec.containers[0].resources"},
		},
	},
	{
		Code: WorkersShareNodes, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
		Summary: "{of|Several workers} run on {nodeText|one node}. Ranks in different pods communicate over TCP there, which is slower than the shared memory of ranks in one pod. {how}",
		// Where the job has figures for it, they replace the first one.
		Remedies: []v1alpha1.Remedy{
			{Text: "Use fewer workers with more slots, and as many times the CPUs, memory and devices, where nodes have room for them. The ranks of a pod share memory."},
			{Text: "See how much of the time is communication: run the job again with a profile.", Action: "metadata.annotations[mpi.opendatahub.io/profile]: \"true\"", Rerun: true, Changes: set("metadata.annotations[mpi.opendatahub.io/profile]", "true")},
		},
	},
	{
		Code: TrainingDiverged, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "{what|The training} has diverged: {figure} is {is}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "See when it began, and compare it with the other figures of that time.", Action: "kubectl odh mpijob top {job} -n {namespace} --history"},
			{Text: "Stop the job, and start it again from the last checkpoint before, with a lower learning rate, a warm-up, or gradient clipping."},
			{Text: "If the loss is NaN from the start, look for invalid values in the data, such as a logarithm of 0. With mixed precision, scale the loss, or use bfloat16."},
		},
	},
	{
		Code: FigureConstant, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo, Traits: Warns,
		Summary: "The figure {figure} has not changed since {since}: it is {is} in each line, while the steps go on.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program ends when this figure is small enough, the tolerance may be below the precision of its numbers: use double precision (float64), or a tolerance of about 1e-5, relative to the values, for float32. Limit the number of steps, too."},
			{Text: "If it is a training, check that the parameters change: the learning rate is not 0, the optimizer has all parameters, and no gradient is lost, such as by detach() or a saturated activation."},
			{Text: "See when it began, and compare it with the other figures of that time.", Action: "kubectl odh mpijob top {job} -n {namespace} --history"},
		},
	},
	{
		Code: NoOutput, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "No output since {since}, although all pods run. The program may be computing, or a rank is stuck.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the CPU usage of the ranks. A stuck rank uses none; those that wait for it use a full core.", Action: "kubectl -n {namespace} top pods -l {selector}"},
			{Text: "See what the kernel reports of each rank: its state, and the system call in which it waits.", Action: processStates},
			ShowStacks,
			setDeadline,
		},
	},
	{
		Code: SlowStart, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
		Summary: "{who} not started since {since}: {state}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "See the pod's conditions and events.", Action: describePod},
			{Text: "A node takes minutes to pull a large image for the first time. Later starts are faster."},
		},
	},
	{
		Code: SlowStartupStep, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityInfo,
		Summary: "The start was slow: {step} took {time}{where}{median}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{advice}"},
			{Text: "See the pod's conditions and events.", Action: describePod},
		},
	},
	{
		Code: ProfileMissing, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
		Summary: "The job has no communication profile. {why}",
		Remedies: []v1alpha1.Remedy{
			{Text: "The library for profiles counts the calls of programs in C, C++, Fortran and Python that use MPI as a shared library."},
			{Text: "If the job needs no profile, remove the annotation.", Action: "metadata.annotations[mpi.opendatahub.io/profile]", Rerun: true, Changes: set("metadata.annotations[mpi.opendatahub.io/profile]", "null")},
		},
	},
	{
		Code: Unknown, Phase: v1alpha1.PhaseFailed, Strength: Unexplained, Traits: FollowsPodLoss,
		Summary: "{state} The cause is unknown. {known}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the launcher's log. The first error is usually the cause.", Action: "kubectl -n {namespace} logs -l {launcherPods} --tail=200"},
			{Text: "Check the events.", Action: listEvents},
			{Text: "Check the state of the pods.", Action: "kubectl -n {namespace} describe pods -l {selector}"},
		},
	},
}

// ShowStacks is the remedy that shows where the ranks of a running job are, if an agent starts them. PrintStacks is that for jobs without
// agents.
var (
	ShowStacks = v1alpha1.Remedy{
		Text: "Python: see in which function and line each rank is now. Compare the ranks, and repeat it: a rank in the same line every time is stuck there.", Action: "kubectl odh mpijob stacks {job} -n {namespace}",
	}
	PrintStacks = v1alpha1.Remedy{
		Text: "Python: run the job again with this variable. A rank that receives the signal ABRT (kill -ABRT) then prints its call stacks and ends.", Action: "env: PYTHONFAULTHANDLER=1", Rerun: true, Changes: set("env.PYTHONFAULTHANDLER", "1"),
	}
)

// setDeadline is the remedy for all jobs that may be stuck.
var setDeadline = v1alpha1.Remedy{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"}

// EndWaiting is the last remedy for ranks that wait for one that failed: it ends the waiting, not its cause.
var EndWaiting = v1alpha1.Remedy{
	Text: "Delete the launcher's pod. This only ends the waiting: the job then fails, or starts its next attempt, which fails the same way until the cause is removed.", Action: "kubectl -n {namespace} delete pod {logPod}",
}

// SleepsAlone are the remedies for a rank that sleeps or is blocked while all others wait for a message. In Open MPI's MPI_Finalize, a rank
// sleeps, too.
var SleepsAlone = []v1alpha1.Remedy{
	{Text: "Check why rank {option} does not send what the others wait for: it waits for something outside MPI, such as a file, a lock or a process, or has ended its work and waits in MPI_Finalize."},
}

// NoAnswerFailed is the definition of NoAnswer after the rank that got no answer has failed while others wait for it. It uses the figures of
// RankGone, and caller, the pod that called.
var NoAnswerFailed = Entry{
	Code: NoAnswer, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
	Summary:  "{caller} got no answer from {address}, which it called since {called}: packets to it are dropped, or nothing has this address. {rankWho|A rank} then failed{errorText}{placeText}, but the job continues: {message|the other ranks wait for it}.{places}",
	Remedies: slices.Concat(Lookup(NoAnswer).Remedies[:1], Lookup(RankGone).Remedies[1:]),
}

// These are the first remedies for ranks whose places in the code show why they wait for each other. They use first and second, two groups of
// ranks; firstPlace and secondPlace, where they are; and firstCall and secondCall, the collective operations that they call there.
var (
	CollectivesApart = []v1alpha1.Remedy{
		{Text: "Let all ranks make the same collective calls in the same order. One of these is probably in a condition that not all ranks meet, such as `if rank == 0`; move it out: {firstCall} at {firstPlace} ({first}), or {secondCall} at {secondPlace} ({second})."},
	}
	EndedBeforeOthers = []v1alpha1.Remedy{
		{Text: "Give all ranks the same number of steps: {first} made fewer calls than {second} at {secondPlace}. If each loops over its own data, drop what is left over, or agree on the number of steps before the loop.", Action: "steps = comm.allreduce(steps, op=MPI.MIN)"},
	}
)

// ShellWaits are the first remedies for ranks that run a shell script. They use script, its file, or the shell that has it as an argument.
var ShellWaits = []v1alpha1.Remedy{
	{Text: "See which command of {script} runs now, and what the script waits for: a loop with sleep until a file exists, or is deleted, does not end by itself.", Action: "kubectl -n {namespace} exec {worker} -- sh -c 'for p in /proc/[0-9]*; do echo \"$p $(tr \"\\0\" \" \" < $p/cmdline)\"; done'"},
}

// WaitsForStorage is the definition of RanksWaiting if a rank waits for its files, such as a checkpoint that it writes.
var WaitsForStorage = Entry{
	Code: RanksWaiting, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
	Summary: "All {ranksNow|ranks} wait since {since}: none computes or transfers data ({message}). This rank may read or write a large file, such as a checkpoint.{places}",
	Remedies: []v1alpha1.Remedy{
		{Text: "If this ends by itself, the storage is slow: write less often or fewer bytes, to a faster volume, or from a thread while the ranks go on."},
		{Text: "If it does not end, see in which function of the kernel the rank waits, and whether the volume's server answers.", Action: processStates},
		ShowStacks,
		setDeadline,
	},
}

// SlowerRanks is the definition of Straggler if it is known why the ranks are slower. It uses {slower}, such as "Rank 1 is slower: ...".
var SlowerRanks = Entry{
	Code: Straggler, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
	Summary:  "{ranksNow|The other ranks} wait since {since} for {rankWho|one rank} ({message}). {slower}{places}",
	Remedies: Lookup(Straggler).Remedies,
}

// GPUStraggler is the definition of Straggler for ranks whose GPUs are idle while those of all others are busy. It uses {gpuText}, such as "The GPU of rank 1
// is idle while those of 3 other ranks are busy".
var GPUStraggler = Entry{
	Code: Straggler, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
	Summary: "{gpuText}, since {since} ({message}). The others may wait for it: a kernel of NCCL that waits keeps its GPU busy.{places}",
	Remedies: []v1alpha1.Remedy{
		ShowStacks,
		{Text: "If this rank loads data, evaluates or writes a checkpoint while the others wait, divide the work among the ranks, or do it while they go on."},
		{Text: "Read what the program printed last.", Action: launcherLog},
		setDeadline,
	},
}

// MemoryFromDisk and BusyNode are the first remedies for a pod whose ranks are slower than those of others since their memory is read from a
// disk, or since they do not get a CPU.
var (
	MemoryFromDisk = []v1alpha1.Remedy{
		{Text: "Check the memory of the pod: parts of it are swapped out, or files that it reads do not fit. Increase its memory, or read less data at once.", Action: "{workerTemplate}.spec.containers[0].resources.limits.memory"},
	}
	BusyNode = []v1alpha1.Remedy{
		{Text: "Request as many CPUs as the pod has ranks: its node runs more than it has CPUs for.", Action: "{workerTemplate}.spec.containers[0].resources.requests.cpu"},
	}
)

// ChildProcess are the first remedies for a rank that alone waits for a process that it has started. They may use source, its line of code.
var ChildProcess = []v1alpha1.Remedy{
	{Text: "If it waits there for a process with stdout=PIPE or stderr=PIPE, read the pipe meanwhile: a pipe holds 64 KiB, and a process that writes more waits until it is read.", Action: "output, errors = process.communicate()"},
	{Text: "Otherwise find out what this process waits for, such as its standard input, and give it a time limit.", Action: "subprocess.run(..., stdin=subprocess.DEVNULL, timeout=600)"},
}

// ChildFailed is the definition of RanksWaiting and RanksIdle if a rank waits for a process that it has started, and that process has failed. It uses
// child, its name, childOf, the rank, stall, what the ranks do, and the figures of RankGone about the error.
var ChildFailed = Entry{
	Code: RanksWaiting, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
	Summary: "A child process ({child}) of {childOf|a rank} failed{errorText}{placeText}, and {childOf|the rank} probably waits for it: {stall} since {since} ({message}).{places}",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct this error, and let the program notice that its child process has ended: a queue or a pipe to a process that has failed waits indefinitely. Use a time limit, and look at the process's exit code; or use ProcessPoolExecutor or multiprocessing.Pool, which raise the errors of their processes.", Action: "queue.get(timeout=60); process.exitcode"},
		ShowStacks,
		setDeadline,
	},
}

// LockHeld are the first remedies for a rank that waits for a file's lock which another one holds that waits itself. They use option, the rank that
// waits, file, holder and holderPlace. LockAwaited are those if its holder is unknown.
var (
	LockHeld = []v1alpha1.Remedy{
		{Text: "Release the lock of {file} before ranks wait for each other: rank {holder} holds it{holderPlace}, and rank {option} waits for it. Move what rank {holder} waits for, such as a Barrier, behind the part of the program that holds the lock."},
	}
	LockAwaited = []v1alpha1.Remedy{
		{Text: "Find out which process holds the lock of {file}. If a rank holds it that waits for others, as in a Barrier, let it release the lock before that.", Action: "kubectl -n {namespace} exec {pod} -- cat /proc/locks"},
	}
)

// AllReceive are the first remedies for ranks each of which waits for a message. HashedTag are those for a program that calls Python's hash.
var (
	AllReceive = []v1alpha1.Remedy{
		{Text: "Compare the source, the tag and the communicator of each receive with those of the send that it waits for. If all ranks receive before they send, let them use a combined call. A tag made by Python's hash() of a text differs in each process.", Action: "comm.Sendrecv"},
	}
	HashedTag = []v1alpha1.Remedy{
		{Text: "If a tag is made by hash(): that of a text differs in each process of Python. Use a fixed number for each kind of message, or the same PYTHONHASHSEED for all ranks.", Action: "env: PYTHONHASHSEED=0", Rerun: true, Changes: set("env.PYTHONHASHSEED", "0")},
	}
)

// SeparateFolder are the first remedies for ranks that look for a file in an emptyDir which each pod has of its own. They use folder and volume.
var SeparateFolder = []v1alpha1.Remedy{
	{Text: "If a rank waits for a file in {folder} that is written in another pod: each pod has an emptyDir of its own there (volume {volume}), in which the files of other pods never appear. Use a claim with the access mode ReadWriteMany, or send the data by MPI, such as by comm.bcast.", Action: "{workerTemplate}.spec.volumes"},
}

// ThreadsLeft are the first remedies for ranks whose program has ended but for its threads.
var ThreadsLeft = []v1alpha1.Remedy{
	{Text: "End the threads and processes that the program has started before its last line: tell them to stop, and join them. A thread that need not end by itself is created with daemon=True.", Action: "threading.Thread(target=..., daemon=True)"},
}

// CommandContinues is the definition of RanksIdle for a launcher whose mpirun has ended while its command goes on. It may use program, the
// launcher of MPI.
var CommandContinues = Entry{
	Code: RanksIdle, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
	Summary: "No rank runs since {since}: {program|mpirun} ended{codeText}, but the launcher's command continues, and is idle.",
	Remedies: []v1alpha1.Remedy{
		{Text: "End what the command has started in the background, such as tail -f, before it waits for that.", Action: "kill %1; wait"},
		{Text: "See which processes it waits for.", Action: "kubectl -n {namespace} exec {logPod} -- sh -c 'for p in /proc/[0-9]*; do echo \"$p $(tr \"\\0\" \" \" < $p/cmdline)\"; done'"},
		setDeadline,
	},
}

// WaitsOnPurpose are the first remedies of CommandContinues for a command that names a program which does not end by itself. They may use words,
// that program with its arguments.
var WaitsOnPurpose = []v1alpha1.Remedy{
	{Text: "Remove {words} from the command: the job ends, and gives its nodes back, when the command ends.", Action: launcherArgs},
}

// Throttling is the definition of CPUThrottled while the job runs. It uses {share}.
var Throttling = Entry{
	Code: CPUThrottled, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
	Summary:  "The CPU limit slows {whoLower} down: the kernel stops the ranks for at least {share} % of the time in which they need a CPU.",
	Remedies: Lookup(CPUThrottled).Remedies,
}

// These are the first remedies for ranks that wait for each other in messages. They use first and second, two groups of ranks, firstPlace and secondPlace,
// where they are, and secondCall, the collective operation that the second ones call.
var (
	AllSend = []v1alpha1.Remedy{
		{Text: "Let each pair of ranks send and receive in one call, which cannot block itself. Short messages are buffered, so that such a program works until they get longer.", Action: "comm.Sendrecv(sendbuf, dest=..., recvbuf=..., source=...)"},
		{Text: "Or start the sends without waiting, and wait after the receives; or let even ranks send first, and odd ones receive first.", Action: "request = comm.Isend(...); comm.Recv(...); request.Wait()"},
	}
	MessageToItself = []v1alpha1.Remedy{
		{Text: "Correct the other rank of the call at {firstPlace}: {first} sends to itself or receives from itself, and is not in the matching call at the same time.", Action: "dest=(rank + 1) % size, source=(rank - 1) % size"},
	}
	MessageWithoutMatch = []v1alpha1.Remedy{
		{Text: "Make the call that matches the one of {first} at {firstPlace} before {secondCall} at {secondPlace} ({second}). If it is made, compare the other rank, the tag and the communicator of the two."},
	}
	MessagesApart = []v1alpha1.Remedy{
		{Text: "Compare the other rank, the tag and the communicator of the calls at {firstPlace} ({first}) and {secondPlace} ({second}): a send and a receive match only if all three fit."},
	}
)

// These are the first remedies for a rank that waits for its own threads or processes, and not for other ranks.
var (
	JoinedChild = []v1alpha1.Remedy{
		{Text: "Read the queue before join: a process that has put items into a multiprocessing.Queue ends only when they are read. This holds for items of more than 64 KiB in all.", Action: "result = queue.get(); child.join()"},
		{Text: "Otherwise see what this thread or process waits for. A process that was started by fork does not have the other threads of the rank, and must not call MPI: start it by spawn, before MPI.", Action: `multiprocessing.set_start_method("spawn")`},
	}
	EmptyQueue = []v1alpha1.Remedy{
		{Text: "See why the thread or process that fills the queue puts nothing into it: it may have failed, ended, or wait itself. A time limit shows it.", Action: "queue.get(timeout=600)"},
	}
	PoolAwaited = []v1alpha1.Remedy{
		{Text: "See what the pool's processes or threads do: one may have ended for lack of memory, or wait for a lock that a thread held when the process was started by fork. Start them by spawn, and before MPI.", Action: `multiprocessing.get_context("spawn").Pool()`},
	}
	EventAwaited = []v1alpha1.Remedy{
		{Text: "See why the other thread does not set the event: it may have failed, which does not end the program. A time limit shows it.", Action: "event.wait(timeout=600)"},
	}
	ThreadLock = []v1alpha1.Remedy{
		{Text: "See which thread holds the lock. One that calls a function which takes the same lock again waits for itself, unless it is an RLock; two locks are taken in one order everywhere.", Action: "threading.RLock()"},
	}
	InputAwaited = []v1alpha1.Remedy{
		{Text: "Read from a file or an argument: a pod has no terminal, and MPI passes standard input on to rank 0 only.", Action: "mpirun ... < /dev/null"},
	}
	ConnectionAwaited = []v1alpha1.Remedy{
		{Text: "See whether the other side connects to this host and port. For ranks of other pods it must listen on all addresses, not on localhost.", Action: `server.bind(("", port))`},
	}
)

// endAtNaN is the remedy for a loop that NaN keeps from ending.
var endAtNaN = v1alpha1.Remedy{
	Text:   "End the program when a figure is no number: comparisons with NaN are false, so that a loop that waits for a small figure never ends.",
	Action: "numpy.isfinite(...)",
}

// InvalidOperation are the first remedies of TrainingDiverged if NumPy has warned of the operation. They use where.
var InvalidOperation = []v1alpha1.Remedy{
	{Text: "Look at {where}, where NumPy has warned of a division by zero, an invalid value or an overflow: one such value makes sums over all ranks NaN. Leave such elements out."},
	endAtNaN,
}

// NotFiniteFigure are the first remedies of TrainingDiverged for a figure that is no loss.
var NotFiniteFigure = []v1alpha1.Remedy{
	{Text: "Look for the first operation whose result is no number, such as a division by zero or the root of a negative number. NumPy can end the program there.", Action: "numpy.seterr(all='raise')"},
	endAtNaN,
}
