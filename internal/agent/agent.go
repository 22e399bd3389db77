// Package agent starts MPI's ranks on a job's pods, in place of OpenSSH: any image that has an MPI runs with it, as
// any user. A worker serves the SSH protocol; a launcher reaches it under the name of ssh; both know each other by
// the job's key. Along the way the agent sees what becomes of hosts and ranks, and tells it.
package agent

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"opendatahub.io/mpijob/internal/launch"
)

// cgroupRoot is where a container sees its own cgroup.
const cgroupRoot = "/sys/fs/cgroup"

const usage = `mpi-agent starts the ranks of an MPI job.

  mpi-agent serve [ADDRESS [STATUS]] on a worker: take connections of this job, start what they ask for;
                                     at :2222 and, for the status, at :2223 unless told otherwise
  mpi-agent launch -- COMMAND...     on the launcher: run COMMAND, watch over hosts and ranks
  mpi-agent rsh [options] HOST CMD   what MPI runs to reach a worker; the same as calling it under the name ssh
  mpi-agent install FOLDER           copy the agent into a folder, for the pod's other containers
  mpi-agent status                   what the agent of this pod knows

The job's key is read from ` + launch.KeyFile + `, or from the file that ` + launch.EnvKey + ` names.
`

// Main runs the agent with a program's arguments, its name first, and returns its exit code.
func Main(args []string) int {
	if filepath.Base(args[0]) == "ssh" {
		return rsh(args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	verb, rest := "", []string(nil)
	if len(args) > 1 {
		verb, rest = args[1], args[2:]
	}
	switch {
	case verb == "rsh":
		return rsh(rest, os.Stdin, os.Stdout, os.Stderr)
	case verb == "serve" && len(rest) <= 2:
		return exit(serveWorker(logger(), address(rest, 0, launch.Port), address(rest, 1, launch.StatusPort)))
	case verb == "launch" && len(rest) > 1 && rest[0] == "--":
		return supervise(rest[1:], slog.New(slog.DiscardHandler))
	case verb == "install" && len(rest) == 1:
		return exit(install(rest[0]))
	case verb == "status" && len(rest) == 0:
		return printStatus(os.Stdout, os.Stderr)
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

// logger writes lines of JSON to standard error: a worker's log holds nothing else.
func logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, nil))
}

// serveWorker serves until the pod is to end, then ends what runs and leaves a summary.
func serveWorker(log *slog.Logger, listen, status string) error {
	identity, err := readIdentity(setting(launch.EnvKey, launch.KeyFile))
	if err != nil {
		return err
	}
	if _, err := identity.job(); err != nil {
		return err
	}
	ctx := untilTold()
	s := &server{log: log, identity: identity, ranks: newRanks(log, cgroupRoot), env: temporaryFolder(os.Environ())}
	if s.processes, err = newProcesses(s.ranks.look); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("take connections: %w", err)
	}
	go s.ranks.watch(ctx.Done())
	go serveStatus(log, status, s.summary, s.series)
	log.Info("ready", "address", listener.Addr().String())
	err = s.serve(ctx, listener)
	log.Info("ending")
	end("")
	s.sessions.Wait()
	writeTermination(s.summary())
	return err
}
