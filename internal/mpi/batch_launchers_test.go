package mpi_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestProgramsOfLaunchers: the program of a launcher's call is the first word that is no value of an option.
func TestProgramsOfLaunchers(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"mpirun -n 4 --oversubscribe train x":              "train x",
		"mpirun --mca btl tcp,self -x A -pernode train":    "train",
		"mpiexec -genv A 1 -n 2 train":                     "train",
		"mpiexec -genv A=1 train x":                        "train x",
		"mpiexec -launcher-exec /usr/bin/ssh train":        "train",
		"cd /a; mpirun --map-by=ppr:1:node train && other": "train",
	} {
		var got []string
		for _, program := range mpi.ProgramsOfLaunchers(command) {
			got = append(got, strings.Join(program, " "))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
