package process

import (
	"cmp"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
)

// UserEnv returns an environment in which programs find what they expect of a user, who may have a UID that the image does not know:
//   - TMPDIR is folder if it is not set and /tmp cannot be written to, as with a read-only image: MPI needs one.
//   - HOME is the folder for temporary files if it is / or of no use to the user: horovodrun, PyTorch and others keep files there. A folder
//     that the user can at least read stays.
//   - USER and LOGNAME are the UID if neither is set and no entry of /etc/passwd has a name: Python's getpass.getuser, and so PyTorch's
//     compiler, fails without. CRI-O adds an entry with that name; containerd adds none.
func UserEnv(env []string, folder string) []string {
	if environ.Get(env, "TMPDIR") == "" && unix.Access("/tmp", unix.W_OK) != nil {
		env = environ.Set(env, "TMPDIR", folder)
	}
	home := environ.Get(env, "HOME")
	if unix.Access(home, unix.W_OK) != nil && (home == "" || home == "/" || unix.Access(home, unix.R_OK|unix.X_OK) != nil) {
		env = environ.Set(env, "HOME", cmp.Or(environ.Get(env, "TMPDIR"), "/tmp"))
	}
	if environ.Get(env, "USER") == "" && environ.Get(env, "LOGNAME") == "" {
		uid := strconv.Itoa(os.Getuid())
		if _, err := user.LookupId(uid); err != nil {
			env = environ.Set(environ.Set(env, "USER", uid), "LOGNAME", uid)
		}
	}
	return env
}
