package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// LauncherErrors are the kinds of messages of MPI about a rank. Their phrases are those of help-opal-shmem-mmap.txt, help-mtl-psm2.txt,
// help-mpi-runtime.txt and the shared-memory transports of Open MPI and UCX.
var LauncherErrors = []OwnError{
	{
		Name: "shared memory", Matches: regexp.MustCompile(`not enough space for .*/dev/shm/|/dev/shm/.*shared-memory backing file`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give the pods more shared memory: the ranks of a pod exchange their messages through files there.", Action: largerShm},
			{Text: "Or use fewer slots per worker.", Action: "{slotsField}"},
		},
	},
	{
		Name: "backing file", Matches: regexp.MustCompile(`shared-memory backing file`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Mount a volume at the folder in which Open MPI keeps its files, usually /tmp: it is full.", Action: "volumes: [{name: tmp, emptyDir: {medium: Memory, sizeLimit: 4Gi}}], mounted at /tmp"},
		},
	},
	{
		Name: "single copy", Matches: regexp.MustCompile(`Read -1, expected \d+, errno = \d+`),
		Remedies: []v1alpha1.Remedy{
			{
				Text: "Let the ranks of a pod exchange messages through shared memory alone: the container may not read the memory of another process.", Action: "env: OMPI_MCA_btl_vader_single_copy_mechanism=none (Open MPI 4), OMPI_MCA_smsc=^cma (Open MPI 5)",
				Rerun: true, Changes: set("env.OMPI_MCA_btl_vader_single_copy_mechanism", "none", "env.OMPI_MCA_smsc", "^cma"),
			},
		},
	},
	{
		Name: "single copy of UCX", Matches: regexp.MustCompile(`process_vm_(?:readv|writev)`),
		Remedies: []v1alpha1.Remedy{
			{
				Text: "Let UCX exchange messages within a pod through shared memory alone: the container may not read the memory of another process.", Action: "env: UCX_TLS=^cma",
				Rerun: true, Changes: set("env.UCX_TLS", "^cma"),
			},
		},
	},
	{
		Name: "Omni-Path", Matches: regexp.MustCompile(`PSM2?\b`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let Open MPI use TCP: it selected the transport of Omni-Path, whose device the pods cannot open.", Action: "mpirun --mca pml ob1 <program>"},
			{Text: "If the nodes have Omni-Path, request its device in the pods, and see whether they may lock memory.", Action: "kubectl -n {namespace} exec {worker} -- sh -c 'ls /dev/hfi1*; ulimit -l'"},
		},
	},
	{
		Name: "MPI_INIT", Matches: regexp.MustCompile(`It looks like \w+ failed for some reason`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what is before this message in the log: it names the part of MPI that could not start.", Action: launcherLog},
			{Text: "Check that the program, or mpi4py, was built with the Open MPI whose mpirun starts it.", Action: "ldd <program> | grep mpi; mpirun --version"},
			{Text: "If the command or a variable selects a component or an interface, remove that.", Action: "env: OMPI_MCA_*, PMIX_MCA_*"},
		},
	},
}

// MessageOfMPI are the remedies for a message of MPI about ranks of none of these kinds.
var MessageOfMPI = []v1alpha1.Remedy{
	{Text: "Read the whole message, which is one of MPI and not of the program, and what is before it.", Action: launcherLog},
	{Text: "If it is about a component, an option or an interface that the command or a variable sets, remove or correct that.", Action: launcherArgs},
}

// LauncherErrorOf returns the kind of a message of MPI about a rank; nil if it is of none.
func LauncherErrorOf(text string) *OwnError {
	for i := range LauncherErrors {
		if LauncherErrors[i].Matches.MatchString(text) {
			return &LauncherErrors[i]
		}
	}
	return OwnErrorOf(text)
}
