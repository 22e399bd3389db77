// Package sysctls changes kernel settings and puts them back.
package sysctls

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Root is where the kernel shows its settings.
const Root = "/proc/sys"

// Settings is the settings the cluster needs, and those its components change
// by themselves, so that these are put back too.
type Settings struct {
	// Exact must have this value, by path below Root.
	Exact map[string]string
	// AtLeast must have this value or a greater one.
	AtLeast map[string]int
	// Watched are changed by the components.
	Watched []string
}

// Needed returns the cluster's settings.
func Needed() Settings {
	return Settings{
		Exact: map[string]string{
			"net/ipv4/ip_forward": "1",
			// A reply between two pods of one bridge must pass connection
			// tracking, or a Service's address translation is not undone.
			"net/bridge/bridge-nf-call-iptables": "1",
		},
		AtLeast: map[string]int{
			"fs/inotify/max_user_instances": 1024,
			"fs/inotify/max_user_watches":   262144,
		},
		Watched: []string{
			// kubelet, pkg/kubelet/cm setupKernelTunables
			"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
			"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
			// kube-proxy
			"net/netfilter/nf_conntrack_max", "net/netfilter/nf_conntrack_buckets",
			"net/netfilter/nf_conntrack_tcp_timeout_established",
			"net/netfilter/nf_conntrack_tcp_timeout_close_wait",
			"net/netfilter/nf_conntrack_tcp_be_liberal",
			"net/ipv4/conf/all/route_localnet", "net/ipv4/conf/default/route_localnet",
			"net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/forwarding",
		},
	}
}

// saved is what a file remembers: the values before the first change, good
// for one boot.
type saved struct {
	Boot   string            `json:"boot"`
	Values map[string]string `json:"values"`
}

// Apply remembers the values in file, unless it already has those of this
// boot, and then sets what is needed. A setting the kernel does not have is
// returned in missing if it is needed, and skipped if it is only watched.
func (s Settings) Apply(root, file, boot string) (missing []string, err error) {
	before, err := load(file)
	if err != nil {
		return nil, err
	}
	if before.Boot != boot {
		before = saved{Boot: boot, Values: map[string]string{}}
	}
	for _, name := range s.names() {
		if _, known := before.Values[name]; known {
			continue
		}
		value, err := read(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		before.Values[name] = value
	}
	content, err := json.MarshalIndent(before, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("kernel settings: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return nil, fmt.Errorf("kernel settings: %w", err)
	}
	for name, value := range s.Exact {
		missing, err = set(root, name, func(string) string { return value }, missing)
		if err != nil {
			return nil, err
		}
	}
	for name, least := range s.AtLeast {
		missing, err = set(root, name, func(now string) string { return atLeast(now, least) }, missing)
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// Restore puts back what file remembers if it is of this boot.
func Restore(root, file, boot string) error {
	before, err := load(file)
	if err != nil {
		return err
	}
	if before.Boot != boot {
		return nil
	}
	var failed error
	for name, value := range before.Values {
		now, err := read(root, name)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && now == value) {
			continue
		}
		failed = errors.Join(failed, err)
		if err == nil {
			failed = errors.Join(failed, write(root, name, value))
		}
	}
	return failed
}

func (s Settings) names() []string {
	names := slices.Clone(s.Watched)
	for name := range s.Exact {
		names = append(names, name)
	}
	for name := range s.AtLeast {
		names = append(names, name)
	}
	return names
}

func set(root, name string, want func(now string) string, missing []string) ([]string, error) {
	now, err := read(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return append(missing, name), nil
	}
	if err != nil {
		return missing, err
	}
	if value := want(now); value != now {
		return missing, write(root, name, value)
	}
	return missing, nil
}

func atLeast(now string, least int) string {
	if value, err := strconv.Atoi(now); err == nil && value >= least {
		return now
	}
	return strconv.Itoa(least)
}

func read(root, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", fmt.Errorf("kernel setting: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

func write(root, name, value string) error {
	if err := os.WriteFile(filepath.Join(root, name), []byte(value), 0o644); err != nil {
		return fmt.Errorf("kernel setting %s = %s: %w", name, value, err)
	}
	return nil
}

func load(file string) (saved, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return saved{}, nil
	}
	if err != nil {
		return saved{}, fmt.Errorf("kernel settings: %w", err)
	}
	var before saved
	if err := json.Unmarshal(content, &before); err != nil {
		return saved{}, nil // half a file of a power cut: the boot it was of is over
	}
	return before, nil
}
