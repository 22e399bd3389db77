package outcome

import (
	"fmt"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// This file says what the exit codes and signals of ranks mean. Those with which Open MPI, MPICH and Intel MPI end ranks are in the
// package agentapi (exit_codes.go). What MPI launchers print about them is in the package implementation (symptoms_hydra.go,
// symptoms_openmpi.go), and what is concluded from the exit codes of containers in the package diagnose (exits.go).

// crashed reports whether a rank ended by an invalid access to memory. In MPI that is also how ranks end whose peer is gone.
func crashed(end agentapi.RankEnd) bool {
	return unix.Signal(end.Signal) == unix.SIGSEGV || unix.Signal(end.Signal) == unix.SIGBUS
}

// hasOwnCode reports whether a rank ended with an exit code that the program itself chose: not as MPI ends ranks, not with that of an
// exception, which a lost peer causes as well, and not by a signal that a shell passed on.
func hasOwnCode(end agentapi.RankEnd) bool {
	return end.Signal == 0 && end.ExitCode > 1 && end.ExitCode < 126 && !end.LostPeer()
}

// toldToEnd is the place of ranks that others have ended.
const toldToEnd = 2

// afterwards orders the ends of ranks, causes before consequences.
func afterwards(r agentapi.RankEnd) int {
	switch unix.Signal(r.Signal) {
	case unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE:
		if r.OOM {
			return 0
		}
		return toldToEnd
	}
	return 1
}

// RankEnded describes how a rank ended.
func RankEnded(r agentapi.RankEnd) string {
	who := fmt.Sprintf("Rank %d ", r.Rank)
	if r.Program != "" {
		who += "(" + r.Program + ") "
	}
	switch {
	case r.OOM:
		return who + "was killed by the kernel for lack of memory."
	case r.Signal != 0:
		return fmt.Sprintf("%sended by signal %d (%s).", who, r.Signal, unix.SignalName(unix.Signal(r.Signal)))
	case r.ExitCode < 0:
		return who + "ended."
	}
	return fmt.Sprintf("%sended with code %d.", who, r.ExitCode)
}
