package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// LostInPipe are the remedies of RankFailed for a command whose ranks write into a pipe, whose exit code is that of its last program.
var LostInPipe = []v1alpha1.Remedy{
	{Text: "Let the shell return the exit code of mpirun instead of that of the program after the pipe: run the script with bash, and begin it with set -o pipefail.", Action: "bash -c 'set -o pipefail; mpirun ... | tee ...'"},
	{Text: "Correct the error of the rank: read its output.", Action: launcherLog},
}

// EarlierRunFailed is the definition of RankFailed for a command that ran MPI again after ranks had failed, the last time with success.
var EarlierRunFailed = Entry{
	Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityInfo,
	Summary: "Rank {rank} ({program}) of an earlier run of MPI failed with exit code {code}{errorText}. The launcher's command went on and ran MPI again, the last time with success.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Nothing needs to be done if the script expects this, as after a test or in a retry. If later runs need the result of that one, end the script at the first error.", Action: "bash -c 'set -e; mpirun ...; mpirun ...'"},
	},
}

// Definitions of RankFailed for jobs of which only the log shows that they did not do their work.
var (
	// PipeClosed may use program, which read the output of MPI's launcher.
	PipeClosed = Entry{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "MPI ended all ranks before the program was done, because {program|the program after the pipe} closed the pipe that mpirun writes to. The job succeeded, since a pipe ends with the exit code of its last program.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove {program|the program after the pipe} from the command. The complete output is in the pod's log.", Action: launcherLog},
			{Text: "Or let the output pass a program that reads all of it.", Action: "bash -c 'set -o pipefail; mpirun ... | tee ...'"},
		},
	}
	// AbortedWithZero may use rank.
	AbortedWithZero = Entry{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "Rank {rank} called MPI_Abort, which ended all ranks, with error code 0: the job counts as succeeded, although the program gave up.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what the program printed before.", Action: launcherLog},
			{Text: "Let the program pass another error code, so that the job fails. Without an argument, that of mpi4py is 0.", Action: "comm.Abort(1)"},
		},
	}
	// ExceptionLast may use errorText, placeText and rankText.
	ExceptionLast = Entry{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "The last lines of the log are the traceback of an exception{rankText}{errorText}{placeText}. The program ended with exit code 0, so that the job succeeded.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check whether the program has done its work. If it gave up, let it raise the exception again after it has logged it, or end with an error, so that the job fails.", Action: "sys.exit(1)"},
		},
	}
)

// PartEnded is the definition of RankFailed for an exception that ended a part of a program, which then went on and succeeded. It may use part, such as
// "thread writer", errorText, placeText, rankText and times, how often that happened. NoticeThread, NoticeTask and NoticeProcess are its last remedies.
var (
	PartEnded = Entry{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "An exception ended {part}{rankText}{errorText}{placeText}. The program went on without it, and ended with exit code 0, so that the job succeeded.{times}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check whether the results are complete: what {part} had to do after this exception is missing."},
		},
	}
	NoticeThread = []v1alpha1.Remedy{
		{Text: "Let the program fail with its thread: an exception ends only the thread in which it is raised. A future passes it on to the thread that asks for its result.", Action: "ThreadPoolExecutor().submit(...).result()"},
	}
	NoticeTask = []v1alpha1.Remedy{
		{Text: "Let the program fail with its task: await each task that it creates, or use a group, which passes exceptions on.", Action: "async with asyncio.TaskGroup() as group:"},
	}
	NoticeProcess = []v1alpha1.Remedy{
		{Text: "Let the program fail with its child process: look at its exit code when it has ended, or use ProcessPoolExecutor, which raises the errors of its processes.", Action: "process.join(); process.exitcode"},
	}
)

// KilledWithoutLimit is the definition of Killed for a rank of a pod whose memory is not limited.
var KilledWithoutLimit = Entry{
	Code: Killed, Phase: v1alpha1.PhaseRunning, Strength: Consequence, Traits: FollowsPodLoss | EndsRank,
	Summary: "{who} was killed by signal 9{rankText}: a user or another process sent it, the pod was removed and did not stop in time, or the node was short of memory. The pod has no memory limit.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check the events: the pod may have been removed, or the node short of memory.", Action: listEvents},
		{Text: "Start the job again. If it happens again, set a memory limit: the report then shows whether memory was the cause.", Action: memoryLimit},
	},
}

