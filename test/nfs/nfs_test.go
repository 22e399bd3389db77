package nfs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build builds server and client, where they can run.
func build(t *testing.T) (server, mount string) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Getuid() != 0 {
		t.Skip("SKIPPED: the NFS client needs root and /dev/fuse")
	}
	// Without this, go test does not notice that a program has changed, and does not run the test again.
	sources, err := filepath.Glob("*/*.go")
	must(t, err)
	for _, source := range sources {
		_, err := os.ReadFile(source)
		must(t, err)
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return filepath.Join(bin, "server"), filepath.Join(bin, "mount")
}

// start starts the server on a free port, or on one that it had before, and returns its port and a function that ends it.
func start(t *testing.T, server, port, root string) (string, func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	run := exec.CommandContext(t.Context(), server, "127.0.0.1:"+port, root)
	run.Stdout, run.Stderr = os.Stderr, os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { _ = run.Process.Kill(); _ = run.Wait() })
	t.Cleanup(end)
	for range 100 {
		if connection, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = connection.Close()
			return port, end
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return "", nil
}

// user is an unprivileged user.
const user = 1000650000

// asUser runs a script as an unprivileged user, in a folder.
func asUser(folder, script string) (string, error) {
	run := exec.Command("sh", "-c", script)
	run.Dir = folder
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: 0, Groups: []uint32{4000}}}
	out, err := run.CombinedOutput()
	return string(out), err
}

