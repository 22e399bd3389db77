// Package nvidia reads what the GPUs of NVIDIA do that the container has, with the driver's library, which runs in a process of its own.
package nvidia

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// The agent is a static program, which cannot load NVML, the library of NVIDIA's driver. So it starts the image's shell with a library of
// its own preloaded, which loads NVML and runs instead of the shell (internal/agent/library/gpus.c). It waits for a byte, prints a line for
// each device, and ends when the agent does. Nothing that it prints is trusted, and it has nothing of the agent but two pipes.

const (
	// within is how long an answer may take. The first one may take longer: the driver may have to initialize the devices.
	within, firstWithin = 5 * time.Second, 40 * time.Second
	// pause is how long after a failure the process is started again.
	pause = 10 * time.Minute
	// envRead has the library run instead of the program into which it is preloaded. Its value is how many seconds the driver may take: then
	// the process ends, also if the agent is gone.
	envRead = "MPI_AGENT_GPUS"
	// patience is a little longer than any answer may take.
	patience = firstWithin + 5*time.Second
)

// Reader reads the GPUs of this container.
type Reader struct {
	// start starts a process, and log is where it is reported once why the GPUs cannot be read.
	start func(process.Command) (process.Program, error)
	log   *slog.Logger
	// machine is the folder of the files of the machine: "/". env is the environment of the container.
	machine, shell, library     string
	env                         []string
	period, first, later, pause time.Duration

	mu      sync.Mutex
	devices []Device
	at      time.Time
}

// New returns a reader that starts its process with start.
func New(log *slog.Logger, start func(process.Command) (process.Program, error)) *Reader {
	return &Reader{
		start: start, log: log, machine: "/", shell: "/bin/sh", library: agentapi.GPULibrary, env: os.Environ(),
		period: usage.Period, first: firstWithin, later: within, pause: pause,
	}
}

// Devices returns the GPUs as they were read last; none if that was long ago.
func (r *Reader) Devices() []Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > 2*r.period+r.later {
		return nil
	}
	return r.devices
}

// keep keeps the devices of an answer.
func (r *Reader) keep(devices []Device) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]bool{}
	for _, d := range r.devices {
		known[d.UUID] = d.Lost
	}
	for _, d := range devices {
		if d.Lost && !known[d.UUID] {
			r.log.Warn("a GPU of NVIDIA is lost: the driver cannot reach it", "gpu", d.UUID)
		}
	}
	r.devices, r.at = devices, time.Now()
}

// Run reads the GPUs until done is closed. Without devices of NVIDIA, or the library, or if a user does not want it, it returns at once.
func (r *Reader) Run(done <-chan struct{}) {
	if !r.hasDevices() || strings.EqualFold(environ.Get(r.env, agentapi.EnvMeasureGPUs), "false") {
		return
	}
	if _, err := os.Stat(r.library); err != nil {
		// The agent's image has no libraries.
		return
	}
	reported := ""
	for {
		ended, err := r.read(done)
		if reason := describe(err); err != nil && reason != reported {
			r.log.Warn("the GPUs of NVIDIA are not measured", "reason", reason)
			reported = reason
		}
		if !sleep(r.pause, done) {
			return
		}
		// A process that waits for the driver cannot be killed. There is never a second one.
		select {
		case <-done:
			return
		case <-ended:
		}
	}
}

// hasDevices reports whether the container has the device of NVIDIA's driver.
func (r *Reader) hasDevices() bool {
	_, err := os.Stat(filepath.Join(r.machine, "dev/nvidiactl"))
	return err == nil
}

// sleep waits; false if done was closed.
func sleep(duration time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}

// read starts the process and asks it every period, until done is closed or the process fails. ended is closed when the process has ended.
func (r *Reader) read(done <-chan struct{}) (ended <-chan struct{}, err error) {
	nothing := make(chan struct{})
	close(nothing)
	child, err := r.open()
	if err != nil {
		return nothing, err
	}
	defer child.close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-done:
			child.close()
		case <-stop:
		}
	}()
	lines, limit := bufio.NewReaderSize(child.output, maxLine), r.first
	for {
		devices, err := child.ask(lines, limit)
		select {
		case <-done:
			return child.ended, nil
		default:
		}
		if err != nil {
			return child.ended, err
		}
		r.keep(r.own(devices))
		limit = r.later
		if !sleep(r.period, done) {
			return child.ended, nil
		}
	}
}

// child is the process that reads the devices.
type child struct {
	requests, output *os.File
	pid              int
	ended            chan struct{}
	closed           sync.Once
}

// open starts the process. Of the container's environment it gets where libraries are.
func (r *Reader) open() (*child, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	input, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	output, answers, err := os.Pipe()
	if err != nil {
		requests.Close()
		return nil, err
	}
	defer answers.Close()
	// Before glibc 2.34, the dynamic linker's functions were in libdl, which not every shell has loaded.
	env := []string{envRead + "=" + strconv.Itoa(int(patience.Seconds())), "LD_PRELOAD=" + r.library + " libdl.so.2"}
	if folders := environ.Get(r.env, "LD_LIBRARY_PATH"); folders != "" {
		env = append(env, "LD_LIBRARY_PATH="+folders)
	}
	// A shell that is linked statically runs its command.
	program, err := r.start(process.Command{
		Args: []string{r.shell, "-c", "echo error the shell of the image loads no libraries"}, Env: env, Files: [3]*os.File{input, answers, null}, OwnSession: true,
	})
	if err != nil {
		requests.Close()
		output.Close()
		return nil, err
	}
	c := &child{requests: requests, output: output, pid: program.PID, ended: make(chan struct{})}
	go func() { <-program.Done; close(c.ended) }()
	return c, nil
}

// close ends the process.
func (c *child) close() {
	c.closed.Do(func() {
		c.requests.Close()
		c.output.Close()
		select {
		case <-c.ended:
		default:
			_ = unix.Kill(-c.pid, unix.SIGKILL)
		}
	})
}

// ask asks the process for the devices.
func (c *child) ask(lines *bufio.Reader, limit time.Duration) ([]Device, error) {
	deadline := time.Now().Add(limit)
	_ = c.requests.SetWriteDeadline(deadline)
	_ = c.output.SetReadDeadline(deadline)
	// A process that has ended left its reason.
	_, _ = c.requests.Write([]byte{'\n'})
	return parse(lines)
}

// describe returns the reason of a failure for users.
func describe(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "NVIDIA's driver does not answer"
	case errors.Is(err, io.EOF):
		return "the process that reads them has ended"
	}
	return fmt.Sprint(err)
}

// own returns the devices that the container may use: those with a device file, and, if a container with all device files was given some
// by their names, these.
func (r *Reader) own(devices []Device) (own []Device) {
	named := environ.Get(r.env, "NVIDIA_VISIBLE_DEVICES")
	byName := strings.HasPrefix(named, "GPU-") || strings.HasPrefix(named, "MIG-")
	for _, d := range devices {
		_, err := os.Stat(filepath.Join(r.machine, fmt.Sprintf("dev/nvidia%d", d.Minor)))
		isOther := byName && d.UUID != noName && !strings.Contains(","+named+",", ","+d.UUID+",")
		if err == nil && !isOther || d.Lost && d.Minor < 0 {
			own = append(own, d)
		}
	}
	return own
}
