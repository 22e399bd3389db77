package implementation

import (
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// rankVariables are the variables that each implementation sets for its ranks: those of Open MPI (its FAQ, and PMIx), and of Hydra
// (src/pm/hydra/proxy/pmip_cb.c).
var rankVariables = map[mpi.Implementation][]string{
	mpi.OpenMPI: {
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_NODE_RANK", "OMPI_UNIVERSE_SIZE",
		"OMPI_APP_CTX_NUM_PROCS", "OMPI_FIRST_RANKS", "PMIX_RANK", "PMIX_NAMESPACE", "PMIX_HOSTNAME",
	},
	mpi.MPICH:    hydraVariables,
	mpi.IntelMPI: hydraVariables,
}

var hydraVariables = []string{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}

// MeantVariable returns the variable that an implementation sets for its ranks and of which a name is probably a misspelling, such as
// OMPI_COMM_WORLD_LOCAL_RANK for OMPI_COMM_WORLD_LOCALRANK or OMPI_LOCAL_RANK; "" if there is none, or an implementation has a variable of that name.
func MeantVariable(written string, of mpi.Implementation) string {
	for _, names := range rankVariables {
		if slices.Contains(names, written) {
			return ""
		}
	}
	if found := phrase.Misspelled(written, rankVariables[of]); found != "" {
		return found
	}
	return withMissingWords(written, rankVariables[of])
}

// sameVariables are those of the implementations with the same meaning: Open MPI's, and Hydra's.
var sameVariables = map[string]string{
	"OMPI_COMM_WORLD_RANK": "PMI_RANK", "OMPI_COMM_WORLD_SIZE": "PMI_SIZE",
	"OMPI_COMM_WORLD_LOCAL_RANK": "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_SIZE": "MPI_LOCALNRANKS",
}

// RankVariable reports whether an implementation sets a variable for its ranks. If another one sets it, it returns the one with the same meaning;
// "" if no implementation does, or there is none.
func RankVariable(name string, of mpi.Implementation) (same string, isOwn bool) {
	if slices.Contains(rankVariables[of], name) {
		return name, true
	}
	for ofOpenMPI, ofHydra := range sameVariables {
		switch {
		case name == ofOpenMPI && of != mpi.OpenMPI:
			return ofHydra, false
		case name == ofHydra && of == mpi.OpenMPI:
			return ofOpenMPI, false
		}
	}
	return "", false
}

// withMissingWords returns the shortest name that has the same first and last word as another one, and all words of it in their order; "" if
// there is none.
func withMissingWords(written string, names []string) (shortest string) {
	words := strings.Split(written, "_")
	for _, name := range names {
		of := strings.Split(name, "_")
		if len(words) < 2 || words[0] != of[0] || words[len(words)-1] != of[len(of)-1] {
			continue
		}
		next := 0
		for _, word := range of {
			if next < len(words) && words[next] == word {
				next++
			}
		}
		if next == len(words) && (shortest == "" || len(name) < len(shortest)) {
			shortest = name
		}
	}
	return shortest
}
