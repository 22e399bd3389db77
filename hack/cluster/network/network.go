// Package network makes the machine's side of the cluster network and takes
// it away again: a bridge per node, one for the control plane, and a table of
// packet filter rules.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/packages"
)

// Owner returns the state folder of the cluster that this machine runs, or ""
// if it runs none. The control plane's bridge carries it as its alias: that
// mark is in the kernel, so it outlives a killed command, does not outlive a
// reboot, and no other clone can miss it.
func Owner() (string, error) {
	alias, err := os.ReadFile(filepath.Join("/sys/class/net", layout.ControlPlaneBridge, "ifalias"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("bridge %s: %w", layout.ControlPlaneBridge, err)
	}
	return strings.TrimSpace(string(alias)), nil
}

// Claim makes the control plane's bridge and marks it as state's.
func Claim(ctx context.Context, state string) error {
	const limit = 255 // IFALIASZ - 1
	if len(state) > limit {
		return fmt.Errorf("state folder %s: its path has %d bytes, at most %d are possible; use --state", state, len(state), limit)
	}
	if err := EnsureBridge(ctx, layout.ControlPlaneBridge, layout.ControlPlaneIP+"/32"); err != nil {
		return err
	}
	return ip(ctx, "link", "set", "dev", layout.ControlPlaneBridge, "alias", state)
}

// EnsureBridge makes a bridge with an address, and brings it up.
func EnsureBridge(ctx context.Context, name, address string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		if err := ip(ctx, "link", "add", "name", name, "type", "bridge"); err != nil {
			return err
		}
	}
	return errors.Join(
		ip(ctx, "address", "replace", address, "dev", name),
		ip(ctx, "link", "set", "dev", name, "up"),
	)
}

// RemoveBridge removes a bridge and whatever is plugged into it. It is no
// error if there is none.
func RemoveBridge(ctx context.Context, name string) error {
	ports, err := filepath.Glob(filepath.Join("/sys/class/net", name, "brif", "*"))
	if err != nil {
		return fmt.Errorf("ports of %s: %w", name, err)
	}
	for _, port := range ports {
		// The other end is in a pod's namespace; the kernel takes it along.
		// It may be doing so just now, so only what is left matters.
		_ = ip(ctx, "link", "delete", "dev", filepath.Base(port))
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ip(ctx, "link", "delete", "dev", name)
}

// Bridges returns the names of the nodes' bridges on this machine.
func Bridges() ([]string, error) {
	all, err := filepath.Glob("/sys/class/net/mpijob-*")
	if err != nil {
		return nil, fmt.Errorf("bridges: %w", err)
	}
	var names []string
	for _, path := range all {
		if name := filepath.Base(path); name != layout.ControlPlaneBridge {
			names = append(names, name)
		}
	}
	return names, nil
}

// rules let pods reach the world beyond the machine by its address. CNI's
// bridge plug-in could do it too, with iptables rules per pod that outlive a
// pod which was killed; one table of our own is taken away in one step.
//
// Nothing else may reach the cluster's addresses than its pods and this
// machine: the machine forwards packets, so that another one on its network
// would only need a route to the pods, the API server, the DNS server and the
// kubelets. What enters by any other interface is dropped, before Services are
// translated. Packets of the machine itself do not enter, or by lo. Answers to
// pods are addressed to the machine when they enter.
const rules = `add table ip %[1]s
flush table ip %[1]s
table ip %[1]s {
	chain prerouting {
		type filter hook prerouting priority mangle; policy accept;
		iifname != "lo" iifname != "mpijob-*" ip daddr { %[2]s, %[3]s } counter drop
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %[2]s ip daddr != %[2]s ip daddr != %[3]s oifname != "mpijob-*" masquerade
	}
}
`

// ApplyRules makes our table what it should be.
func ApplyRules(ctx context.Context) error {
	return nft(ctx, fmt.Sprintf(rules, layout.NFTable, layout.PodCIDR, layout.ServiceCIDR), "-f", "-")
}

// RemoveRules removes our tables and those that kube-proxy made.
func RemoveRules(ctx context.Context) error {
	var failed error
	for _, table := range [][2]string{{"ip", layout.NFTable}, {"ip", layout.PolicyTable}, {"ip", "kube-proxy"}, {"ip6", "kube-proxy"}} {
		// "add" first, so that there is something to delete: nft 1.0 has no
		// "delete if exists".
		script := fmt.Sprintf("add table %[1]s %[2]s\ndelete table %[1]s %[2]s\n", table[0], table[1])
		failed = errors.Join(failed, nft(ctx, script, "-f", "-"))
	}
	return failed
}

// Overlap returns, as a sentence, what on this machine has addresses that the
// cluster uses, or "". Our own bridges do not count.
func Overlap() (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("network interfaces: %w", err)
	}
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, "mpijob-") {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, address := range addresses {
			if network, ok := address.(*net.IPNet); ok {
				if ours := overlaps(network); ours != "" {
					return fmt.Sprintf("interface %s has %s, which overlaps the cluster's %s", i.Name, network, ours), nil
				}
			}
		}
	}
	return "", nil
}

// overlaps returns the cluster's network that contains an address, or "".
// A network that is wider than the cluster's (10.0.0.0/8) is no conflict: the
// cluster's routes are more specific.
func overlaps(network *net.IPNet) string {
	for _, cidr := range []string{layout.PodCIDR, layout.ServiceCIDR} {
		_, ours, err := net.ParseCIDR(cidr)
		if err == nil && ours.Contains(network.IP) {
			return cidr
		}
	}
	return ""
}

// PortTaken returns an error that names the process that listens on a port, or
// nil if the port is free.
func PortTaken(ctx context.Context, address string, port int) error {
	at := fmt.Sprintf("%s:%d", address, port)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", at)
	if err == nil {
		_ = listener.Close()
		return nil
	}
	holder := ""
	if ss, findErr := packages.Find("ss"); findErr == nil {
		output, _ := exec.CommandContext(ctx, ss, "-Hltnp", "sport", "=", fmt.Sprintf(":%d", port)).Output()
		holder = strings.Join(strings.Fields(string(output)), " ")
	}
	if holder == "" {
		return fmt.Errorf("port %s is needed and cannot be had: %w", at, err)
	}
	return fmt.Errorf("port %s is needed and cannot be had: %w; it is held by: %s; end that process", at, err, holder)
}

func ip(ctx context.Context, args ...string) error { return run(ctx, "ip", "", args...) }

func nft(ctx context.Context, script string, args ...string) error {
	return run(ctx, "nft", script, args...)
}

func run(ctx context.Context, program, input string, args ...string) error {
	path, err := packages.Find(program)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	command := exec.CommandContext(ctx, path, args...)
	command.Stdin = strings.NewReader(input)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(output.String()))
	}
	return nil
}
