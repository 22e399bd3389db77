package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"opendatahub.io/mpijob/hack/cluster/cgroup"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/network"
	"opendatahub.io/mpijob/hack/cluster/node"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// startContainerd starts a node's container runtime and gives it the sandbox
// image.
func (r *run) startContainerd(ctx context.Context, n layout.Node) error {
	spec := node.Containerd(n, r.Layout, r.set.Path("containerd"))
	for _, bind := range spec.Mounts.Binds {
		if err := os.MkdirAll(bind.Source, 0o755); err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
	}
	var err error
	spec.Mounts.JoinPID, err = r.namespace(n, n.Containerd())
	if err != nil {
		return err
	}
	if spec.Mounts.JoinPID == 0 {
		if err := boot(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
	}
	if err := r.ensure(ctx, spec); err != nil {
		return err
	}
	_, err = r.load(ctx, n, r.set.PauseArchive)
	return err
}

// boot makes a node without a mount namespace what a machine is after a boot:
// nothing in /run and no control groups of pods. Stale groups would cost: the
// kubelet asks containerd for the container of each, with many retries, before
// it starts any pod.
func boot(ctx context.Context, n layout.Node) error {
	if err := cgroup.Kill(ctx, n.CgroupRoot()); err != nil {
		return err
	}
	if err := cgroup.Remove(ctx, n.CgroupRoot()); err != nil {
		return err
	}
	if err := cgroup.Create(n.RuntimeCgroup()); err != nil {
		return err
	}
	return removeContent(filepath.Join(n.Dir(), "run-containerd"))
}

// namespace returns a process in the node's mount namespace, or 0 if there is
// none. Containerd may have died while the kubelet or pods still live; a new
// one must see what they see. Any other is better than the one that is to be
// started: that may run already, and be stopped first.
func (c *Cluster) namespace(n layout.Node, starts string) (found int, err error) {
	pids, err := cgroup.Processes(n.RuntimeCgroup())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", n.Name(), err)
	}
	before, _, err := c.Processes.Get(starts)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", n.Name(), err)
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return 0, fmt.Errorf("%s: mount namespace: %w", n.Name(), err)
	}
	for _, pid := range pids {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil || theirs == own {
			continue
		}
		if found = pid; pid != before.Identity.PID {
			break
		}
	}
	return found, nil
}

// startKubelet starts a node's kubelet and waits until the node is ready.
func (r *run) startKubelet(ctx context.Context, n layout.Node) error {
	options, err := r.nodeOptions(n)
	if err != nil {
		return err
	}
	kubeconfig := r.parts.Kubeconfig(n.Name())
	spec := node.Kubelet(n, r.Layout, r.set.Path("kubelet"), kubeconfig, options)
	spec.Mounts.JoinPID, err = r.namespace(n, n.Kubelet())
	if err != nil {
		return err
	}
	if spec.Mounts.JoinPID == 0 {
		return fmt.Errorf("%s: containerd ended just after its start; see %s", n.Name(), r.Layout.Log(n.Containerd()))
	}
	if err := r.matchCPUManager(ctx, n, options.CPUManager); err != nil {
		return err
	}
	if err := r.ensure(ctx, spec); err != nil {
		return err
	}
	step := r.Report.Step("%s ready", n.Name())
	return step.End(r.waitReady(ctx, n))
}

// matchCPUManager removes what a kubelet with another policy of the CPU manager
// has kept, and stops that kubelet first.
func (r *run) matchCPUManager(ctx context.Context, n layout.Node, policy string) error {
	content, err := os.ReadFile(node.CPUManagerState(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: CPU manager: %w", n.Name(), err)
	}
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(content, &state); err == nil && state.PolicyName == policy {
		return nil
	}
	if err := r.Processes.Stop(ctx, n.Kubelet(), 0); err != nil {
		return fmt.Errorf("%s: CPU manager: %w", n.Name(), err)
	}
	if err := os.Remove(node.CPUManagerState(n)); err != nil {
		return fmt.Errorf("%s: CPU manager: %w", n.Name(), err)
	}
	return nil
}

func (r *run) waitReady(ctx context.Context, n layout.Node) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	record, _, err := r.Processes.Get(n.Kubelet())
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	labelled := false
	err = until(ctx, 100*time.Millisecond, func() error {
		// The label waits for the kubelet's registration: an object made
		// here would come without the kubelet's own labels and taints.
		if !labelled {
			if err := client.Get(ctx, nodePath(n), &struct{}{}); err != nil {
				return err
			}
			if err := client.Apply(ctx, nodePath(n), node.Object(n)); err != nil {
				return err
			}
			labelled = true
		}
		return ready(ctx, client, n, record.Started)
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w; see %s", n.Name(), err, r.Layout.Log(n.Kubelet()))
	}
	return nil
}

func nodePath(n layout.Node) string { return "/api/v1/nodes/" + n.Name() }

// ready returns nil if the node is ready and its kubelet has been heard since
// the given time: after a crash the API server still has the old
// condition.
func ready(ctx context.Context, client *kubeapi.Client, n layout.Node, since time.Time) error {
	var object struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct {
				Type, Status, Message string
				LastHeartbeatTime     time.Time
			}
		}
	}
	if err := client.Get(ctx, nodePath(n), &object); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status != "True" {
			return errors.New(condition.Message)
		}
		if condition.LastHeartbeatTime.Before(since) {
			return fmt.Errorf("its last sign of life is of %s", condition.LastHeartbeatTime.Local().Format(time.TimeOnly))
		}
	}
	for _, taint := range object.Spec.Taints {
		if taint.Key == "node.kubernetes.io/not-ready" || taint.Key == "node.kubernetes.io/unreachable" {
			return fmt.Errorf("it is tainted %s", taint.Key)
		}
	}
	return nil
}

