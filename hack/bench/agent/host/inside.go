package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// argument is the process name that turns this program into a host.
const argument = "bench-host"

// Main becomes a host if this process was started to be one, and then does not return. Programs that start hosts
// call it before anything else: a host begins as the same program.
func Main() {
	if len(os.Args) != 2 || os.Args[0] != argument {
		return
	}
	if err := become(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-host:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// become sets up a host's namespaces and then replaces this program by the host's command or, without a command, serves
// requests.
func become(text string) error {
	var spec Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("read what to be: %w", err)
	}
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("set the name: %w", err)
	}
	root, err := spec.mount()
	if err != nil {
		return err
	}
	for path, file := range spec.Files {
		if err := write(filepath.Join(root, path), file); err != nil {
			return err
		}
	}
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if len(spec.Command) == 0 {
		return answer(os.Stdin, os.Stdout, spec.Env)
	}
	if err := unix.Exec(spec.Command[0], spec.Command, spec.Env); err != nil {
		return fmt.Errorf("start %s: %w", strings.Join(spec.Command, " "), err)
	}
	return nil
}

// mount assembles a host's files and returns their root. The mounts are in this process's mount namespace and end
// with it.
func (s Spec) mount() (root string, err error) {
	upper, work := filepath.Join(s.Scratch, "upper"), filepath.Join(s.Scratch, "work")
	root = filepath.Join(s.Scratch, "root")
	mount := func(source, target, kind string, flags uintptr, data string) {
		if err == nil {
			if failed := unix.Mount(source, target, kind, flags, data); failed != nil {
				err = fmt.Errorf("mount %s at %s: %w", source, target, failed)
			}
		}
	}
	place := func(path string, folder bool) string {
		path = filepath.Join(root, path)
		if err == nil {
			err = makePlace(path, folder)
		}
		return path
	}
	mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	mount("scratch", s.Scratch, "tmpfs", 0, "mode=0755")
	for _, folder := range []string{upper, work, root} {
		if err == nil {
			err = os.Mkdir(folder, 0o755)
		}
	}
	mount("image", root, "overlay", 0, "lowerdir="+s.Root+",upperdir="+upper+",workdir="+work)
	mount("proc", place("/proc", true), "proc", 0, "")
	mount("/sys", place("/sys", true), "", unix.MS_BIND|unix.MS_REC, "")
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		mount("/dev/"+device, place("/dev/"+device, false), "", unix.MS_BIND, "")
	}
	mount("shm", place("/dev/shm", true), "tmpfs", 0, "")
	for path, source := range s.Shared {
		info, failed := os.Stat(source)
		if failed != nil {
			return "", failed
		}
		mount(source, place(path, info.IsDir()), "", unix.MS_BIND, "")
	}
	for _, path := range s.Own {
		mount("own", place(path, true), "tmpfs", 0, "mode=1777")
	}
	return root, err
}

// makePlace makes something to mount on.
func makePlace(path string, folder bool) error {
	if folder {
		return os.MkdirAll(path, 0o755)
	}
	return write(path, File{Mode: 0o644})
}

func write(path string, file File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(file.Content), file.Mode); err != nil {
		return err
	}
	return os.Chmod(path, file.Mode)
}
