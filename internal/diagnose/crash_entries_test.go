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
