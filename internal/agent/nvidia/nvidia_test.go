package nvidia

import (
	"bufio"
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// compile compiles a program or a library of C.
func compile(t testing.TB, arguments ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", arguments, err, out)
	}
}

// buildLibrary compiles the library of the agent, or skips the test if this machine has no compiler.
func buildLibrary(t testing.TB) string {
	t.Helper()
	for _, tool := range []string{"sh", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	library := filepath.Join(t.TempDir(), "libmpi-gpus.so")
	compile(t, "sh", "../library/build.sh", library)
	return library
}

// buildNVML compiles NVML with devices, and returns the folder that contains it.
func buildNVML(t testing.TB, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	compile(t, append([]string{"gcc", "-w", "-shared", "-fPIC", "-o", filepath.Join(folder, "libnvidia-ml.so.1"), "testdata/nvml.c"}, flags...)...)
	return folder
}

// writeFile writes a file that may be run.
func writeFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // some of them are run
		t.Fatal(err)
	}
	return path
}

// start starts a process as process.Parent does.
func start(c process.Command) (process.Program, error) {
	started, err := os.StartProcess(c.Args[0], c.Args, &os.ProcAttr{Env: c.Env, Files: c.Files[:], Sys: &syscall.SysProcAttr{Setsid: c.OwnSession}})
	if err != nil {
		return process.Program{}, err
	}
	done := make(chan unix.WaitStatus, 1)
	go func() { _, _ = started.Wait(); done <- 0 }()
	return process.Program{PID: started.Pid, Done: done}, nil
}

// lines is a log that can be read while it is written.
type lines struct{ text atomic.Value }

func (l *lines) Write(line []byte) (int, error) {
	l.text.Store(l.String() + string(line))
	return len(line), nil
}

func (l *lines) String() string { text, _ := l.text.Load().(string); return text }

// newReader returns a reader of a container with four devices, that finds NVML in a folder, and its log.
func newReader(t testing.TB, library, nvml string) (*Reader, *lines) {
	t.Helper()
	machine, log := t.TempDir(), &lines{}
	for _, name := range []string{"nvidiactl", "nvidia0", "nvidia1", "nvidia2", "nvidia3"} {
		writeFile(t, filepath.Join(machine, "dev", name), "")
	}
	r := New(slog.New(slog.NewTextHandler(log, nil)), start)
	r.machine, r.library, r.env = machine, library, []string{"LD_LIBRARY_PATH=" + nvml}
	r.period, r.first, r.later, r.pause = 10*time.Millisecond, 20*time.Second, 20*time.Second, time.Minute
	return r, log
}

