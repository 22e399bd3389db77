package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"opendatahub.io/mpijob/hack/cluster/addon"
	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/dns"
	"opendatahub.io/mpijob/hack/cluster/layout"
)

// Status is what a look at the cluster finds.
type Status struct {
	// Exists is whether there is a state folder of a cluster.
	Exists bool
	// Foreign is the other cluster that the machine runs, if any.
	Foreign    *ForeignError
	Components []Component
	Nodes      []NodeStatus
	AddOns     []AddOnStatus
}

// Component is one process of the cluster.
type Component struct {
	Name string
	// PID is 0 if it does not run.
	PID   int
	Since time.Time
	// Problem says why it does not run or is not healthy; empty: it is.
	Problem string
}

// NodeStatus is one node as the API server sees it.
type NodeStatus struct {
	Name string
	// Problem says why it is not ready; empty: it is.
	Problem string
}

// AddOnStatus is one add-on as its users see it.
type AddOnStatus struct {
	Name, Version string
	// Problem says why it does not serve; empty: it does.
	Problem string
}

// Up reports whether all components are healthy, all nodes are ready and all
// add-ons serve.
func (s Status) Up() bool {
	for _, component := range s.Components {
		if component.Problem != "" {
			return false
		}
	}
	for _, node := range s.Nodes {
		if node.Problem != "" {
			return false
		}
	}
	for _, addOn := range s.AddOns {
		if addOn.Problem != "" {
			return false
		}
	}
	return s.Exists
}

// Running reports whether any component runs.
func (s Status) Running() bool {
	for _, component := range s.Components {
		if component.PID != 0 {
			return true
		}
	}
	return false
}

// Status looks at every component, node and add-on. It changes nothing and needs no
// more rights than to read the state folder.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	var status Status
	if _, err := c.owned(); err != nil && !errors.As(err, &status.Foreign) {
		return Status{}, err
	}
	s, err := c.settings()
	if errors.Is(err, errNoCluster) {
		return status, nil
	}
	if err != nil {
		return Status{}, err
	}
	status.Exists = true
	nodes := c.nodes(s.Nodes)
	names := []string{
		controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager,
		controlplane.Scheduler, controlplane.Proxy, controlplane.PolicyAgent, dns.Name,
	}
	for _, n := range nodes {
		names = append(names, n.Containerd(), n.Kubelet())
	}
	version, err := layout.Kubernetes(s.Kubernetes)
	if err != nil {
		return Status{}, fmt.Errorf("the cluster's version of Kubernetes: %w", err)
	}
	checks := c.checks(nodes, layout.Minor(version))
	status.Components = make([]Component, len(names))
	status.Nodes = make([]NodeStatus, len(nodes))
	status.AddOns = make([]AddOnStatus, len(s.With))
	var wait sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(s.With)) {
		wait.Go(func() { status.AddOns[i] = c.lookAddOn(ctx, name, s.With[name]) })
	}
	for i, name := range names {
		wait.Go(func() { status.Components[i] = c.look(ctx, name, checks[name]) })
	}
	for i, n := range nodes {
		wait.Go(func() {
			status.Nodes[i].Name = n.Name()
			client, err := c.client()
			if err == nil {
				err = ready(ctx, client, n, time.Time{})
			}
			if err != nil {
				status.Nodes[i].Problem = err.Error()
			}
		})
	}
	wait.Wait()
	return status, nil
}

func (c *Cluster) lookAddOn(ctx context.Context, name, version string) AddOnStatus {
	status := AddOnStatus{Name: name, Version: version}
	found, err := addon.Find(name, version)
	if err != nil {
		status.Problem = err.Error()
		return status
	}
	client, err := c.client()
	if err == nil {
		err = serves(ctx, client, found)
	}
	if err != nil {
		status.Problem = err.Error()
	}
	return status
}

func (c *Cluster) look(ctx context.Context, name string, check check) Component {
	record, ok, err := c.Processes.Get(name)
	switch {
	case err != nil:
		return Component{Name: name, Problem: err.Error()}
	case !ok:
		return Component{Name: name, Problem: "does not run"}
	case !record.Alive():
		return Component{Name: name, Problem: fmt.Sprintf("has ended; see %s", record.Log)}
	}
	component := Component{Name: name, PID: record.Identity.PID, Since: record.Started}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := check(ctx); err != nil {
		component.Problem = err.Error()
	}
	return component
}

// Text is the status for people: a table and what to do next.
func (s Status) Text(l layout.Layout) string {
	var text strings.Builder
	if s.Foreign != nil {
		text.WriteString(s.Foreign.Error() + "\n")
	}
	if !s.Running() {
		fmt.Fprintf(&text, "nothing is up in %s; start it with: cluster up\n", l.State)
		return text.String()
	}
	rows := []byte("COMPONENT\tPID\tSINCE\tHEALTH\n")
	for _, component := range s.Components {
		pid, since := "-", "-"
		if component.PID != 0 {
			pid, since = strconv.Itoa(component.PID), component.Since.Format(time.DateTime)
		}
		rows = fmt.Appendf(rows, "%s\t%s\t%s\t%s\n", component.Name, pid, since, cmp.Or(component.Problem, "ok"))
	}
	for _, node := range s.Nodes {
		health := "ready"
		if node.Problem != "" {
			health = "not ready: " + node.Problem
		}
		rows = fmt.Appendf(rows, "%s\t\t\t%s\n", node.Name, health)
	}
	for _, addOn := range s.AddOns {
		rows = fmt.Appendf(rows, "%s %s\t\t\t%s\n", addOn.Name, addOn.Version, cmp.Or(addOn.Problem, "serves"))
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = table.Write(rows) // into memory
	_ = table.Flush()
	if s.Up() {
		fmt.Fprintf(&text, "all is up; KUBECONFIG=%s\n", l.Kubeconfig())
	} else {
		text.WriteString("not all is up; start what is missing with: cluster up\n")
	}
	return text.String()
}