// StopNode stops a node as a power cut would: kubelet, container runtime
// and pods are killed. With kubeletOnly the pods go on, as if the
// node's network had failed.
func (c *Cluster) StopNode(ctx context.Context, name string, kubeletOnly bool) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	step := c.Report.Step("stop %s", name)
	if kubeletOnly {
		return step.End(c.Processes.Stop(ctx, n.Kubelet(), 0))
	}
	return step.End(c.stopNode(ctx, n))
}

// StartNode starts a node that StopNode has stopped, and waits until it is
// ready.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	r, unlock, err := c.existingRun(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.prepareMachine(ctx, []layout.Node{n}); err != nil {
		return err
	}
	if err := r.startContainerd(ctx, n); err != nil {
		return err
	}
	return r.startKubelet(ctx, n)
}

func (c *Cluster) stopNode(ctx context.Context, n layout.Node) error {
	for _, name := range []string{n.Kubelet(), n.Containerd()} {
		if err := c.Processes.Stop(ctx, name, 0); err != nil {
			return fmt.Errorf("stop %s: %w", n.Name(), err)
		}
	}
	if err := cgroup.Kill(ctx, n.CgroupRoot()); err != nil {
		return fmt.Errorf("stop %s: %w", n.Name(), err)
	}
	return nil
}

// node returns the node with a name, if the cluster has it.
func (c *Cluster) node(name string) (layout.Node, error) {
	s, err := c.settings()
	if err != nil {
		return layout.Node{}, fmt.Errorf("node %s: %w", name, err)
	}
	number, ok := layout.NodeNumber(name)
	if !ok || number > s.Nodes {
		return layout.Node{}, fmt.Errorf("there is no node %q: the cluster has node-1 to node-%d", name, s.Nodes)
	}
	return c.Layout.Node(number), nil
}

// removeSurplus takes away the nodes beyond a number that an earlier "up"
// asked for.
func (c *Cluster) removeSurplus(ctx context.Context, keep int) error {
	entries, err := os.ReadDir(c.Layout.Nodes())
	if err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	for _, entry := range entries {
		number, ok := layout.NodeNumber(entry.Name())
		if !ok || number <= keep {
			continue
		}
		step := c.Report.Step("remove %s", entry.Name())
		if err := step.End(c.removeNode(ctx, c.Layout.Node(number))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) removeNode(ctx context.Context, n layout.Node) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.stopNode(ctx, n); err != nil {
		return err
	}
	return errors.Join(
		client.Delete(ctx, nodePath(n)),
		cgroup.Remove(ctx, n.CgroupRoot()),
		network.RemoveBridge(ctx, n.Bridge()),
		os.RemoveAll(n.Dir()),
	)
}

// makeMountPoints makes the folders that nodes mount on where the machine
// lacks them, and remembers them first, so that "down" can remove them.
func (c *Cluster) makeMountPoints(mounts *process.Mounts) error {
	made, err := c.mountPoints()
	if err != nil {
		return err
	}
	known := len(made)
	for _, bind := range mounts.Binds {
		for at := bind.Target; ; at = filepath.Dir(at) {
			if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !slices.Contains(made, at) {
				made = append(made, at)
			}
		}
	}
	if len(made) > known {
		content, err := json.Marshal(made)
		if err != nil {
			return fmt.Errorf("mount points: %w", err)
		}
		if err := writeFile(c.Layout.MountPoints(), string(content)+"\n"); err != nil {
			return err
		}
	}
	for _, bind := range mounts.Binds {
		if err := os.MkdirAll(bind.Target, 0o755); err != nil {
			return fmt.Errorf("mount point: %w", err)
		}
	}
	return nil
}

// removeMountPoints removes the folders that "up" made to mount on, unless
// they are not empty.
func (c *Cluster) removeMountPoints() error {
	made, err := c.mountPoints()
	if err != nil {
		return err
	}
	slices.Sort(made)
	for _, path := range slices.Backward(made) {
		// Not empty means not ours any more.
		_ = os.Remove(path)
	}
	return nil
}

func (c *Cluster) mountPoints() ([]string, error) {
	content, err := os.ReadFile(c.Layout.MountPoints())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mount points: %w", err)
	}
	var made []string
	if err := json.Unmarshal(content, &made); err != nil {
		return nil, fmt.Errorf("mount points: %s: %w", c.Layout.MountPoints(), err)
	}
	return made, nil
}

func removeContent(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("empty a folder: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("empty a folder: %w", err)
		}
	}
	return nil
}