// run runs a reader until a condition holds, and checks that it ends then, with its process.
func run(t *testing.T, r *Reader, log *lines, until func() bool) {
	t.Helper()
	pid := atomic.Int64{}
	begin := r.start
	r.start = func(c process.Command) (process.Program, error) {
		program, err := begin(c)
		pid.Store(int64(program.PID))
		return program, err
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { r.Run(done); close(ended) }()
	wait := func(what string, until func() bool) {
		for deadline := time.Now().Add(30 * time.Second); !until(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s after 30 s: %+v\n%s", what, r.Devices(), log)
			}
		}
	}
	wait("nothing is known", until)
	close(done)
	wait("it runs", func() bool { return isClosed(ended) })
	wait("its process runs", func() bool { return pid.Load() == 0 || !process.Runs(int(pid.Load())) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The devices of testdata/nvml.c.
var (
	sampled   = Device{Minor: 0, UUID: "GPU-0", Busy: 500, MemoryBusy: 250, Used: 4096, Memory: 81920, Power: 250500, Temperature: 60, Slowed: 1, Errors: 2}
	unsampled = Device{Minor: 1, UUID: "GPU-1", Busy: 800, MemoryBusy: 250, Used: 4096, Memory: 81920, Power: -1, Temperature: 61, Slowed: 0x44, Errors: -1}
	fallen    = Device{Minor: 2, UUID: "GPU-2", Busy: -1, MemoryBusy: -1, Used: -1, Memory: -1, Power: -1, Temperature: -1, Slowed: -1, Errors: -1, Lost: true}
	divided   = Device{Minor: 3, UUID: "MIG-4", Busy: -1, MemoryBusy: -1, Used: 4096, Memory: 10240, Power: -1, Temperature: -1, Slowed: -1, Errors: -1}
)

// TestDevices: the library reads all devices with NVML, one that has all figures, one that lacks some, one that is lost and one that is
// divided; and only those count that the container may use.
func TestDevices(t *testing.T) {
	library := buildLibrary(t)
	nvml := buildNVML(t)
	for name, test := range map[string]struct {
		without string
		visible string
		want    []Device
		lost    int
	}{
		"all":            {"", "all", []Device{sampled, unsampled, fallen, divided}, 1},
		"no names":       {"", "", []Device{sampled, unsampled, fallen, divided}, 1},
		"some files":     {"dev/nvidia1", "", []Device{sampled, fallen, divided}, 1},
		"some names":     {"", "GPU-0,MIG-4", []Device{sampled, divided}, 0},
		"names and file": {"dev/nvidia0", "GPU-0,GPU-1", []Device{unsampled}, 0},
		"a number":       {"dev/nvidia3", "0", []Device{sampled, unsampled, fallen}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := newReader(t, library, nvml)
			if r.env = append(r.env, "NVIDIA_VISIBLE_DEVICES="+test.visible); test.without != "" {
				if err := os.Remove(filepath.Join(r.machine, test.without)); err != nil {
					t.Fatal(err)
				}
			}
			run(t, r, log, func() bool { return len(r.Devices()) > 0 })
			if diff := cmp.Diff(test.want, r.devices); diff != "" {
				t.Error(diff)
			}
			if got := strings.Count(log.String(), "is lost"); got != test.lost || strings.Contains(log.String(), "not measured") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// TestReasons: if GPUs cannot be read, the reason is reported once, and what runs for it ends.
func TestReasons(t *testing.T) {
	library := buildLibrary(t)
	empty := t.TempDir()
	static := filepath.Join(t.TempDir(), "static")
	source := writeFile(t, filepath.Join(t.TempDir(), "static.c"), `#include <stdio.h>
int main(int count, char **arguments) { return puts(arguments[2] + 5), 0; }`) // as a shell, which runs "echo TEXT"
	compile(t, "gcc", "-static", "-o", static, source)
	for name, test := range map[string]struct {
		// script runs instead of the shell with the library.
		nvml, shell, script string
		reason              string
	}{
		"no NVML":            {nvml: empty, reason: "libnvidia-ml.so.1: cannot open shared object file"},
		"other library":      {nvml: filepath.Dir(buildOther(t)), reason: "this version of NVML lacks functions"},
		"no driver":          {nvml: buildNVML(t, "-DNO_DRIVER"), reason: "Driver Not Loaded"},
		"hangs at once":      {nvml: buildNVML(t, "-DHANGS_AT_ONCE"), reason: "NVIDIA's driver does not answer"},
		"hangs later":        {nvml: buildNVML(t, "-DHANGS"), reason: "NVIDIA's driver does not answer"},
		"dies":               {nvml: buildNVML(t, "-DDIES"), reason: "the process that reads them has ended"},
		"no shell":           {shell: filepath.Join(empty, "sh"), reason: "no such file or directory"},
		"static shell":       {shell: static, reason: "the shell of the image loads no libraries"},
		"long line":          {script: "while :; do printf '%0100d' 1; done", reason: "a line of more than 1024 bytes"},
		"many devices":       {script: "while echo gpu 0 GPU-0 1 1 1 1 1 1 1 1 0; do :; done", reason: "more than 128 devices"},
		"no lines":           {script: "sleep 60", reason: "does not answer"},
		"other lines":        {script: "echo gpu 0; sleep 60", reason: `prints \"gpu 0\"`},
		"characters":         {script: `printf 'error \033[31mred\r\0 \n'; sleep 60`, reason: `reason=[31mred`},
		"closes its output":  {script: "exec >&- 2>&-; sleep 60", reason: "has ended"},
		"ignores signals":    {script: "trap '' TERM HUP INT; while :; do sleep 1; done", reason: "does not answer"},
		"a number too large": {script: "echo gpu 99999999999999999999 - 1 1 1 1 1 1 1 1 0; sleep 60", reason: "prints"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := newReader(t, library, test.nvml)
			r.pause = time.Millisecond
			if strings.Contains(test.reason, "does not answer") {
				r.first, r.later = 500*time.Millisecond, 100*time.Millisecond
			}
			switch {
			case test.script != "":
				r.shell = writeFile(t, filepath.Join(t.TempDir(), "shell"), "#!/bin/sh\n"+test.script)
			case test.shell != "":
				r.shell = test.shell
			}
			starts, begin := atomic.Int64{}, r.start
			r.start = func(c process.Command) (process.Program, error) {
				starts.Add(1)
				if test.script != "" {
					c.Env = []string{"PATH=" + os.Getenv("PATH")}
				}
				return begin(c)
			}
			run(t, r, log, func() bool { return starts.Load() >= 3 })
			if strings.Count(log.String(), "not measured") != 1 || !strings.Contains(log.String(), test.reason) {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// buildOther compiles a library that is not NVML under its name.
func buildOther(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	library := filepath.Join(folder, "libnvidia-ml.so.1")
	compile(t, "gcc", "-shared", "-o", library, "-x", "c", writeFile(t, filepath.Join(folder, "other.c"), "int nvmlInit_v2(void) { return 0; }"))
	return library
}

// TestStuckProcess: while a process does not end, there is no second one.
func TestStuckProcess(t *testing.T) {
	t.Parallel()
	r, log := newReader(t, writeFile(t, filepath.Join(t.TempDir(), "library"), ""), "")
	r.pause, r.first = time.Millisecond, time.Millisecond
	starts := atomic.Int64{}
	r.start = func(process.Command) (process.Program, error) {
		starts.Add(1)
		return process.Program{PID: 1 << 30, Done: make(chan unix.WaitStatus)}, nil
	}
	begun := time.Now()
	run(t, r, log, func() bool { return time.Since(begun) > 300*time.Millisecond })
	if starts.Load() != 1 {
		t.Errorf("%d processes were started", starts.Load())
	}
}

// TestNoDevices: without NVIDIA's driver, without the library, or if a user does not want it, nothing is started, and nothing reported.
func TestNoDevices(t *testing.T) {
	t.Parallel()
	library := writeFile(t, filepath.Join(t.TempDir(), "library"), "")
	for name, change := range map[string]func(*Reader){
		"no driver":  func(r *Reader) { r.machine = t.TempDir() },
		"no library": func(r *Reader) { r.library += ".missing" },
		"not wanted": func(r *Reader) { r.env = []string{agentapi.EnvMeasureGPUs + "=false"} },
	} {
		r, log := newReader(t, library, "")
		change(r)
		r.start = func(process.Command) (process.Program, error) {
			t.Errorf("%s: a process is started", name)
			return process.Program{}, os.ErrInvalid
		}
		if r.Run(nil); log.String() != "" {
			t.Errorf("%s: %s", name, log)
		}
	}
}

// TestLibraryEnds: the library ends when nobody reads it any more, or NVML does not return, and leaves other programs alone.
func TestLibraryEnds(t *testing.T) {
	t.Parallel()
	library := buildLibrary(t)
	nvml, hangs := buildNVML(t), buildNVML(t, "-DHANGS_AT_ONCE")
	for name, test := range map[string]struct {
		nvml        string
		env         []string
		input, want string
		code        int
	}{
		"end of input": {nvml, []string{envRead + "=60"}, "", "", 0},
		"two requests": {nvml, []string{envRead + "=60"}, "\n\n", "end", 0},
		"not asked":    {nvml, nil, "\n", "shell", 3},
		// By the alarm.
		"hangs": {hangs, []string{envRead + "=1"}, "", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo shell; exit 3")
			command.Env = append(test.env, "LD_PRELOAD="+library+" libdl.so.2", "LD_LIBRARY_PATH="+test.nvml)
			command.Stdin = strings.NewReader(test.input)
			out, _ := command.Output()
			out = bytes.TrimSpace(out)
			if last := string(out[bytes.LastIndexByte(out, '\n')+1:]); last != test.want || command.ProcessState.ExitCode() != test.code {
				t.Errorf("%s: %s", command.ProcessState, out)
			}
		})
	}
}

// TestAdd: devices add to those of other vendors. Those whose use is unknown do not count.
// TestBusyByNumber: what each GPU does is known by the number of its file, but for parts of GPUs and those that are lost.
func TestBusyByNumber(t *testing.T) {
	t.Parallel()
	devices := []Device{{Minor: 0, Busy: 1000}, {Minor: 3, Busy: 0}, {Minor: 4, Busy: Unknown}, {Minor: 5, Busy: 10, Lost: true}, {Minor: -1, Busy: 10}}
	if diff := cmp.Diff(map[int]int64{0: 1000, 3: 0}, BusyByNumber(devices)); diff != "" {
		t.Error(diff)
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	got := usage.Reading{
		Gauges: map[agentapi.Metric]int64{agentapi.MetricGPU: 100, agentapi.MetricGPUMemory: 10},
		Limits: map[agentapi.Metric]int64{agentapi.MetricGPU: 1000, agentapi.MetricGPUMemory: 20},
	}
	Add([]Device{sampled, unsampled, fallen, divided}, &got)
	want := usage.Reading{
		Gauges: map[agentapi.Metric]int64{agentapi.MetricGPU: 1400, agentapi.MetricGPUMemory: 3*4096 + 10},
		Limits: map[agentapi.Metric]int64{agentapi.MetricGPU: 3000, agentapi.MetricGPUMemory: 2*81920 + 10240 + 20},
		GPUs:   &usage.GPUs{Power: 250500, Temperature: 61, Slowed: 1, Lost: 1, Errors: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = usage.Reading{Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}
	if Add([]Device{fallen, divided}, &got); len(got.Gauges) != 1 {
		t.Errorf("parts of GPUs are %v", got.Gauges)
	}
	got = usage.Reading{}
	if Add(nil, &got); got.GPUs != nil {
		t.Errorf("no GPUs are %+v", got.GPUs)
	}
}

// TestOldDevices: what was read long ago is unknown.
func TestOldDevices(t *testing.T) {
	t.Parallel()
	r := New(slog.New(slog.DiscardHandler), nil)
	r.keep([]Device{sampled})
	if len(r.Devices()) != 1 {
		t.Error("there are no devices")
	}
	r.at = r.at.Add(-30 * time.Second)
	if len(r.Devices()) != 0 {
		t.Error("there are devices")
	}
}

// BenchmarkPeriod asks for the devices once, as the agent does every period. The metric is the share of a core that this takes, without what the driver
// does: of the agent, and of the process that it starts.
func BenchmarkPeriod(b *testing.B) {
	r, _ := newReader(b, buildLibrary(b), buildNVML(b))
	child, err := r.open()
	if err != nil {
		b.Fatal(err)
	}
	defer child.close()
	reader := bufio.NewReaderSize(child.output, maxLine)
	for b.Loop() {
		if _, err := child.ask(reader, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(usage.Period), "%core")
}
