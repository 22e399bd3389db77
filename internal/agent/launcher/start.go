package launcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// launcherEnv is the environment of the launcher's command: with the shim first in PATH, for tools that look for an
// ssh; and with a shell's name, by which Open MPI spares itself a warning where the user has no entry in passwd.
func launcherEnv(env []string) []string {
	path := cmp.Or(environ.Get(env, "PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	env = environ.Set(env, "PATH", filepath.Dir(agentapi.Shim)+":"+path)
	env = environ.Set(env, records.EnvSupervised, "1")
	if environ.Get(env, "SHELL") == "" {
		shell := "/bin/sh"
		if _, err := os.Stat("/bin/bash"); err == nil {
			shell = "/bin/bash"
		}
		env = environ.Set(env, "SHELL", shell)
	}
	return env
}

// hydraEnv returns the environment in which Hydra, the launcher of MPICH and Intel MPI, finds the job's hosts, if the
// pod's MPI uses Hydra (agentapi.EnvHostfileFormat). Kubeflow Trainer writes the list for Open MPI only,
// "host slots=4"; a copy in Hydra's format, "host:4", is written to the agent's own folder. The user's variables take
// precedence.
func hydraEnv(env []string, list string) ([]string, error) {
	if environ.Get(env, agentapi.EnvHostfileFormat) != agentapi.FormatHydra {
		return env, nil
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return nil, fmt.Errorf("read the job's hosts: %w", err)
	}
	path := filepath.Join(records.Folder(), "hostfile")
	text, slots := hostfile.Hydra(string(data))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // whoever runs in the pod reads it
		return nil, fmt.Errorf("write the job's hosts for Hydra: %w", err)
	}
	// Intel MPI does not read how many ranks go to a host from the list.
	for _, set := range [][2]string{{"HYDRA_HOST_FILE", path}, {"I_MPI_HYDRA_HOST_FILE", path}, {"I_MPI_PERHOST", slots}} {
		if environ.Get(env, set[0]) == "" && set[1] != "" {
			env = environ.Set(env, set[0], set[1])
		}
	}
	return env, nil
}

// restartsLeft returns how often JobSet has started the job again, and how often it may; the same number without such a limit.
func restartsLeft(env []string) (restarts, most int) {
	restarts, err := strconv.Atoi(environ.Get(env, agentapi.EnvRestart))
	if err != nil {
		return 0, 0
	}
	if most, err = strconv.Atoi(environ.Get(env, agentapi.EnvMaxRestarts)); err != nil {
		return restarts, restarts
	}
	return restarts, most
}

// refuse reports that the job was started again too often, and returns the exit code of a failed program: JobSet counts that.
func (s *supervisor) refuse(restarts int) int {
	const code = 1
	summary := agentapi.Summary{
		Role: agentapi.RoleLauncher, ExitCode: new(int32(code)), Code: agentapi.RestartedTooOften,
		Message: fmt.Sprintf("The job was started again %d times, mostly because its pods were evicted, preempted or drained, which is more often than it may be. Its command is not run again.", restarts),
	}
	fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	records.WriteTermination(summary)
	return code
}

// notStarted reports why the launcher's command could not be started, and returns a shell's exit code.
func (s *supervisor) notStarted(name string, err error) int {
	code, summary := 126, agentapi.Summary{Role: agentapi.RoleLauncher, Code: agentapi.ProgramMissing}
	if errors.Is(err, exec.ErrNotFound) {
		code = 127
		summary.Message = fmt.Sprintf("The launcher's command %q is not in its image: %v.", name, err)
	} else {
		var because string
		summary.Code, because = whyNotExecuted(name, err)
		summary.Message = fmt.Sprintf("The launcher's command %q cannot be started: %s.", name, because)
	}
	summary.ExitCode = new(int32(code))
	fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	records.WriteTermination(summary)
	return code
}
