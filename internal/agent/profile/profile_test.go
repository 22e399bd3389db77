package profile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// compile compiles a program or a library of C.
func compile(t testing.TB, arguments ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", arguments, err, out)
	}
}

// buildLibrary compiles the library, or skips the test if that is not possible.
func buildLibrary(t testing.TB) string {
	t.Helper()
	for _, tool := range []string{"sh", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	library := filepath.Join(t.TempDir(), "libmpi-profile.so")
	compile(t, "sh", "../library/build.sh", library)
	return library
}

// TestLibrary: the library counts the calls of a program, for MPI libraries with either kind of handles, also of one that loads MPI for
// itself alone and of one that is killed; and leaves programs alone that do not use MPI.
func TestLibrary(t *testing.T) {
	folder := t.TempDir()
	library := buildLibrary(t)
	for handles, flags := range map[string][]string{"pointers": nil, "integers": {"-DINTEGERS"}} {
		mpi, program := filepath.Join(folder, handles+".so"), filepath.Join(folder, handles)
		// Warnings about casts between pointers and integers are beside the point.
		compile(t, append([]string{"gcc", "-w", "-shared", "-fPIC", "-o", mpi, "testdata/mpi.c"}, flags...)...)
		compile(t, append([]string{"gcc", "-w", "-o", program, "testdata/program.c", mpi}, flags...)...)
		fortran := filepath.Join(folder, handles+"-fortran")
		compile(t, append([]string{"gcc", "-w", "-o", fortran, "testdata/fortran.c", mpi}, flags...)...)
		for _, module := range []string{"", "mpi_f08"} {
			t.Run(handles+", in Fortran "+module, func(t *testing.T) {
				p := &Profiler{folder: t.TempDir(), library: library, runs: map[string]*run{}}
				cmd := exec.CommandContext(t.Context(), fortran, strings.Fields(module)...)
				cmd.Env = p.Env([]string{agentapi.EnvProfile + "=" + p.folder})
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Fatalf("%v: %s", err, out)
				}
				got := p.Get()
				for i := range got.Calls {
					if got.Calls[i].Time < 20*got.Calls[i].Count {
						t.Errorf("%s took %d ms", got.Calls[i].Call, got.Calls[i].Time)
					}
					got.Calls[i].Time = 0
				}
				// They are in the order of their times, which depend on the machine's load.
				slices.SortFunc(got.Calls, func(a, b agentapi.CallProfile) int { return strings.Compare(a.Call, b.Call) })
				if diff := cmp.Diff([]agentapi.CallProfile{{Call: "Barrier", Count: 1}, {Call: "Send", Count: 2, Bytes: 16000}}, got.Calls); diff != "" {
					t.Errorf("the calls differ (-want +got):\n%s", diff)
				}
			})
		}
		for name, argument := range map[string]string{"ends": "", "is killed": "kill"} {
			t.Run(handles+", "+name, func(t *testing.T) {
				p := &Profiler{folder: t.TempDir(), library: library, runs: map[string]*run{}}
				cmd := exec.CommandContext(t.Context(), program, strings.Fields(argument)...)
				cmd.Env = p.Env([]string{agentapi.EnvProfile + "=" + p.folder, "PMI_RANK=5", "PMI_SIZE=8", agentapi.EnvLaunch + "=100.7.200"})
				if out, err := cmd.CombinedOutput(); (err == nil) != (argument == "") || len(out) > 0 {
					t.Fatalf("%v: %s", err, out)
				}
				checkProfile(t, p.Get())
				// The record of a rank that has ended is kept, and its file is not.
				if files, _ := os.ReadDir(p.folder); len(files) > 0 {
					t.Errorf("%d files are left", len(files))
				}
				checkProfile(t, p.Get())
			})
		}
	}
	t.Run("no MPI", func(t *testing.T) {
		p := &Profiler{folder: t.TempDir(), library: library, runs: map[string]*run{}}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "ls / && sh -c 'exit 3'")
		cmd.Env = p.Env([]string{agentapi.EnvProfile + "=" + p.folder, "PATH=" + os.Getenv("PATH")})
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 || bytes.Contains(out, []byte("ld.so")) {
			t.Errorf("%s: %s", cmd.ProcessState, out)
		}
		if got := p.Get(); got == nil || got.RankCount != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "pointers"))
		cmd.Env = []string{preload + "=" + library, agentapi.EnvProfile + "=/does/not/exist"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestUnusualPrograms: with the library, a program ends as without it, whatever is in its process, and its calls count.
func TestUnusualPrograms(t *testing.T) {
	library, folder := buildLibrary(t), t.TempDir()
	t.Run("needs", func(t *testing.T) { checkNeeds(t, library) })
	inFolder := func(name string) string { return filepath.Join(folder, name) }
	build := func(name string, arguments ...string) string {
		t.Helper()
		compile(t, append([]string{"gcc", "-w", "-o", inFolder(name)}, arguments...)...)
		return inFolder(name)
	}
	mpi := build("mpi.so", "-shared", "-fPIC", "-fexceptions", "testdata/mpi.c")
	tool := build("tool.so", "-shared", "-fPIC", "testdata/tool.c", mpi)
	special := build("special", "testdata/special.c", mpi, "-pthread")
	common := []agentapi.CallProfile{
		{Call: "Alltoallv", Count: 1, Bytes: 24}, {Call: "Barrier", Count: 1}, {Call: "Gather", Count: 1}, {Call: "Send", Count: 3, Bytes: 16000 + 4<<40}, {Call: "Sendrecv", Count: 1, Bytes: 80},
	}
	for name, test := range map[string]struct {
		command []string
		env     []string
		printed string
		calls   []agentapi.CallProfile
		// in is the least time in MPI, in milliseconds.
		in int64
	}{
		"a process that it forked ends MPI": {command: []string{special, "fork"}, calls: []agentapi.CallProfile{{Call: "Barrier", Count: 1}}, in: 20},
		"a thread is in a call at the end":  {command: []string{special, "thread"}, calls: []agentapi.CallProfile{{Call: "Send", Count: 1, Bytes: 4}}},
		"longjmp":                           {command: []string{special, "longjmp"}, calls: []agentapi.CallProfile{{Call: "Barrier", Count: 3}}, in: 60},
		"an intercommunicator": {
			command: []string{special, "intercommunicator"},
			calls:   []agentapi.CallProfile{{Call: "Alltoallv", Count: 1, Bytes: 24}, {Call: "Barrier", Count: 1}, {Call: "Reduce_scatter", Count: 1, Bytes: 12}}, in: 60,
		},
		"another tool of MPI": {
			command: []string{build("tooled", "testdata/program.c", "-Wl,--no-as-needed", tool, mpi)},
			// A call of the MPI library itself is the last one.
			printed: "send 1000\nsend 1000\nsend 0\n", calls: common, in: 140,
		},
		"libraries that are loaded later, of which one has stubs of MPI": {
			command: []string{
				build("host", "testdata/host.c", "-ldl"), build("stubs.so", "-shared", "-fPIC", "testdata/stubs.c"),
				build("module.so", "-shared", "-fPIC", "-Dmain=program", "testdata/program.c", mpi),
			},
			calls: common, in: 140,
		},
		"all symbols are resolved at the start": {command: []string{build("program", "testdata/program.c", mpi)}, env: []string{"LD_BIND_NOW=1"}, calls: common, in: 140},
	} {
		t.Run(name, func(t *testing.T) { runProfiled(t, library, test.command, test.env, test.printed, test.calls, test.in) })
	}
	// The clock of the process takes long once, at its first calls in turn. The library calibrates its own by it.
	clock := build("clock", "-rdynamic", "testdata/clock.c", "testdata/program.c", mpi)
	for slow := range 6 {
		t.Run(fmt.Sprintf("call %d of the clock is slow", slow), func(t *testing.T) {
			p := &Profiler{folder: t.TempDir(), library: library, runs: map[string]*run{}}
			cmd := exec.CommandContext(t.Context(), clock)
			cmd.Env = p.Env([]string{agentapi.EnvProfile + "=" + p.folder, "PMI_RANK=5", "PMI_SIZE=8", agentapi.EnvLaunch + "=100.7.200", fmt.Sprintf("SLOW=%d", slow)})
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			checkProfile(t, p.Get())
		})
	}
	t.Run("an exception", func(t *testing.T) {
		if _, err := exec.LookPath("g++"); err != nil {
			t.Skip("g++ is not installed")
		}
		program := inFolder("exceptions")
		compile(t, "g++", "-w", "-o", program, "testdata/exceptions.cc", mpi)
		runProfiled(t, library, []string{program}, nil, "", []agentapi.CallProfile{{Call: "Barrier", Count: 1}, {Call: "Send", Count: 1, Bytes: 40}}, 20)
	})
	t.Run("AddressSanitizer", func(t *testing.T) {
		program := inFolder("sanitized")
		if out, err := exec.CommandContext(t.Context(), "gcc", "-w", "-fsanitize=address", "-o", program, "testdata/program.c", mpi).CombinedOutput(); err != nil {
			t.Skipf("gcc has no AddressSanitizer: %s", out)
		}
		// Leaks cannot be found in a process that is traced.
		runProfiled(t, library, []string{program}, []string{"ASAN_OPTIONS=detect_leaks=0"}, "", common, 140)
	})
}

// runProfiled runs a command with the library, and checks what it prints and its calls, by name, and their time in milliseconds.
func runProfiled(t *testing.T, library string, command, env []string, printed string, calls []agentapi.CallProfile, in int64) {
	t.Helper()
	p := &Profiler{folder: t.TempDir(), library: library, runs: map[string]*run{}}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = p.Env(append([]string{agentapi.EnvProfile + "=" + p.folder}, env...))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != printed {
		t.Errorf("%v: %s", err, out)
	}
	got := p.Get()
	if len(got.Ranks) != 1 || got.Ranks[0].Communication < in {
		t.Errorf("the ranks are %+v, want one that is in MPI for %d ms", got.Ranks, in)
	}
	byName := map[string]agentapi.CallProfile{}
	for _, c := range got.Calls {
		of := byName[c.Call]
		byName[c.Call] = agentapi.CallProfile{Call: c.Call, Count: of.Count + c.Count, Bytes: of.Bytes + c.Bytes}
	}
	sorted := slices.SortedFunc(maps.Values(byName), func(a, b agentapi.CallProfile) int { return strings.Compare(a.Call, b.Call) })
	if diff := cmp.Diff(calls, sorted); diff != "" {
		t.Errorf("the calls differ (-want +got):\n%s", diff)
	}
}

// checkNeeds checks that the library can be loaded with any C library, and into a process without the parts of gcc's library for exceptions.
func checkNeeds(t *testing.T, library string) {
	t.Helper()
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %q: %v", libraries, err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var needs, optional []string
	for _, s := range symbols {
		switch {
		case s.Section != elf.SHN_UNDEF:
		case elf.ST_BIND(s.Info) == elf.STB_WEAK:
			optional = append(optional, s.Name)
		default:
			needs = append(needs, s.Name)
		}
	}
	slices.Sort(needs)
	slices.Sort(optional)
	if diff := cmp.Diff(strings.Fields("clock_gettime close dl_iterate_phdr getenv getpid mmap open read rename snprintf unlink write"), needs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"_Unwind_Resume", "__gcc_personality_v0"}, optional); diff != "" {
		t.Error(diff)
	}
}

