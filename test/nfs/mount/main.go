// Command mount is mount.nfs for kernels that have no NFS client but FUSE: mount(8) runs it, and so do kubelets, if it is
// /sbin/mount.nfs.
//
//	mount.nfs SERVER:/PATH FOLDER [-o port=2049,ro,…]
//
// It uses NFS 3 and the MOUNT protocol on one port, which is 2049 without the option port. Its messages and its exit code are those
// of nfs-utils. Other options are accepted and have no effect: without an answer from the server, programs wait for ten minutes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// failed is the exit code of mount(8) and its helpers for a mount that failed.
const failed = 32

// ready is the variable that has the process serve a mount. It then writes to its file descriptor 3: mounted, or what went wrong.
const (
	ready   = "MOUNT_NFS_READY"
	mounted = "mounted"
)

func main() {
	o, err := parse(os.Args[1:])
	if err == nil && os.Getenv(ready) == "" {
		err = inBackground()
	} else if err == nil {
		serve(o)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mount.nfs:", err)
		os.Exit(failed)
	}
}

// options are what is to be mounted, and how.
type options struct {
	server, path, folder, port string
	isReadOnly                 bool
}

func parse(args []string) (o options, err error) {
	var plain []string
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "-o" && len(args) > 1:
			if err := o.apply(args[1]); err != nil {
				return o, err
			}
			args = args[1:]
		case (arg == "-t" || arg == "-N") && len(args) > 1:
			args = args[1:]
		case !strings.HasPrefix(arg, "-"):
			plain = append(plain, arg)
		}
		args = args[1:]
	}
	if len(plain) != 2 {
		return o, errors.New("usage: mount.nfs SERVER:/PATH FOLDER [-o OPTIONS]")
	}
	server, path, ok := strings.Cut(plain[0], ":/")
	if !ok || server == "" {
		return o, errors.New("remote share not in 'host:dir' format")
	}
	o.server, o.path, o.folder = strings.Trim(server, "[]"), "/"+path, plain[1]
	if o.port == "" {
		o.port = "2049"
	}
	return o, nil
}

func (o *options) apply(list string) error {
	for option := range strings.SplitSeq(list, ",") {
		switch name, value, _ := strings.Cut(option, "="); name {
		case "port":
			o.port = value
		case "ro":
			o.isReadOnly = true
		case "vers", "nfsvers":
			if value != "3" {
				return errors.New("requested NFS version or transport protocol is not supported")
			}
		}
	}
	return nil
}

// share names what is mounted, as mount(8) lists it.
func (o options) share() string { return o.server + ":" + o.path }

// inBackground starts this program again, which serves the mount until it is unmounted, and returns when it is mounted.
func inBackground() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	// Nothing else is inherited: callers wait until this program's output is closed.
	server := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	server.Env = append(os.Environ(), ready+"=yes")
	server.ExtraFiles = []*os.File{write}
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		return err
	}
	_ = write.Close()
	answer, err := io.ReadAll(read)
	switch {
	case err != nil:
		return err
	case string(answer) == mounted:
		return nil
	case len(answer) == 0:
		return server.Wait()
	}
	return errors.New(string(answer))
}

// serve mounts the share, tells the process that waits for it, and serves it until it is unmounted.
func serve(o options) {
	waiting := os.NewFile(3, "ready")
	wait, err := mount(o)
	answer := mounted
	if err != nil {
		answer = message(o, err)
	}
	_, _ = io.WriteString(waiting, answer)
	_ = waiting.Close()
	if err == nil {
		wait()
	}
}

// answersWithin is how long the server has to answer when it is mounted.
const answersWithin = 20 * time.Second

// message is what nfs-utils prints for an error.
func message(o options, err error) string {
	var refused refusal
	var lookup *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &refused) && syscall.Errno(refused) == syscall.EACCES:
		return "access denied by server while mounting " + o.share()
	case errors.As(err, &refused):
		return fmt.Sprintf("mounting %s failed, reason given by server: %s", o.share(), sentence(syscall.Errno(refused)))
	case errors.As(err, &lookup):
		return fmt.Sprintf("Failed to resolve server %s: Name or service not known", o.server)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		errno = syscall.ETIMEDOUT
	case !errors.As(err, &errno):
		return err.Error()
	}
	return fmt.Sprintf("%s for %s on %s", sentence(errno), o.share(), o.folder)
}

// sentence is the C library's text of an error, which begins with a capital.
func sentence(errno syscall.Errno) string {
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
