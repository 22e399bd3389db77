package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/hack/cluster/cgroup"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/network"
	"opendatahub.io/mpijob/hack/cluster/packages"
	"opendatahub.io/mpijob/hack/cluster/process"
	"opendatahub.io/mpijob/hack/cluster/sysctls"
)

// Down ends the cluster and removes all that is of it, on the machine and in
// its state folder. It also ends one whose folder is gone. It reports whether
// there was anything.
func (c *Cluster) Down(ctx context.Context) (found bool, err error) {
	owned, err := c.owned()
	var foreign *ForeignError
	if err != nil && !errors.As(err, &foreign) {
		return false, err
	}
	// The machine's mark is as good as the folder's own: a user may have
	// removed most of the folder while the cluster ran.
	if !owned {
		_, err = c.settings()
		if errors.Is(err, errNoCluster) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	if os.Geteuid() != 0 {
		return false, errors.New("the cluster runs as root: run this as root, for instance with sudo -E env PATH=$PATH")
	}
	unlock, err := c.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	// The data is deleted, so no process needs time to save it.
	step := c.Report.Step("processes")
	if err := step.End(c.killRecorded(ctx)); err != nil {
		return true, err
	}
	if foreign == nil {
		if err := c.releaseMachine(ctx); err != nil {
			return true, err
		}
	}
	step = c.Report.Step("state folder")
	if err := unmountBelow(c.Layout.State); err != nil {
		return true, step.End(err)
	}
	return true, step.End(os.RemoveAll(c.Layout.State))
}

func (c *Cluster) killRecorded(ctx context.Context) error {
	records, err := c.Processes.List()
	if err != nil {
		return fmt.Errorf("down: %w", err)
	}
	return forEach(ctx, records, func(ctx context.Context, record process.Record) error {
		return process.End(ctx, record.Identity, 0)
	})
}

// releaseMachine removes what prepareMachine made and everything under it:
// shims and pods in the control groups, with their mounts and network
// namespaces, and the kernel's settings. The mark that names
// the owner of the machine is removed last, so that an interrupted "down" can
// be repeated.
func (c *Cluster) releaseMachine(ctx context.Context) error {
	step := c.Report.Step("pods")
	if err := cgroup.Kill(ctx, layout.CgroupRoot); err != nil {
		return step.End(fmt.Errorf("down: %w", err))
	}
	if err := step.End(cgroup.Remove(ctx, layout.CgroupRoot)); err != nil {
		return err
	}
	step = c.Report.Step("network")
	bridges, err := network.Bridges()
	if err != nil {
		return step.End(fmt.Errorf("down: %w", err))
	}
	for _, bridge := range bridges {
		if err := network.RemoveBridge(ctx, bridge); err != nil {
			return step.End(fmt.Errorf("down: %w", err))
		}
	}
	if _, err := packages.Find("nft"); err == nil {
		if err := network.RemoveRules(ctx); err != nil {
			return step.End(fmt.Errorf("down: %w", err))
		}
	}
	boot, err := process.BootID()
	if err != nil {
		return step.End(fmt.Errorf("down: %w", err))
	}
	return step.End(errors.Join(
		sysctls.Restore(sysctls.Root, c.Layout.Sysctls(), boot),
		c.removeMountPoints(),
		network.RemoveBridge(ctx, layout.ControlPlaneBridge),
	))
}

// unmountBelow unmounts what is mounted below dir on the machine itself. The
// nodes' own mounts are gone with their namespaces; this is for mounts
// that another process made in the folder.
func unmountBelow(dir string) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	defer func() { _ = file.Close() }()
	var points []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, unescape(fields[4]))
		}
	}
	for _, point := range slices.Backward(points) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// unescape undoes what the kernel does to blanks in mountinfo (proc(5)).
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