// checkProfile compares a profile of testdata/program.c. Each of its 7 calls takes 20 ms.
func checkProfile(t *testing.T, p *agentapi.Profile) {
	t.Helper()
	if p == nil || len(p.Ranks) != 1 || p.Ranks[0].Rank != 5 || p.Launch != "100.7.200" {
		t.Fatalf("%+v", p)
	}
	if r := p.Ranks[0]; r.Communication < 140 || r.Elapsed < r.Communication {
		t.Errorf("the rank's times are %+v", r)
	}
	type counted struct{ Count, Bytes int64 }
	got, total := map[string]counted{}, int64(0)
	for _, c := range p.Calls {
		// Both functions to send have one name.
		total += c.Time
		of := got[c.Call]
		got[c.Call] = counted{of.Count + c.Count, of.Bytes + c.Bytes}
		if c.Time < 20*c.Count {
			t.Errorf("%s took %d ms", c.Call, c.Time)
		}
	}
	// The library may measure calls by another clock than the time from begin to end.
	if total > p.Ranks[0].Elapsed {
		t.Errorf("the calls took %d ms, more than the %d ms of the rank", total, p.Ranks[0].Elapsed)
	}
	want := map[string]counted{"Send": {3, 16000 + 4<<40}, "Sendrecv": {1, 80}, "Alltoallv": {1, 24}, "Gather": {1, 0}, "Barrier": {1, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the calls differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{1, 1, 2, 0, 0, 1}, p.Sizes); diff != "" {
		t.Errorf("the sizes of messages differ (-want +got):\n%s", diff)
	}
}

// BenchmarkCall measures what the library adds to a call of MPI: ns/call is that of a function that does nothing, with and without it.
func BenchmarkCall(b *testing.B) {
	library, folder := buildLibrary(b), b.TempDir()
	mpi, program := filepath.Join(folder, "mpi.so"), filepath.Join(folder, "loop")
	compile(b, "gcc", "-w", "-O2", "-shared", "-fPIC", "-DFAST", "-o", mpi, "testdata/mpi.c")
	compile(b, "gcc", "-w", "-O2", "-o", program, "testdata/loop.c", mpi)
	for name, env := range map[string][]string{"without": nil, "profiled": {preload + "=" + library, agentapi.EnvProfile + "=" + folder}} {
		b.Run(name, func(b *testing.B) {
			var least float64
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), program)
				cmd.Env = env
				out, err := cmd.Output()
				if err != nil {
					b.Fatal(err)
				}
				value, err := strconv.ParseFloat(string(out), 64)
				if err != nil {
					b.Fatal(err)
				}
				if least == 0 || value < least {
					least = value
				}
			}
			b.ReportMetric(least, "ns/call")
		})
	}
}

