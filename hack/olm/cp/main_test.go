package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCopyFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
	if err := os.WriteFile(from, []byte("a program"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := copyFile(from, to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the copy has the mode %v, %v, want that it is executable", info.Mode(), err)
	}
	if content, err := os.ReadFile(to); err != nil || string(content) != "a program" {
		t.Errorf("the copy is %q, %v", content, err)
	}
	if err := copyFile(filepath.Join(folder, "missing"), to); err == nil {
		t.Error("a missing file is no error")
	}
}
