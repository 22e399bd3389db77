package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"opendatahub.io/mpijob/hack/cluster/addon"
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/cgroup"
	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/dns"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/network"
	"opendatahub.io/mpijob/hack/cluster/node"
	"opendatahub.io/mpijob/hack/cluster/packages"
	"opendatahub.io/mpijob/hack/cluster/process"
	"opendatahub.io/mpijob/hack/cluster/sysctls"
)

// UpOptions are what a person may ask of "up". Zero values mean: as it is,
// and for a new cluster the default.
type UpOptions struct {
	// Kubernetes is the name of the version, such as 1.29; the newest by
	// default. That of a cluster cannot be changed.
	Kubernetes string
	// Nodes is the number of nodes; 2 by default.
	Nodes int
	// FeatureGates and RuntimeConfig are passed on to Kubernetes; nil keeps
	// them, an empty map clears them.
	FeatureGates  map[string]bool
	RuntimeConfig map[string]string
	// CPUManager is the policy of the CPU manager on the last node:
	// node.CPUManagerNone or node.CPUManagerStatic.
	CPUManager string
	// With are the add-ons to have, versions by name as addon.Parse returns
	// them; nil keeps them, an empty map removes them.
	With map[string]string
}

const defaultNodes = 2

// PolicyAgentCommand is the command of this program that enforces
// NetworkPolicies.
const PolicyAgentCommand = "policy-agent"

