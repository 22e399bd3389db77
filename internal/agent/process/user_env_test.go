package process_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/process"
)

// TestUserEnv: HOME is replaced if the user cannot write to it, and shows what the user can read there. A user without a name has one. Root
// may write everywhere, so that this runs as another user.
func TestUserEnv(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_HOME") != "" {
		env := process.UserEnv(os.Environ(), "/agent")
		fmt.Println(environ.Get(env, "HOME"), environ.Get(env, "USER"), environ.Get(env, "LOGNAME"))
		home := environ.Get(env, "HOME")
		for _, name := range []string{"train.py", ".openmpi/mca-params.conf", ".local/lib/module.py"} {
			if text, err := os.ReadFile(filepath.Join(home, name)); err == nil {
				fmt.Println("read", name, string(text))
			}
		}
		for _, name := range []string{".horovod", ".openmpi/components", ".local/share", "results"} {
			if err := os.Mkdir(filepath.Join(home, name), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
				fmt.Println("made", name)
			}
		}
		return
	}
	folder := t.TempDir()
	readable, closed, own := filepath.Join(folder, "readable"), filepath.Join(folder, "closed"), filepath.Join(folder, "own")
	for path, mode := range map[string]os.FileMode{readable: 0o555, closed: 0o700, own: 0o777} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"train.py": "a", ".openmpi/mca-params.conf": "b", ".local/lib/module.py": "c"} {
		path = filepath.Join(readable, path)
		if err := errors.Join(os.Chmod(readable, 0o755), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644), os.Chmod(readable, 0o555)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll("/tmp/home-1000650000") })
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can run this as another user")
	}
	for above := folder; above != "/"; above = filepath.Dir(above) {
		if err := os.Chmod(above, 0o1777); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(folder, "process.test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(self); err != nil || os.WriteFile(program, text, 0o755) != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ home, tmpdir, user, want string }{
		{"/", "", "", "/tmp 1000650000 1000650000"},
		{"", "", "me", "/tmp me "},
		{"/", own, "", own + " 1000650000 1000650000"},
		{closed, "", "", "/tmp 1000650000 1000650000"},
		{filepath.Join(folder, "missing"), "", "", "/tmp 1000650000 1000650000"},
		{own, "", "me", own + " me "},
		{readable, own, "", own + "/home-1000650000 1000650000 1000650000\nread train.py a\nread .openmpi/mca-params.conf b\nread .local/lib/module.py c\n" +
			"made .horovod\nmade .openmpi/components\nmade .local/share\nmade results"},
		{readable, "", "", "/tmp/home-1000650000 1000650000 1000650000\nread train.py a"},
	} {
		command := exec.CommandContext(t.Context(), program, "-test.run=^TestUserEnv$")
		command.Env = []string{"TEST_HOME=1", "HOME=" + test.home, "TMPDIR=" + test.tmpdir, "USER=" + test.user}
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000650000, Gid: 0}}
		out, err := command.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), test.want+"\n") {
			t.Errorf("%+v: %v: %s", test, err, out)
		}
	}
}
