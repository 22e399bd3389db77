// Package cluster brings the one-machine cluster up, down and in between. It
// puts the other packages' parts in order; what a part is, they know.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"opendatahub.io/mpijob/hack/cluster/certs"
	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/network"
	"opendatahub.io/mpijob/hack/cluster/process"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// Cluster is the cluster of one state folder, whether it runs or not.
type Cluster struct {
	Layout layout.Layout
	// Repository is the root of the clone whose builds it runs.
	Repository string
	// Report gets the steps; commands that only look leave it nil.
	Report *progress.Reporter
	// Processes are the cluster's components.
	Processes process.Table
}

// settings are what "up" was last asked for; with them a later "up" without
// flags does the same again.
type settings struct {
	// Kind marks a folder as a state folder: only such a one is ever removed.
	Kind string `json:"kind"`
	// Kubernetes is the name of the version. Clusters of before there were
	// several have none; they have the newest.
	Kubernetes    string            `json:"kubernetes,omitempty"`
	Nodes         int               `json:"nodes"`
	FeatureGates  map[string]bool   `json:"featureGates,omitempty"`
	RuntimeConfig map[string]string `json:"runtimeConfig,omitempty"`
	// CPUManager is the policy of the CPU manager on the last node; "" stands
	// for none.
	CPUManager string `json:"cpuManager,omitempty"`
	// With are the versions of the add-ons.
	With map[string]string `json:"with,omitempty"`
}

const settingsKind = "one-machine cluster of opendatahub.io/mpijob"

// errNoCluster is the error for a missing state folder.
var errNoCluster = errors.New("there is no cluster")

func (c *Cluster) settings() (settings, error) {
	content, err := os.ReadFile(c.Layout.Settings())
	if errors.Is(err, fs.ErrNotExist) {
		entries, dirErr := os.ReadDir(c.Layout.State)
		if dirErr == nil && len(entries) > 0 {
			return settings{}, fmt.Errorf("%s is not a cluster's state folder: it has files but no settings.json; it is left alone, use another --state",
				c.Layout.State)
		}
		return settings{}, errNoCluster
	}
	if err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	var s settings
	if err := json.Unmarshal(content, &s); err != nil || s.Kind != settingsKind {
		return settings{}, fmt.Errorf("%s is not of a cluster; it is left alone, use another --state", c.Layout.Settings())
	}
	if s.Kubernetes == "" {
		s.Kubernetes = layout.Newest()
	}
	return s, nil
}

func (c *Cluster) saveSettings(s settings) error {
	s.Kind = settingsKind
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return writeFile(c.Layout.Settings(), string(content)+"\n")
}

func (c *Cluster) nodes(count int) []layout.Node {
	nodes := make([]layout.Node, 0, count)
	for n := 1; n <= count; n++ {
		nodes = append(nodes, c.Layout.Node(n))
	}
	return nodes
}

func (c *Cluster) store() certs.Store { return certs.Store{Dir: c.Layout.Certs(), Now: time.Now} }

func (c *Cluster) client() (*kubeapi.Client, error) {
	s := c.store()
	client, err := kubeapi.New(layout.APIServerURL(), s.Cert(controlplane.CA), s.Cert(controlplane.Admin), s.Key(controlplane.Admin))
	if err != nil {
		return nil, fmt.Errorf("administrator: %w", err)
	}
	return client, nil
}

// lock keeps two commands from changing the same cluster at once.
func (c *Cluster) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.Layout.Lock()), 0o755); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	file, err := os.OpenFile(c.Layout.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another command is changing the cluster of %s just now; wait for it to end", c.Layout.State)
		}
		return nil, fmt.Errorf("lock %s: %w", c.Layout.Lock(), err)
	}
	return func() {
		_ = os.Remove(c.Layout.Lock())
		_ = file.Close()
	}, nil
}

// ForeignError is of a machine that runs the cluster of another clone.
type ForeignError struct {
	// Owner is the other cluster's state folder.
	Owner string
	// Gone is set if that folder no longer exists.
	Gone bool
}

func (e *ForeignError) Error() string {
	if e.Gone {
		return fmt.Sprintf("this machine still runs parts of the cluster of %s, a folder that is gone; "+
			"a machine has room for one cluster; stop it with: cluster down --state %s", e.Owner, e.Owner)
	}
	return fmt.Sprintf("this machine already runs the cluster of %s; a machine has room for one; "+
		"use it with KUBECONFIG=%s, or stop it with: cluster down --state %s",
		e.Owner, layout.Layout{State: e.Owner}.Kubeconfig(), e.Owner)
}

// owned reports whether the machine runs this cluster. A foreign one is an
// error.
func (c *Cluster) owned() (bool, error) {
	owner, err := network.Owner()
	if err != nil {
		return false, fmt.Errorf("whose cluster the machine runs: %w", err)
	}
	if owner == "" || owner == c.Layout.State {
		return owner != "", nil
	}
	_, statErr := os.Stat(owner)
	return false, &ForeignError{Owner: owner, Gone: errors.Is(statErr, fs.ErrNotExist)}
}

// parallel runs functions at once and returns their errors joined. The first
// failure cancels the others, whose errors then say nothing and are dropped.
func parallel(ctx context.Context, functions ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for _, function := range functions {
		wait.Go(func() {
			if err := function(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func forEach[T any](ctx context.Context, items []T, function func(context.Context, T) error) error {
	functions := make([]func(context.Context) error, 0, len(items))
	for _, item := range items {
		functions = append(functions, func(ctx context.Context) error { return function(ctx, item) })
	}
	return parallel(ctx, functions...)
}

// writeFile writes a file in one step and makes its folder. A power cut
// leaves the old content or the new.
func writeFile(path, content string) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == content {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	file, err := os.Create(path + ".new")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeFiles(dir string, files map[string]string) error {
	for name, content := range maps.All(files) {
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}
