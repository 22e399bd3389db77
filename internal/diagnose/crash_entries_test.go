package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestCrashedInCtypes(t *testing.T) {
	const crash, thread = "Fatal Python error: Segmentation fault\n\n", "Current thread 0x00007f1c (most recent call first):\n"
	const read = "  File \"/usr/lib/python3.12/ctypes/__init__.py\", line 519 in string_at\n  File \"/app/train.py\", line 9 in <module>"
	for name, test := range map[string]struct {
		log, command string
		want         bool
	}{
		"a pointer":                {crash + thread + read, "", true},
		"of a rank":                {"[1,0]<stderr>:Fatal Python error: Segmentation fault\n[1,0]<stderr>:Current thread 0x1 (most recent call first):\n[1,0]<stderr>:  File \"/usr/lib/python3.12/ctypes/__init__.py\", line 519 in string_at", "", true},
		"a program in the command": {crash + thread + "  File \"<string>\", line 4 in <module>", "python3 -c 'import ctypes'", true},
		"another program":          {crash + thread + "  File \"<string>\", line 4 in <module>", "python3 -c 'import solver'", false},
		"a library is loaded":      {crash + thread + "  File \"/usr/lib/python3.12/ctypes/__init__.py\", line 379 in __init__\n  File \"/usr/lib/python3.12/site-packages/torch/__init__.py\", line 3 in <module>", "", false},
		"an outer call":            {crash + thread + "  File \"/app/solve.py\", line 3 in solve\n" + read, "", false},
		"another thread":           {crash + "Thread 0x00007f1d (most recent call first):\n" + read + "\n\n" + thread + "  File \"/app/solve.py\", line 3 in solve", "", false},
		"a traceback":              {"Traceback (most recent call last):\n  File \"/usr/lib/python3.12/ctypes/__init__.py\", line 379, in __init__", "", false},
		"only a command":           {"step 1", "python3 -c 'import ctypes'", false},
	} {
		t.Run(name, func(t *testing.T) {
			var job mpi.Job
			job.Launcher.Template.Spec.Containers = []corev1.Container{{Command: []string{"mpirun", test.command}}}
			p := &input{&facts.Facts{Job: job, Pods: []facts.Pod{{Log: jobstate.Log{Lines: strings.Split(test.log, "\n")}}}}}
			if got := p.crashedInCtypes(); got != test.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// TestUndeclaredPointers: only a call by ctypes of a function that returns a pointer, without a declaration, is one.
func TestUndeclaredPointers(t *testing.T) {
	const load = "import ctypes, os\nlibc = ctypes.CDLL(\"libc.so.6\")\n"
	for name, test := range map[string]struct{ command, want string }{
		"a pointer":                {load + "buffer = libc.malloc(size)\nlibc.memset(buffer, 0, size)", "libc.malloc"},
		"a library of another way": {"c = cdll.LoadLibrary(name)\np = c.strdup(b\"x\")\nq = c.strdup(p)", "c.strdup"},
		"it is declared":           {load + "libc.malloc.restype = ctypes.c_void_p\nbuffer = libc.malloc(size)", ""},
		"it returns a number":      {load + "libc.memset(buffer, 0, size)", ""},
		"another object":           {load + "pool.malloc(size); os.fopen(1)", ""},
		"not by ctypes":            {"libc = load()\nlibc.malloc(4)", ""},
	} {
		if got := strings.Join(undeclaredPointers(test.command), " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
