package implementation

import (
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// Names of implementations, as users know them.
const (
	openMPIName = "Open MPI"
	hydraName   = "MPICH and Intel MPI"
)

// names are those of all implementations, as agents report them (agentapi.IsMPIVersion).
var names = map[mpi.Implementation]string{mpi.OpenMPI: openMPIName, mpi.MPICH: "MPICH", mpi.IntelMPI: "Intel MPI"}

// NameOf returns the name of an implementation as its users know it.
func NameOf(of mpi.Implementation) string { return names[of] }

// OtherThan returns the implementation of which all versions are, such as "MPICH 4.2.1", if it is another than the job's; "" if it is not, or
// unknown.
func OtherThan(job mpi.Implementation, versions []string) (other mpi.Implementation) {
	for _, version := range versions {
		for _, of := range mpi.Implementations {
			if strings.HasPrefix(version, names[of]+" ") {
				if of == job || other != "" && other != of {
					return ""
				}
				other = of
			}
		}
	}
	return other
}

// ForeignOption is an option of mpirun that the job's implementation does not have.
type ForeignOption struct {
	// Option is with its dashes, Of the implementations that have it, and Instead what to write; "" if nothing.
	Option, Of, Instead string
}

// Options of Open MPI (mpirun(1) of 4.1 and prterun(1) of 5.0) that Hydra lacks, and Hydra's (mpiexec -help of MPICH 4.2, and Intel MPI's
// reference) that Open MPI lacks, by name, each with what the other has instead.
var (
	onlyOpenMPI = map[string]string{
		"x": "-genv NAME VALUE", "mca": "", "gmca": "", "prtemca": "", "oversubscribe": "", "allow-run-as-root": "", "hostfile": "-f FILE", "npernode": "-ppn N", "N": "-ppn N",
		"tag-output": "-prepend-rank", "report-bindings": "-genv I_MPI_DEBUG 4 (Intel MPI)", "display-map": "", "display-allocation": "", "bynode": "-ppn 1", "byslot": "",
		"nooversubscribe": "", "use-hwthread-cpus": "", "timestamp-output": "", "output": "-prepend-rank", "output-filename": "-outfile-pattern FILE", "timeout": "-genv MPIEXEC_TIMEOUT SECONDS",
		"display": "", "rankfile": "", "nolocal": "", "enable-recovery": "", "pernode": "-ppn 1", "host": "-hosts LIST", "H": "-hosts LIST", "merge-stderr-to-stdout": "",
	}
	onlyHydra = map[string]string{
		"ppn": "--map-by ppr:N:node", "perhost": "--map-by ppr:N:node", "genv": "-x NAME=VALUE", "genvlist": "-x NAME", "genvall": "-x NAME", "genvnone": "", "env": "-x NAME=VALUE", "envlist": "-x NAME",
		"envall": "-x NAME", "hosts": "--host LIST", "f": "--hostfile FILE", "prepend-rank": "--tag-output", "l": "--tag-output", "outfile-pattern": "--output-filename FILE",
		"errfile-pattern": "--output-filename FILE", "launcher": "", "bootstrap": "", "launcher-exec": "", "rmk": "", "iface": "--mca btl_tcp_if_include NAME", "print-rank-map": "--display-map",
		"rr": "--map-by node", "order-nodes": "", "usize": "", "info": "",
	}
)

// Foreign returns what is known of an option, with or without its dashes, that the job's implementation does not accept and another one has;
// nil if none has it.
func Foreign(option string, job mpi.Implementation) *ForeignOption {
	name := strings.TrimLeft(option, "-")
	table, found := onlyHydra, ForeignOption{Option: "-" + name, Of: hydraName}
	if job == mpi.MPICH || job == mpi.IntelMPI {
		table, found.Of = onlyOpenMPI, openMPIName
		if len(name) > 1 {
			found.Option = "--" + name
		}
	}
	instead, is := table[name]
	if !is {
		return nil
	}
	found.Instead = instead
	return &found
}
