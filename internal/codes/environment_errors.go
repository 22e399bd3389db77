package codes

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// environmentErrors are the kinds of errors of programs that meet what a pod, its image or a service is: their phrases are those of the
// kernel (errno(3)), glibc, the CUDA runtime, OpenSSL, AWS's clients and HTTP, pip and apt.
var environmentErrors = []OwnError{
	{
		Name: "file lock", Matches: regexp.MustCompile(`[Uu]nable to lock file|database is locked|Unable to acquire lock|could not lock`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Several ranks open the same file. Let one rank write it, or give each rank a file of its own."},
			{Text: "If they only read a file of HDF5, or the file system has no locks, turn locks off.", Action: "env: HDF5_USE_FILE_LOCKING=FALSE"},
		},
	},
	{
		Name: "threads", Matches: regexp.MustCompile(`can't start new thread|pthread_create|[Cc]annot fork|fork: retry|Resource temporarily unavailable`),
		Remedies: fewerThreads,
	},
	{
		Name: "port", Matches: regexp.MustCompile(`[Aa]ddress already in use|EADDRINUSE`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another process of the pod listens on this port. If several ranks run in a pod, each opens it: let one of them do so, or add the rank's number within the pod to the port.", Action: "OMPI_COMM_WORLD_LOCAL_RANK (MPI_LOCALRANKID with MPICH and Intel MPI)"},
		},
	},
	{
		Name: "no GPU", Matches: regexp.MustCompile(`not compiled with CUDA|not compiled with (?:GPU|ROCm)|[Nn]o CUDA-capable device|no CUDA GPUs are available|libcuda\.so|No HIP GPUs`),
		Remedies: GPUNotRequested,
	},
	{
		Name: "GPU model", Matches: regexp.MustCompile(`no kernel image is available|invalid device function|not compatible with the current PyTorch installation`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image whose framework is built for the model of the nodes' GPUs, or select nodes with another model.", Action: "{programTemplate}.spec.nodeSelector"},
		},
	},
	{
		Name: "library version", Matches: regexp.MustCompile("version [`'](?:GLIBC|GLIBCXX|CXXABI|GFORTRAN)_\\S+ not found|symbol lookup error|undefined symbol|numpy\\.core\\.multiarray failed to import|numpy\\.dtype size changed|binary incompatibility"),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program or a package was built with other versions of its libraries than those in the image. Build it in the image, or use the image that it was built in.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "See which libraries it loads. LD_LIBRARY_PATH may name the folder of others.", Action: "ldd <program>"},
		},
	},
	{
		Name: "certificate", Matches: regexp.MustCompile(`CERTIFICATE_VERIFY_FAILED|certificate verify failed|x509: certificate|unable to get local issuer certificate|self[- ]signed certificate`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Mount the certificate of the authority that signed the server's, and name its file.", Action: "env: SSL_CERT_FILE, REQUESTS_CA_BUNDLE, AWS_CA_BUNDLE"},
		},
	},
	{
		Name: "credentials", Matches: regexp.MustCompile(`NoCredentialsError|PartialCredentialsError|Unable to locate credentials|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|(?:\b40[13] )(?:Client Error|Forbidden|Unauthorized)|HTTP Error 40[13]|password authentication failed|Access denied for user|gated repo` +
			// botocore of requests without an answer, s3fs and Arrow.
			`|\(40[13]\) when calling|PermissionError: (?:Forbidden|Access Denied|The AWS Access Key|The request signature)|AWS Error (?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH)|HTTP status 40[13]`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the credentials: they must be in the environment or the files of every pod in which a rank uses them, not expired, and allowed to do this. A data connection of the job sets them in all pods.", Action: "{programTemplate}.spec.containers[0].env"},
		},
	},
	{
		Name: "no such object", Matches: regexp.MustCompile(`NoSuchBucket|NoSuchKey|The specified (?:bucket|key) does not exist|AWS Error NO_SUCH_(?:BUCKET|KEY)|\b404 (?:Client Error|Not Found)|HTTP Error 404|\(404\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the name and the address of what the program reads: the server answers that it does not exist."},
		},
	},
	{
		Name: "server error", Matches: regexp.MustCompile(`\b(?:429|50[0234]) (?:Client|Server) Error|HTTP Error (?:429|50[0234])|Too Many Requests|SlowDown|Service Unavailable|Bad Gateway`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server is overloaded or down. Let one rank read what all ranks need and distribute it, try again after a pause, or start the job again later."},
		},
	},
	{
		Name: "character set", Matches: regexp.MustCompile(`UnicodeEncodeError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Set a character set that the image has.", Action: "env: LC_ALL=C.UTF-8, PYTHONUTF8=1"},
		},
	},
	{
		Name: "exists", Matches: regexp.MustCompile(`\bFile exists\b|FileExistsError|MPI_ERR_FILE_EXISTS`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let one rank create {file|it}, or allow that it exists: all ranks run the same lines, those of one pod share its files, and an earlier attempt of the job may have created it.", Action: "os.makedirs(PATH, exist_ok=True)"},
		},
	},
	{
		Name: "folder", Matches: regexp.MustCompile(`IsADirectoryError|can't find '__main__' module|\bIs a directory\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Name a file: {file|the path} is a folder. A ConfigMap or Secret that is mounted without subPath is one, and so is a subPath that is no key of it."},
		},
	},
	{
		Name: "storage", Matches: regexp.MustCompile(`Stale (?:NFS )?file handle|Input/output error|Remote I/O error|Transport endpoint is not connected|StaleFileHandle`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The storage behind the volume does not answer as it should: check its server and the node. Start the job again when it works.", Action: "kubectl -n {namespace} get pvc"},
		},
	},
	{
		Name: "root", Matches: regexp.MustCompile(`must be suid|must be (?:run as )?root|[Aa]re you root|a password is required|sudo: |externally-managed-environment|/var/lib/(?:dpkg|apt)|requires superuser`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install what the program needs in the image. Pods do not run as root, and cannot install packages of the system.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "package", Matches: regexp.MustCompile(`No matching distribution found|Could not find a version that satisfies|there is no package called|ResolutionImpossible`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the package's name and version, and install it in the image: while a job runs, each rank would install it, and pods may not reach the package registry.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "git", Matches: regexp.MustCompile(`dubious ownership`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Allow git to use the folder although another user owns it.", Action: "git config --global --add safe.directory {file|FOLDER}"},
		},
	},
	{
		Name: "variables of Open MPI", Matches: missingVariable(`OMPI_(?:COMM_WORLD|UNIVERSE)_\w+`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Only Open MPI sets {variable|this variable}. With MPICH and Intel MPI, take PMI_RANK and PMI_SIZE; mpi4py works with every MPI.", Action: "MPI.COMM_WORLD.Get_rank()"},
			{Text: "With Open MPI, start the program by mpirun: it sets the variable for each rank.", Action: "mpirun -n {ranks} <program>"},
		},
	},
	{
		Name: "variables of MPICH", Matches: missingVariable(`(?:PMI|PMIX|MPI_LOCAL|MV2_COMM)\w*`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Not every MPI sets {variable|this variable}. With Open MPI, take OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, with MPICH and Intel MPI PMI_RANK and PMI_SIZE; mpi4py works with every MPI.", Action: "MPI.COMM_WORLD.Get_rank()"},
			{Text: "Start the program by mpirun: it sets the variables for each rank.", Action: "mpirun -n {ranks} <program>"},
		},
	},
}

// missingVariable matches the errors of Python and of shells for an environment variable that is not set.
func missingVariable(name string) *regexp.Regexp {
	return regexp.MustCompile(`KeyError: ['"]` + name + `['"]|\b` + name + `: (?:unbound variable|parameter not set)`)
}

const (
	// nameOfVariable is a name as those of environment variables mostly are, in capitals or with an underscore, and no word of a sentence.
	nameOfVariable = `([A-Z][A-Z0-9_]+|\w*_\w*)`
	// wordOfVariable is what messages call an environment variable.
	wordOfVariable = `(?i:env(?:ironment)? ?var(?:iable)?s?)`
	// lack is how they report that it is missing, after its name.
	lack = `(?:(?:is |are |was |were |has |have )?(?:not (?:been )?(?:set|defined|found)|undefined|unset|missing|required)|expected, but not set|must be (?:set|defined))\b`
)

// unsetVariable is an error for an environment variable that is not set: those of Python and of shells, and what programs write. Its groups are the
// name. A name alone may be that of a setting or a macro: it counts only at the end of a clause.
var unsetVariable = regexp.MustCompile(`KeyError: ['"]([A-Z][A-Z0-9_]+)['"]` +
	`|(?:^|[\s:])([A-Za-z_]\w*): (?:unbound variable|parameter (?:null or )?not set)` +
	`|\b` + nameOfVariable + "['\"`]?:? " + wordOfVariable + ` ` + lack +
	`|` + wordOfVariable + ":? (?:['\"`](\\w+)['\"`]|\\$?" + nameOfVariable + `\b) ` + lack +
	`|` + wordOfVariable + ` (?:is |are |was |were )?(?:not (?:set|defined|found)|undefined|unset|missing|required): ['"]?` + nameOfVariable + `\b` +
	`|(?i:missing) (?:required )?` + wordOfVariable + `:? ['"]?` + nameOfVariable + `\b` +
	"|(?:^|[\\s'\"`$:(])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)['\"`]? (?:(?:is|was) (?:not set|unset)|must be set)(?:$|[.,;:!)]| and | but )")

// noName matches words of a sentence in capitals.
var noName = regexp.MustCompile(`^(?:A|AN|ARE|FOLLOWING|HAS|HAVE|IS|MISSING|MUST|NAMES?|NOT|OF|REQUIRED|THE|THIS|WAS|WERE)$`)

// FindUnsetVariable returns the variable that an error names as not set, and whether the error calls it an environment variable, or a shell reports it; "" if
// it names none.
func FindUnsetVariable(text string) (name string, isCertain bool) {
	found := unsetVariable.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	if name = strings.Join(found[1:], ""); noName.MatchString(name) {
		return "", false
	}
	return name, certainVariable.MatchString(found[0])
}

// certainVariable is an error that can be only about a variable.
var certainVariable = regexp.MustCompile(`unbound variable|parameter (?:null or )?not set|` + wordOfVariable)

// programErrors are the kinds of errors of programs whose cause is in their own lines or input.
var programErrors = []OwnError{
	{
		Name: "overflow", Matches: regexp.MustCompile(`FloatingPointError|[Ll]oss(?: value)?(?: is|:| =|=| became| was)? ?'?(?:nan|NaN|inf|-inf)\b|(?i:(?:nan|inf|infinite|non-finite)\b.{0,20}\b(?:loss|gradients?)\b)|(?i:training|loss) (?:has )?diverged`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The numbers overflow. Reduce the learning rate, which many programs multiply by the number of ranks (here {ranks}), increase it slowly at the start, or limit the gradients."},
			{Text: "Check the input for missing values and outliers."},
		},
	},
	{
		Name: "recursion", Matches: regexp.MustCompile(`RecursionError|maximum recursion depth|[Ss]tack overflow|stack level too deep`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A function calls itself without an end. Look at its last calls in the log, and at what ends them: input that refers to itself is a usual cause.", Action: launcherLog},
		},
	},
	{
		Name: "pickle", Matches: regexp.MustCompile(`PicklingError|[Cc]an(?:'t|not) pickle|Can't get attribute`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Send plain data: mpi4py and process pools convert objects to bytes, which works for functions and classes at the top of a module that all ranks import, and not for lambdas, open files and locks."},
		},
	},
	{
		Name: "value", Matches: regexp.MustCompile(`invalid literal for int\(\)|could not convert string to float|invalid (?:int|float|bool|choice) value|not NoneType|^strconv\.|stoi|stod`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the data, arguments and variables that the program reads: one of them is missing, empty or no number. Open MPI passes a variable of the launcher on only with -x.", Action: launcherArgs},
		},
	},
	{
		Name: "heap", Matches: regexp.MustCompile(`double free|free\(\): invalid|malloc\(\): |malloc_consolidate|munmap_chunk|corrupted size|corrupted double-linked|stack smashing detected|heap-buffer-overflow|invalid pointer`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program writes outside its memory. With MPI, compare the count and type of each call with its buffer. A build with this option names the line.", Action: "-g -fsanitize=address"},
		},
	},
	{
		Name: "called command", Matches: regexp.MustCompile(`CalledProcessError: Command`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what this command printed, before the traceback. If the program kept its output, let it print it.", Action: launcherLog},
		},
	},
	{
		Name: "Fortran input", Matches: regexp.MustCompile(`Fortran runtime error: (?:End of file|Bad |Missing )|forrtl: severe \((?:24|29|30|36|39|59|64|67)\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the file that the program reads: it must exist in every pod in which a rank opens it, be complete, and have the form that the program expects. Relative names start at the working folder.", Action: "{programTemplate}.spec.containers[0].workingDir"},
		},
	},
	{
		Name: "none", Matches: regexp.MustCompile(`'NoneType' object|NoneType: None|unsupported operand type\(s\) for .*'NoneType'|not 'NoneType'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A value is None. If only one rank has read or received it, send it to the others: gather and reduce return None on all ranks but the root.", Action: "value = comm.bcast(value, root=0)"},
			{Text: "Otherwise look for what returned None: a search without a result, or a function without return."},
		},
	},
	{
		Name: "name", Matches: regexp.MustCompile(`NameError: name|UnboundLocalError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Define or import this name before it is used. A condition on the rank may leave it undefined on some ranks."},
		},
	},
	{
		Name: "length", Matches: regexp.MustCompile(`IndexError|ZeroDivisionError|division by zero|out_of_range|index out of (?:range|bounds)|Fortran runtime error: Index '|forrtl: severe \(408\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check how the program divides its data over {ranks} ranks: a rank may have less than others, or nothing."},
			{Text: "If it does not depend on the number of ranks, check the program's input."},
		},
	},
	{
		Name: "shape", Matches: regexp.MustCompile(`could not be broadcast|could not broadcast|shapes? (?:mismatch|cannot be multiplied)|[Ss]ize mismatch|size of tensor|cannot reshape|mat1 and mat2|dimensions? (?:must|do not|mismatch)|not aligned|must have same first dimension|mismatch in its core dimension|is invalid for input of size|view size is not compatible|boolean index did not match`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Two arrays do not fit. Print their shapes on each rank: parts of data that is divided over {ranks} ranks may differ in length."},
		},
	},
}