// page is a record as the library writes it.
func page(change func([]byte)) []byte {
	data := make([]byte, pageSize)
	copy(data, magic)
	for at, value := range map[int]uint32{8: 17, 12: 3, 16: 8, 20: 1} {
		binary.NativeEndian.PutUint32(data[at:], value)
	}
	for at, value := range map[int]uint64{24: 1_000_000_000, 40: 5_000_000_000, 48: 5_000_000_000, 56: 1_000_000_000, 64: 7} {
		binary.NativeEndian.PutUint64(data[at:], value)
	}
	copy(data[headerSize:], "Barrier")
	data[headerSize+nameSize] = 1
	binary.NativeEndian.PutUint64(data[headerSize+24:], 4)
	if change != nil {
		change(data)
	}
	return data
}

func TestParseRecord(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func([]byte)
		calls  int
		bad    bool
	}{
		"in order":          {nil, 1, false},
		"another file":      {func(d []byte) { d[0] = 'x' }, 0, true},
		"not begun":         {func(d []byte) { clear(d[24:32]) }, 0, true},
		"a call is written": {func(d []byte) { d[headerSize+nameSize] = 0 }, 0, false},
		"no name":           {func(d []byte) { clear(d[headerSize : headerSize+nameSize]) }, 0, false},
		"an odd name":       {func(d []byte) { copy(d[headerSize:], "B\"rrier") }, 0, false},
		"too many calls":    {func(d []byte) { binary.NativeEndian.PutUint32(d[20:], 1<<31) }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := parseRecord(page(test.change))
			if ok == test.bad || len(r.calls) != test.calls {
				t.Errorf("%v with %d calls", ok, len(r.calls))
			}
		})
	}
}

