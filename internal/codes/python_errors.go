package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// callOfBuffers is a call of a method of mpi4py that sends or receives the memory of an array: its name begins with a capital.
const callOfBuffers = `\.(?:Bcast|[SRB]?[Ss]end|Recv|Sendrecv(?:_replace)?|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce(?:_scatter\w*)?|Allreduce|Exscan|Scan` +
	`|I(?:bcast|[srb]?send|recv|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce(?:_scatter\w*)?|allreduce|exscan|scan))\(`

// pythonErrors are the kinds of errors of Python programs that follow from how a call is used: the texts are those of CPython, mpi4py (buffers: asbuffer.pxi
// and msgbuffer.pxi, types: typedec.pxi, objects: msgpickle.pxi), NumPy, pandas and PyTorch.
var pythonErrors = []OwnError{
	{
		Name: "cores of a rank", Matches: regexp.MustCompile(`Invalid argument|Errno 22|EINVAL|invalid argument`), Source: regexp.MustCompile(`sched_setaffinity|cpu_affinity\(|pthread_setaffinity`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Bind only to cores that the pod may use: the node does not have those of this call. Or leave the call out, and let MPI and the kernel place the ranks.", Action: "os.sched_getaffinity(0)"},
		},
	},
	{
		Name: "negative pause", Matches: regexp.MustCompile(`sleep length must be non-negative`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The time to sleep is negative: what was done before took longer than the program has planned for it. Do not sleep then, and see why it takes longer in this rank.", Action: "time.sleep(max(0, ...))"},
		},
	},
	{
		Name: "memory of an array", Matches: regexp.MustCompile(`ndarray is not contiguous|buffer is not contiguous`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Send a copy whose elements are next to each other in memory: a column, a slice with steps or a transposed array is not. Receive into an array of its own, and copy it from there.", Action: "numpy.ascontiguousarray(...)"},
		},
	},
	{
		Name: "MPI type of an array", Matches: regexp.MustCompile(`KeyError: '[^'\w]?[a-zA-Z?]\d{0,3}'`), Source: regexp.MustCompile(callOfBuffers),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the array: MPI has no datatype for its elements, such as float16 or text. The letter is NumPy's for their type.", Action: "array.astype(numpy.float32)"},
			{Text: "Or use the method with a small first letter, which sends any object of Python, more slowly.", Action: "comm.allreduce(...)"},
		},
	},
	{
		Name: "buffer", Matches: regexp.MustCompile(`TypeError: (?:.*bytes-like object is required|.*does not support the buffer|Expecting .*buffer)`), Source: regexp.MustCompile(callOfBuffers),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give this method an array that can be written to, such as one of NumPy: methods of mpi4py with a capital first letter send memory. Those with a small one send any object of Python, and return it.", Action: "comm.bcast(...), in place of comm.Bcast(...)"},
		},
	},
	{
		Name: "items of ranks", Matches: regexp.MustCompile(`ValueError: expecting \d+ items, got \d+`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give scatter and alltoall a list with one item for each rank of the communicator. To divide more items, make a list of lists first.", Action: "[items[rank::size] for rank in range(size)]"},
		},
	},
	{
		Name: "no data", Matches: regexp.MustCompile(`num_samples=0\b|need at least one array to|zero-size array to reduction|arg is an empty sequence|iterable argument is empty|requires at least (?:one|two) data points?|EmptyDataError|No columns to parse|[Ss]ample larger than population|larger sample than population|non-empty TensorList|Found 0 (?:files|images|samples)|Cannot choose from an empty sequence|empty range for rand`),
		Remedies: []v1alpha1.Remedy{
			{Text: "There is nothing where the program expects data. Check the file or folder that it reads, in the pod of this rank.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
			{Text: "Or this rank got no part of it: check how the program divides its data over {ranks} ranks."},
		},
	},
	{
		Name: "signature", Matches: regexp.MustCompile(`TypeError: .*(?:got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument|takes (?:from )?\d+ (?:to \d+ )?positional arguments?|got multiple values for argument)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the arguments of this call. If the function is one of a package, the image may have another version of it than the program is written for.", Action: "python -m pip show PACKAGE"},
		},
	},
	{
		Name: "type", Matches: regexp.MustCompile(`TypeError: (?:unsupported operand type|bad operand type for|can only concatenate|must be (?:str|real number)|'[<>]=?' not supported between|int\(\) argument must be|float\(\) argument must be|can't multiply sequence)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the values to one type. What a program reads from a file, an argument or a variable is text until it is converted, and None if it is missing.", Action: "int(...), float(...)"},
		},
	},
	{
		Name: "loader", Matches: regexp.MustCompile(`DataLoader worker \(pid\S* [\d, ]+\) (?:is killed by signal|exited unexpectedly)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A process of the data loader ended. It passes data on through /dev/shm, and uses memory of the pod: give the pods more shared memory, or use fewer data loaders.", Action: largerShm},
			{Text: "Without such processes, the error itself is shown.", Action: "DataLoader(num_workers=0)"},
		},
	},
	{
		Name: "devices of tensors", Matches: regexp.MustCompile(`Expected all tensors to be on the same device|Input type \(torch\.\S+\) and weight type`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Move the data and the model to the device of the rank before they are used together.", Action: "tensor.to(device), model.to(device)"},
		},
	},
	{
		Name: "singular", Matches: regexp.MustCompile(`LinAlgError|[Ss]ingular matrix|not positive[- ]definite|SVD did not converge`),
		Remedies: []v1alpha1.Remedy{
			{Text: "This matrix has no inverse or decomposition. Look for equal or empty rows, missing values, and data that this rank has not received."},
		},
	},
	{
		Name: "missing values", Matches: regexp.MustCompile(`[Ii]nput (?:\w+ )?contains (?:NaN|infinity)|must not contain infs or NaNs|contains (?:NaN|Inf)\b|cannot convert float (?:NaN|infinity) to integer`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The data has missing or infinite values. Remove or replace them. If the program computed them, look for an overflow before: a lower learning rate, or limits for the gradients."},
		},
	},
	{
		Name: "called command's time", Matches: regexp.MustCompile(`subprocess\.TimeoutExpired`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The command that the program called did not end in the time that the program gives it. See what it waits for, or give it more time.", Action: "subprocess.run(..., timeout=...)"},
		},
	},
	{
		Name: "time format", Matches: regexp.MustCompile(`time data .* does not match format|Invalid isoformat string|unconverted data remains`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The text is no time of the form that the program expects. Correct the input or the format."},
		},
	},
	{
		Name: "columns", Matches: regexp.MustCompile(`KeyError: .*not in index|None of \[.*\] are in the|not found in axis|Usecols do not match columns`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The table does not have these columns. Compare their names with the first line of the file, also in upper and lower case and in blanks."},
		},
	},
	{
		Name: "divisible", Matches: regexp.MustCompile(`(?i:must be (?:a multiple of|(?:evenly )?divisible by)|(?:is )?not (?:evenly )?divisible by|cannot be (?:evenly )?divided|does not result in an equal division)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A size does not fit the number that divides it. If that is the number of ranks, here {ranks}, change one of the two."},
		},
	},
	{
		Name: "closed connection", Matches: regexp.MustCompile(`ConnectionResetError|Connection reset by peer|BrokenPipeError|\bBroken pipe\b|RemoteDisconnected|Connection aborted|Server disconnected|ConnectionAbortedError|IncompleteReadError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The other side has closed the connection, or ended. See what it reports: another rank, a process that this one has started, or a server.", Action: launcherLog},
		},
	},
	{
		Name: "unquoted value", Matches: regexp.MustCompile(`\[: (?:too many arguments|\S*: (?:unary operator|integer(?: expression)?) expected|missing ])|\[: \S*: bad number|\[: \S+: unexpected operator`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A test of the script got an empty value, or one with blanks, or no number. Write variables in double quotes, and give them a default.", Action: `[ "${NAME:-0}" = 1 ]`},
		},
	},
	{
		Name: "database file", Matches: regexp.MustCompile(`unable to open database file|attempt to write a readonly database`),
		Remedies: []v1alpha1.Remedy{
			{Text: "SQLite cannot create or write its file. Its folder must exist in the pod of this rank, and the pod's user must be allowed to write to it.", Action: programVolumes},
		},
	},
}

// otherKey is an error for a key that a dictionary lacks. It is asked last: many kinds are about what a certain key means.
var otherKey = []OwnError{
	{
		Name: "key", Matches: regexp.MustCompile(`KeyError: \S`),
		Remedies: []v1alpha1.Remedy{
			{Text: "What the program reads has no such key: a file, a checkpoint or an answer has another form than it expects. Print the keys that it has.", Action: "print(list(...))"},
			{Text: "If it is one of environment variables, set it in the pod templates.", Action: "{programTemplate}.spec.containers[0].env"},
		},
	},
}
