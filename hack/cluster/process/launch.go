package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/hack/cluster/cgroup"
)

// launchVariable carries the order to the launched process. A variable and
// not an argument, because "ps" shows arguments until the program runs.
const launchVariable = "MPIJOB_CLUSTER_LAUNCH"

// The priorities of components and of pods, from -20, the most urgent, to 19.
const (
	urgent = -10
	usual  = 0
)

// Mounts is a view of files of one's own, a mount namespace.
//
// A node has one: containerd and kubelet have paths built in (the shims'
// sockets, the CNI cache, /var/log/containers) that two nodes must not share
// and that must not stay on the machine. And what is mounted in it goes with
// its last process, however that one ends.
type Mounts struct {
	// Binds are mounted in a namespace made for the component: the content of
	// Source is seen at Target. Both must exist.
	Binds []Bind `json:"binds"`
	// JoinPID is a process whose namespace is joined instead, when not 0.
	JoinPID int `json:"joinPID,omitempty"`
}

// Bind is one bind mount.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

func (m *Mounts) withoutNamespace() *Mounts {
	if m == nil {
		return nil
	}
	return &Mounts{Binds: m.Binds}
}

type launchOrder struct {
	Args   []string `json:"args"`
	Cgroup string   `json:"cgroup,omitempty"`
	Mounts *Mounts  `json:"mounts,omitempty"`
	// StartsPods is as in Spec.
	StartsPods bool `json:"startsPods,omitempty"`
}

// Launch becomes the program that the environment's order names, in its
// cgroup and mount namespace. It returns only on failure. It is what the
// launcher of a Table must end up in.
func Launch() error {
	var order launchOrder
	if err := json.Unmarshal([]byte(os.Getenv(launchVariable)), &order); err != nil {
		return fmt.Errorf("%s: %w", launchVariable, err)
	}
	if len(order.Args) == 0 {
		return fmt.Errorf("%s names no program", launchVariable)
	}
	// Priorities and namespaces belong to a thread; exec keeps the calling
	// thread's.
	runtime.LockOSThread()
	order.hurry()
	if order.Cgroup != "" {
		if err := cgroup.Join(order.Cgroup, os.Getpid()); err != nil {
			return err
		}
	}
	if order.Mounts != nil {
		if err := order.Mounts.enter(); err != nil {
			return err
		}
	}
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, launchVariable+"=")
	})
	// The caller of "up" may have files open, for instance a lock, that would
	// stay open as long as the cluster runs. An old kernel cannot do it.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err := syscall.Exec(order.Args[0], order.Args, environment); err != nil {
		return fmt.Errorf("run %s: %w", order.Args[0], err)
	}
	return nil
}

// hurry lets the program go before pods: where a machine has few processors,
// ranks that wait for each other at full speed must not take them from an API
// server. Without the right to do so the cluster is only slower.
func (o launchOrder) hurry() {
	priority := urgent
	if o.StartsPods {
		priority = usual
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, priority)
	// Many kernels compare priorities within a session alone, and sessions by
	// this (sched(7), "The autogroup feature"). Pods have sessions of their own,
	// so that they do not inherit it. Other kernels do not have the file.
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(urgent)), 0)
}

func (m *Mounts) enter() error {
	if m.JoinPID != 0 {
		return joinMounts(m.JoinPID)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	// MS_SLAVE: mounts made here never reach the machine. MS_SHARED on top: pods
	// may request mount propagation from the node.
	for _, flag := range []uintptr{unix.MS_SLAVE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|flag, ""); err != nil {
			return fmt.Errorf("propagation of mounts: %w", err)
		}
	}
	for _, bind := range m.Binds {
		if err := unix.Mount(bind.Source, bind.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", bind.Source, bind.Target, err)
		}
	}
	return nil
}

func joinMounts(pid int) (err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return fmt.Errorf("mount namespace of process %d: %w", pid, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// A thread that shares its root and working directory with others may
	// not change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare file system attributes: %w", err)
	}
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("join the mount namespace of process %d: %w", pid, err)
	}
	return nil
}
