package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agent/files"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	small, large := filepath.Join(folder, "small"), filepath.Join(folder, "large")
	if err := os.WriteFile(small, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := files.Read(small); err != nil || string(data) != "key" {
		t.Errorf("it reads %q, %v", data, err)
	}
	for path, want := range map[string]string{
		"/dev/zero":                      "/dev/zero is not a regular file",
		folder:                           "is not a regular file",
		large:                            "is larger than 1048576 bytes",
		filepath.Join(folder, "nothing"): "no such file",
	} {
		if data, err := files.Read(path); err == nil || !strings.Contains(err.Error(), want) || len(data) > 0 {
			t.Errorf("%s: %d bytes, %v", path, len(data), err)
		}
	}
}
