package docs

import (
	"regexp"
	"testing"
)

// TestModulesHaveOneToolchain: all modules of the repository are built with the version of Go that go.mod names, wherever they are built.
func TestModulesHaveOneToolchain(t *testing.T) {
	line := regexp.MustCompile(`(?m)^toolchain (\S+)$`)
	var want string
	if found := line.FindStringSubmatch(read(t, root+"/go.mod")); found != nil {
		want = found[1]
	}
	modules := files(t, "go.mod")
	if want == "" || len(modules) < 20 {
		t.Fatalf("go.mod names the toolchain %q, and there are %d modules", want, len(modules))
	}
	for _, path := range modules {
		if found := line.FindStringSubmatch(read(t, path)); found == nil || found[1] != want {
			t.Errorf("%s must have the line \"toolchain %s\", as go.mod: %q", path, want, found)
		}
	}
}
