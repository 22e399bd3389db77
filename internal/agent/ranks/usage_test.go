package ranks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestUsageOfRealProcesses: /proc tells computing from sleeping.
func TestUsageOfRealProcesses(t *testing.T) {
	tests := map[string]struct {
		command []string
		want    agentapi.Doing
	}{
		"sleep":             {[]string{"sleep", "60"}, agentapi.Sleeping},
		"loop":              {[]string{"sh", "-c", "while :; do :; done"}, agentapi.Busy},
		"pipe":              {[]string{"cat"}, agentapi.Blocked},
		"script of a loop":  {[]string{"sh", "-c", "sh -c 'while :; do :; done'; true"}, agentapi.Busy},
		"script of a sleep": {[]string{"sh", "-c", "sleep 60; true"}, agentapi.Sleeping},
		"script of a pipe":  {[]string{"sh", "-c", "cat; true"}, agentapi.Blocked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(test.command[0], test.command[1:]...)
			input, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer writer.Close()
			command.Stdin, command.SysProcAttr = input, &syscall.SysProcAttr{Setpgid: true}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Kill(-command.Process.Pid, unix.SIGKILL); _ = command.Wait() }()
			sample := func() progress.Usage {
				pid := command.Process.Pid
				u, ok := readUsages(append([]int{pid}, startedBy(map[int]int32{pid: 0})[pid]...), time.Now())
				if !ok {
					t.Fatal("it has no usage")
				}
				return u
			}
			// A busy machine gives a process its time late.
			deadline := time.Now().Add(30 * time.Second)
			samples, got, last := progress.Samples{}, agentapi.Doing(""), sample()
			samples.Add(last)
			for got != test.want && time.Now().Before(deadline) {
				time.Sleep(200 * time.Millisecond)
				last = sample()
				got = samples.Add(last)
			}
			if got != test.want && (got != agentapi.Blocked || last.Wait != "") {
				t.Errorf("it is %s (%s), want %s", got, last.Wait, test.want)
			}
		})
	}
}

// TestEndedProcessesSayNothing: a process that has ended, and that its parent has not collected, does not hide what the others do.
func TestEndedProcessesSayNothing(t *testing.T) {
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	pid := command.Process.Pid
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if state, ok := process.ReadStat(pid); ok && state.State == 'Z' {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the process does not end")
		}
	}
	if u, ok := readUsage(pid, time.Now()); !ok || u.Wait != progress.WaitsForChild {
		t.Errorf("it waits in %q (%t), want %q", u.Wait, ok, progress.WaitsForChild)
	}
	r := Ranks{processes: map[int]*observed{pid: {rank: 0}}}
	if got := r.SampleActivity(time.Now()); len(got.Ranks) > 0 {
		t.Errorf("ranks are %v, want none", got.Ranks)
	}
}

