package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestQuotedLine: a line of a script is shown without its secrets, and what to write in its place only if that is all of it.
func TestQuotedLine(t *testing.T) {
	for name, test := range map[string]struct{ line, shown, action string }{
		"a folder": {"grep -r TODO .", "grep -r TODO .", "grep -r TODO . || true"},
		"a secret": {`grep -q "api_key=0123456789abcdef" log`, `grep -q "api_key=****`, ""},
		"too long": {"grep " + strings.Repeat("x", 300) + " log", "grep xxx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var job mpi.Job
			job.Launcher.Template.Spec.Containers = []corev1.Container{{Command: []string{"sh", "-ec", "mpirun x\n" + test.line}}}
			p := &input{&facts.Facts{Job: job, Evidence: jobstate.Evidence{Mask: logs.Masker{}.Text}}}
			figures := map[string]string{}
			end := corev1.ContainerStateTerminated{ExitCode: 1}
			launcher := facts.Pod{Pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &end}}}}}, Summary: &agentapi.Summary{ExitCode: new(int32(1)), MPISucceeded: true}}
			entry := p.afterRanks(launcher, figures)
			if entry.Summary != codes.ScriptStopped.Summary || !strings.HasPrefix(figures["script"], test.shown) || codes.FillRemedy(entry.Remedies[0], figures).Action != test.action {
				t.Errorf("%q, and %q", figures["script"], codes.FillRemedy(entry.Remedies[0], figures).Action)
			}
		})
	}
	if codes.ScriptStopped.Remedies[0].Action == "" {
		t.Error("the definition was changed")
	}
}

func TestSilentLine(t *testing.T) {
	for name, test := range map[string]struct {
		script        string
		endsOnError   bool
		want, program string
	}{
		"a search":                      {"mpirun x\ngrep -q done log\n", true, "grep -q done log", "grep"},
		"an assignment":                 {"set -euo pipefail\nmpirun x\nn=$(grep -c warn log)", false, "n=$(grep -c warn log)", "grep"},
		"an assignment in quotes":       {"set -o errexit\nmpirun x\nn=\"$(grep -c warn log)\"", false, "n=\"$(grep -c warn log)\"", "grep"},
		"files that differ":             {"mpirun x\n  cmp a b", true, "cmp a b", "cmp"},
		"a folder":                      {"mpirun x\ngrep -r TODO .", true, "grep -r TODO .", "grep"},
		"nothing to search for":         {"mpirun x\ngrep \nexit 1", true, "", ""},
		"line ends of Windows":          {"mpirun x\r\ndiff\r\nexit 1\r\n", true, "", ""},
		"two searches":                  {"mpirun x\ngrep a b\ngrep c d", true, "", ""},
		"before the ranks":              {"grep a b\nmpirun x", true, "", ""},
		"errors are accepted":           {"mpirun x\ngrep a b", false, "", ""},
		"errors are accepted again":     {"set -e\nmpirun x\nset +e\ngrep a b", false, "", ""},
		"an option of mpirun":           {"mpirun \\\n-genv A 1 x\ngrep a b", false, "", ""},
		"words of a text":               {"mpirun x\necho \"Computing diff of a and b\"", true, "", ""},
		"a search in a text":            {"mpirun x\necho \"warnings: $(grep -c warn log)\"", true, "", ""},
		"a search for an export":        {"mpirun x\nexport N=$(grep -c warn log)", true, "", ""},
		"a subcommand":                  {"mpirun x\ngit diff --stat", true, "", ""},
		"a comment":                     {"mpirun x\n# grep a b", true, "", ""},
		"an alternative":                {"mpirun x\ngrep a b || true", true, "", ""},
		"a condition":                   {"mpirun x\nif grep -q a b\nthen echo\nfi", true, "", ""},
		"a condition on its own line":   {"mpirun x\nif\ngrep -q a b\nthen echo\nfi", true, "", ""},
		"a line that goes on":           {"mpirun x\ngrep a b \\\n|| true", true, "", ""},
		"the rest of a line":            {"mpirun x\necho \\\ngrep a b", true, "", ""},
		"a pipe":                        {"mpirun x\ngrep a b | tail", true, "", ""},
		"a text of several lines":       {"mpirun x\npython3 -c '\ngrep a b\n'", true, "", ""},
		"after a text of several lines": {"set -e\nmpirun x python3 -c '\nmain(1 << 2)\ngrep a b\nmain()\n' > log\nn=$(grep -c warn log)\necho \"it's $n\"", false, "n=$(grep -c warn log)", "grep"},
		"after a comment":               {"mpirun x # it's done\n# don't\ngrep a b", true, "grep a b", "grep"},
		"set -e in a text":              {"mpirun x sh -c '\nset -e\n'\ngrep a b", false, "", ""},
		"a text that does not end":      {"mpirun x\ngrep a b\necho 'x", true, "", ""},
		"an escaped quotation mark":     {"mpirun x\necho it\\'s\ngrep a b", true, "grep a b", "grep"},
		"a document":                    {"mpirun x\ncat <<E\ngrep a b\nE", true, "", ""},
		"a function, not always run":    {"mpirun x\nf() {\necho\ngrep a b\n}", true, "", ""},
		"a search in the background":    {"mpirun x\ngrep a b &", true, "", ""},
		"an assignment not at its end":  {"mpirun x\nn=$(grep -c a b) m=1", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			line := silentLineOf(test.script, test.endsOnError)
			if line == nil {
				line = &scriptLine{}
			}
			if line.text != test.want || line.program != test.program {
				t.Errorf("%q of %q, want %q of %q", line.text, line.program, test.want, test.program)
			}
		})
	}
}
