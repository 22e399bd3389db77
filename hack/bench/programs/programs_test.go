package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckout exports an earlier commit of a real repository, and names it.
func TestCheckout(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "before")
	git := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return strings.TrimSpace(string(text))
	}
	git("init", "--quiet")
	for _, content := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(root, "file"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "--quiet", "--message", content)
	}
	for _, test := range []struct{ commit, want string }{{"HEAD", "second"}, {"HEAD~1", "first"}} {
		if _, err := Checkout(t.Context(), root, test.commit, out); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(out, "file")); err != nil || string(content) != test.want {
			t.Errorf("%s has %q and %v, want %q", test.commit, content, err, test.want)
		}
		name, err := Describe(t.Context(), root, test.commit)
		if want := git("rev-parse", "--short", test.commit); err != nil || name != want {
			t.Errorf("%s is described as %q and %v, want %q", test.commit, name, err, want)
		}
	}
	if _, err := Describe(t.Context(), root, "HEAD~9"); err == nil || !strings.Contains(err.Error(), "there is no commit HEAD~9") {
		t.Errorf("a commit that does not exist is described: %v", err)
	}
}
