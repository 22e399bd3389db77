// Package cgroup makes the cluster's control groups, finds who is in them and
// removes them, on cgroup v1, v2 and machines that mount both.
//
// Names are relative to a hierarchy, such as "mpijob-cluster/node-1". Every
// process that a component starts, however indirectly, stays in the
// component's group: this is how shims and pods are found again when nothing
// else remembers them.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	path        string
	v2          bool
	controllers []string // v1: the mount's own
}

// Create makes the group and its parents in every hierarchy and makes it fit
// to hold pods.
func Create(name string) error {
	hierarchies, err := mounted()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		if err := h.create(name); err != nil {
			return err
		}
	}
	return nil
}

// Join puts a process into the group. On v1 one hierarchy is enough to find
// the process again, so the others, and with them resources, stay as they
// are.
func Join(name string, pid int) error {
	hierarchies, err := mounted()
	if err != nil {
		return err
	}
	file := filepath.Join(membership(hierarchies).path, name, "cgroup.procs")
	if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("join cgroup %s: %w", name, err)
	}
	return nil
}

// Processes returns the ids of all processes in the group and below it, in
// any hierarchy. A missing group has none.
func Processes(name string) ([]int, error) {
	hierarchies, err := mounted()
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for _, h := range hierarchies {
		err := walk(filepath.Join(h.path, name), func(dir string) error {
			content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil {
				return ignoreGone(err)
			}
			for field := range strings.FieldsSeq(string(content)) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					return fmt.Errorf("cgroup %s: %w", dir, err)
				}
				if pid > 0 { // 0 stands for one of another pid namespace
					found[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

// Kill ends every process in the group and below it by force and returns when
// they are gone.
func Kill(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		pids, err := Processes(name)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d of cgroup %s: %w", pid, name, err)
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("processes %v of cgroup %s do not end: %w", pids, name, err)
		}
	}
}

// Remove removes the group and everything below it from every hierarchy. The
// processes must have ended. It is no error if there is none.
func Remove(ctx context.Context, name string) error {
	hierarchies, err := mounted()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var busy error
		for _, h := range hierarchies {
			busy = errors.Join(busy, removeTree(filepath.Join(h.path, name)))
		}
		if busy == nil {
			return nil
		}
		// The kernel keeps a group busy until its last task is fully reaped.
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", name, busy)
		}
	}
}

// Exists reports whether any hierarchy has the group.
func Exists(name string) bool {
	hierarchies, err := mounted()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(hierarchies, func(h hierarchy) bool {
		_, err := os.Stat(filepath.Join(h.path, name))
		return err == nil
	})
}

// V1 reports whether the machine's controllers are on cgroup v1 hierarchies,
// which a kubelet refuses by default.
func V1() (bool, error) {
	hierarchies, err := mounted()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(hierarchies, func(h hierarchy) bool {
		return slices.Contains(h.controllers, "memory")
	}), nil
}

func removeTree(root string) error {
	var dirs []string
	err := walk(root, func(dir string) error {
		dirs = append(dirs, dir)
		return nil
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// walk calls visit for root and all groups below, parents first. Groups may
// vanish meanwhile.
func walk(root string, visit func(dir string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		if !entry.IsDir() {
			return nil
		}
		return visit(path)
	})
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (h hierarchy) create(name string) error {
	at := h.path
	for part := range strings.SplitSeq(name, "/") {
		parent := at
		at = filepath.Join(at, part)
		if h.v2 {
			if err := delegate(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if slices.Contains(h.controllers, "cpuset") {
			if err := inherit(parent, at, "cpuset.cpus", "cpuset.mems"); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a v2 group have all the group's controllers.
func delegate(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cgroup controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(content)) {
		file := filepath.Join(dir, "cgroup.subtree_control")
		if err := os.WriteFile(file, []byte("+"+controller), 0o644); err != nil {
			// Some controllers cannot be delegated everywhere (cpu with
			// realtime tasks around); the kubelet says which it misses.
			continue
		}
	}
	return nil
}

// inherit copies what a new v1 cpuset lacks: without it no process can join.
func inherit(parent, child string, files ...string) error {
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(child, file))
		if err != nil {
			if ignoreGone(err) == nil {
				continue // a hierarchy without the "cpuset." prefix, or none
			}
			return fmt.Errorf("cgroup: %w", err)
		}
		if strings.TrimSpace(string(content)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o644); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	return nil
}

func mounted() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	defer func() { _ = file.Close() }()
	hierarchies, err := parseMountInfo(bufio.NewScanner(file))
	if err != nil {
		return nil, err
	}
	if len(hierarchies) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted; containers need one: mount cgroup2 on /sys/fs/cgroup")
	}
	return hierarchies, nil
}

// parseMountInfo finds the hierarchies in /proc/self/mountinfo (proc(5)).
func parseMountInfo(lines *bufio.Scanner) ([]hierarchy, error) {
	var hierarchies []hierarchy
	seen := map[string]bool{}
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		if !ok {
			continue
		}
		head, tail := strings.Fields(before), strings.Fields(after)
		if len(head) < 5 || len(tail) < 3 || !strings.HasPrefix(tail[0], "cgroup") {
			continue
		}
		// The device number names the hierarchy: one mounted twice is one.
		if seen[head[2]] {
			continue
		}
		seen[head[2]] = true
		h := hierarchy{path: head[4], v2: tail[0] == "cgroup2"}
		if !h.v2 {
			h.controllers = strings.Split(tail[2], ",")
		}
		hierarchies = append(hierarchies, h)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	return hierarchies, nil
}

// membership is the hierarchy by which processes are assigned to their owner:
// on v1 one that does not limit resources.
func membership(hierarchies []hierarchy) hierarchy {
	for _, controller := range []string{"pids", "freezer", "memory"} {
		for _, h := range hierarchies {
			if slices.Contains(h.controllers, controller) {
				return h
			}
		}
	}
	return hierarchies[0]
}
