package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// otherHeader is the remedy for a handle that the MPI library does not know although the program's call is correct.
var otherHeader = v1alpha1.Remedy{Text: "If they are correct, the program was built with the header of another MPI: build it with the image's.", Action: "ldd <program> | grep mpi"}

// mpiCall is what MPICH and Intel MPI, and mpi4py, print before the description of an error.
const mpiCall = `(?:\b(?:P?MPI|internal)_\w+|MPI\.Exception): (?:.*: )?`

// DifferentCounts are the remedies for a message of a collective call that is longer than its buffer.
var DifferentCounts = []v1alpha1.Remedy{
	{Text: "Give {call} the same count and datatype on all ranks: a rank gets a message that is longer than its buffer. If the length differs, let all ranks learn it first."},
	{Text: "Check that all ranks make the same collective calls, in the same order."},
}

// mpiErrors are the classes of errors of MPI calls (MPI 4.1, chapter 9.4), with the texts of Open MPI (ompi/errhandler/errcode.c) and of
// MPICH (src/mpi/errhan/errnames.txt). Their remedies may also use call, the function that failed.
var mpiErrors = []OwnError{
	{
		Name: "MPI datatype", Matches: regexp.MustCompile(`MPI_ERR_TYPE|` + mpiCall + `(?:Invalid datatype|Null Datatype|Datatype has not been committed)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Call MPI_Type_commit for each datatype that the program makes, before {call|a call} uses it. Types such as MPI_DOUBLE are committed already.", Action: "MPI_Type_commit(&type)"},
			{Text: "Otherwise check that the datatype in {call|this call} is not MPI_DATATYPE_NULL, and that MPI_Type_free follows its last use."},
			otherHeader,
		},
	},
	{
		// MPICH and Intel MPI name both sizes.
		Name: "MPI sizes", Matches: regexp.MustCompile(`\btruncated; (?P<bytes>\d+) bytes received but buffer size is (?P<size>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Make the buffer of the receive at least as long as the message: {bytes} bytes were sent, and it has {size}. Compare the count and the datatype of both calls: a datatype of another size changes the bytes of a count. If the length differs, ask for it before receiving.", Action: "MPI_Probe, MPI_Get_count"},
			{Text: "With several messages of one tag, check that they are received in the order in which they are sent."},
		},
	},
	{
		Name: "MPI truncation", Matches: regexp.MustCompile(`MPI_ERR_TRUNCATE|` + mpiCall + `Message truncated`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Make the buffer of the receive at least as long as the message: the count of the receiver must not be less than the sender's. If the length differs, ask for it before receiving.", Action: "MPI_Probe, MPI_Get_count"},
			{Text: "With several messages of one tag, check that they are received in the order in which they are sent."},
			{Text: "If it is the message of a collective call, give all ranks the same count and datatype."},
		},
	},
	{
		Name: "MPI rank", Matches: regexp.MustCompile(`MPI_ERR_RANK\b|` + mpiCall + `Invalid rank`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a rank of the communicator in {call|this call}: ranks are counted from 0, and the job has {ranks|fewer} ranks. The program may expect another number of ranks.", Action: "MPI_Comm_size"},
			{Text: "At the edge of a grid, use MPI_PROC_NULL in place of a rank that does not exist."},
		},
	},
	{
		Name: "MPI root", Matches: regexp.MustCompile(`MPI_ERR_ROOT|` + mpiCall + `Invalid root`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give {call|this call} a root that is a rank of its communicator, counted from 0, and the same root on all ranks. The job has {ranks|fewer} ranks; a smaller communicator has fewer."},
		},
	},
	{
		Name: "MPI tag", Matches: regexp.MustCompile(`MPI_ERR_TAG|` + mpiCall + `Invalid tag`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a tag from 0 to the attribute MPI_TAG_UB in {call|this call}. Only a receive may have MPI_ANY_TAG.", Action: "MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, ...)"},
		},
	},
	{
		Name: "MPI communicator", Matches: regexp.MustCompile(`MPI_ERR_COMM\b|` + mpiCall + `(?:Invalid|Null) communicator`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the communicator of {call|this call}: it may be MPI_COMM_NULL, which MPI_Comm_split and MPI_Comm_create return to ranks that are in no group, or it is freed already.", Action: "if (comm != MPI_COMM_NULL)"},
			otherHeader,
		},
	},
	{
		Name: "MPI count", Matches: regexp.MustCompile(mpiCall + `(?:Negative count|Invalid count)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the count of {call|this call}: it is negative. A count of more than 2,147,483,647 elements becomes so in an int; send in parts, or use a larger datatype."},
		},
	},
	{
		Name: "MPI buffer", Matches: regexp.MustCompile(`MPI_ERR_BUFFER|` + mpiCall + `(?:Null buffer|Invalid buffer|Buffers must not be aliased)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give {call|this call} a buffer that is allocated on this rank, and one of its own for sending and for receiving. To send from the buffer of the result, pass MPI_IN_PLACE.", Action: "MPI_IN_PLACE"},
			{Text: "With MPI_Bsend, attach a buffer that is large enough.", Action: "MPI_Buffer_attach"},
		},
	},
	{
		Name: "MPI request", Matches: regexp.MustCompile(`MPI_ERR_REQUEST|` + mpiCall + `(?:Invalid MPI_Request|Null MPI_Request|Invalid request)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the requests of {call|this call}: set those that are not used to MPI_REQUEST_NULL, and wait for each only once. Their number has to be that of the list.", Action: "MPI_REQUEST_NULL"},
		},
	},
	{
		Name: "MPI operation", Matches: regexp.MustCompile(`MPI_ERR_OP\b|` + mpiCall + `(?:Invalid MPI_Op|Null MPI_Op|Invalid operation|MPI_Op \S+ operation not defined)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an operation in {call|this call} that is defined for its datatype: MPI_SUM and MPI_MAX need numbers, MPI_BAND integers, MPI_MAXLOC pairs such as MPI_DOUBLE_INT. For datatypes of the program, make one.", Action: "MPI_Op_create"},
			otherHeader,
		},
	},
	{
		Name: "MPI status", Matches: regexp.MustCompile(`MPI_ERR_(?:IN_STATUS|PENDING)|` + mpiCall + `(?:See the MPI_ERROR field|Error code in status)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Find the request of {call|this call} that failed: the field MPI_ERROR of each status has its error. Often a message is longer than the buffer of its MPI_Irecv.", Action: "MPI_Error_string(statuses[i].MPI_ERROR, ...)"},
		},
	},
	{
		Name: "MPI itself", Matches: regexp.MustCompile(`MPI_ERR_(?:OTHER|INTERN|UNKNOWN|NO_MEM)\b|MPI\.Exception: Other MPI error`),
		Remedies: []v1alpha1.Remedy{
			{Text: "MPI itself failed in {call|this call}, and the arguments of the call need not be the cause. Read what MPI printed before this line: a rank that is gone, a transport or memory that is missing.", Action: launcherLog},
			{Text: "If it printed nothing, let it print more.", Action: "mpirun --mca pml_base_verbose 10 --mca btl_base_verbose 30 <program>"},
		},
	},
	{
		Name: "MPI topology", Matches: regexp.MustCompile(`MPI_ERR_(?:DIMS|TOPOLOGY)|` + mpiCall + `(?:Invalid dimension|Invalid topology|Size of the communicator|Cartesian)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the dimensions of {call|this call}: their product may be at most the number of ranks, which is {ranks|that of the communicator}, and dimensions that are given must divide it. A communicator without a Cartesian topology has no coordinates.", Action: "MPI_Dims_create"},
		},
	},
}
