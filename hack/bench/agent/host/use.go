package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Use is what the processes of a host hold together.
type Use struct {
	Processes, Descriptors int
	// Private is the memory in bytes that each does not share with others.
	Private int64
}

// Uses returns what hosts hold, in their order. The process that runs a launcher's requests is left out: it is the bench's.
func Uses(hosts ...*Host) ([]Use, error) {
	at := map[string]int{}
	uses, left := make([]Use, len(hosts)), map[int]bool{}
	for i, h := range hosts {
		pid := h.command.Process.Pid
		namespace, err := namespaceOf(pid)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", h.name, err)
		}
		at[namespace], left[pid] = i, h.isOurs
	}
	err := eachProcess(func(pid int) {
		namespace, err := namespaceOf(pid)
		i, found := at[namespace]
		if err != nil || !found || left[pid] {
			return
		}
		memory, err := memoryOf(pid)
		descriptors, failed := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil || failed != nil {
			return // it has ended
		}
		uses[i].Processes++
		uses[i].Descriptors += len(descriptors)
		uses[i].Private += memory.Private
	})
	return uses, err
}

// namespaceOf names the PID namespace of a process: each host has one.
func namespaceOf(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
}

// Count returns how many processes of this machine, and so of all hosts, run with these arguments, the program's name among them.
func Count(arguments ...string) (n int, err error) {
	want := []byte(strings.Join(arguments, "\x00") + "\x00")
	err = eachProcess(func(pid int) {
		if got, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && bytes.Equal(got, want) {
			n++
		}
	})
	return n, err
}

func eachProcess(see func(pid int)) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, path := range all {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			see(pid)
		}
	}
	return nil
}
