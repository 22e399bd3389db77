// Package node renders what one node runs on: the configurations of its
// containerd, its CNI network and its kubelet, and their command lines.
package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/packages"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// Paths inside a node. They are the usual ones, because each node has a mount
// namespace in which they are its own.
const (
	ContainerdSocket = "/run/containerd/containerd.sock"
	kubeletRoot      = "/var/lib/kubelet"
	podLogs          = "/var/log/pods"
)

// privatePaths are the folders a node sees as its own, by the name of the
// folder that is mounted there. Those of /run hold sockets, the shims' among
// them, whose place is compiled in; /var/lib/cni is libcni's cache;
// /var/log/containers is where every kubelet puts its links.
var privatePaths = map[string]string{
	"run-containerd": "/run/containerd",
	"containerd":     "/var/lib/containerd",
	"cni":            "/var/lib/cni",
	"kubelet":        kubeletRoot,
	"pods":           podLogs,
	"container-logs": "/var/log/containers",
}

// Mounts returns the node's own view of files. Each source must be made in
// the node's folder and each target on the machine.
func Mounts(n layout.Node) *process.Mounts {
	mounts := &process.Mounts{}
	for _, name := range []string{"run-containerd", "containerd", "cni", "kubelet", "pods", "container-logs"} {
		mounts.Binds = append(mounts.Binds, process.Bind{Source: n.Dir() + "/" + name, Target: privatePaths[name]})
	}
	return mounts
}

// The first minor versions whose kubelets have the fields podLogsDir, whose
// default is the same folder, failCgroupV1, before which cgroup v1 is
// always accepted, and imagePullCredentialsVerificationPolicy without a
// feature gate, before which images are never verified.
const (
	firstPodLogsDir   = 30
	firstFailCgroupV1 = 31
	firstVerification = 35
)

// The policies of the kubelet's CPU manager. By the static one, a container
// with whole CPUs in a Guaranteed pod owns its cores.
const (
	CPUManagerNone   = "none"
	CPUManagerStatic = "static"
)

// CPUManagerState is where a kubelet keeps which cores it has given away, in
// the node's folder. A kubelet does not start with that of another policy.
func CPUManagerState(n layout.Node) string { return n.Dir() + "/kubelet/cpu_manager_state" }

// Options are what a node's configuration depends on beyond its number.
type Options struct {
	// Minor is Kubernetes' minor version.
	Minor int
	// CgroupV1 is whether the machine's controllers are on cgroup v1.
	CgroupV1 bool
	// FeatureGates are the cluster's.
	FeatureGates map[string]bool
	// CPUManager is the policy of the kubelet's CPU manager: CPUManagerNone
	// or CPUManagerStatic.
	CPUManager string
	// Shim is the path of containerd's shim for runc.
	Shim string
	// CA, Cert and Key are the paths of the kubelet's serving certificate.
	CA, Cert, Key string
}

// Files renders the node's configuration files, by name.
func Files(n layout.Node, o Options) (map[string]string, error) {
	cni, err := cniConfig(n)
	if err != nil {
		return nil, err
	}
	kubelet, err := kubeletConfig(n, o)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"containerd.toml":        containerdConfig(n, o.Shim),
		"cni/10-mpijob.conflist": cni,
		"kubelet.json":           kubelet,
		// Pods that ask for the node's DNS get the cluster's: the machine's
		// own may be on loopback, where no pod can reach it.
		"resolv.conf": "nameserver " + layout.DNSIP + "\n",
	}, nil
}

func containerdConfig(n layout.Node, shim string) string {
	return strings.NewReplacer(
		"{SOCKET}", ContainerdSocket,
		"{PAUSE}", layout.PauseImage,
		"{SHIM}", shim,
		"{CNI_BIN}", packages.CNIDir,
		"{CNI_CONF}", n.Config("cni"),
	).Replace(`version = 4
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  # Creates a folder in /opt.
  "io.containerd.internal.v1.opt",
  # Listens in /run/nri, which nodes share.
  "io.containerd.nri.v1.nri",
  # Snapshotters that this machine may lack the drivers for.
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
]

[plugins."io.containerd.server.v1.grpc"]
  address = "{SOCKET}"

[plugins."io.containerd.server.v1.ttrpc"]
  address = "{SOCKET}.ttrpc"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"

  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
  # Without it, runc fails on machines that do not allow it to lower the
  # score: "write to /proc/self/oom_score_adj: Permission denied".
  restrict_oom_score_adj = true
  # Mounts the pods' network namespaces within the node's mount namespace, so
  # that they end with it, and not in /run/netns.
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{CNI_BIN}"]
    conf_dir = "{CNI_CONF}"

  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      # Without it, a shim in PATH, Debian's for example, takes precedence.
      runtime_path = "{SHIM}"

      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
`)
}