// TestUntil: a rank counts until its end, until now while it runs, and until its last call if it was killed.
func TestUntil(t *testing.T) {
	t.Parallel()
	const second = 1_000_000_000
	for name, test := range map[string]struct {
		record                        record
		now, elapsed, inCommunication uint64
	}{
		"ended":          {record{start: 1 * second, end: 11 * second, last: 11 * second, communication: 4 * second}, 50 * second, 10, 4},
		"computes":       {record{start: 1 * second, last: 3 * second, communication: second}, 11 * second, 10, 1},
		"is in a call":   {record{start: 1 * second, last: 3 * second, entered: 3 * second, communication: second}, 11 * second, 10, 9},
		"was killed":     {record{start: 1 * second, last: 3 * second, entered: 3 * second, communication: second}, 0, 2, 1},
		"two threads":    {record{start: 1 * second, end: 11 * second, communication: 30 * second}, 0, 10, 10},
		"another clock":  {record{start: 60 * second, last: 61 * second}, 11 * second, 0, 0},
		"no call so far": {record{start: 1 * second, last: 1 * second}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elapsed, communication := test.record.until(test.now)
			if elapsed != test.elapsed*second || communication != test.inCommunication*second {
				t.Errorf("%d, %d", elapsed, communication)
			}
		})
	}
}

