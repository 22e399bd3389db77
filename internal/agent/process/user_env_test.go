package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/process"
)

// TestUserEnv: HOME is replaced only if it is of no use to the user, and a user without a name has one. Root may write everywhere, so that this runs as another user.
func TestUserEnv(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_HOME") != "" {
		env := process.UserEnv(os.Environ(), "/agent")
		fmt.Println(environ.Get(env, "HOME"), environ.Get(env, "USER"), environ.Get(env, "LOGNAME"))
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
		{readable, "", "", readable + " 1000650000 1000650000"},
		{own, "", "me", own + " me "},
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