// HelperOfOtherMPI is the definition of MPINotInPath for a launcher and workers with different images.
var HelperOfOtherMPI = Entry{
	Code: MPINotInPath, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI's helper {program|program} not found on a worker: launcher and workers have different images, {launcherImage} and {workerImage}, with different MPIs or versions.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
	},
}

var exits = []Entry{
	{
		Code: RankFailed, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "Rank {rank} ({program}) failed with exit code {code}{errorText}, but the job succeeded: the launcher's command ended with 0.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Return mpirun's exit code: call mpirun last, or stop the shell at the first error.", Action: "sh -c 'set -e; mpirun ...; ...'"},
			{Text: "If the command retries by itself, check whether the last attempt succeeded.", Action: launcherLog},
		},
	},
	{
		Code: ResultsNotKept, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "The job succeeded, but its result may be lost: the program reports to have written {file}, which is on no volume that stays when the pod is deleted.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Save it to a claim. This runs the job again with one, in which each job has a folder of its own, at the path in OUTPUT_DIR.", Action: "kubectl odh mpijob clone {job} -n {namespace} --output-dir CLAIM:/results"},
			{Text: "Or mount a claim at {folder|the folder of the file} in the pods of the ranks.", Action: "{programTemplate}.spec.volumes"},
			{Text: "Or upload it to a bucket before the program ends."},
		},
	},
	{
		Code: MPINotAwaited, Phase: v1alpha1.PhaseSucceeded, Severity: v1alpha1.SeverityWarning,
		Summary: "The launcher's command ended while {program} was still running in the background: the job counts as succeeded, but its ranks were ended with the pod.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Run {program} in the foreground: remove the & after it, and nohup, setsid or screen before it. Or let the script end with wait.", Action: "{launcherTemplate}.spec.containers[0].command"},
		},
	},
	{
		Code: Killed, Phase: v1alpha1.PhaseRunning, Strength: Consequence, Traits: FollowsPodLoss | EndsRank,
		Summary: "{who} was killed by signal 9{rankText}, usually because of memory, or because its pod was removed and did not stop in time.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Give each {role} more memory{limitText}, or use a smaller batch.", Action: memoryLimit},
			{Text: "Check the events: the pod may have been removed.", Action: listEvents},
		},
	},
	{
		Code: TimeLimitExceeded, Phase: v1alpha1.PhaseRunning, Traits: FollowsPodLoss, Settings: []string{"MPIEXEC_TIMEOUT"},
		Summary: "MPI's launcher ended all ranks when its time limit{limitText} was over. The ranks did not fail.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the time limit of the launcher's command (--timeout) or of its environment, or increase it.", Action: "{launcherTemplate}.spec.containers[0].command, env: MPIEXEC_TIMEOUT", Rerun: true, Changes: changeCommand},
			{Text: "The deadline of a job is set here.", Action: "{deadlineField}"},
		},
	},
	{
		Code: SegmentationFault, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program crashed{rankText} with a segmentation fault (signal 11).",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the stack trace in the log.", Action: launcherLog},
			{Text: "If it crashes at its start, the program or a Python package was built for another MPI or CUDA: rebuild it in the image."},
			{Text: "Enable Python's stack trace.", Action: "env: PYTHONFAULTHANDLER=1", Rerun: true, Changes: set("env.PYTHONFAULTHANDLER", "1")},
			{Text: "If it has large local arrays, raise the limit of the stack before it starts.", Action: largerStack},
		},
	},
	{
		Code: BusError, Phase: v1alpha1.PhaseRunning, Traits: EndsRank,
		Summary: "The program ended{rankText} with a bus error (signal 7), usually because /dev/shm is full ({shmText|64 MiB by default}).",
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
		Summary: "The program aborted{rankText} with signal 6{errorText}{placeText}.",
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
			{Text: "Or use an image that contains it. The one of these pods is {image|set in their template}.", Action: "{field}.spec.containers[0].image"},
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
		Code: MPINotInPath, Phase: v1alpha1.PhaseRunning, Settings: []string{"PATH", "OPAL_PREFIX", "PRTE_PREFIX", "I_MPI_ROOT"},
		Summary: "MPI's helper {program|program} not found on a worker: MPI is not in its image, or not in PATH for remote logins.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
			{Text: "Tell mpirun where MPI is installed.", Action: "mpirun --prefix /opt/openmpi"},
			{Text: "Or set PATH in the image, not in a shell profile.", Action: "ENV PATH=/opt/openmpi/bin:$PATH"},
		},
	},
	{
		Code: LibraryMissing, Phase: v1alpha1.PhaseRunning, Traits: FromProgram, Settings: []string{"LD_LIBRARY_PATH", "LD_PRELOAD"},
		Summary: "The program cannot start: shared library {library|of the program} not found{replacedText}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Pass the library path to all ranks.", Action: "mpirun -x LD_LIBRARY_PATH <program>"},
			{Text: "Or install the library in the workers' image, too.", Action: `kubectl -n {namespace} exec {worker} -- sh -c 'ldconfig -p | grep -F -e "$0"' {library|LIBRARY}`},
		},
	},
	{
		Code: ApplicationFailed, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
		Summary: "The program failed{rankText}{codeText}{abortText}{errorText}{placeText}.{othersEnded}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read its output before it ended. Later errors of other ranks are consequences.", Action: launcherLog},
		},
	},
}