func TestCountTraffic(t *testing.T) {
	const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 5000000 1000    0    0    0     0          0         0 5000000 1000    0    0    0     0       0          0
  eth0: 1000 10    0    0    0     0          0         0 200 2    0    0    0     0       0          0
  net1:30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0
`
	if got := countTraffic(table); got != 1234 {
		t.Errorf("%d bytes, want 1234", got)
	}
}

func TestParseUse(t *testing.T) {
	const (
		mpich = "7f80260a0000-7f8026200000 r-xp 00000000 fd:00 11 /usr/lib/x86_64-linux-gnu/libmpich.so.12.4.1\nSize: 1408 kB\nReferenced: 28 kB\nVmFlags: rd ex mr\n"
		data  = "7f8026300000-7f8026400000 rw-p 00000000 00:00 0\nReferenced: 40 kB\n"
		libc  = "7f8025c00000-7f8025d00000 r-xp 00000000 fd:00 12 /usr/lib/x86_64-linux-gnu/libc.so.6\nReferenced: 4 kB\n7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]\nReferenced: 4 kB\n"
		idle  = "561ef5f8e000-561ef5f90000 r-xp 00000000 fd:00 13 /usr/local/bin/ranks\nReferenced: 0 kB\n"
		busy  = "561ef5f8e000-561ef5f90000 r-xp 00000000 fd:00 13 /usr/local/bin/ranks\nReferenced: 4 kB\n"
		read  = "561ef5f90000-561ef5f91000 r--p 00002000 fd:00 13 /usr/local/bin/ranks\nReferenced: 4 kB\n"
		made  = "7f8030000000-7f8030010000 rwxp 00000000 00:00 0\nReferenced: 64 kB\n"
	)
	tests := map[string]struct {
		smaps string
		want  progress.CodeUse
	}{
		"waits":                            {mpich + data + libc + idle + read, progress.CodeUse{MPI: true, Bytes: 80 << 10}},
		"computes":                         {data + busy, progress.CodeUse{Other: true, Bytes: 44 << 10}},
		"calls MPI again and again":        {mpich + busy, progress.CodeUse{MPI: true, Other: true, Bytes: 32 << 10}},
		"runs code that was made just now": {mpich + made, progress.CodeUse{MPI: true, Other: true, Bytes: 92 << 10}},
		"sleeps":                           {idle, progress.CodeUse{}},
		"nothing":                          {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseUse(test.smaps); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestCodeOfRealProcesses: a process whose code bears the name of an MPI library is taken for one that waits, any other is not.
func TestCodeOfRealProcesses(t *testing.T) {
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"libmpi.so.12": true, "train": false} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(program, shell, 0o700); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(program, "-c", "while :; do :; done")
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
			pids := []int{command.Process.Pid}
			if os.WriteFile(process.File(pids[0], "clear_refs"), []byte("1"), 0) != nil {
				t.Skip("SKIPPED: this kernel does not clear the marks of pages")
			}
			// The marks of a process that gets no CPU stay clear.
			const samples = 60
			watch, now, got := progress.CodeWatch{}, time.Now(), false
			for i := 0; i < samples && !got; i++ {
				time.Sleep(100 * time.Millisecond)
				now = now.Add(progress.SamplePeriod)
				got = watch.RunsOnlyMPI(pages{}, pids, now, true, false)
			}
			if got != want {
				t.Errorf("runs only MPI: %t, want %t", got, want)
			}
			// It does what it did where it gets no CPU.
			_ = command.Process.Signal(syscall.SIGSTOP)
			for range 3 {
				now = now.Add(progress.SamplePeriod)
				if got := watch.RunsOnlyMPI(pages{}, pids, now, true, false); got != want {
					t.Errorf("runs only MPI, stopped: %t, want %t", got, want)
				}
			}
			if watch.RunsOnlyMPI(pages{}, pids, now, false, false) {
				t.Error("a process without CPU time is said to run MPI")
			}
		})
	}
}

// TestAddUses: a rank has used what it and the processes below it have, and not those below another rank.
func TestAddUses(t *testing.T) {
	const mib = 1 << 20
	read := map[int]process.Use{
		1:  {Parent: 0, CPU: time.Hour, Memory: 1000 * mib},
		10: {Parent: 1, Started: 20 * time.Second, CPU: 5 * time.Second, Memory: 2 * mib},
		11: {Parent: 10, Started: 21 * time.Second, CPU: 30 * time.Second, Memory: 100 * mib},
		12: {Parent: 11, Started: 22 * time.Second, CPU: 5 * time.Second, Memory: 3 * mib},
		20: {Parent: 1, Started: 40 * time.Second, CPU: 40 * time.Second, Memory: 7 * mib},
		30: {Parent: 31, CPU: time.Hour}, 31: {Parent: 30, CPU: time.Hour}, // read while processes ended and others began
	}
	want := []agentapi.RankUse{{Rank: 2, CPU: 500, Memory: 105}, {Rank: 7, CPU: 667, Memory: 7}}
	if diff := cmp.Diff(want, addUses(map[int]int32{10: 2, 20: 7, 99: 8}, read, 100*time.Second)); diff != "" {
		t.Error(diff)
	}
}

// TestMajorFaults: the page faults of a process that read from a disk are those that the kernel counts, with those of children that have ended.
func TestMajorFaults(t *testing.T) {
	count := func() (all int64) {
		for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			var used unix.Rusage
			if err := unix.Getrusage(who, &used); err != nil {
				t.Fatal(err)
			}
			all += used.Majflt
		}
		return all
	}
	before := count()
	used, known := readUsage(os.Getpid(), time.Now())
	if after := count(); !known || used.Faults < before || used.Faults > after {
		t.Errorf("%d page faults, want %d to %d", used.Faults, before, after)
	}
}

// TestOpenDevices: the GPUs of NVIDIA that a process has open are known by their numbers, and what they do if all of them are measured.
func TestOpenDevices(t *testing.T) {
	t.Parallel()
	busy := map[int]int64{0: 1000, 1: 0}
	for name, test := range map[string]struct {
		open      []string
		hasDevice bool
		gpus      []int
		use       *progress.GPUUse
	}{
		"none":                 {[]string{"/dev/null", "pipe:[7]", "/tmp/dev/nvidia0"}, false, nil, nil},
		"a GPU":                {[]string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidia1"}, true, []int{1}, &progress.GPUUse{}},
		"two GPUs":             {[]string{"/dev/nvidia0", "/dev/nvidia1"}, true, []int{0, 1}, &progress.GPUUse{Most: 1000}},
		"one is not measured":  {[]string{"/dev/nvidia0", "/dev/nvidia2"}, true, []int{0, 2}, nil},
		"the driver alone":     {[]string{"/dev/nvidiactl"}, true, nil, nil},
		"that of another kind": {[]string{"/dev/kfd", "/dev/dri/renderD128"}, true, nil, nil},
	} {
		folder := t.TempDir()
		for i, target := range test.open {
			if err := os.Symlink(target, filepath.Join(folder, strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		hasDevice, gpus := openDevices(folder)
		if hasDevice != test.hasDevice || !slices.Equal(gpus, test.gpus) {
			t.Errorf("%s: %t, %v", name, hasDevice, gpus)
		}
		if diff := cmp.Diff(test.use, useOf(gpus, busy)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
