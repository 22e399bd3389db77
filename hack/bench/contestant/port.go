package contestant

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// healthPort is the fixed port on which mpi-operator serves its health checks.
const healthPort = 8080

// Ready returns an error if a contestant could not start: mpi-operator ends at once if another process listens on its
// port.
func Ready() error { return free(healthPort) }

func free(port int) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is taken by another program, and mpi-operator can serve its health checks nowhere else: "+
			"end that program (\"ss -ltnp 'sport = :%d'\" names it), or measure without mpi-operator with SUITE=report", port, port)
	}
	if err != nil {
		return fmt.Errorf("see whether port %d is free: %w", port, err)
	}
	return listener.Close()
}
