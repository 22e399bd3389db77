package agent

import (
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// parseVersion returns the MPI library and its version, such as "Open MPI 5.0.7", from what a launcher prints; "" if that is
// something else. These are the outputs:
//
//	mpirun (Open MPI) 5.0.7                   Open MPI; under other names "orterun (OpenRTE) 4.1.4", which has the same version
//	HYDRA build details:\n    Version: 4.2.1  MPICH
//	Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240701 (id: 179630a)
//	                                          Intel MPI; before 2021 "2019 Update 9"
func parseVersion(output string) string {
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
