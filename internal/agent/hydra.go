package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// hydraEnv returns the environment in which Hydra, the launcher of MPICH and Intel MPI, finds the job's hosts, if the
// pod's MPI uses Hydra (agentapi.EnvHostfileFormat). Kubeflow Trainer writes the list for Open MPI only,
// "host slots=4"; a copy in Hydra's format, "host:4", is written to the agent's own folder. The user's variables take
// precedence.
func hydraEnv(env []string, list string) ([]string, error) {
	if variable(env, agentapi.EnvHostfileFormat) != agentapi.FormatHydra {
		return env, nil
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return nil, fmt.Errorf("read the job's hosts: %w", err)
	}
	path := filepath.Join(recordsFolder(), "hostfile")
	text, slots := hydraHostfile(string(data))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // whoever runs in the pod reads it
		return nil, fmt.Errorf("write the job's hosts for Hydra: %w", err)
	}
	// Intel MPI does not read how many ranks go to a host from the list.
	for _, set := range [][2]string{{"HYDRA_HOST_FILE", path}, {"I_MPI_HYDRA_HOST_FILE", path}, {"I_MPI_PERHOST", slots}} {
		if variable(env, set[0]) == "" && set[1] != "" {
			env = setVariable(env, set[0], set[1])
		}
	}
	return env, nil
}

// hydraHostfile gives a list of hosts in Hydra's form, and the slots of its first host. Lines in another form stay.
func hydraHostfile(list string) (text, slots string) {
	var b strings.Builder
	for line := range strings.Lines(list) {
		host, number, found := strings.Cut(strings.TrimSpace(line), " slots=")
		if !found {
			b.WriteString(line)
			continue
		}
		if slots == "" {
			slots = number
		}
		b.WriteString(host + ":" + number + "\n")
	}
	return b.String(), slots
}