func cniConfig(n layout.Node) (string, error) {
	type object = map[string]any
	return encode(object{
		"cniVersion": "1.0.0",
		// A name and a folder of addresses per node: two nodes that share
		// them hand out the same address twice.
		"name": "mpijob-" + n.Name(),
		"plugins": []object{{
			"type":        "bridge",
			"bridge":      n.Bridge(),
			"isGateway":   true,
			"hairpinMode": true, // a pod may reach itself through a Service
			"ipMasq":      false,
			"ipam": object{
				"type":    "host-local",
				"dataDir": "/var/lib/cni/networks",
				"ranges":  [][]object{{{"subnet": n.Subnet(), "gateway": n.IP()}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			},
		}},
	})
}

func kubeletConfig(n layout.Node, o Options) (string, error) {
	type object = map[string]any
	config := object{
		"apiVersion":   "kubelet.config.k8s.io/v1beta1",
		"kind":         "KubeletConfiguration",
		"address":      n.IP(),
		"port":         layout.KubeletPort,
		"readOnlyPort": 0,
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": o.CA},
		},
		"authorization":      object{"mode": "Webhook"},
		"tlsCertFile":        o.Cert,
		"tlsPrivateKeyFile":  o.Key,
		"healthzBindAddress": n.IP(),
		"healthzPort":        layout.KubeletHealthPort,

		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + n.CgroupRoot(),
		"enforceNodeAllocatable":   []string{},
		"failSwapOn":               false,
		"podLogsDir":               podLogs,
		"volumePluginDir":          kubeletRoot + "/volume-plugins",
		// The kubelet's hints to iptables would stay on the machine.
		"makeIPTablesUtilChains": false,

		"clusterDNS":    []string{layout.DNSIP},
		"clusterDomain": layout.ClusterDomain,
		"resolvConf":    n.Config("resolv.conf"),

		"maxPods": 110,
		// Images come by "load" only and could not be pulled again, and a
		// half-full disk is the developer's own.
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"evictionHard": map[string]string{
			"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
			"imagefs.available": "1%", "imagefs.inodesFree": "1%",
		},
		// A node that stops is noticed within the controller manager's grace
		// period of 20 seconds; these keep several heartbeats in it.
		"nodeStatusUpdateFrequency": "4s",
		"nodeLeaseDurationSeconds":  12,
		"syncFrequency":             "10s",
		"shutdownGracePeriod":       "0s",
		"serializeImagePulls":       false,
		"kubeAPIQPS":                100,
		"kubeAPIBurst":              200,
		"registryPullQPS":           0,
		"eventRecordQPS":            0,
		// Nothing here needs what the defaults do for hundreds of nodes.
		"fileCheckFrequency": "60s",
	}
	if o.CPUManager == CPUManagerStatic {
		config["cpuManagerPolicy"] = CPUManagerStatic
		// The policy needs a reservation, and rounds it up to one core that
		// no container owns. What is not reserved can be requested.
		config["systemReserved"] = map[string]string{"cpu": "100m"}
		// Containers leave a core soon after it was given to another one.
		config["cpuManagerReconcilePeriod"] = "2s"
	}
	// Kubelets reject fields that they do not know.
	if o.Minor < firstPodLogsDir {
		delete(config, "podLogsDir")
	}
	if o.CgroupV1 && o.Minor >= firstFailCgroupV1 {
		config["failCgroupV1"] = false
	}
	if o.Minor >= firstVerification {
		// An image that a node has pulled under another name, too, would
		// have to be pulled again under the one that "load" gave it.
		config["imagePullCredentialsVerificationPolicy"] = "NeverVerify"
	}
	if len(o.FeatureGates) > 0 {
		config["featureGates"] = o.FeatureGates
	}
	return encode(config)
}

func encode(value any) (string, error) {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	return string(content) + "\n", nil
}

// Containerd is how the node's containerd is started. binary is its path.
func Containerd(n layout.Node, l layout.Layout, binary string) process.Spec {
	return process.Spec{
		Name:   n.Containerd(),
		Args:   []string{binary, "--config", n.Config("containerd.toml"), "--log-level", "info"},
		Log:    l.Log(n.Containerd()),
		Cgroup: n.RuntimeCgroup(),
		Mounts: Mounts(n),
		// Shims and what they run descend from it.
		StartsPods: true,
		Inputs:     []string{n.Config("containerd.toml")},
	}
}

// Kubelet is how the node's kubelet is started. It must get the mount
// namespace of the node's containerd.
func Kubelet(n layout.Node, l layout.Layout, binary, kubeconfig string, o Options) process.Spec {
	return process.Spec{
		Name: n.Kubelet(),
		Args: []string{
			binary,
			"--config=" + n.Config("kubelet.json"),
			"--kubeconfig=" + kubeconfig,
			"--root-dir=" + kubeletRoot,
			"--hostname-override=" + n.Name(),
			"--node-ip=" + n.IP(),
			"--node-labels=" + strings.Join(labels(n), ","),
		},
		Log:    l.Log(n.Kubelet()),
		Cgroup: n.RuntimeCgroup(),
		Mounts: Mounts(n),
		Inputs: []string{n.Config("kubelet.json"), kubeconfig, o.CA, o.Cert, o.Key},
	}
}

// labels are those a kubelet may give its own node (NodeRestriction). Each
// node is a zone, so that spreading and affinity have something to act on.
func labels(n layout.Node) []string {
	return []string{
		"topology.kubernetes.io/region=local",
		fmt.Sprintf("topology.kubernetes.io/zone=zone-%d", n.Number),
	}
}

// Object is the part of the Node object that its kubelet may not set itself.
func Object(n layout.Node) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name":   n.Name(),
			"labels": map[string]string{"node-role.kubernetes.io/worker": ""},
		},
	}
}
