package diagnose

import "testing"

func TestSilentLine(t *testing.T) {
	for name, test := range map[string]struct {
		script        string
		endsOnError   bool
		want, program string
	}{
		"a search":                     {"mpirun x\ngrep -q done log\n", true, "grep -q done log", "grep"},
		"an assignment":                {"set -euo pipefail\nmpirun x\nn=$(grep -c warn log)", false, "n=$(grep -c warn log)", "grep"},
		"an assignment in quotes":      {"set -o errexit\nmpirun x\nn=\"$(grep -c warn log)\"", false, "n=\"$(grep -c warn log)\"", "grep"},
		"files that differ":            {"mpirun x\n  cmp a b", true, "cmp a b", "cmp"},
		"a folder":                     {"mpirun x\ngrep -r TODO .", true, "grep -r TODO .", "grep"},
		"nothing to search for":        {"mpirun x\ngrep \nexit 1", true, "", ""},
		"line ends of Windows":         {"mpirun x\r\ndiff\r\nexit 1\r\n", true, "", ""},
		"two searches":                 {"mpirun x\ngrep a b\ngrep c d", true, "", ""},
		"before the ranks":             {"grep a b\nmpirun x", true, "", ""},
		"errors are accepted":          {"mpirun x\ngrep a b", false, "", ""},
		"errors are accepted again":    {"set -e\nmpirun x\nset +e\ngrep a b", false, "", ""},
		"an option of mpirun":          {"mpirun \\\n-genv A 1 x\ngrep a b", false, "", ""},
		"words of a text":              {"mpirun x\necho \"Computing diff of a and b\"", true, "", ""},
		"a search in a text":           {"mpirun x\necho \"warnings: $(grep -c warn log)\"", true, "", ""},
		"a search for an export":       {"mpirun x\nexport N=$(grep -c warn log)", true, "", ""},
		"a subcommand":                 {"mpirun x\ngit diff --stat", true, "", ""},
		"a comment":                    {"mpirun x\n# grep a b", true, "", ""},
		"an alternative":               {"mpirun x\ngrep a b || true", true, "", ""},
		"a condition":                  {"mpirun x\nif grep -q a b\nthen echo\nfi", true, "", ""},
		"a condition on its own line":  {"mpirun x\nif\ngrep -q a b\nthen echo\nfi", true, "", ""},
		"a line that goes on":          {"mpirun x\ngrep a b \\\n|| true", true, "", ""},
		"the rest of a line":           {"mpirun x\necho \\\ngrep a b", true, "", ""},
		"a pipe":                       {"mpirun x\ngrep a b | tail", true, "", ""},
		"a text of several lines":      {"mpirun x\npython3 -c '\ngrep a b\n'", true, "", ""},
		"a document":                   {"mpirun x\ncat <<E\ngrep a b\nE", true, "", ""},
		"a function, not always run":   {"mpirun x\nf() {\necho\ngrep a b\n}", true, "", ""},
		"a search in the background":   {"mpirun x\ngrep a b &", true, "", ""},
		"an assignment not at its end": {"mpirun x\nn=$(grep -c a b) m=1", true, "", ""},
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
