package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// volatile are parts of outputs that differ from run to run.
var volatile = []struct {
	of *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`-launcher-[a-z0-9]{5}\b`), "-launcher-X"},
	{regexp.MustCompile(`\d+(\.\d+)?(e-?\d+)?`), "N"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func normalized(line string) string {
	for _, part := range volatile {
		line = part.of.ReplaceAllString(line, part.as)
	}
	return strings.TrimSpace(line)
}

// missing returns the lines of an output in a page that a run did not print. Numbers, names of launchers and spaces may differ, and so
// may the order: ranks print when they can. "…" stands for anything.
func missing(shown, printed string) (lines []string) {
	var have []string
	for line := range strings.Lines(printed) {
		have = append(have, normalized(line))
	}
	for line := range strings.Lines(shown) {
		want := normalized(line)
		if want == "" || want == "…" {
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		at := slices.IndexFunc(have, pattern.MatchString)
		if at < 0 {
			lines = append(lines, strings.TrimSpace(line))
			continue
		}
		have = slices.Delete(have, at, at+1)
	}
	return lines
}

// checkOutput compares the output in a page with that of the block before it, or writes it there.
func checkOutput(t *testing.T, b block, printed string) {
	t.Helper()
	lines := missing(b.text, printed)
	if len(lines) == 0 {
		return
	}
	if os.Getenv("UPDATE") == "" || strings.Contains(b.text, "…") {
		t.Errorf("%s:%d: the run did not print\n\t%s", b.page, b.line, strings.Join(lines, "\n\t"))
		return
	}
	path := filepath.Join(root, b.page)
	text := strings.Replace(read(t, path), "```\n"+b.text+"```\n", "```\n"+strings.TrimSpace(printed)+"\n```\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // it is read by all
		t.Fatal(err)
	}
}

// TestOutputs: what of an output has to be as in the page, and what may differ.
func TestOutputs(t *testing.T) {
	for name, test := range map[string]struct {
		shown, printed string
		lacks          []string
	}{
		"the same":          {"a\nb\n", "a\nb\n", nil},
		"other numbers":     {"ran for 2s, loss 0.31\n", "ran for 13s, loss 0.2875\n", nil},
		"another launcher":  {"pi-launcher-69xqb Running\n", "pi-launcher-z2x4c   Running\n", nil},
		"another order":     {"rank 0\nrank one\n", "rank one\nrank 3\n", nil},
		"a line too few":    {"rank 0\nrank 1\n", "rank 0\n", []string{"rank 1"}},
		"a part":            {"…\n  OutOfMemory: …\n", "WHY\n  OutOfMemory: Worker 1\n", nil},
		"another code":      {"OutOfMemory: …\n", "Killed: Worker 1\n", []string{"OutOfMemory: …"}},
		"a sign of a regex": {"a (b)\n", "a b\n", []string{"a (b)"}},
	} {
		if got := missing(test.shown, test.printed); !slices.Equal(got, test.lacks) {
			t.Errorf("%s: lacks %q, want %q", name, got, test.lacks)
		}
	}
}

// TestSession runs blocks without a cluster: a shell keeps its folder and variables, and a program's input is not the page.
func TestSession(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		blocks []block
		last   string
		fails  string
	}{
		"variables are kept":         {[]block{{language: "sh", text: "a=1; export b=2\n"}, {language: "sh", text: "echo $a $b\n"}}, "1 2\n", ""},
		"the folder is a clone":      {[]block{{language: "sh", text: "ls README.md && ls | grep -c '^\\.git' || true\n"}}, "README.md\n0\n", ""},
		"no line is read as input":   {[]block{{language: "sh", text: "cat\necho end\n"}}, "end\n", ""},
		"an exit code is expected":   {[]block{{language: "sh", text: "exit 3\n", mark: "exit", of: "3"}, {language: "sh", text: "echo on\n"}}, "on\n", ""},
		"another exit code":          {[]block{{language: "sh", text: "exit 4\n", mark: "exit", of: "3"}}, "", "exit code is 4, want 3"},
		"a line before others fails": {[]block{{language: "sh", text: "false\necho on\n"}}, "", "a command failed"},
		"a heredoc":                  {[]block{{language: "sh", text: "cat <<END\n$((1+1))\nEND\n"}}, "2\n", ""},
		"Python keeps its names":     {[]block{{language: "python", text: "x = 1\n"}, {language: "sh", text: "true\n"}, {language: "python", text: "print(x)\n"}}, "1\n", ""},
		"Python fails":               {[]block{{language: "python", text: "print(y)\n"}}, "", "exit code is 1, want 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSession(t, kubeconfig)
			var last string
			var err error
			for _, b := range test.blocks {
				if last, err = s.run(t.Context(), b); err != nil {
					break
				}
			}
			switch {
			case test.fails == "" && (err != nil || last != test.last):
				t.Errorf("printed %q: %v, want %q", last, err, test.last)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("error %v, want %s", err, test.fails)
			}
		})
	}
}
