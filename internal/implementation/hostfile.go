package implementation

import (
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// openMPIHostfile returns the hostfile of Open MPI: HOST slots=SLOTS.
func openMPIHostfile(hosts []mpi.Host) string {
	var b strings.Builder
	for _, host := range hosts {
		b.WriteString(host.Name + " slots=" + itoa(host.Slots) + "\n")
	}
	return b.String()
}

// hydraHostfile returns the hostfile of Hydra, the launcher of MPICH and Intel MPI: HOST:SLOTS.
func hydraHostfile(hosts []mpi.Host) string {
	var b strings.Builder
	for _, host := range hosts {
		b.WriteString(host.Name + ":" + itoa(host.Slots) + "\n")
	}
	return b.String()
}