// Up makes the cluster run as asked, from whatever state it is in. What runs
// as it should is left alone.
func (c *Cluster) Up(ctx context.Context, options UpOptions) error {
	if options.Nodes < 0 || options.Nodes > layout.MaxNodes {
		return fmt.Errorf("%d nodes asked for: 1 to %d are possible", options.Nodes, layout.MaxNodes)
	}
	missing := packages.Missing()
	if os.Geteuid() != 0 {
		return notRoot(missing)
	}
	before, err := c.settings()
	if err != nil && !errors.Is(err, errNoCluster) {
		return err
	}
	if err := c.checkVersion(before, options); err != nil {
		return err
	}
	wanted := merge(before, options)
	if wanted.CPUManager == node.CPUManagerStatic && runtime.NumCPU() < 2 {
		return errors.New("this machine has one CPU: the static CPU manager keeps one for all containers and has none to give away; use --cpu-manager none")
	}
	if err := checkAddOns(wanted); err != nil {
		return err
	}
	if _, err := c.owned(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.saveSettings(wanted); err != nil {
		return err
	}
	if err := c.install(ctx, missing); err != nil {
		return err
	}
	r, err := c.newRun(ctx, wanted)
	if err != nil {
		return err
	}
	if err := c.prepareMachine(ctx, r.nodes); err != nil {
		return err
	}
	if err := r.render(); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := c.removeSurplus(ctx, wanted.Nodes); err != nil {
		return err
	}
	return r.matchAddOns(ctx, wanted.With)
}

func (c *Cluster) newRun(ctx context.Context, wanted settings) (*run, error) {
	version, err := layout.Kubernetes(wanted.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("the cluster's version of Kubernetes: %w; to create it again, run: cluster down", err)
	}
	set, err := binaries.Ensure(ctx, c.Repository, version, c.Report)
	if err != nil {
		return nil, fmt.Errorf("programs: %w", err)
	}
	return &run{Cluster: c, nodes: c.nodes(wanted.Nodes), set: set, minor: layout.Minor(version), gates: wanted.FeatureGates, cpuManager: wanted.CPUManager, parts: controlplane.Parts{
		Layout: c.Layout, Binaries: set, Store: c.store(),
		Settings: controlplane.Settings{Minor: layout.Minor(version), FeatureGates: wanted.FeatureGates, RuntimeConfig: wanted.RuntimeConfig},
	}}, nil
}

// existingRun returns a run with the settings of the existing cluster, which it locks.
func (c *Cluster) existingRun(ctx context.Context) (r *run, unlock func(), err error) {
	wanted, err := c.settings()
	if err != nil {
		return nil, nil, err
	}
	if unlock, err = c.lock(); err != nil {
		return nil, nil, err
	}
	if r, err = c.newRun(ctx, wanted); err != nil {
		unlock()
		return nil, nil, err
	}
	return r, unlock, nil
}

// checkVersion refuses to change the version of a cluster that has data:
// Kubernetes does not read what a later version has stored, and not always
// what one of several versions before has.
func (c *Cluster) checkVersion(before settings, options UpOptions) error {
	if options.Kubernetes == "" || before.Kubernetes == "" || options.Kubernetes == before.Kubernetes {
		return nil
	}
	if _, err := os.Stat(c.Layout.Etcd()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the cluster in %s has Kubernetes %s, and its version cannot be changed to %s: the data of one version is not for another; "+
		"remove the cluster first with: make cluster-down (cluster down)", c.Layout.State, before.Kubernetes, options.Kubernetes)
}

// checkAddOns refuses add-ons that need a later Kubernetes than the cluster's,
// before anything is built or started.
func checkAddOns(wanted settings) error {
	version, err := layout.Kubernetes(wanted.Kubernetes)
	if err != nil {
		return fmt.Errorf("the cluster's version of Kubernetes: %w; to create it again, run: cluster down", err)
	}
	return addon.CheckKubernetes(wanted.With, layout.Minor(version))
}

func merge(now settings, options UpOptions) settings {
	now.Kubernetes = cmp.Or(options.Kubernetes, now.Kubernetes, layout.Newest())
	if options.Nodes != 0 {
		now.Nodes = options.Nodes
	}
	if now.Nodes == 0 {
		now.Nodes = defaultNodes
	}
	if options.FeatureGates != nil {
		now.FeatureGates = options.FeatureGates
	}
	if options.RuntimeConfig != nil {
		now.RuntimeConfig = options.RuntimeConfig
	}
	if options.CPUManager != "" {
		now.CPUManager = options.CPUManager
	}
	if options.With != nil {
		now.With = options.With
	}
	return now
}

func notRoot(missing []string) error {
	text := "containers, bridges and control groups need root: run this as root, for instance with sudo -E env PATH=$PATH"
	if len(missing) > 0 {
		text += "\nthese packages are missing and are then installed by it; to install them yourself: " + packages.InstallCommand(missing)
	}
	return errors.New(text)
}

func (c *Cluster) install(ctx context.Context, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	step := c.Report.Step("Debian packages")
	step.Detail("installing %v", missing)
	if err := packages.Install(ctx, missing, c.Layout.Log("apt-get")); err != nil {
		return step.End(fmt.Errorf("packages: %w", err))
	}
	if still := packages.Missing(); len(still) > 0 {
		return step.End(fmt.Errorf("packages %v are installed and yet do not have the files they should; see %s", still, c.Layout.Log("apt-get")))
	}
	step.Done("installed %v", missing)
	return nil
}

// prepareMachine sets up the parts in the kernel and outside the state folder:
// bridges, packet rules, settings, control groups, places to mount on.
func (c *Cluster) prepareMachine(ctx context.Context, nodes []layout.Node) error {
	step := c.Report.Step("machine")
	owned, err := c.owned()
	if err != nil {
		return step.End(err)
	}
	if !owned {
		if err := c.takeMachine(ctx); err != nil {
			return step.End(err)
		}
	}
	boot, err := process.BootID()
	if err != nil {
		return step.End(fmt.Errorf("machine: %w", err))
	}
	c.loadBridgeFilter(ctx)
	missing, err := sysctls.Needed().Apply(sysctls.Root, c.Layout.Sysctls(), boot)
	if err != nil {
		return step.End(err)
	}
	for _, n := range nodes {
		if err := cgroup.Create(n.RuntimeCgroup()); err != nil {
			return step.End(err)
		}
		if err := network.EnsureBridge(ctx, n.Bridge(), n.IP()+"/24"); err != nil {
			return step.End(err)
		}
		if err := c.makeMountPoints(node.Mounts(n)); err != nil {
			return step.End(err)
		}
	}
	if err := cgroup.Create(layout.CgroupRoot + "/control-plane"); err != nil {
		return step.End(err)
	}
	if err := network.ApplyRules(ctx); err != nil {
		return step.End(err)
	}
	if err := c.endStrays(ctx, nodes); err != nil {
		return step.End(err)
	}
	if err := c.portsFree(ctx, nodes); err != nil {
		return step.End(err)
	}
	step.Done("")
	if len(missing) > 0 {
		c.Report.Say("note   this kernel lacks the settings %v: a pod may not reach a Service whose pod is on its own node, and NetworkPolicies are not enforced between pods of a node", missing)
	}
	return nil
}

// endStrays ends processes of the cluster that no record names.
func (c *Cluster) endStrays(ctx context.Context, nodes []layout.Node) error {
	groups := []string{layout.CgroupRoot + "/control-plane"}
	for _, n := range nodes {
		groups = append(groups, n.RuntimeCgroup())
	}
	for _, group := range groups {
		pids, err := cgroup.Processes(group)
		if err != nil {
			return fmt.Errorf("strays: %w", err)
		}
		if err := c.Processes.EndStrays(ctx, pids); err != nil {
			return fmt.Errorf("strays: %w", err)
		}
	}
	return nil
}

// takeMachine marks the machine as this cluster's, after it has removed what
// a cluster without a mark left behind.
func (c *Cluster) takeMachine(ctx context.Context) error {
	overlap, err := network.Overlap()
	if err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	if overlap != "" {
		return fmt.Errorf("the cluster's addresses are in use: %s; take that interface down", overlap)
	}
	if cgroup.Exists(layout.CgroupRoot) {
		if err := cgroup.Kill(ctx, layout.CgroupRoot); err != nil {
			return fmt.Errorf("what an earlier cluster left: %w", err)
		}
		if err := cgroup.Remove(ctx, layout.CgroupRoot); err != nil {
			return fmt.Errorf("what an earlier cluster left: %w", err)
		}
	}
	if err := network.Claim(ctx, c.Layout.State); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	return nil
}

// loadBridgeFilter loads the module behind net.bridge.* where it is one. If
// that fails the setting is reported missing.
func (c *Cluster) loadBridgeFilter(ctx context.Context) {
	if _, err := os.Stat(sysctls.Root + "/net/bridge"); err == nil {
		return
	}
	if modprobe, err := packages.Find("modprobe"); err == nil {
		_ = exec.CommandContext(ctx, modprobe, "br_netfilter").Run()
	}
}

// portsFree looks before components that do not run yet fail on a port that
// another process uses.
func (c *Cluster) portsFree(ctx context.Context, nodes []layout.Node) error {
	type port struct {
		component, address string
		number             int
	}
	const local = "127.0.0.1"
	ports := []port{
		{controlplane.Etcd, local, layout.EtcdPort},
		{controlplane.Etcd, local, layout.EtcdPeerPort},
		{controlplane.APIServer, layout.ControlPlaneIP, layout.APIServerPort},
		{controlplane.ControllerManager, local, layout.ControllerManagerPort},
		{controlplane.Scheduler, local, layout.SchedulerPort},
		{controlplane.Proxy, local, layout.ProxyHealthPort},
		{controlplane.Proxy, local, layout.ProxyMetricsPort},
		{controlplane.PolicyAgent, local, layout.PolicyHealthPort},
		{dns.Name, layout.ControlPlaneIP, layout.DNSPort},
		{dns.Name, local, layout.DNSHealthPort},
		{dns.Name, local, layout.DNSReadyPort},
	}
	for _, n := range nodes {
		ports = append(ports, port{n.Kubelet(), n.IP(), layout.KubeletPort}, port{n.Kubelet(), n.IP(), layout.KubeletHealthPort})
	}
	for _, p := range ports {
		record, ok, err := c.Processes.Get(p.component)
		if err != nil {
			return fmt.Errorf("ports: %w", err)
		}
		if ok && record.Alive() {
			continue
		}
		// A process that was killed just now still has its ports until the
		// kernel has taken it apart.
		brief, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = until(brief, 100*time.Millisecond, func() error { return network.PortTaken(ctx, p.address, p.number) })
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", p.component, err)
		}
	}
	return nil
}

