// Package host makes hosts out of processes: each has a name, a /tmp and processes of its own, and all are on one
// loopback network that nothing else is on. Their files are those of a container image. For Linux, as root.
package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Spec says what a host is.
type Spec struct {
	Name string
	// Root is a folder with the files of an image; the host sees a copy of its own to write to, kept in memory.
	Root string
	// Scratch is an empty folder outside of Root. Hosts may share it, and it stays empty.
	Scratch string
	// Files are written before the command starts, by path.
	Files map[string]File
	// Shared are files and folders of the machine, by the path at which the host sees them.
	Shared map[string]string
	// Own are folders that are empty and the host's own, also where a shared one is around them.
	Own []string
	// Command is what runs there, a path and arguments; its environment is Env and nothing else.
	Command []string
	Env     []string
}

// File is a file on a host.
type File struct {
	Content string
	Mode    os.FileMode
}

// Network is what hosts are on: all addresses of 127.0.0.0/8, for themselves alone.
type Network struct{ calls chan func() }

// NewNetwork makes a network. It goes when it is closed and its last host has ended.
func NewNetwork() (*Network, error) { return newNetwork(isolate) }

// newNetwork makes a network that setUp sets up in the thread that calls it.
func newNetwork(setUp func() error) (*Network, error) {
	n := &Network{calls: make(chan func())}
	made := make(chan error)
	go func() {
		// A thread of its own: its children are born into its network. It is not unlocked, and so ends with this.
		runtime.LockOSThread()
		made <- setUp()
		for call := range n.calls {
			call()
		}
	}()
	if err := <-made; err != nil {
		n.Close()
		return nil, fmt.Errorf("make a network: %w", err)
	}
	return n, nil
}

// isolate puts this thread into a network namespace of its own, with a loopback interface.
func isolate() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	return setInterface("lo", nil)
}

// setInterface brings up an interface of this thread's network namespace, after more has been set.
func setInterface(name string, more func(socket int, device *unix.Ifreq) error) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(socket)
	device, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if more != nil {
		if err := more(socket, device); err != nil {
			return err
		}
	}
	device.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, device); err != nil {
		return fmt.Errorf("bring up the interface %s: %w", name, err)
	}
	return nil
}

// Close ends the network; the kernel ends those of its hosts that still run.
func (n *Network) Close() { close(n.calls) }

// Host is one that runs. Its first process has ended when all of them have.
type Host struct {
	name    string
	command *exec.Cmd
	// isOurs is whether its first process is this program.
	isOurs bool
}

// Start starts a host, whose output goes to a file.
func (n *Network) Start(spec Spec, output *os.File) (*Host, error) {
	if len(spec.Command) == 0 {
		return nil, fmt.Errorf("start host %s: it has no command", spec.Name)
	}
	command, err := n.command(spec)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = output, output
	return n.start(spec.Name, command)
}

// command is a host to be started.
func (n *Network) command(spec Spec) (*exec.Cmd, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("start host %s: %w", spec.Name, err)
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{argument, string(text)}, Env: []string{},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
			// With the first process of a host all others end.
			Pdeathsig: unix.SIGKILL,
			// Ctrl-C is the bench's to answer, and the kernel shares out processors by session (sched(7)).
			Setsid: true,
		},
	}, nil
}

func (n *Network) start(name string, command *exec.Cmd) (*Host, error) {
	started := make(chan error)
	n.calls <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start host %s: %w", name, err)
	}
	return &Host{name: name, command: command}, nil
}

// Stop ends a host and all that runs on it.
func (h *Host) Stop() error {
	if err := h.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop host %s: %w", h.name, err)
	}
	_ = h.command.Wait() // it was killed
	return nil
}

// Memory is what the first process of the host holds.
func (h *Host) Memory() (Memory, error) { return memoryOf(h.command.Process.Pid) }

// Memory is in bytes.
type Memory struct {
	// Resident is all, Private what no other process shares.
	Resident, Private int64
}

// memoryOf reads /proc/PID/smaps_rollup (proc_pid_smaps(5)).
func memoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	return parseMemory(string(text))
}

func parseMemory(rollup string) (Memory, error) {
	bytes := map[string]int64{}
	for line := range strings.Lines(rollup) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("read memory: %w", err)
		}
		bytes[strings.TrimSuffix(fields[0], ":")] = kib << 10
	}
	m := Memory{Resident: bytes["Rss"], Private: bytes["Private_Clean"] + bytes["Private_Dirty"]}
	if m.Resident == 0 {
		return Memory{}, fmt.Errorf("read memory: the process has ended")
	}
	return m, nil
}
