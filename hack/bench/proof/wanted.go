package proof

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// missing returns the wanted cases for which a report has no figure of the contestant ours.
func (s section) missing(r report.Report) []string {
	var missing []string
	for _, name := range s.wanted {
		if !slices.ContainsFunc(r.Cases, func(c report.Case) bool { return c.Name == name && c.Details[ours].Runs > 0 }) {
			missing = append(missing, "`"+name+"`")
		}
	}
	return missing
}

// missingContestants returns the contestants of the suite of which a report has no figure.
func (s section) missingContestants(r report.Report) []string {
	var missing []string
	for _, name := range s.contestants {
		if !slices.ContainsFunc(r.Cases, func(c report.Case) bool { return c.Details[name].Runs > 0 }) {
			missing = append(missing, "`"+name+"`")
		}
	}
	return missing
}

// Kinds of jobs.
const (
	mpiJob   = "MPIJob"
	trainJob = "TrainJob"
)

// wantedPrograms are the programs that test/e2e records, each with the kinds of its jobs. The page lists those that were not measured.
var wantedPrograms = []struct {
	name  string
	kinds []string
}{
	{"DeepSpeed 0.19, PyTorch 2.6: deepspeed", []string{mpiJob, trainJob}},
	{"DeepSpeed 0.19, PyTorch 2.6: mpirun", []string{mpiJob, trainJob}},
	{"GROMACS", []string{mpiJob, trainJob}},
	{"HPC Challenge", []string{mpiJob, trainJob}},
	{"Horovod 0.28, PyTorch 1.13: horovodrun", []string{mpiJob, trainJob}},
	{"Horovod 0.28, PyTorch 1.13: horovodrun, Gloo", []string{mpiJob, trainJob}},
	{"Horovod 0.28, PyTorch 1.13: horovodrun, elastic", []string{mpiJob}},
	{"Horovod 0.28, PyTorch 1.13: mpirun", []string{mpiJob, trainJob}},
	{"Horovod 0.28, PyTorch 1.13: mpirun, a worker lost", []string{mpiJob}},
	{"Horovod 0.28, TensorFlow 2.13: horovodrun", []string{mpiJob, trainJob}},
	{"Horovod 0.28, TensorFlow 2.13: mpirun", []string{mpiJob, trainJob}},
	{"Intel MPI Benchmarks 2021", []string{mpiJob, trainJob}},
	{"LAMMPS", []string{mpiJob, trainJob}},
	{"PyTorch 1.13: torchrun", []string{mpiJob, trainJob}},
	{"mpi4py", []string{mpiJob, trainJob}},
	{"mpi4py: its bench and futures", []string{mpiJob, trainJob}},
}

// WantedPrograms returns the names of the programs that the page shows, or lists as not measured.
func WantedPrograms() []string {
	var names []string
	for _, p := range wantedPrograms {
		names = append(names, p.name)
	}
	return names
}

// missing returns the wanted runs that are not recorded.
func (p Programs) missing() []string {
	var missing []string
	for _, wanted := range wantedPrograms {
		kinds := slices.DeleteFunc(slices.Clone(wanted.kinds), func(kind string) bool {
			return slices.ContainsFunc(p.Runs, func(r Program) bool { return r.Name == wanted.name && r.Kind == kind })
		})
		if len(kinds) > 0 {
			missing = append(missing, fmt.Sprintf("`%s` (%s)", wanted.name, strings.Join(kinds, ", ")))
		}
	}
	return missing
}
