package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/images/internal/steps"
)

// TestCompileLibraries: a script of the module compiles a library with the compiler in CC, and its failure is an error.
func TestCompileLibraries(t *testing.T) {
	t.Setenv("CC", "some-gcc")
	dir, out := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{"build.sh": `printf %s "$CC" >"$1"`, "fail.sh": "exit 3"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var printed strings.Builder
	log := steps.New(&printed, time.Now)
	files, err := Build{Dir: dir, Libraries: map[string]string{"/lib/a.so": "build.sh"}}.compileLibraries(t.Context(), out, log, &printed)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if data, err := os.ReadFile(files["/lib/a.so"]); err != nil || string(data) != "some-gcc" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := (Build{Dir: dir, Libraries: map[string]string{"/lib/a.so": "fail.sh"}}).compileLibraries(t.Context(), out, log, &printed); err == nil || !strings.Contains(err.Error(), "fail.sh") {
		t.Errorf("a script that fails: %v", err)
	}
	if files, err := (Build{}).compileLibraries(t.Context(), out, log, &printed); files != nil || err != nil {
		t.Errorf("an image without libraries: %v, %v", files, err)
	}
}
