// Package process starts the cluster's components, remembers them and stops
// them again, over any number of runs of the command.
//
// A component is remembered by process id, start time and boot. Only all three
// together name a process: ids are given out again, and after a reboot even
// the pair of id and start time may come back.
package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identity identifies one process, also after its id is reused.
type Identity struct {
	PID int `json:"pid"`
	// StartTicks is field 22 of /proc/<pid>/stat: clock ticks since boot.
	StartTicks uint64 `json:"startTicks"`
	// Boot is /proc/sys/kernel/random/boot_id.
	Boot string `json:"boot"`
}

// Identify returns the identity of a running process.
func Identify(pid int) (Identity, error) {
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if stat.ended {
		return Identity{}, fmt.Errorf("process %d has ended: %w", pid, os.ErrProcessDone)
	}
	return Identity{PID: pid, StartTicks: stat.startTicks, Boot: boot}, nil
}

// Alive reports whether exactly this process still runs. A zombie does not.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	now, err := Identify(i.PID)
	return err == nil && now == i
}

// BootID returns the id the kernel gave this boot.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// stat is what we read of /proc/<pid>/stat (proc(5)).
type stat struct {
	// ended is of a process of which only the entry is left.
	ended      bool
	session    int
	startTicks uint64
}

func readStat(pid int) (stat, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	parsed, err := parseStat(string(content))
	if err != nil {
		return stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parsed, nil
}

// parseStat reads the text of the file. The command's name may hold blanks
// and parentheses, so fields are counted from the last one that closes.
func parseStat(text string) (stat, error) {
	const state, session, threads, start = 3, 6, 20, 22
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errors.New("stat has no command name")
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) <= start-state {
		return stat{}, fmt.Errorf("stat has %d fields, want at least %d", len(fields)+state-1, start)
	}
	field := func(n int) string { return fields[n-state] }
	count, threadsErr := strconv.Atoi(field(threads))
	leader, sessionErr := strconv.Atoi(field(session))
	ticks, startErr := strconv.ParseUint(field(start), 10, 64)
	if err := errors.Join(threadsErr, sessionErr, startErr); err != nil {
		return stat{}, fmt.Errorf("stat: %w", err)
	}
	return stat{
		// The state is the first thread's. It is a zombie, too, while another
		// thread runs a new program or the rest still end; then the process
		// is there.
		ended:   strings.Contains("ZX", field(state)) && count <= 1,
		session: leader, startTicks: ticks,
	}, nil
}
