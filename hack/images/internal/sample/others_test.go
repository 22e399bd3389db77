package sample

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/hack/images/internal/steps"
)

func TestSourceFolder(t *testing.T) {
	t.Parallel()
	project := fstest.MapFS{"examples/one/a.py": {}, "examples/one/b/c.py": {}, "examples/two.py": {}, "top.py": {}}
	for title, test := range map[string]struct {
		source Source
		want   []string
	}{
		"a folder":          {Source{Path: "examples/one", Target: "opt"}, []string{"opt/one/a.py", "opt/one/b/c.py"}},
		"a file":            {Source{Path: "examples/two.py", Target: "opt"}, []string{"opt/two.py"}},
		"a file at the top": {Source{Path: "top.py", Target: "opt"}, []string{"opt/top.py"}},
		"what is not there": {source: Source{Path: "examples/three", Target: "opt"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			inputs := map[string]input{}
			if err := test.source.addFolder(project, inputs); (err == nil) != (test.want != nil) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(inputs))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSourceRepository: of a repository, the folder as it was in the commit is taken.
func TestSourceRepository(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	git := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, arguments...)...)
		command.Dir = folder
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", arguments, err, text)
		}
		return strings.TrimSpace(string(text))
	}
	commit := func(content string) string {
		if err := os.MkdirAll(filepath.Join(folder, "scripts", "bench"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{"scripts/bench/run.py": 0o755, "scripts/other.py": 0o644} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		git("add", ".")
		git("commit", "--quiet", "--message", content)
		return git("rev-parse", "HEAD")
	}
	git("init", "--quiet")
	first := commit("first")
	commit("second")
	builder := Builder{Log: steps.New(io.Discard, time.Now), Output: io.Discard}
	inputs := map[string]input{}
	sample := Sample{Others: []Source{{Repository: "file://" + folder, Commit: first, Path: "scripts/bench", Target: "opt"}}}
	if err := builder.addRepositories(t.Context(), sample, inputs); err != nil {
		t.Fatal(err)
	}
	if file := inputs["opt/bench/run.py"]; len(inputs) != 1 || string(file.content) != "first" || !file.executable {
		t.Errorf("it has taken %v", inputs)
	}
	sample.Others[0].Commit = strings.Repeat("0", 40)
	if err := builder.addRepositories(t.Context(), sample, inputs); err == nil || !strings.Contains(err.Error(), "fetch") {
		t.Errorf("of a commit that is not there: %v", err)
	}
}

// TestKeyHasTheBase: an image on another one is built anew when that is another.
func TestKeyHasTheBase(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, base := range []string{"", "/cache/one.tar", "/cache/two.tar"} {
		key, err := Sample{}.key(nil, base)
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = true
	}
	if elsewhere, _ := (Sample{}).key(nil, "/other/one.tar"); len(keys) != 3 || !keys[elsewhere] {
		t.Errorf("keys are %v, and %s where the cache is elsewhere", keys, elsewhere)
	}
}
