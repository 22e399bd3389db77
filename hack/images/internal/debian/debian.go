// Package debian installs the tools of Debian that builds need.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"opendatahub.io/mpijob/hack/images/internal/steps"
)

// Ensure installs packages if a program of them is missing and that can be done without asking. Otherwise, the error says what to type.
// What apt-get prints is written to stderr if it fails.
func Ensure(ctx context.Context, program string, packages []string, log *steps.Log, stderr io.Writer) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	_, aptErr := exec.LookPath("apt-get")
	if err := missingTool(program, packages, os.Geteuid() == 0, aptErr == nil); err != nil {
		return err
	}
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	log.Step("install %s on this machine", strings.Join(packages, ", "))
	if err := aptGet(ctx, stderr, "update", "--quiet"); err != nil {
		return err
	}
	return aptGet(ctx, stderr, slices.Concat([]string{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, packages)...)
}

func aptGet(ctx context.Context, stderr io.Writer, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	// apt-get starts Debian's Python: another one that precedes it in PATH may be slow.
	command.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin:"+os.Getenv("PATH"), "DEBIAN_FRONTEND=noninteractive")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		_, _ = stderr.Write(output.Bytes())
		return fmt.Errorf("apt-get failed (its output is above): %w", err)
	}
	return nil
}

// lock waits until no other build installs tools: apt-get fails while another one runs. The kernel releases the lock of a build that ends.
func lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "mpijob-images-tools.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("install tools: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("install tools: lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// missingTool says what to type when a program cannot be installed from here, and nil when it can.
func missingTool(program string, packages []string, root, apt bool) error {
	names := strings.Join(packages, " ")
	switch {
	case !apt:
		return fmt.Errorf("%s is not installed and this is not Debian or Ubuntu: install %s with your package manager, or build on Debian", program, names)
	case !root:
		return fmt.Errorf("%s is not installed: run \"sudo apt-get install %s\"", program, names)
	}
	return nil
}
