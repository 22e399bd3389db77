package ranks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSourceLine: a line of a program is read from its file as the process has it, or from its arguments, and from nothing else.
func TestSourceLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "train.py")
	if err := os.WriteFile(file, []byte("import time\n    while  True:\n"+strings.Repeat("x", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(folder, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file string
		line int
		want string
	}{
		{file, 2, "while  True:"},
		{file, 3, strings.Repeat("x", 99) + "…"},
		{file, 4, ""},
		{file, 0, ""},
		{filepath.Join(folder, "missing.py"), 1, ""},
		{fifo, 1, ""},
		{folder, 1, ""},
		{"/dev/zero", 1, ""},
		{"<string>", 1, ""},
		{"stacks_test.go", 1, "package ranks"},
	} {
		if got := sourceLine(os.Getpid(), test.file, test.line); got != test.want {
			t.Errorf("line %d of %s is %q, want %q", test.line, test.file, got, test.want)
		}
	}
}