// TestHostileRecords: programs of the job can write anything into the folder. What is read is bounded.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	p := &Profiler{folder: t.TempDir(), library: "/proc/self/exe", runs: map[string]*run{}}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		data := page(func(d []byte) {
			for at := 24; at < len(d); at++ {
				if random.IntN(3) == 0 {
					d[at] = byte(random.Uint32())
				}
			}
			binary.NativeEndian.PutUint32(d[12:], random.Uint32())
			binary.NativeEndian.PutUint32(d[20:], 80)
			for j := range mostCalls {
				copy(d[headerSize+j*callSize:], append([]byte{'A' + byte(random.IntN(26)), 'a' + byte(random.IntN(26)), 'a' + byte(i%26)}, 0))
				d[headerSize+j*callSize+nameSize] = 1
			}
		})
		if err := os.WriteFile(filepath.Join(p.folder, string(rune('a'+i%26))+strings.Repeat("x", i/26)+extension), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.folder, "short"+extension), []byte(magic), 0o600); err != nil {
		t.Fatal(err)
	}
	// Files that are none, or are elsewhere: opening one may take for ever.
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(
		os.WriteFile(outside, page(func(d []byte) { binary.NativeEndian.PutUint32(d[12:], mostRank-1) }), 0o600),
		os.Symlink(outside, filepath.Join(p.folder, "link"+extension)),
		os.Symlink("fifo"+extension, filepath.Join(p.folder, "toFIFO"+extension)),
		os.Mkdir(filepath.Join(p.folder, "folder"+extension), 0o700),
		unix.Mkfifo(filepath.Join(p.folder, "fifo"+extension), 0o600),
		os.WriteFile(filepath.Join(p.folder, "huge"+extension), []byte("x"), 0o600),
		os.Truncate(filepath.Join(p.folder, "huge"+extension), 1<<40),
	); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := getSoon(t, p)
		if got == nil || len(got.Calls) > agentapi.MaxProfileCalls || len(got.Ranks) > mostRanks || got.RankCount == 0 {
			t.Fatalf("%+v", got)
		}
		for _, r := range got.Ranks {
			if r.Rank == mostRank-1 || r.Rank < 0 || r.Elapsed < 0 || r.Communication < 0 || r.Communication > r.Elapsed {
				t.Errorf("%+v", r)
			}
		}
	}
}

// getSoon returns the profile, which it does not take long to read.
func getSoon(t *testing.T, p *Profiler) *agentapi.Profile {
	t.Helper()
	got := make(chan *agentapi.Profile, 1)
	go func() { got <- p.Get() }()
	select {
	case profile := <-got:
		return profile
	case <-time.After(10 * time.Second):
		t.Fatal("reading the records takes too long")
	}
	return nil
}

