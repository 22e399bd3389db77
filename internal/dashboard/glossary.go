package dashboard

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
)

// Glossary explains the words that pages use.
type Glossary struct {
	Terms []Term `json:"terms"`
}

// Term is a word of MPI or Kubernetes with its meaning.
type Term struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// Help explains what can be wrong with jobs.
type Help struct {
	Topics []codes.Topic `json:"topics"`
}

// terms explain the words of MPI and Kubernetes that pages use, sorted by name.
var terms = []Term{
	{"Admission", "The decision of a webhook or of Kueue whether a job may be created, or may run."},
	{"Clone", "A new job with the fields of another one and some changes."},
	{"Data connection", "A Secret of the project with the address and the keys of a storage. Its keys become variables of every rank."},
	{"Eviction", "The deletion of a job's pods by Kueue, a timeout or the cluster. A job that waits in a queue starts again later."},
	{"Exit code", "The number with which a program ends. 0 is success; 137 is an end by signal 9, often for memory; 143 is an end by request."},
	{"Gang scheduling", "All pods of a job are scheduled together, or none. Otherwise pods of two jobs could wait for each other forever."},
	{"Hostfile", "The list of hosts and slots that mpirun reads. The operator writes it."},
	{"JobReport", "The record of a job: phase, findings, timeline, usage and the last log lines. It is kept after the job is deleted."},
	{"Launcher", "The pod that calls mpirun. It starts the ranks on the workers and prints their output."},
	{"Limit", "The most that a container may use. A container that uses more memory than its limit is ended."},
	{"MPI", "Message Passing Interface: the standard by which the processes of a parallel program exchange data. Open MPI, MPICH and Intel MPI are implementations."},
	{"MPIJob", "A job that runs a program with MPI: a launcher and workers."},
	{"Phase", "The step of its life that a job is in: Pending, Queued, Initializing, Running, Succeeded or Failed."},
	{"Preemption", "The eviction of a job in favor of one with a higher priority."},
	{"Priority class", "The rank of a job among others. Jobs of higher priority are scheduled first."},
	{"Queue", "A LocalQueue of Kueue: jobs wait in it until their quota is free."},
	{"Quota", "The limit of a project (ResourceQuota) or of a queue (ClusterQueue), such as 12 GPUs."},
	{"Rank", "One process of an MPI program, with a number from 0 on. Rank 0 usually prints the results."},
	{"RDMA", "Remote direct memory access: a network, such as InfiniBand, by which ranks read each other's memory without the kernel."},
	{"Remedy", "A suggested fix of a problem, where possible with the change or the command that applies it."},
	{"Request", "What a container needs. Pods are placed on nodes, and quotas are counted, by their requests."},
	{"Reserved", "What the pods of a job requested, multiplied by the time that they held it, used or not. Costs are calculated from it. What a job used is measured."},
	{"Runtime", "A ClusterTrainingRuntime or TrainingRuntime of Kubeflow Trainer: image, MPI and limits that an administrator prepared."},
	{"Slot", "A place for one rank on a worker. Usually a worker has one slot for each of its GPUs."},
	{"Template", "A saved job with parameters. It is shared by all users of a project, and by the command line and the SDK."},
	{"TrainJob", "A job of Kubeflow Trainer. It names a runtime and the number of nodes."},
	{"Worker", "A pod that runs ranks."},
	{"Workload", "Kueue's object for a job. It shows whether the job is admitted."},
}

// termPatterns match the names of terms in texts, also in the plural.
var termPatterns = func() []*regexp.Regexp {
	all := make([]*regexp.Regexp, len(terms))
	for i, term := range terms {
		all[i] = regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(strings.TrimSuffix(term.Name, "y")) + `(s|y|ies)?\b`)
	}
	return all
}()

// termsIn returns the terms that texts use.
func termsIn(texts ...string) []Term {
	found := []Term{}
	all := strings.Join(texts, "\n")
	for i, pattern := range termPatterns {
		if pattern.MatchString(all) {
			found = append(found, terms[i])
		}
	}
	return found
}

// help returns the explanations of all codes, as in docs/troubleshooting.md.
func (s *Server) help(*call) (any, error) { return Help{codes.Guide()}, nil }

// glossary returns all terms.
func (s *Server) glossary(*call) (any, error) { return Glossary{terms}, nil }