func TestMount(t *testing.T) {
	server, mount := build(t)
	root, folder, second := t.TempDir(), t.TempDir(), t.TempDir()
	export := filepath.Join(root, "team", "data")
	// Folders of tests are only open to who runs them.
	must(t, os.Chmod(filepath.Dir(folder), 0o755), os.MkdirAll(export, 0o755), os.Chmod(export, 0o777), os.WriteFile(filepath.Join(export, "input"), []byte("computed"), 0o644), os.Mkdir(filepath.Join(export, "owned"), 0o755))
	port, end := start(t, server, "0", root)
	mounted := func(folder, options string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), mount, "127.0.0.1:/team/data", folder, "-o", "rw,nfsvers=3,port="+port+options).CombinedOutput(); err != nil {
			t.Fatalf("mount: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	}
	mounted(folder, "")
	mounted(second, "")

	tests := map[string]struct {
		script, want string
		fails        bool
	}{
		"read":                       {script: "cat input", want: "computed"},
		"write, and append":          {script: "echo a >new; echo b >>new; cat new", want: "a\nb\n"},
		"overwrite":                  {script: "echo long text >twice; echo short >twice; cat twice", want: "short\n"},
		"owner and mode":             {script: "umask 027; touch mine; stat -c '%u %g %a' mine", want: "1000650000 0 640\n"},
		"folders":                    {script: "mkdir -p a/b/c && echo x >a/b/c/d && ls a/b && rm -r a && ls -d a", want: "c\nls: cannot access 'a': No such file or directory\n", fails: true},
		"rename":                     {script: "mkdir from && echo x >from/f && mv from to && cat to/f && echo y >to/g && mv -f to/g to/f && cat to/f && ls to", want: "x\ny\nf\n"},
		"rename while open":          {script: "exec 3>tmp; echo begun >&3; mv tmp final; echo ended >&3; cat final", want: "begun\nended\n"},
		"truncate":                   {script: "echo 123456789 >cut && truncate -s 4 cut && cat cut", want: "1234"},
		"chmod":                      {script: "touch run && chmod 750 run && stat -c %a run", want: "750\n"},
		"links":                      {script: "ln -s input link && readlink link && cat link", want: "input\ncomputed"},
		"times":                      {script: "touch -d @1000000000 old && stat -c %Y old", want: "1000000000\n"},
		"only if it is not there":    {script: "set -C; echo a >once; echo b >once; cat once", want: "sh: 1: cannot create once: File exists\na\n"},
		"a folder of another's":      {script: "echo x >owned/x", want: "sh: 1: cannot create owned/x: Permission denied\n", fails: true},
		"a file of another's":        {script: "chmod 600 input", want: "chmod: changing permissions of 'input': Operation not permitted\n", fails: true},
		"space":                      {script: "[ $(df --output=avail . | tail -1) -gt 1000 ] && echo room", want: "room\n"},
		"type":                       {script: "grep -c \" $PWD fuse.nfs \" /proc/mounts", want: "1\n"},
		"a folder that is not empty": {script: "mkdir full && touch full/f && rmdir full 2>/dev/null || ls full", want: "f\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if out, err := asUser(folder, test.script); out != test.want || (err != nil) != test.fails {
				t.Errorf("%q (%v), want %q", out, err, test.want)
			}
		})
	}

	// Root of a client is nobody.
	if err := os.WriteFile(filepath.Join(folder, "owned", "x"), nil, 0o644); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("root of a client writes to a folder of the server's root: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(folder, "by-root"), nil, 0o644))
	if owner := stat(t, filepath.Join(export, "by-root")).Uid; owner != 65534 {
		t.Errorf("a file of a client's root is of %d", owner)
	}
	// By one of its other groups, a user may write.
	must(t, os.Mkdir(filepath.Join(export, "group"), 0), os.Chown(filepath.Join(export, "group"), 0, 4000), os.Chmod(filepath.Join(export, "group"), 0o770))
	if out, err := asUser(folder, "echo x >group/x"); err != nil {
		t.Errorf("in a folder of its group, a user cannot write: %v: %s", err, out)
	}

	// One mount has at once what another has written.
	data := make([]byte, 9<<20+123)
	_, _ = rand.Read(data)
	must(t, os.WriteFile(filepath.Join(folder, "big"), data, 0o644))
	if read, err := os.ReadFile(filepath.Join(second, "big")); err != nil || !bytes.Equal(read, data) {
		t.Errorf("through another mount, %d bytes are read (%v) of %d", len(read), err, len(data))
	}
	must(t, os.WriteFile(filepath.Join(second, "big"), data[:77], 0o644))
	if read, err := os.ReadFile(filepath.Join(folder, "big")); err != nil || !bytes.Equal(read, data[:77]) {
		t.Errorf("after it was written again, %d bytes are read (%v)", len(read), err)
	}
	must(t, os.Mkdir(filepath.Join(folder, "many"), 0o755))
	var names []string
	for i := range 600 {
		names = append(names, fmt.Sprintf("file-%04d", i))
	}
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(export, "many", name), nil, 0o644))
	}
	entries, err := os.ReadDir(filepath.Join(folder, "many"))
	must(t, err)
	if found := slices.Collect(func(yield func(string) bool) {
		for _, e := range entries {
			if !yield(e.Name()) {
				return
			}
		}
	}); !slices.Equal(found, names) {
		t.Errorf("the folder has %d files, want %d", len(found), len(names))
	}

	// While the server is away, programs wait. They can be ended, and go on when it is there again.
	end()
	waits := exec.CommandContext(t.Context(), "cat", filepath.Join(folder, "input"))
	var out bytes.Buffer
	waits.Stdout = &out
	must(t, waits.Start())
	killed := exec.CommandContext(t.Context(), "cat", filepath.Join(folder, "input"))
	must(t, killed.Start())
	time.Sleep(time.Second)
	must(t, killed.Process.Kill())
	_ = killed.Wait()
	start(t, server, port, root)
	if err := waits.Wait(); err != nil || out.String() != "computed" {
		t.Errorf("when the server is there again, %q is read (%v)", out.String(), err)
	}
	must(t, syscall.Unmount(folder, 0), syscall.Unmount(second, 0))

	mounted(folder, ",ro")
	if err := os.WriteFile(filepath.Join(folder, "no"), nil, 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("with ro, files are written: %v", err)
	}
}

func TestMessages(t *testing.T) {
	server, mount := build(t)
	root, folder := t.TempDir(), t.TempDir()
	port, end := start(t, server, "0", root)
	cases := map[string]string{
		"127.0.0.1:/none -o port=" + port:      "mount.nfs: mounting 127.0.0.1:/none failed, reason given by server: No such file or directory",
		"127.0.0.1:/ -o vers=4.1,port=" + port: "mount.nfs: requested NFS version or transport protocol is not supported",
		"nas.invalid:/ -o port=" + port:        "mount.nfs: Failed to resolve server nas.invalid: Name or service not known",
		"/data":                                "mount.nfs: remote share not in 'host:dir' format",
	}
	try := func(args, want string) {
		t.Helper()
		words := strings.Fields(args)
		run := exec.CommandContext(t.Context(), mount, append([]string{words[0], folder}, words[1:]...)...)
		out, err := run.CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != want || err == nil || run.ProcessState.ExitCode() != 32 {
			t.Errorf("%s: %q (%v), want %q", args, got, err, want)
		}
	}
	for args, want := range cases {
		try(args, want)
	}
	end()
	try("127.0.0.1:/ -o port="+port, "mount.nfs: Connection refused for 127.0.0.1:/ on "+folder)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func stat(t *testing.T, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t)
}