// run is one "up" with everything it has found out.
type run struct {
	*Cluster
	nodes []layout.Node
	set   binaries.Set
	parts controlplane.Parts
	gates map[string]bool
	// cpuManager is the policy of the last node.
	cpuManager string
	minor      int // of Kubernetes' version
}

// render writes certificates and configurations. Files that are right
// already stay as they are, so that nothing is restarted for them.
func (r *run) render() error {
	if err := r.parts.Certificates(r.nodes); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Layout.Config(), 0o755); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := r.parts.Kubeconfigs(r.nodes); err != nil {
		return err
	}
	files, err := r.parts.Files()
	if err != nil {
		return err
	}
	resolvConf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("configuration: %w", err)
	}
	files["Corefile"] = dns.Corefile(r.parts.Kubeconfig(controlplane.DNS), string(resolvConf))
	if err := writeFiles(r.Layout.Config(), files); err != nil {
		return err
	}
	for _, n := range r.nodes {
		options, err := r.nodeOptions(n)
		if err != nil {
			return err
		}
		files, err := node.Files(n, options)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
		if err := writeFiles(n.Config(""), files); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) nodeOptions(n layout.Node) (node.Options, error) {
	v1, err := cgroup.V1()
	if err != nil {
		return node.Options{}, fmt.Errorf("%s: %w", n.Name(), err)
	}
	name := controlplane.NodeCert(n)
	// The kubelets do not know of each other: a core that one of them gives to
	// a container is one that those of the other node's pods may use, and a
	// second static kubelet would give away the same one.
	cpuManager := node.CPUManagerNone
	if n.Number == len(r.nodes) {
		cpuManager = cmp.Or(r.cpuManager, cpuManager)
	}
	return node.Options{
		CPUManager: cpuManager,
		Minor:      r.minor, CgroupV1: v1, FeatureGates: r.gates, Shim: r.set.Path("containerd-shim-runc-v2"),
		CA: r.parts.Store.Cert(controlplane.CA), Cert: r.parts.Store.Cert(name), Key: r.parts.Store.Key(name),
	}, nil
}

