package ranks

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/progress"
)

// TestWaitsForALock: a process that waits for the lock of a file is seen to, with the file's name.
func TestWaitsForALock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.lock")
	start := func(command string) *exec.Cmd {
		cmd := exec.Command("flock", file, "sh", "-c", command)
		if err := cmd.Start(); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	holder := start("exec sleep 30")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if len(startedBy(map[int]int32{holder.Process.Pid: 0})) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the lock is not taken")
		}
	}
	waiter := start("true")
	want, got := "the lock of "+file, ""
	for deadline := time.Now().Add(30 * time.Second); got != want && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		used, _ := readUsage(waiter.Process.Pid, time.Now())
		got = used.For
	}
	if used, _ := readUsage(waiter.Process.Pid, time.Now()); used.Wait == "" {
		t.Skip("SKIPPED: this kernel does not show in which of its functions a process sleeps")
	}
	if got != want {
		t.Errorf("it waits for %q, want %q", got, want)
	}
	if used, _ := readUsage(waiter.Process.Pid, time.Now()); used.Holder != holder.Process.Pid {
		t.Errorf("process %d holds the lock, want %d", used.Holder, holder.Process.Pid)
	}
}

func TestAwaitedBy(t *testing.T) {
	t.Parallel()
	for wait, want := range map[string]string{
		"rpc_wait_bit_killable": "a file server", "request_wait_answer": "a file server", "anon_pipe_read": "input from a pipe",
		"folio_wait_bit_common": "storage", "jbd2_log_wait_commit": "storage", "wait_on_page_bit": "storage", "io_schedule": "storage", "nfs_wait_on_request": "a file server",
		"locks_lock_inode_wait": "the lock of a file", "hrtimer_nanosleep": "", "poll_schedule_timeout": "", "": "",
	} {
		if got, _ := awaitedBy(-1, wait); got != want {
			t.Errorf("%s: %q, want %q", wait, got, want)
		}
	}
	table := strings.Join([]string{
		"1: FLOCK  ADVISORY  WRITE 97 fe:00:77 0 EOF", "1: -> FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF", "2: -> POSIX  ADVISORY  READ 13 00:2b:78 0 EOF", "3: FLOCK",
		"4: OFDLCK ADVISORY  WRITE -1 fe:00:79 0 EOF", "4: -> POSIX  ADVISORY  WRITE 15 fe:00:79 0 EOF",
	}, "\n")
	for pid, want := range map[int][2]int{97: {0, 0}, 12: {77, 97}, 13: {78, 0}, 14: {0, 0}, 15: {79, 0}} {
		if node, holder := awaitedLock(table, pid); int(node) != want[0] || holder != want[1] {
			t.Errorf("process %d: inode %d, held by %d, want %d", pid, node, holder, want)
		}
	}
}

// TestNameHolders: the holder of a lock is named if it is a process of another rank.
func TestNameHolders(t *testing.T) {
	t.Parallel()
	lock := func(rank int32, holder int, processes ...int) progress.RankUsage {
		return progress.RankUsage{Rank: rank, Processes: processes, Used: progress.Usage{For: "the lock of /a", Holder: holder}}
	}
	usages := []progress.RankUsage{lock(0, 0, 10, 11), lock(1, 11, 20), lock(2, 99, 30), lock(3, 41, 40, 41)}
	nameHolders(usages)
	for i, want := range []string{"the lock of /a", "the lock of /a, which rank 0 holds", "the lock of /a", "the lock of /a"} {
		if got := usages[i].Used.For; got != want {
			t.Errorf("rank %d waits for %q, want %q", i, got, want)
		}
	}
}
