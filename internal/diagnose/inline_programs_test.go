package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSourceOfInlinePrograms: Python shows no source of a program that has no file. The command has it, if it has only one.
func TestSourceOfInlinePrograms(t *testing.T) {
	t.Parallel()
	const program = "import os\nos.sched_setaffinity(0, {64, 65})\n"
	const inline = "Traceback (most recent call last):\n  File \"<string>\", line 2, in <module>\nOSError: [Errno 22] Invalid argument"
	const piped = "Traceback (most recent call last):\n  File \"<stdin>\", line 2, in <module>\nOSError: [Errno 22] Invalid argument"
	const want = "The command has in this line: os.sched_setaffinity(0, {64, 65})"
	for name, test := range map[string]struct {
		command []string
		log     string
		want    bool
	}{
		"a word":                    {[]string{"mpirun", "-n", "2", "/usr/bin/python3.11", "-u", "-c", program}, inline, true},
		"in a script":               {[]string{"sh", "-ec", "export A=1\nmpirun python3 -uc '" + program + "'"}, inline, true},
		"the standard input":        {[]string{"bash", "-c", "mpirun sh -c 'x' \npython3 - <<'EOF'\n" + program + "EOF\necho end"}, piped, true},
		"indented standard input":   {[]string{"bash", "-c", "python3 <<-EOF\n\timport os\n\tos.sched_setaffinity(0, {64, 65})\n\tEOF\n"}, piped, true},
		"of another form":           {[]string{"mpirun", "python3", "-c", program}, piped, false},
		"of two programs":           {[]string{"sh", "-c", "python3 -c 'print(1)'\nmpirun python3 -c '" + program + "'"}, inline, false},
		"a shell's":                 {[]string{"mpirun", "sh", "-c", program}, inline, false},
		"fewer lines than named":    {[]string{"mpirun", "python3", "-c", "import os"}, inline, false},
		"a document without an end": {[]string{"bash", "-c", "python3 <<EOF"}, piped, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := failed(1, test.log).with(func(s *scene) {
				s.job.Launcher.Template.Spec.Containers = []corev1.Container{{Name: "main", Command: test.command}}
			}).findings()
			if got := slices.Contains(found[0].Evidence, want); got != test.want {
				t.Errorf("the evidence is %q", found[0].Evidence)
			}
			if got := strings.Contains(found[0].Remedies[0].Text, "Bind only to cores"); got != test.want {
				t.Errorf("the first remedy is %q", found[0].Remedies[0].Text)
			}
		})
	}
}
