package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// systemErrors are the kinds of errors of programs that the shell, the rights of a pod's user or the installed software cause: the phrases are
// those of bash, dash and busybox, OpenSSH, UCX, pip, conda, MKL and the runtimes of Fortran.
var systemErrors = []OwnError{
	{
		Name: "ulimit", Matches: regexp.MustCompile(`cannot modify limit|error setting limit|can't raise hard limit|not allowed to raise maximum limit`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the limit from the command, or let it fail: the container runtime sets the highest value, and the pod's user cannot exceed it.", Action: "ulimit -s unlimited || true"},
			{Text: "Or raise the limit to the highest value.", Action: `ulimit -S -s "$(ulimit -H -s)"`},
		},
	},
	{
		// taskset (schedutils/taskset.c), and numactl with libnuma.
		Name: "affinity", Matches: regexp.MustCompile(`'s affinity: Invalid argument|sched_setaffinity: Invalid argument|cpu argument \S+ is out of range`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove taskset or numactl from the command, or name cores that exist: the node has none of these, or the pod may not use them. mpirun can bind ranks by itself.", Action: launcherArgs},
			{Text: "See which cores a pod may use.", Action: "kubectl -n {namespace} exec {worker} -- grep Cpus_allowed_list /proc/self/status"},
		},
	},
	{
		Name: "socket path", Matches: regexp.MustCompile(`AF_UNIX path too long|\bsun_path\b|socket path (?:is )?too long`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Select a shorter folder for temporary files: the path of a socket has at most 107 bytes.", Action: "env: TMPDIR=/tmp", Rerun: true, Changes: set("env.TMPDIR", "/tmp")},
		},
	},
	{
		Name: "low port", Matches: regexp.MustCompile(`\b[Bb]ind\b.*[Pp]ermission denied|listen EACCES`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Listen on a port from 1024 on: pods do not run as root, and their users cannot open lower ones."},
		},
	},
	{
		Name: "UCX", Matches: regexp.MustCompile(`UCX +ERROR open\(file_name=/proc/`),
		Remedies: []v1alpha1.Remedy{
			{
				Text: "Let UCX open the shared memory of other ranks by its name: the pod's user may not do that by /proc.", Action: "env: UCX_POSIX_USE_PROC_LINK=n", Rerun: true,
				Changes: set("env.UCX_POSIX_USE_PROC_LINK", "n"),
			},
		},
	},
	{
		Name: "installation", Matches: regexp.MustCompile(`Could not install packages due to an \w+: \[Errno 13\]|NotWritableError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install the packages in the image. Pods do not run as root, and cannot write to its folders.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or install them into a folder on a volume that all pods mount, and name it in both pod templates.", Action: "pip install --target /data/py PACKAGE; env: PYTHONPATH=/data/py"},
		},
	},
	{
		Name: "conda", Matches: regexp.MustCompile(`properly configured to use 'conda activate'|before 'conda activate'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Read conda's functions in the script before conda activate.", Action: `. "$(conda info --base)/etc/profile.d/conda.sh"`},
			{Text: "Or start the program in its environment without activating it.", Action: "mpirun conda run --no-capture-output -n ENVIRONMENT <program>"},
		},
	},
	{
		// The errors of dash and busybox for options, arrays, substitutions and redirections of bash.
		Name: "bash in sh", Matches: regexp.MustCompile(`set: [Ii]llegal option -o \w|\bBad substitution|syntax error: bad substitution|[Ss]yntax error: (?:"[(&]" unexpected|unexpected "\("|(?:unexpected )?redirection\b|Bad for loop variable)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Run the script by bash, if the image has it: it probably uses what sh does not have. In most images, sh is not bash.", Action: runByBash},
			{Text: "Or write it without what only bash has, such as arrays, set -o pipefail, ${NAME//a/b} and <<<."},
		},
	},
	{
		Name: "here document", Matches: regexp.MustCompile(`here-document at line \d+ delimited by end-of-file`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Begin the line with the end mark (EOF) without blanks, and let nothing follow the mark. In a block of YAML, indent it as the block's first line.", Action: launcherArgs},
		},
	},
	{
		Name: "MKL", Matches: regexp.MustCompile(`MKL FATAL ERROR: Cannot load`),
		Remedies: []v1alpha1.Remedy{
			{Text: "MKL does not find its own libraries, or those of another version. Name the folder of the version with which the program was built, in both pod templates.", Action: "env: LD_LIBRARY_PATH=/opt/intel/oneapi/mkl/latest/lib"},
			{Text: "In Python, install numpy and other packages that use MKL from one source, so that there is one MKL.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		// Quantum ESPRESSO reads namelists by itself.
		Name: "namelist", Matches: regexp.MustCompile(`Cannot match namelist object|in namelist|NAMELIST|forrtl: severe \(1[789]\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the namelist in the program's input: it has a name that this version of the program does not have, a value of another type or length, or lacks a quotation mark or the / at its end."},
		},
	},
}

// runByBash runs a script by bash.
const runByBash = "command: [bash, -c, SCRIPT]"

// SSHDPort are the remedies for a server of OpenSSH that may not open its port.
var SSHDPort = []v1alpha1.Remedy{
	letAgentStart("Let the agent start the ranks. It needs no sshd, and no port below 1024."),
	{Text: "Or let sshd listen on a port from 1024 on, and name the port in the configuration of ssh.", Action: "/usr/sbin/sshd -De -p 2222"},
}

// largerStack raises the limit of the stack in each rank.
const largerStack = `mpirun sh -c 'ulimit -s unlimited; exec "$@"' sh <program>`

// FortranCrash is the definition of SegmentationFault for a program in Fortran.
var FortranCrash = Entry{
	Code: SegmentationFault, Phase: v1alpha1.PhaseRunning,
	Summary: "The program crashed{rankText} with a segmentation fault (signal 11). Its stack may be too small for its arrays, or it left the bounds of one.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Let each rank raise the limit of its stack before the program starts.", Action: largerStack},
		{Text: "With OpenMP, enlarge the stacks of the threads.", Action: "env: OMP_STACKSIZE=512M", Rerun: true, Changes: set("env.OMP_STACKSIZE", "512M")},
		{Text: "Or build the program so that it keeps arrays elsewhere.", Action: "-heap-arrays (Intel), -fno-stack-arrays (gfortran)"},
		{Text: "If that does not help, a build with checks names the line.", Action: "-g -traceback -check all (Intel), -g -fbacktrace -fcheck=all (gfortran)"},
	},
}

// ThreadsNotStarted is the definition of SegmentationFault for a program of which a library could not start its threads.
var ThreadsNotStarted = Entry{
	Code: SegmentationFault, Phase: v1alpha1.PhaseRunning,
	Summary:  "The program crashed{rankText} with a segmentation fault (signal 11): a library could not start its threads.",
	Remedies: fewerThreads,
}

// fewerThreads are the remedies for threads or processes that could not be started.
var fewerThreads = []v1alpha1.Remedy{
	{
		Text:   "Start fewer threads and processes in each rank: a container has a limit of process IDs, and libraries start a thread per CPU of the node.",
		Action: "env: OMP_NUM_THREADS=1, OPENBLAS_NUM_THREADS=1", Rerun: true, Changes: set("env.OMP_NUM_THREADS", "1", "env.OPENBLAS_NUM_THREADS", "1"),
	},
}