// SilentPython is a remedy for a program in Python that ended with exit code 1 and printed no exception (sys.exit of the library reference).
var SilentPython = v1alpha1.Remedy{Text: "If it printed no exception, see how it ends: sys.exit(VALUE) prints a value that is neither an integer nor None, such as the result of a function, and ends with exit code 1.", Action: "sys.exit(VALUE)"}

// EndedAfterRanks is the definition of ApplicationFailed for a launcher whose command failed after its mpirun had succeeded.
var EndedAfterRanks = Entry{
	Code: ApplicationFailed, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
	Summary: "The launcher's command failed{codeText} after its MPI program had succeeded{lastText}{errorText}{placeText}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check what the command does after mpirun. A shell prints each command before it runs if its options include -x.", Action: "command: [sh, -exc, ...]"},
		{Text: "With set -e, a script ends with the first command whose exit code is not 0, such as a grep that finds nothing. Allow that where it is no error.", Action: "grep PATTERN FILE || true"},
	},
}

// CtypesCrash is the first remedy for a segmentation fault of a program whose code in the command calls a library by ctypes.
var CtypesCrash = []v1alpha1.Remedy{
	{Text: "Declare restype and argtypes of each function that the program calls by ctypes: without them a pointer is cut to an int of 32 bits, and the next call that uses it crashes.", Action: "lib.malloc.restype = ctypes.c_void_p"},
}

// UndeclaredPointer are the first remedies for a segmentation fault of a program that calls a function by ctypes which returns a pointer, without a
// declaration of its result. They use function, such as lib.malloc. CallByCtypes are those for a program that uses ctypes without such a call.
var (
	UndeclaredPointer = []v1alpha1.Remedy{
		{Text: "Declare what {function} returns, before it is called by ctypes: without that its pointer is cut to an int of 32 bits, and the next call that uses it crashes.", Action: "{function}.restype = ctypes.c_void_p"},
	}
	CallByCtypes = []v1alpha1.Remedy{
		{Text: "If it crashed in a call by ctypes, declare restype and argtypes of this function, and check the length of each buffer: ctypes takes each result for an int of 32 bits, also a pointer.", Action: "lib.function.restype = ctypes.c_void_p"},
	}
)

// ScriptStopped is EndedAfterRanks for a script with set -e in which a command follows mpirun that ends with 1 if it finds nothing, as grep does. It
// may use line, its number in the script, script, the line, program, that command, and reason, why it ends with 1.
var ScriptStopped = Entry{
	Code: ApplicationFailed, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
	Summary: "The launcher's command failed{codeText} after its MPI program had succeeded, probably in line {line} of its script ({script}).",
	Remedies: []v1alpha1.Remedy{
		{Text: "Add || true to line {line}, if its result is no error: {program} ends with exit code 1 and no error message if {reason}, and set -e then ends the script. The lines after it did not run.", Action: "{script} || true"},
		{Text: "If it is another line, let the shell print each command before it runs.", Action: "command: [sh, -exc, ...]"},
	},
}

// EndedBeforeRanks is the definition of ApplicationFailed for a launcher whose command ended before it called mpirun.
var EndedBeforeRanks = Entry{
	Code: ApplicationFailed, Phase: v1alpha1.PhaseRunning, Strength: Ending, Traits: FollowsPodLoss,
	Summary: "The launcher's command failed{codeText} before it started MPI{lastText}{errorText}{placeText}. No rank ran.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check what the command does before mpirun. A shell prints each command before it runs if its options include -x.", Action: "command: [sh, -exc, ...]"},
		{Text: "Read the output of the launcher.", Action: launcherLog},
	},
}
