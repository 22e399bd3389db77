package loglines

import (
	"strings"
	"testing"
)

// TestOwnMessage: programs name themselves before their errors, and may print their usage after it. What they print while they work is none.
func TestOwnMessage(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	longer := strings.ReplaceAll(ruler, "\n-", "\n---")
	for name, test := range map[string]struct{ log, program, want, rank string }{
		"with its usage":                   {"rank 0 of 2\npip: no\n[1,1]<stderr>:pi: \"1e9\" is not a number\n[1,1]<stderr>:usage: pi [INTERVALS]\npip: later", "pi", `"1e9" is not a number (usage: pi [INTERVALS])`, "1"},
		"no program":                       {"pi: no mesh", "", "", ""},
		"another program":                  {"pi: no mesh", "solver", "", ""},
		"progress":                         {"solver: iteration 1 residual 0.5\nsolver: iteration 2 residual 1e-3", "solver", "", ""},
		"progress before an error":         {"solver: iteration 1 residual 0.5\nsolver: iteration 2 residual 0.4\nsolver: matrix is singular", "solver", "matrix is singular", ""},
		"the beginning":                    {"solver: reading mesh.dat\n" + strings.Repeat("step\n", 6), "solver", "", ""},
		"of one rank among many lines":     {"[1,1]<stderr>:solver: no mesh\n" + strings.Repeat("[1,0]<stdout>:step\n", 20), "solver", "no mesh", "1"},
		"before Open MPI's message":        {"solver: no mesh" + ruler + "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted." + ruler + "a\n" + ruler + "mpirun detected that one or more processes exited\n\n  Process name: [[1,1],1]\n  Exit code:    2" + ruler, "solver", "no mesh", ""},
		"before its longer lines":          {"solver: no mesh" + longer + "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted." + longer + "a\n" + longer + "mpirun detected that one or more processes exited\n\n  Process name: [[1,1],1]\n  Exit code:    2" + longer, "solver", "no mesh", ""},
		"of all ranks":                     {"solver: no mesh\nsolver: no mesh\nsolver: no mesh\nsolver: no mesh", "solver", "no mesh", ""},
		"the same with another rank's tag": {"[0] solver: no mesh 7\n[1] solver: no mesh 7", "solver", "no mesh 7", "1"},
	} {
		found := OwnMessage(strings.Split(test.log, "\n"), test.program)
		if found == nil {
			found = &ErrorLine{}
		}
		if found.Message != test.want || found.Rank != test.rank {
			t.Errorf("%s: got %q of rank %q, want %q of rank %q", name, found.Message, found.Rank, test.want, test.rank)
		}
	}
}
