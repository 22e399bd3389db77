package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// otherPodsAddress are the remedies for a program that listens at an address which its pod does not have. A connection fails with the same error.
var otherPodsAddress = []v1alpha1.Remedy{
	{Text: "A program can only listen at an address of its own pod. Listen at all of them, in the pod whose name the others connect to; that of rank 0 is {host|the first host}.", Action: `socket.bind(("", PORT))`},
}

// valueErrors are kinds of errors of values, files and connections that a more general kind would match, or none. The texts are those of CPython 3.9 to
// 3.14, NumPy, mpi4py, PyTorch, protobuf, SQLite, OpenSSL and the kernel (errno(3)).
var valueErrors = []OwnError{
	{
		Name: "time of a wait", Matches: regexp.MustCompile(`^(?:(?:asyncio|concurrent\.futures|multiprocessing)\.(?:\w+\.)?)?TimeoutError$`),
		Remedies: []v1alpha1.Remedy{
			{Text: "What this line waits for did not happen in the time that the program gives it. See whether the task, thread, process or rank at the other side has ended, or is slower here, and give it more time if it is.", Action: launcherLog},
		},
	},
	{
		Name: "broken barrier", Matches: regexp.MustCompile(`BrokenBarrierError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another thread or process of this barrier has failed or ended, or was later than its time limit. Look for its error, before this one.", Action: launcherLog},
		},
	},
	{
		Name: "counts of buffers", Matches: regexp.MustCompile(`mismatch in send count (?P<count>\d+) and receive count (?P<got>\d+)|(?:recvbuf|sendbuf): expecting (?P<count2>\d+) items, got (?P<got2>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give the buffers of this call lengths that fit each other and the number of ranks ({ranks}): MPI expects {count} elements, and there are {got}. For parts of different lengths, use the method with a v, such as Scatterv.", Action: "comm.Scatterv([data, counts], part)"},
		},
	},
	{
		Name: "no length", Matches: regexp.MustCompile(`TypeError: (?:object of type '(?P<type>[\w.]+)' has no len\(\)|len\(\) of unsized object|iteration over a 0-d array)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "This is a single value of type {type|array}, and the program takes it for several. If it is NoneType and only one rank has read or received it, send it to the others: gather and reduce return None on all ranks but the root.", Action: "value = comm.bcast(value, root=0)"},
		},
	},
	{
		Name: "path type", Matches: regexp.MustCompile(`TypeError: (?:expected str, bytes or os\.PathLike object, not (?P<type>int|float|list|tuple|dict|bool)\b|(?:join|stat|open)\S* ?(?:\(\) )?argument must be str, bytes, or os\.PathLike object, not '(?P<type2>int|float|list|tuple|dict|bool)')`),
		Remedies: []v1alpha1.Remedy{
			{Text: "This is a path, and the program gives a value of type {type}. Convert it, and check the order of the arguments.", Action: "str(...)"},
		},
	},
	{
		Name: "CPU of the node", Matches: regexp.MustCompile(`was compiled to use [\w., ]+ instructions|CPU ISA level is lower than required|verify that both the operating system and the processor support`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image, or build the program, for a more common CPU: this node's lacks instructions that it uses.", Action: "-march=x86-64-v2 (GNU), -x SSE4.2 (Intel)"},
			{Text: "Or select nodes with a newer CPU.", Action: "{programTemplate}.spec.nodeSelector"},
		},
	},
	{
		Name: "protobuf", Matches: regexp.MustCompile(`Descriptors cannot (?:not )?be created directly|Couldn't build proto file into descriptor pool|incompatible Protobuf Gencode/Runtime versions`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A package in the image was built with another version of protobuf. Install one that it works with, or a newer version of the package.", Action: "pip install 'protobuf<4'"},
			{Text: "Until then, use the implementation in Python, which is slower.", Action: "env: PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python", Rerun: true, Changes: set("env.PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")},
		},
	},
	{
		Name: "GPU assertion", Matches: regexp.MustCompile(`device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT`),
		Remedies: []v1alpha1.Remedy{
			{Text: "An index is out of bounds in code that runs on the GPU, mostly a label or token that is larger than the model allows. The line of the traceback can be a later one: let each call wait for the GPU.", Action: "env: CUDA_LAUNCH_BLOCKING=1", Rerun: true, Changes: set("env.CUDA_LAUNCH_BLOCKING", "1")},
			{Text: "Compare the labels with the number of classes. On a CPU, the same program names the index.", Action: "print(labels.min(), labels.max())"},
		},
	},
	{
		Name: "memory of cuDNN", Matches: regexp.MustCompile(`CUDNN_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED|INTERNAL_ERROR)|Unable to find a valid cuDNN algorithm`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a smaller batch, or fewer ranks per GPU: cuDNN mostly fails this way when the GPU has no memory left.", Action: "kubectl -n {namespace} exec {worker} -- nvidia-smi"},
			{Text: "If it fails with a small batch as well, use an image in which PyTorch and cuDNN are for the driver of the nodes.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "descriptors of tensors", Matches: regexp.MustCompile(`received 0 items of ancdata`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The processes of the data loader pass on more files than one may open. Let them exchange tensors by the names of files, or use fewer of them.", Action: `torch.multiprocessing.set_sharing_strategy("file_system")`},
		},
	},
	{
		Name: "address of another pod", Matches: regexp.MustCompile(`(?i)\b(?:bind|listen)\w*\b.*(?:cannot assign requested address|EADDRNOTAVAIL)|(?:cannot assign requested address|EADDRNOTAVAIL).*\b(?:bind|listen)\w*\b`),
		Remedies: otherPodsAddress,
	},
	{
		Name: "address of another pod", Matches: regexp.MustCompile(`Cannot assign requested address|EADDRNOTAVAIL`), Source: regexp.MustCompile(`(?i:bind|listen\w*|\bserve\w*|(?:create|start|run)_\w*server|(?:http|tcp|udp|rpc)server)\(`),
		Remedies: otherPodsAddress,
	},
	{
		Name: "closed file", Matches: regexp.MustCompile(`\[Errno 9\]|Bad file descriptor`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The file or connection is closed already. Another thread may have closed it, or a process that was forked: open it in the process that uses it."},
		},
	},
	{
		Name: "busy device", Matches: regexp.MustCompile(`\[Errno 16\]|Device or resource busy`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another process still has {file|this file} open. On NFS, a file that is deleted while it is open stays as .nfs until it is closed: let rank 0 alone remove folders, when all ranks are done with them.", Action: "comm.Barrier()"},
		},
	},
	{
		Name: "large file", Matches: regexp.MustCompile(`\[Errno 27\]|\bFile too large\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The file is larger than the file system or a limit allows. Write several files, such as one per rank, and remove ulimit -f from the command.", Action: launcherArgs},
		},
	},
	{
		Name: "process that is gone", Matches: regexp.MustCompile(`ChildProcessError: \[Errno 10\]|ProcessLookupError: \[Errno 3\]|\bNo such process\b|\bNo child processes\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The process has ended before. Look for its error in the log, and let only the part of the program that has started it wait for it: MPI and other libraries may handle SIGCHLD, too.", Action: launcherLog},
		},
	},
	{
		Name: "name of an encoding", Matches: regexp.MustCompile(`LookupError: unknown encoding: (?P<codec>\S+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the name {codec}: Python has no encoding of this name. For most texts it is utf-8.", Action: `open(PATH, encoding="utf-8")`},
		},
	},
	{
		Name: "encoding of the source", Matches: regexp.MustCompile(`SyntaxError: (?:Non-(?:UTF-8|ASCII) code starting with .* in file (?P<file>\S+) on line (?P<line>\d+)|\(unicode error\)|encoding problem|invalid (?:non-printable )?character)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Save {file|the file} as UTF-8, and replace typographic characters, such as quotation marks and blanks that were copied from a document, in line {line|that the error names}.", Action: "iconv -f WINDOWS-1252 -t UTF-8"},
		},
	},
	{
		Name: "Base64", Matches: regexp.MustCompile(`binascii\.Error: (?:Incorrect padding|Invalid base64|Only base64 data|Excess data)|illegal base64 data`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The text is no Base64, or is cut off. The values of a Secret are decoded when pods get them: do not decode them again.", Action: "kubectl create secret generic NAME --from-file=..."},
		},
	},
	{
		Name: "decimal number", Matches: regexp.MustCompile(`decimal\.(?:InvalidOperation|DivisionByZero|Overflow)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A text is no decimal number, such as an empty one or one with a separator of thousands, or a number is divided by 0. Check the data that the program reads in this rank."},
		},
	},
	{
		Name: "date", Matches: regexp.MustCompile(`ValueError: (?:day (?:\d+ )?(?:is out of range for month|must be in)|month must be in|year (?:-?\d+ )?(?:is out of range|must be in)|(?:hour|minute|second) must be in)|timestamp out of range|OutOfBoundsDatetime|(?:Unknown|invalid) datetime string|ParserError: Unknown string format`),
		Remedies: []v1alpha1.Remedy{
			{Text: "There is no such date or time. Day and month may be in another order than the program expects, or a timestamp may be in milliseconds in place of seconds.", Action: "datetime.fromtimestamp(milliseconds / 1000)"},
		},
	},
	{
		Name: "pattern", Matches: regexp.MustCompile(`\bre\.(?:error|PatternError): .* at position \d+|error parsing regexp`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the regular expression. If it contains a text that is to match as it is, such as the name of a file, escape that.", Action: "re.escape(text)"},
		},
	},
	{
		Name: "TLS", Matches: regexp.MustCompile(`SSLEOFError|EOF occurred in violation of protocol|UNEXPECTED_EOF_WHILE_READING|(?:TLSV1|SSLV3)_ALERT_(?:PROTOCOL_VERSION|HANDSHAKE_FAILURE|INTERNAL_ERROR)|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE|tls: (?:handshake failure|protocol version not supported)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server and the program have no version of TLS in common, or something between them has closed the connection, such as a proxy, a service mesh or a policy. Check the address and its port.", Action: "openssl s_client -connect HOST:PORT"},
		},
	},
	{
		Name: "slow answer", Matches: regexp.MustCompile(`Read timed out|\bReadTimeout(?:Error)?\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server has taken the connection, and did not answer in the time that the program gives it. See whether it is overloaded: let one rank ask for what all need, and give it more time.", Action: "requests.get(..., timeout=300)"},
		},
	},
	{
		Name: "download that ends early", Matches: regexp.MustCompile(`ContentTooShortError|retrieval incomplete`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The download ended too early. Try again after a pause, and let one rank download what all need, to a volume that all pods mount."},
		},
	},
	{
		Name: "XML", QuotesContent: true, Matches: regexp.MustCompile(`(?:ParseError|ExpatError|XMLSyntaxError): .*\bline (?P<line>\d+), column (?P<column>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct line {line}, column {column}, of {file|what the program reads as XML}: & and < are &amp; and &lt; in a text, and each element ends. In line 1, it may be another format or an error page."},
		},
	},
	{
		Name: "INI reference", Matches: regexp.MustCompile(`Interpolation(?:MissingOption|Syntax|Depth)?Error: |ValueError: invalid interpolation syntax in `),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write %% for each percent sign of a value of the settings that is no reference to another option, or turn references off.", Action: "configparser.ConfigParser(interpolation=None)"},
		},
	},
	{
		Name: "SQLite storage", Matches: regexp.MustCompile(`sqlite3\.OperationalError: disk I/O error|locking protocol`),
		Remedies: []v1alpha1.Remedy{
			{Text: "SQLite needs locks and shared memory that the file system of this volume does not have. Keep the file in a folder of the pod, such as /tmp, let rank 0 alone use it, and copy it to the volume at the end."},
		},
	},
	{
		Name: "MPI file", Matches: regexp.MustCompile(`MPI_ERR_(?:FILE|BAD_FILE|AMODE|IO|FILE_IN_USE|UNSUPPORTED_(?:OPERATION|DATAREP)|DUP_DATAREP|CONVERSION|NOT_SAME)\b|MPI_File_\w+\(\d+\).*(?:\*\*|rror)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Open the file by all ranks of the communicator, with the same name and mode, on a volume that all pods of the ranks mount. To write a new one, the mode needs MODE_CREATE.", Action: "MPI.File.Open(comm, PATH, MPI.MODE_CREATE | MPI.MODE_WRONLY)"},
			{Text: "On NFS, MPI needs locks: let rank 0 write the file if the server has none."},
		},
	},
	{
		Name: "MPI names", Matches: regexp.MustCompile(`MPI_ERR_(?:PORT|SERVICE|NAME)\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Ranks of one mpirun need no ports and names to reach each other: use a communicator. Those of several find each other only through a name server, which a job does not have."},
		},
	},
}
