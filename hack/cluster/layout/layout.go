// Package layout says where everything of the cluster is: files, addresses,
// ports and names. It decides nothing and touches nothing.
//
// The machine has one network namespace for every component, so what would be
// one machine per node elsewhere is one address per node here: each node has a
// bridge, the bridge's address is the node's, and the control plane has a
// bridge without ports. Ports are unusual on purpose, so that another cluster
// (k3s, minikube) on the same machine is not in the way.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Versions of what the cluster is made of, as build/*/go.mod pin them.
const (
	KubernetesVersion = "v1.37.1"
	EtcdVersion       = "v3.6.16"
	CoreDNSVersion    = "v1.14.7"
	ContainerdVersion = "v2.4.2"
)

// Addresses. Pods of node N have 10.244.N.2 and up, node N itself 10.244.N.1,
// and the control plane has 10.244.0.1.
const (
	ControlPlaneIP = "10.244.0.1"
	PodCIDR        = "10.244.0.0/16"
	ServiceCIDR    = "10.96.0.0/16"
	KubernetesIP   = "10.96.0.1"  // the Service "kubernetes"
	DNSIP          = "10.96.0.10" // the Service "kube-dns"
	ClusterDomain  = "cluster.local"
)

// Ports, all on ControlPlaneIP or on loopback except the kubelets', which are
// on their node's address.
const (
	APIServerPort         = 26443
	EtcdPort              = 26379
	EtcdPeerPort          = 26380
	ControllerManagerPort = 26257
	SchedulerPort         = 26259
	ProxyHealthPort       = 26256
	ProxyMetricsPort      = 26249
	PolicyHealthPort      = 26255
	DNSPort               = 26053
	DNSHealthPort         = 26080
	DNSReadyPort          = 26081
	KubeletPort           = 26250
	KubeletHealthPort     = 26248
)

// Names of things in the kernel. They are the same in every clone: one
// machine has at most one of these clusters, and the name is how the next
// clone finds out that it has one.
const (
	ControlPlaneBridge = "mpijob-0"
	NFTable            = "mpijob-cluster"
	PolicyTable        = "mpijob-policies"
	CgroupRoot         = "mpijob-cluster"
)

// PauseImage is the image of every pod's sandbox container.
const PauseImage = "localhost/mpijob-pause:1"

// MaxNodes bounds the number of nodes: the third byte of a pod's address is
// its node's number.
const MaxNodes = 250

// APIServerURL is where the API server is reached from the machine and, as
// the address is not a loopback one, from pods too.
func APIServerURL() string {
	return "https://" + ControlPlaneIP + ":" + strconv.Itoa(APIServerPort)
}

// Layout is one cluster's state folder.
type Layout struct {
	// State is the folder, an absolute path.
	State string
}

// Kubeconfig is the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// Logs is the folder with one log file per component.
func (l Layout) Logs() string { return filepath.Join(l.State, "logs") }

// Log is the log file of a component.
func (l Layout) Log(component string) string { return filepath.Join(l.Logs(), component+".log") }

// Run is the folder of the process records.
func (l Layout) Run() string { return filepath.Join(l.State, "run") }

// Certs is the folder of keys and certificates.
func (l Layout) Certs() string { return filepath.Join(l.State, "certs") }

// Config is the folder of rendered configuration files of the control plane.
func (l Layout) Config() string { return filepath.Join(l.State, "config") }

// Etcd is etcd's data folder.
func (l Layout) Etcd() string { return filepath.Join(l.State, "etcd") }

// Nodes is the folder that holds a folder for each node.
func (l Layout) Nodes() string { return filepath.Join(l.State, "nodes") }

// Settings is the file with what "up" was last asked for.
func (l Layout) Settings() string { return filepath.Join(l.State, "settings.json") }

// AddOns is the folder that holds a folder for each add-on that is installed.
func (l Layout) AddOns() string { return filepath.Join(l.State, "addons") }

// AddOn is the folder with the manifests that an add-on is installed by.
func (l Layout) AddOn(name, version string) string {
	return filepath.Join(l.AddOns(), name+"-"+version)
}

// Sysctls is the file with the kernel settings to put back.
func (l Layout) Sysctls() string { return filepath.Join(l.State, "sysctls.json") }

// MountPoints is the file that lists the folders made outside the state
// folder to mount on, to be removed again.
func (l Layout) MountPoints() string { return filepath.Join(l.State, "mountpoints.json") }

// Lock is held by a command that changes the cluster. It is next to the
// state folder, not in it, because "down" removes the folder.
func (l Layout) Lock() string { return l.State + ".lock" }

// Node returns node number n, counted from 1.
func (l Layout) Node(n int) Node { return Node{Number: n, State: l.State} }

var nodeName = regexp.MustCompile(`^node-([1-9][0-9]{0,2})$`)

// NodeNumber returns the number in a node's name and whether it is a name
// that a node of this cluster could have.
func NodeNumber(name string) (int, bool) {
	match := nodeName.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	n, err := strconv.Atoi(match[1])
	return n, err == nil && n <= MaxNodes
}

// Node is one node's place on the machine.
type Node struct {
	Number int
	State  string // the cluster's state folder
}

// Name is the node's name in Kubernetes, "node-1".
func (n Node) Name() string { return "node-" + strconv.Itoa(n.Number) }

// IP is the node's address, which is its bridge's.
func (n Node) IP() string { return fmt.Sprintf("10.244.%d.1", n.Number) }

// Subnet is where the node's pods have their addresses.
func (n Node) Subnet() string { return fmt.Sprintf("10.244.%d.0/24", n.Number) }

// Bridge is the node's network bridge.
func (n Node) Bridge() string { return "mpijob-" + strconv.Itoa(n.Number) }

// Dir is the node's folder.
func (n Node) Dir() string { return filepath.Join(n.State, "nodes", n.Name()) }

// Config is a rendered configuration file of the node.
func (n Node) Config(name string) string { return filepath.Join(n.Dir(), "config", name) }

// CgroupRoot is the parent of the node's pods, relative to a hierarchy.
func (n Node) CgroupRoot() string { return CgroupRoot + "/" + n.Name() }

// RuntimeCgroup holds containerd, its shims and the kubelet.
func (n Node) RuntimeCgroup() string { return n.CgroupRoot() + "/runtime" }

// Containerd and Kubelet are the names of the node's two processes.
func (n Node) Containerd() string { return n.Name() + "-containerd" }

// Kubelet is the name of the node's kubelet process.
func (n Node) Kubelet() string { return n.Name() + "-kubelet" }

// FindRepository returns the root of the clone that contains dir: the first
// parent folder that has this module's builds.
func FindRepository(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "hack", "cluster", "build", "kubernetes", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of the repository: no hack/cluster/build/kubernetes above it; run this inside a clone", dir)
		}
	}
}