// start starts everything, as much at once as depends on nothing else, and
// waits until the cluster can be used.
func (r *run) start(ctx context.Context) error {
	err := parallel(ctx,
		r.startControlPlane,
		func(ctx context.Context) error { return forEach(ctx, r.nodes, r.startContainerd) },
	)
	if err != nil {
		return err
	}
	return parallel(ctx,
		func(ctx context.Context) error { return r.ensure(ctx, r.parts.ControllerManagerSpec()) },
		func(ctx context.Context) error { return r.ensure(ctx, r.parts.SchedulerSpec()) },
		func(ctx context.Context) error { return r.ensure(ctx, r.parts.ProxySpec()) },
		func(ctx context.Context) error {
			if err := r.applyObjects(ctx); err != nil {
				return err
			}
			return parallel(ctx,
				func(ctx context.Context) error { return r.ensure(ctx, r.dnsSpec()) },
				func(ctx context.Context) error { return r.ensure(ctx, r.policyAgentSpec()) },
			)
		},
		func(ctx context.Context) error { return forEach(ctx, r.nodes, r.startKubelet) },
		r.waitServiceAccount,
	)
}

func (r *run) dnsSpec() process.Spec {
	return dns.Spec(r.Layout, r.set.Path("coredns"), r.Layout.Config()+"/Corefile", r.parts.Kubeconfig(controlplane.DNS))
}

func (r *run) policyAgentSpec() process.Spec {
	return r.parts.PolicyAgentSpec(r.Processes.Launcher[0], PolicyAgentCommand)
}

// startControlPlane starts etcd and then the API server.
func (r *run) startControlPlane(ctx context.Context) error {
	if err := r.startEtcd(ctx); err != nil {
		return err
	}
	return r.ensure(ctx, r.parts.APIServerSpec())
}

// startEtcd starts etcd. It runs without fsync, so a power cut can leave data
// that it refuses or that keeps it waiting indefinitely; then the cluster is
// created again, with a note.
func (r *run) startEtcd(ctx context.Context) error {
	_, statErr := os.Stat(r.Layout.Etcd())
	runs, _, err := r.Processes.Running(r.parts.EtcdSpec())
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if statErr != nil || runs {
		return r.ensure(ctx, r.parts.EtcdSpec())
	}
	const patience = 45 * time.Second
	limited, cancel := context.WithTimeout(ctx, patience)
	err = r.ensure(limited, r.parts.EtcdSpec())
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.Report.Say("note   etcd cannot use its data, probably after a power cut; creating the cluster again without its objects")
	if err := r.forgetData(ctx); err != nil {
		return err
	}
	return r.ensure(ctx, r.parts.EtcdSpec())
}

// forgetData stops whatever remembers objects and removes etcd's data.
func (r *run) forgetData(ctx context.Context) error {
	names := []string{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, controlplane.Proxy, controlplane.PolicyAgent, dns.Name}
	for _, n := range r.nodes {
		names = append(names, n.Kubelet())
	}
	for _, name := range names {
		if err := r.Processes.Stop(ctx, name, 0); err != nil {
			return fmt.Errorf("create the cluster again: %w", err)
		}
	}
	if err := os.RemoveAll(r.Layout.Etcd()); err != nil {
		return fmt.Errorf("create the cluster again: %w", err)
	}
	return nil
}

// ensure starts a component unless it runs, and waits until it is healthy.
func (r *run) ensure(ctx context.Context, spec process.Spec) error {
	step := r.Report.Step("%s", spec.Name)
	started, err := r.Processes.Ensure(ctx, spec)
	if err != nil {
		return step.End(fmt.Errorf("%s: %w", spec.Name, err))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := r.Processes.WaitHealthy(ctx, spec.Name, r.checks(r.nodes, r.minor)[spec.Name]); err != nil {
		return step.End(fmt.Errorf("up: %w", err))
	}
	if started {
		step.Done("started")
	} else {
		step.Done("runs")
	}
	return nil
}

// applyObjects makes the objects that the cluster itself consists of.
func (r *run) applyObjects(ctx context.Context) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	objects := append(dns.Objects(controlplane.DNSUser), controlplane.Objects()...)
	return forEach(ctx, objects, func(ctx context.Context, o kubeapi.Object) error {
		return client.Apply(ctx, o.Path, o.Object)
	})
}

// waitServiceAccount waits for what the first pod of a namespace needs.
func (r *run) waitServiceAccount(ctx context.Context) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return until(ctx, 100*time.Millisecond, func() error {
		var ignored struct{}
		return client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &ignored)
	})
}

// until calls try until it succeeds or ctx is done, and then returns its last
// error.
func until(ctx context.Context, every time.Duration, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
