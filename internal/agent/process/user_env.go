package process

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
)

// UserEnv returns an environment in which programs find what they expect of a user, who may have a UID that the image does not know:
//   - TMPDIR is folder if it is not set and /tmp cannot be written to, as with a read-only image: MPI needs one.
//   - HOME is the folder for temporary files if it cannot be written to: horovodrun, PyTorch and others keep files there. If it can be
//     read, HOME is a folder below that one with links to what it contains (linkHome), such as parameters of MPI and Python's packages.
//   - USER and LOGNAME are the UID if neither is set and no entry of /etc/passwd has a name: Python's getpass.getuser, and so PyTorch's
//     compiler, fails without. CRI-O adds an entry with that name; containerd adds none.
func UserEnv(env []string, folder string) []string {
	if environ.Get(env, "TMPDIR") == "" && unix.Access("/tmp", unix.W_OK) != nil {
		env = environ.Set(env, "TMPDIR", folder)
	}
	if home := environ.Get(env, "HOME"); unix.Access(home, unix.W_OK|unix.X_OK) != nil {
		temporary := cmp.Or(environ.Get(env, "TMPDIR"), "/tmp")
		linked := filepath.Join(temporary, "home-"+strconv.Itoa(os.Getuid()))
		if home == "" || home == "/" || !linkHome(home, linked) {
			linked = temporary
		}
		env = environ.Set(env, "HOME", linked)
	}
	if environ.Get(env, "USER") == "" && environ.Get(env, "LOGNAME") == "" {
		uid := strconv.Itoa(os.Getuid())
		if _, err := user.LookupId(uid); err != nil {
			env = environ.Set(environ.Set(env, "USER", uid), "LOGNAME", uid)
		}
	}
	return env
}

// linkHome makes a folder with links to what a home folder contains. Its hidden folders are made, too, with links to what these contain,
// so that programs can add to .config or .cache. It returns false if the home folder cannot be read, or the other not be written to.
func linkHome(home, folder string) bool {
	entries, err := firstEntries(home)
	if err != nil || os.MkdirAll(folder, 0o700) != nil || unix.Access(folder, unix.W_OK|unix.X_OK) != nil {
		return false
	}
	for _, entry := range entries {
		from, to := filepath.Join(home, entry.Name()), filepath.Join(folder, entry.Name())
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), ".") {
			_ = os.Symlink(from, to)
			continue
		}
		_ = os.Mkdir(to, 0o700)
		below, _ := firstEntries(from)
		for _, each := range below {
			_ = os.Symlink(filepath.Join(from, each.Name()), filepath.Join(to, each.Name()))
		}
	}
	return true
}

// firstEntries returns what is in a folder that the user may read and search, at most as much as people keep there.
func firstEntries(folder string) ([]os.DirEntry, error) {
	const most = 1000
	if err := unix.Access(folder, unix.R_OK|unix.X_OK); err != nil {
		return nil, err
	}
	file, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	entries, err := file.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}
