// Package agent starts MPI's ranks on a job's pods, instead of OpenSSH: any image that has an MPI runs with it, as
// any user. A worker serves the SSH protocol; a launcher calls the agent under the name ssh; both authenticate with the
// job's key. The agent also records the state of hosts and ranks, and reports it.
package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"opendatahub.io/mpijob/internal/agent/launcher"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/rsh"
	"opendatahub.io/mpijob/internal/agent/stacks"
	"opendatahub.io/mpijob/internal/agent/status"
	"opendatahub.io/mpijob/internal/agent/worker"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/version"
)

const usage = `mpi-agent starts the ranks of an MPI job.

  mpi-agent serve [ADDRESS [STATUS]] on a worker: accept connections of this job, run their commands;
                                     by default at :2222 and, for the status, at :2223
  mpi-agent launch -- COMMAND...     on the launcher: run COMMAND, watch over hosts and ranks
  mpi-agent rsh [options] HOST CMD   what MPI runs to reach a worker; the same as calling it under the name ssh
  mpi-agent install FOLDER           copy the agent into a folder, for the pod's other containers
  mpi-agent status [-o json]         print the state that the agent of this pod has
  mpi-agent stacks [--rank N]        on the launcher: print where the ranks are in their Python code, as JSON
  mpi-agent version                  print the version

The job's key is read from ` + agentapi.KeyFile + `, or from the file that ` + agentapi.EnvKey + ` names.
`

// Main runs the agent with a program's arguments, its name first, and returns its exit code.
func Main(args []string) int {
	if filepath.Base(args[0]) == "ssh" {
		return rsh.Run(args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	verb, rest := "", []string(nil)
	if len(args) > 1 {
		verb, rest = args[1], args[2:]
	}
	switch {
	case verb == "rsh":
		return rsh.Run(rest, os.Stdin, os.Stdout, os.Stderr)
	case verb == "serve" && len(rest) <= 2:
		return exit(worker.Run(logger(), address(rest, 0, agentapi.Port), address(rest, 1, agentapi.StatusPort), process.UserEnv(os.Environ(), records.Folder())))
	case verb == "launch" && len(rest) > 1 && rest[0] == "--":
		return launcher.Run(rest[1:], process.UserEnv(os.Environ(), records.Folder()), address(nil, 0, agentapi.StatusPort))
	case verb == "install" && len(rest) == 1:
		return exit(install(rest[0]))
	case verb == "status" && (len(rest) == 0 || slices.Equal(rest, []string{"-o", "json"})):
		identity, err := protocol.ReadIdentity("")
		if err != nil {
			return exit(err)
		}
		return status.Print(status.LocalAddress(), identity.Token, len(rest) > 0, os.Stdout, os.Stderr)
	case verb == "stacks":
		return stacks.Print(rest, os.Stdout, os.Stderr)
	case verb == "version" && len(rest) == 0:
		fmt.Println(version.Get())
		return 0
	case verb == "help", verb == "--help", verb == "-h":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// address is one of the arguments, or any address with a port.
func address(args []string, i, port int) string {
	if i < len(args) {
		return args[i]
	}
	return ":" + strconv.Itoa(port)
}

func exit(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpi-agent:", err)
		return 1
	}
	return 0
}

// logger writes lines of JSON to standard error. Package logs recognizes them by the field logger.
func logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("logger", agentapi.Logger)
}
