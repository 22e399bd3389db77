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
	stage := filepath.Join(folder, "stage.py")
	if err := os.WriteFile(stage, []byte("ready = \"/scratch/ready.json\"\nprint(ready)\nwhile not os.path.exists(ready):  # of rank 0\n    time.sleep(1)  # a second\nwith self.lock:     # no other thread\n"), 0o600); err != nil {
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
		{stage, 4, `while not os.path.exists(ready): time.sleep(1)  # ready = "/scratch/ready.json"`},
		{stage, 5, "with self.lock:"},
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
		"while not ready():  # of rank 0\n    time.sleep(1)":                                                             "while not ready():",
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

// TestValuesIn: the path or address in a variable of the line is told, and no other value, which may be a secret.
func TestValuesIn(t *testing.T) {
	const waits = "while not os.path.exists(ready): time.sleep(1)"
	const told = `  # ready = "/scratch/ready.json"`
	for name, test := range map[string]struct{ before, line, want string }{
		"a path":                      {`ready = "/scratch/ready.json"`, waits, told},
		"in single quotes, commented": {`ready: str = '/scratch/ready.json'  # of rank 0`, waits, told},
		"the last value":              {"ready = \"/a/b\"\nready = \"/scratch/ready.json\"\nprint(ready)", waits, told},
		"joined":                      {`ready = os.path.join("/scratch", "ready.json")`, waits, told},
		"joined of a variable":        {"base = \"/scratch\"\nready = os.path.join(base, 'ready.json')", waits, told},
		"a pathlib.Path":              {`ready = Path("/scratch/ready.json")`, "while not ready.exists(): time.sleep(1)", told},
		"with a variable in it":       {`part = f"/scratch/part-{rank}.npy"`, "data = np.load(part, mmap_mode=None)", `  # part = "/scratch/part-{rank}.npy"`},
		"an address":                  {`master = "trainer-0.pi:29500"`, "connect(master)", `  # master = "trainer-0.pi:29500"`},
		"two":                         {"a = \"/x/a\"\nb = \"/x/b\"", "copy(a, b)", `  # a = "/x/a", b = "/x/b"`},
		"many lines between":          {`ready = "/scratch/ready.json"` + strings.Repeat("\nstep()", 150), waits, told},
		"no text":                     {"ready = args.ready", waits, ""},
		"another value since":         {"ready = \"/scratch/ready.json\"\nready = find()", waits, ""},
		"used by a with":              {"ready = \"/scratch/ready.json\"\nwith open(ready, \"w\") as f:\n    f.write(text)\nfor x in open(ready):\n    print(x)", waits, told},
		"bound by a with":             {"ready = \"/scratch/ready.json\"\nwith open(x) as f, lock() as ready:", waits, ""},
		"a parameter":                 {"ready = \"/scratch/ready.json\"\ndef wait(ready):", waits, ""},
		"a variable of a loop":        {"ready = \"/scratch/ready.json\"\nfor ready in all:", waits, ""},
		"one of several":              {"ready = \"/scratch/ready.json\"\nother, ready = both()", waits, ""},
		"more is added to it":         {"ready = \"/scratch/ready.json\"\nready += suffix", waits, ""},
		"a comparison":                {`ready == "/scratch/ready.json"`, waits, ""},
		"two texts":                   {`ready = "/scratch/" + name + "/ready"`, waits, ""},
		"a password":                  {`password = "hunter2"`, "login(user, password)", ""},
		"a key":                       {`key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"`, "login(key)", ""},
		"a key like a path":           {`api_key = "/JalrXUtnFEMI/K7MDENG"`, "login(api_key)", ""},
		"an address with a password":  {`url = "postgres://me:secret@db:5432/x"`, "connect(url)", ""},
		"a long one":                  {`ready = "/` + strings.Repeat("x", 200) + `"`, waits, ""},
		"another variable":            {`already = "/scratch/ready.json"`, waits, ""},
	} {
		if got := valuesIn(strings.Split(test.before, "\n"), test.line); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
