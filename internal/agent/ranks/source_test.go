package ranks

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestSourcesThatAreLate: of a file server that does not answer, one line is waited for, and one read waits there at most.
func TestSourcesThatAreLate(t *testing.T) {
	t.Parallel()
	reading, answer := make(chan struct{}, 1), make(chan string)
	var reads atomic.Int32
	ask := func() string {
		s := &sources{reading: reading, read: func(int, string, int) string {
			reads.Add(1)
			return <-answer
		}}
		var all string
		for range 4 {
			thread := agentapi.ThreadStack{Frames: []agentapi.Frame{{File: "/app/train.py", Line: 3}}}
			s.addTo(1, &thread)
			all += thread.Frames[0].Source
		}
		return all
	}
	begun := time.Now()
	if got := ask() + ask(); got != "" || reads.Load() != 1 {
		t.Errorf("%q is read by %d reads, want one that waits", got, reads.Load())
	}
	if took := time.Since(begun); took > 3*sourceTime {
		t.Errorf("it took %s", took)
	}
	answer <- "late"
	go func() {
		for range 4 {
			answer <- "x"
		}
	}()
	got := ""
	for deadline := time.Now().Add(10 * time.Second); got == "" && time.Now().Before(deadline); {
		got = ask()
	}
	if got == "" {
		t.Error("no line is read after the server has answered")
	}
}

// TestSourceLine: a line of a program is read from its file as the process has it, or from its arguments, and from nothing else.
func TestSourceLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "train.py")
	if err := os.WriteFile(file, []byte("import time\n    while  True:\n"+strings.Repeat("x", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(folder, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file string
		line int
		want string
	}{
		{file, 2, "while  True:"},
		{file, 3, strings.Repeat("x", 99) + "…"},
		{file, 4, ""},
		{file, 0, ""},
		{filepath.Join(folder, "missing.py"), 1, ""},
		{fifo, 1, ""},
		{folder, 1, ""},
		{"/dev/zero", 1, ""},
		{"<string>", 1, ""},
		{"stacks_test.go", 1, "package ranks"},
	} {
		if got := sourceLine(os.Getpid(), test.file, test.line); got != test.want {
			t.Errorf("line %d of %s is %q, want %q", test.line, test.file, got, test.want)
		}
	}
}

// TestLoopOf: the loop around a pause shows what the program waits for.
func TestLoopOf(t *testing.T) {
	for program, want := range map[string]string{
		"import time\nwhile not os.path.exists(\"/scratch/part-0.npy\"):\n    time.sleep(1)":                             "while not os.path.exists(\"/scratch/part-0.npy\"):",
		"def wait(path):\n    while not path.exists():\n        # later\n        if verbose:\n            time.sleep(1)": "while not path.exists():",
		"while True:\n    if os.path.exists(p):\n        break\n    print(\"waits\")\n    time.sleep(1)":                 "while True: if os.path.exists(p):",
		"async def f():\n\tfor i in range(9):\n\t\tawait asyncio.sleep(1)":                                               "for i in range(9):",
		"for i in range(9):\n    print(i)\ntime.sleep(1)":                                                                "",
		"while work():\n    def pause():\n        time.sleep(1)":                                                         "",
		"while work():\n    step()": "",
		"time.sleep(1)":             "",
	} {
		lines := strings.Split(program, "\n")
		if got := loopOf(lines[:len(lines)-1], lines[len(lines)-1]); got != want {
			t.Errorf("%q: %q, want %q", program, got, want)
		}
	}
}
