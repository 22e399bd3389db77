// Package controller replaces mpi-operator's package pkg/controller while its integration tests run: the controller
// that it starts is the operator of this repository, as a separate process.
package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
)

// OperatorVariable names the environment variable with the path of the operator's program, KubeconfigVariable that
// with the path of the operator's kubeconfig.
const (
	OperatorVariable   = "CONFORMANCE_OPERATOR"
	KubeconfigVariable = "CONFORMANCE_KUBECONFIG"
)

// startTimeout is how long the operator may take until it is ready, on a machine that is busy with other tests.
const startTimeout = 30 * time.Second

// alone is held while an operator runs. A test does not wait for its controller's end; without this the next
// test's job would have two operators for a moment.
var alone sync.Mutex

// MPIJobController is a running operator.
type MPIJobController struct {
	// PodGroupCtrl is nil: the operator runs its own informers.
	PodGroupCtrl PodGroupControl

	kill   func() error
	exited chan struct{}
	// end is why it ended, once exited is closed.
	end error
}

// PodGroupControl is what a test calls of mpi-operator's type of this name.
type PodGroupControl interface {
	StartInformerFactory(stop <-chan struct{})
}

// NewMPIJobController starts the operator and returns when it is ready, so that what a test does next it does to a
// running operator. All parameters but options are clients and informers for a controller within the process. Run
// must be called on what it returns.
func NewMPIJobController(_ context.Context, _, _, _, _, _, _, _, _, _, _, _ any, options *options.ServerOption) (*MPIJobController, error) {
	alone.Lock()
	c, err := start(options)
	if err != nil {
		alone.Unlock()
		return nil, fmt.Errorf("start operator: %w", err)
	}
	return c, nil
}

// Run returns when stop is closed and the operator has ended, or with an error if it ends before.
func (c *MPIJobController) Run(_ int, stop <-chan struct{}) error {
	defer alone.Unlock()
	select {
	case <-c.exited:
		return fmt.Errorf("the operator ended before its test: %w", c.end)
	case <-stop:
		err := c.kill()
		<-c.exited
		return err
	}
}

func start(options *options.ServerOption) (*MPIJobController, error) {
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	flags := []string{
		"--watch-namespaces=" + options.Namespace, "--cluster-domain=" + options.ClusterDomain,
		"--leader-elect=false", "--webhook-port=0", "--metrics-address=0", "--health-address=" + health,
	}
	if options.GangSchedulingName != "" {
		flags = append(flags, "--gang-scheduling="+options.GangSchedulingName)
	}
	operator := exec.Command(os.Getenv(OperatorVariable), flags...)
	operator.Env = append(os.Environ(), "KUBECONFIG="+os.Getenv(KubeconfigVariable))
	// Not os.Stderr itself: the last test ends without waiting for its operator, and go test would then wait for everything
	// that holds its output. An operator whose output is closed ends with its next line.
	output := struct{ io.Writer }{os.Stderr}
	operator.Stdout, operator.Stderr = output, output
	if err := operator.Start(); err != nil {
		return nil, err
	}
	c := &MPIJobController{kill: operator.Process.Kill, exited: make(chan struct{})}
	go func() {
		defer close(c.exited)
		if c.end = operator.Wait(); c.end == nil {
			c.end = errors.New("exit status 0")
		}
	}()
	if err := c.waitReady("http://" + health + "/readyz"); err != nil {
		_ = c.kill()
		return nil, err
	}
	return c, nil
}

// freeAddress finds an address on which nobody listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (c *MPIJobController) waitReady(address string) error {
	timeout := time.After(startTimeout)
	for {
		if response, err := http.Get(address); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.exited:
			return c.end
		case <-timeout:
			return fmt.Errorf("it is not ready after %v", startTimeout)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
