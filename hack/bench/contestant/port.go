package contestant

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// healthPort is where mpi-operator serves its health checks, whatever it is told.
const healthPort = 8080

// Ready tells what stands in the way of the contestants before anything is started: mpi-operator would end at once if
// something else listened on its port.
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
