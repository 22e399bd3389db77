package pystack

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// program is testdata/hangs.py, with a comment so long that the next line is far away.
var program = sync.OnceValue(func() string {
	text, err := os.ReadFile("testdata/hangs.py")
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(text), "    # LONG\n", strings.Repeat("    # a comment\n", 400), 1)
})

// lineOf returns the number of the program's first line with a text.
func lineOf(t *testing.T, text string, after string) int32 {
	t.Helper()
	start := strings.Index(program(), after)
	if start < 0 || !strings.Contains(program()[start:], text) {
		t.Fatalf("the program has no %q after %q", text, after)
	}
	return int32(1 + strings.Count(program()[:start+strings.Index(program()[start:], text)], "\n"))
}

// interpreters returns the Pythons of this machine that are supported, by version.
func interpreters(t *testing.T) map[string]string {
	t.Helper()
	home, _ := os.UserHomeDir()
	found := map[string]string{}
	for minor := 9; minor <= 14; minor++ {
		name := fmt.Sprintf("python3.%d", minor)
		patterns := []string{
			"/usr/bin/" + name, "/usr/local/bin/" + name, home + "/.pyenv/versions/*/bin/" + name, home + "/.local/share/uv/python/*/bin/" + name,
		}
		for _, pattern := range patterns {
			paths, _ := filepath.Glob(pattern)
			for _, path := range paths {
				found[fmt.Sprintf("%s of %s", name, strings.TrimPrefix(filepath.Dir(path), home))] = path
			}
		}
	}
	if len(found) == 0 {
		t.Skip("SKIPPED: this machine has no supported Python")
	}
	return found
}

// hang starts the program, waits until it is about to hang, and returns its process.
func hang(t *testing.T, interpreter, script string, arguments ...string) int {
	t.Helper()
	command := exec.Command(interpreter, "-S", "-E", "-X", "utf8", script)
	command.Args = append(command.Args, arguments...)
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if line, err := bufio.NewReader(output).ReadString('y'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("it prints %q, %v", line, err)
	}
	return command.Process.Pid
}

func readProcess(t *testing.T, pid int) (Stacks, error) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Skipf("SKIPPED: the kernel does not permit reading the memory of a child: %v", err)
	}
	defer memory.Close()
	return Read(memory, string(maps), pid)
}

// TestStacksOfRealPrograms: the lines in which a program hangs are found, in every version of Python that this machine has.
func TestStacksOfRealPrograms(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(program()), 0o600); err != nil {
		t.Fatal(err)
	}
	// A call is written as function:line, by the first line with a text after another one.
	call := func(function, after, text string) string {
		return fmt.Sprintf("%s:%d", function, lineOf(t, text, after))
	}
	recursion := slices.Repeat([]string{call("recurses", "def recurses", "recurses(depth - 1)")}, mostFrames-1)
	// The calls of threads, each in a function of its own.
	functions := map[string][]string{
		"sleeps":      {call("sleeps", "def sleeps", "ready()")},
		"awaits_lock": {call("awaits_lock", "def awaits_lock", "ready()")},
		"receives":    {call("receives", "def receives", "ready()")},
		"awaits_item": {call("awaits_item", "def awaits_item", "started")},
		"long_lines":  {call("long_lines", "def long_lines", "ready()")},
		"methods":     {call("Trainer.step", "def step", "ready()"), call("methods", "def methods", "Trainer()")},
		"generates":   {call("generator", "def generator", "ready()"), call("generates", "def generates", "return sum")},
		"sorts":       {call("<lambda>", "def sorts", "sorted"), call("sorts", "def sorts", "sorted")},
		"größen":      {call("größen", "def größen", "ready()")},
		"recurses":    append([]string{call("recurses", "def recurses", "ready()")}, recursion...),
	}
	names := slices.Sorted(maps.Keys(functions))
	main := []string{call("main", "def main", "globals()"), call("<module>", "globals()[sys.argv[1]]", "main()")}
	for version, interpreter := range interpreters(t) {
		threads := []string{strings.Join(append([]string{call("threads", "def threads", "ready()")}, main...), " ")}
		for _, name := range names {
			calls := strings.Join(functions[name], " ")
			if strings.HasPrefix(version, "python3.9 ") || strings.HasPrefix(version, "python3.10 ") {
				// Code objects have had the names of classes since 3.11.
				calls = strings.ReplaceAll(calls, "Trainer.", "")
			}
			threads = append(threads, calls)
		}
		slices.Sort(threads[1:])
		tests := map[string]struct {
			arguments []string
			// want are the calls of the main thread in the program's own file, and those of others, in order.
			want []string
		}{
			"threads":             {append([]string{"threads"}, names...), threads},
			"a library of C":      {[]string{"computes"}, []string{strings.Join(append([]string{call("computes", "def computes", "ready()")}, main...), " ")}},
			"the end of a thread": {[]string{"ends"}, []string{"", call("awaits_item", "def awaits_item", "started")}},
		}
		for name, test := range tests {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				pid := hang(t, interpreter, script, test.arguments...)
				got, err := []string(nil), error(nil)
				// It says that it is ready before it hangs.
				for deadline := time.Now().Add(30 * time.Second); !slices.Equal(got, test.want) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					var found Stacks
					if found, err = readProcess(t, pid); err == nil {
						got = ownCalls(found, pid, script)
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("the stacks are\n%q\nwant\n%q (%v)", got, test.want, err)
				}
			})
		}
		t.Run(version+" a loop", func(t *testing.T) {
			t.Parallel()
			pid := hang(t, interpreter, script, "loops")
			first := lineOf(t, "while True", "def loops")
			var frames []agentapi.Frame
			err := error(nil)
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				var found Stacks
				if found, err = readProcess(t, pid); err == nil {
					if frames = found.Threads[0].Frames; frames[0].Function == "loops" && frames[0].Line >= first {
						break
					}
				}
			}
			if len(frames) != 3 || frames[0].Function != "loops" || frames[0].Line < first || frames[0].Line > first+1 {
				t.Errorf("the calls are %v, want loops in line %d (%v)", frames, first, err)
			}
		})
	}
}

// ownCalls returns the calls in a file, as a text for each thread: the main thread first, the others in order.
func ownCalls(found Stacks, pid int, file string) (threads []string) {
	for i, thread := range found.Threads {
		if i == 0 && thread.Thread != 0 && thread.Thread != pid {
			threads = append(threads, "the main thread is not first")
		}
		var calls []string
		for _, f := range thread.Frames {
			if f.File == file {
				calls = append(calls, fmt.Sprintf("%s:%d", f.Function, f.Line))
			}
		}
		threads = append(threads, strings.Join(calls, " "))
	}
	slices.Sort(threads[1:])
	return threads
}

// TestOtherPrograms: a program without Python has no stacks.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	if found, err := readProcess(t, command.Process.Pid); !errors.Is(err, ErrNoPython) {
		t.Errorf("got %+v, %v", found, err)
	}
	if found, err := Read(nil, "", 1); !errors.Is(err, ErrNoPython) {
		t.Errorf("without maps: got %+v, %v", found, err)
	}
}
