// Package packages makes sure of the Debian packages that the cluster's nodes
// run on: runc, the CNI plug-ins and a few network tools.
package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// CNIDir is where Debian has the CNI plug-ins.
const CNIDir = "/usr/lib/cni"

// need is a file and the package that brings it. Programs are looked up by
// name in the usual folders.
type need struct{ file, pkg string }

var needs = []need{
	{"runc", "runc"},
	{CNIDir + "/bridge", "containernetworking-plugins"},
	{CNIDir + "/host-local", "containernetworking-plugins"},
	{CNIDir + "/loopback", "containernetworking-plugins"},
	{"ip", "iproute2"},
	{"nft", "nftables"},
	{"conntrack", "conntrack"},
	// containerd's CRI plug-in runs it for port-forward.
	{"socat", "socat"},
}

var folders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Find returns the absolute path of a program, looking where root's programs
// are even if PATH does not.
func Find(program string) (string, error) {
	if filepath.IsAbs(program) {
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("program: %w", err)
		}
		return program, nil
	}
	for _, folder := range folders {
		path := filepath.Join(folder, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s is not installed: %w", program, fs.ErrNotExist)
}

// Missing returns the packages to install, sorted, each once.
func Missing() []string {
	var missing []string
	for _, n := range needs {
		if _, err := Find(n.file); err != nil {
			missing = append(missing, n.pkg)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// InstallCommand is what a person types to install the packages.
func InstallCommand(packages []string) string {
	return "sudo apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// Install installs packages without starting any service. It must run as
// root on Debian or a relative of it. log gets what apt-get says.
func Install(ctx context.Context, packages []string, log string) (err error) {
	if _, err := Find("apt-get"); err != nil {
		return fmt.Errorf("this machine has no apt-get; install what Debian calls %s by hand (the CNI plug-ins in %s)",
			strings.Join(packages, ", "), CNIDir)
	}
	restore, err := forbidServices()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	install := append([]string{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, packages...)
	if aptGet(ctx, log, install...) == nil {
		return nil
	}
	// The lists are old or were never fetched.
	if err := aptGet(ctx, log, "update"); err != nil {
		return err
	}
	return aptGet(ctx, log, install...)
}

func aptGet(ctx context.Context, log string, args ...string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return fmt.Errorf("apt-get: %w", err)
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("apt-get: %w", err)
	}
	defer func() { _ = file.Close() }()
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "apt-get", args...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1")
	command.Stdout, command.Stderr = file, &output
	err = command.Run()
	_, _ = file.Write(output.Bytes())
	if err != nil {
		return fmt.Errorf("apt-get %s: %w: %s (all of it in %s)", args[0], err, lastLine(output.String()), log)
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// policyFile is what Debian's maintainer scripts ask whether they may start a
// service: exit code 101 means no (invoke-rc.d, deb-systemd-invoke).
const policyFile = "/usr/sbin/policy-rc.d"

// forbidServices keeps package installation from starting services until the
// returned function is called, which leaves the machine's policy as it was.
func forbidServices() (restore func() error, err error) {
	const policy = "#!/bin/sh\n# of a running 'cluster up'; goes away by itself\nexit 101\n"
	backup := policyFile + ".mpijob-cluster"
	err = os.Rename(policyFile, backup)
	had := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("policy for services: %w", err)
	}
	restore = func() error {
		if had {
			err := os.Rename(backup, policyFile)
			if err != nil {
				return fmt.Errorf("policy for services: %w", err)
			}
			return nil
		}
		if err := os.Remove(policyFile); err != nil {
			return fmt.Errorf("policy for services: %w", err)
		}
		return nil
	}
	if err := os.WriteFile(policyFile, []byte(policy), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("policy for services: %w", err), restore())
	}
	return restore, nil
}