// TestRuns: a profile is of the run of MPI's launcher that began last, also while ranks of an earlier one run. Others are named, and those of
// many that began first are dropped.
func TestRuns(t *testing.T) {
	t.Parallel()
	const second = 1_000_000_000
	var clock unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
		t.Fatal(err)
	}
	p := &Profiler{folder: t.TempDir(), library: "/proc/self/exe", runs: map[string]*run{}, launchOf: func(pid int) string {
		return map[int]string{1 << 29: "5.5.5"}[pid]
	}}
	// write writes the record of a rank that began some seconds ago, and was in MPI for some.
	write := func(name, launch string, process, rank uint32, ago, end, in int64) {
		t.Helper()
		data := page(func(d []byte) {
			binary.NativeEndian.PutUint32(d[8:], process)
			binary.NativeEndian.PutUint32(d[12:], rank)
			start := clock.Nano() - ago*second
			for at, value := range map[int]int64{24: start, 32: 0, 40: start + in*second, 48: 0, 56: in * second} {
				if at == 32 && end > 0 {
					value = start + end*second
				}
				binary.NativeEndian.PutUint64(d[at:], uint64(value))
			}
			copy(d[headerSize+mostCalls*callSize:], launch)
		})
		if err := os.WriteFile(filepath.Join(p.folder, name+extension), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(launch string, other []string, want ...agentapi.RankProfile) {
		t.Helper()
		for range 2 {
			got := p.Get()
			if got.Launch != launch || got.Began <= 0 {
				t.Errorf("it is of %q, which began at %d, want %q", got.Launch, got.Began, launch)
			}
			if diff := cmp.Diff(other, got.Other, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want, got.Ranks, cmpopts.IgnoreFields(agentapi.RankProfile{}, "Elapsed")); diff != "" {
				t.Error(diff)
			}
		}
	}
	const ended = 1 << 30
	write("a", "1.2.3", ended, 0, 100, 10, 4)
	write("b", "1.2.3", ended, 1, 100, 10, 5)
	check("1.2.3", nil, agentapi.RankProfile{Rank: 0, Communication: 4000}, agentapi.RankProfile{Rank: 1, Communication: 5000})
	// The same rank again, in another run, and one of the first run that still runs.
	write("c", "1.2.4", ended, 0, 50, 10, 7)
	write("d", "1.2.3", uint32(os.Getpid()), 2, 100, 0, 1)
	check("1.2.4", []string{"1.2.3"}, agentapi.RankProfile{Rank: 0, Communication: 7000})
	// Its name is not in the record: the process is one of the launcher's pod.
	write("e", "", 1<<29, 3, 40, 10, 2)
	check("5.5.5", []string{"1.2.3", "1.2.4"}, agentapi.RankProfile{Rank: 3, Communication: 2000})
	for i := range 2 * agentapi.MaxProfileRuns {
		write("f", fmt.Sprintf("9.%d.1", i), ended, 0, 30, 1, 1)
		p.Get()
	}
	if got := p.Get(); len(got.Other) != agentapi.MaxProfileRuns || len(p.runs) != agentapi.MaxProfileRuns+1 {
		t.Errorf("there are %d other runs, and %d are kept", len(got.Other), len(p.runs))
	}
	write("g", "no\nname", ended, 0, 1, 1, 1)
	if got := p.Get(); got.Launch != "" {
		t.Errorf("a program chose the name %q", got.Launch)
	}
}

// TestEnv: the library is preloaded after those of the user, if the job asks for it and the image has it.
func TestEnv(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "profile")
	t.Setenv(agentapi.EnvProfile, folder)
	p := New(nil)
	if got := p.Env([]string{"A=b"}); len(got) != 1 || !p.Get().NoLibrary {
		t.Errorf("without the library: %q, %+v", got, p.Get())
	}
	p.library = "/proc/self/exe"
	if diff := cmp.Diff([]string{"A=b", "LD_PRELOAD=/proc/self/exe", "ASAN_OPTIONS=verify_asan_link_order=0"}, p.Env([]string{"A=b"})); diff != "" {
		t.Error(diff)
	}
	want := []string{"LD_PRELOAD=own.so:/proc/self/exe", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"}
	if diff := cmp.Diff(want, p.Env([]string{"LD_PRELOAD=own.so", "ASAN_OPTIONS=detect_leaks=0"})); diff != "" {
		t.Error(diff)
	}
	// A container that runs again has the files of its earlier run, and other files are not the agent's.
	for _, name := range []string{"7.profile", "8.new", "data"} {
		if err := os.WriteFile(filepath.Join(folder, name), page(nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	New(nil)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 || left[0].Name() != "data" {
		t.Errorf("%v, %v", left, err)
	}
	t.Setenv(agentapi.EnvProfile, "")
	if p := New(nil); p.Get() != nil || len(p.Env(nil)) > 0 {
		t.Error("a job that asks for no profile has one")
	}
}
