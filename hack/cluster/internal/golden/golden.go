// Package golden compares what a test got with a file of what it should get.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Check fails the test unless got is the content of testdata/name. "go test
// -update" writes the file.
func Check(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make it with: go test -update", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; if that is meant: go test -update\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}
