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

// Identity names one process for ever.
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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	state, ticks, err := parseStat(string(stat))
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return Identity{}, fmt.Errorf("process %d has ended: %w", pid, os.ErrProcessDone)
	}
	return Identity{PID: pid, StartTicks: ticks, Boot: boot}, nil
}

// Alive reports whether this very process still runs. A zombie does not.
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

// parseStat takes the state and the start time out of /proc/<pid>/stat. The
// command's name may hold blanks and parentheses, so fields are counted from
// the last one that closes.
func parseStat(stat string) (state string, startTicks uint64, err error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return "", 0, errors.New("stat has no command name")
	}
	fields := strings.Fields(stat[end+1:]) // fields[0] is the third of the file
	const startField = 22 - 3
	if len(fields) <= startField {
		return "", 0, fmt.Errorf("stat has %d fields, want more than %d", len(fields)+2, startField+3)
	}
	startTicks, err = strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("start time: %w", err)
	}
	return fields[0], startTicks, nil
}
