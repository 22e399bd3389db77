// Package mpirun interprets the programs, arguments, environments and outputs of MPI launchers such as mpirun and
// mpiexec.
package mpirun

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agentapi"
)

// IsLauncher reports whether a program is an MPI launcher.
func IsLauncher(program string) bool {
	first, _, _ := strings.Cut(filepath.Base(program), ".")
	return slices.Contains([]string{"mpirun", "mpiexec", "orterun", "prterun"}, first)
}

// ProgramOf returns which of an MPI launcher's arguments is the program that the ranks run: the first one that is no option, and that
// can be executed; "" if none can. Values of options are no programs, usually.
func ProgramOf(args []string, canBeExecuted func(name string) bool) string {
	for _, arg := range args {
		if arg != "" && !strings.HasPrefix(arg, "-") && canBeExecuted(arg) {
			return arg
		}
	}
	return ""
}

// ToleratesFailures reports whether an MPI launcher with these arguments and this environment continues when a rank fails:
// with an option of Hydra, Open MPI 4 (mpirun(1)) or Open MPI 5 (prterun(1)), a parameter of Open MPI, or a variable of Intel
// MPI. Their values do not matter: a user who names one decides about failures.
func ToleratesFailures(args, env []string) bool {
	options := []string{"disable-auto-cleanup", "enable-recovery", "continuous", "with-ft", "rtos", "runtime-options"}
	parameters := []string{"orte_enable_recovery", "orte_abort_on_non_zero_status", "mpi_ft_enable"}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(options, name) || slices.Contains(parameters, name) {
			return true
		}
	}
	for _, parameter := range parameters {
		if environ.Get(env, "OMPI_MCA_"+parameter) != "" {
			return true
		}
	}
	return environ.Get(env, "I_MPI_FAULT_CONTINUE") != ""
}

// rankVariables are those in which launchers pass a process its rank, the most reliable first, and the variable without which it is none, if there
// is one: Open MPI's, PMIx's (Open MPI 5), PMI's (MPICH, Intel MPI), those of Horovod with Gloo, and those of torchrun and DeepSpeed. The Python
// package has the same list (_report.py).
var rankVariables = [][2]string{
	{"OMPI_COMM_WORLD_RANK", ""}, {"PMIX_RANK", ""}, {"PMI_RANK", ""}, {"HOROVOD_RANK", "HOROVOD_SIZE"}, {"RANK", "WORLD_SIZE"},
}

// RankOf returns the rank that a process with an environment has; false if it is none. A variable of any program that all processes of the pod have is
// not from a launcher.
func RankOf(env, pod []string) (int32, bool) {
	rank, variable := rankIn(env, pod)
	return rank, variable != ""
}

// HasRankOf reports whether a process has the rank of its parent, in the same variable: in mpirun, the parent may have one of its own.
func HasRankOf(env, parent, pod []string) bool {
	rank, variable := rankIn(env, pod)
	above, of := rankIn(parent, pod)
	return variable != "" && variable == of && rank == above
}

// rankIn returns a rank, and in which variable it is; "" if there is none.
func rankIn(env, pod []string) (rank int32, variable string) {
	for _, names := range rankVariables {
		if names[1] != "" && (environ.Get(env, names[1]) == "" || environ.Get(pod, names[0]) != "") {
			continue
		}
		if n, err := strconv.ParseInt(environ.Get(env, names[0]), 10, 32); err == nil && n >= 0 {
			return int32(n), names[0]
		}
	}
	return 0, ""
}

// IsRestarted reports whether what started a rank goes on without it, or starts it again, if it fails: elastic Horovod, and torchrun with restarts.
func IsRestarted(env []string) bool {
	restarts, err := strconv.Atoi(environ.Get(env, "TORCHELASTIC_MAX_RESTARTS"))
	return environ.Get(env, "HOROVOD_ELASTIC") == "1" || err == nil && restarts > 0
}

// SizeOf returns the number of ranks of the program to which a rank belongs, or 0. Open MPI, the PMI of MPICH and Intel MPI, Horovod and torchrun
// name it.
func SizeOf(env []string) int32 {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE", "WORLD_SIZE"} {
		if n, err := strconv.ParseInt(environ.Get(env, name), 10, 32); err == nil && n > 0 {
			return int32(n)
		}
	}
	return 0
}

// ParseVersion returns the MPI library and its version, such as "Open MPI 5.0.7", from what a launcher prints; "" if that is
// something else. These are the outputs:
//
//	mpirun (Open MPI) 5.0.7                   Open MPI; under other names "orterun (OpenRTE) 4.1.4", which has the same version
//	HYDRA build details:\n    Version: 4.2.1  MPICH
//	Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240701 (id: 179630a)
//	                                          Intel MPI; before 2021 "2019 Update 9"
func ParseVersion(output string) string {
	version, hydra := "", false
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		_, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(rest, "(Open MPI) "), strings.HasPrefix(rest, "(OpenRTE) "):
			_, number, _ := strings.Cut(rest, ") ")
			version = "Open MPI " + strings.TrimPrefix(number, "v")
		case strings.HasPrefix(line, "HYDRA build details"):
			hydra = true
			continue
		case hydra && strings.HasPrefix(line, "Version:"):
			version = "MPICH " + strings.TrimSpace(strings.TrimPrefix(line, "Version:"))
		case strings.HasPrefix(line, "Intel(R) MPI Library"):
			_, number, _ := strings.Cut(line, ", Version ")
			number, _, _ = strings.Cut(number, " Build ")
			version = "Intel MPI " + strings.Replace(number, " Update ", ".", 1)
		default:
			continue
		}
		if agentapi.IsMPIVersion(version) {
			return version
		}
		return ""
	}
	return ""
}
