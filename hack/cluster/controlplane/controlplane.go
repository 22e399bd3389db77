// Package controlplane says with which certificates and command lines etcd,
// the API server, the controller manager, the scheduler, kube-proxy and the
// policy agent run.
package controlplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/certs"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// Names of the processes.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
	PolicyAgent       = "policy-agent"
)

// Authorities: of the cluster, of etcd, and of requests that the API server
// passes on to an aggregated one.
const (
	CA           = "ca"
	etcdCA       = "etcd-ca"
	frontProxyCA = "front-proxy-ca"
)

// Certificate names that others need too.
const (
	Admin           = "admin"
	DNS             = "coredns"
	serviceAccounts = "service-accounts"
	etcdServer      = "etcd-server"
	etcdClient      = "etcd-client"
	apiServer       = "kube-apiserver-server"
	kubeletClient   = "kube-apiserver-kubelet-client"
	frontProxy      = "front-proxy-client"
)

// KubeletClientUser is the user the API server is to the kubelets.
const KubeletClientUser = "kube-apiserver-kubelet-client"

// DNSUser is the user CoreDNS is to the API server.
const DNSUser = "system:coredns"

// policyUser is the user the policy agent is to the API server.
const policyUser = "system:policy-agent"

// firstNFTables is the first minor version whose kube-proxy has the mode
// nftables without a feature gate.
const firstNFTables = 31

// firstReadyScheduler is the first minor version whose scheduler serves
// /readyz, which waits for its caches; earlier ones only serve /healthz.
const firstReadyScheduler = 31

// SchedulerHealth is the URL that reports whether the scheduler of a minor
// version is ready.
func SchedulerHealth(minor int) string {
	path := "readyz"
	if minor < firstReadyScheduler {
		path = "healthz"
	}
	return fmt.Sprintf("https://127.0.0.1:%d/%s", layout.SchedulerPort, path)
}

// Settings are what a person may choose.
type Settings struct {
	// Minor is Kubernetes' minor version.
	Minor int
	// FeatureGates are of all components.
	FeatureGates map[string]bool
	// RuntimeConfig switches API versions on and off, such as
	// "scheduling.k8s.io/v1beta1" to "true".
	RuntimeConfig map[string]string
}

// Parts is what the control plane is made from.
type Parts struct {
	Layout   layout.Layout
	Binaries binaries.Set
	Store    certs.Store
	Settings Settings
}

// Certificates makes the keys and certificates of the control plane and of the
// given nodes.
func (p Parts) Certificates(nodes []layout.Node) error {
	for _, ca := range []string{CA, etcdCA, frontProxyCA} {
		if err := p.Store.EnsureCA(ca); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	if err := p.Store.EnsureKeyPair(serviceAccounts); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	for _, request := range requests(nodes) {
		if err := p.Store.Ensure(request); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	return nil
}

// NodeCert is the name of a node's certificate, which serves and is a client.
func NodeCert(n layout.Node) string { return n.Name() }

func requests(nodes []layout.Node) []certs.Request {
	list := []certs.Request{
		{Name: etcdServer, CA: etcdCA, CommonName: "etcd", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: etcdClient, CA: etcdCA, CommonName: "kube-apiserver"},
		{Name: frontProxy, CA: frontProxyCA, CommonName: "front-proxy-client"},
		{Name: apiServer, CA: CA, CommonName: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + layout.ClusterDomain, "localhost",
			layout.KubernetesIP, layout.ControlPlaneIP, "127.0.0.1",
		}},
		{Name: kubeletClient, CA: CA, CommonName: KubeletClientUser},
		{Name: Admin, CA: CA, CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}},
		{Name: ControllerManager, CA: CA, CommonName: "system:kube-controller-manager", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: Scheduler, CA: CA, CommonName: "system:kube-scheduler", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: Proxy, CA: CA, CommonName: "system:kube-proxy"},
		{Name: DNS, CA: CA, CommonName: DNSUser},
		{Name: PolicyAgent, CA: CA, CommonName: policyUser},
	}
	for _, n := range nodes {
		list = append(list, certs.Request{
			Name: NodeCert(n), CA: CA, CommonName: "system:node:" + n.Name(),
			Organizations: []string{"system:nodes"}, Hosts: []string{n.Name(), n.IP()},
		})
	}
	return list
}

// Kubeconfig is the path of a component's kubeconfig, by certificate name.
func (p Parts) Kubeconfig(name string) string {
	if name == Admin {
		return p.Layout.Kubeconfig()
	}
	return p.Layout.Config() + "/" + name + ".kubeconfig"
}

// Kubeconfigs writes the kubeconfig of every client of the API server.
func (p Parts) Kubeconfigs(nodes []layout.Node) error {
	names := []string{Admin, ControllerManager, Scheduler, Proxy, DNS, PolicyAgent}
	for _, n := range nodes {
		names = append(names, NodeCert(n))
	}
	for _, name := range names {
		if err := p.Store.WriteKubeconfig(p.Kubeconfig(name), layout.APIServerURL(), CA, name); err != nil {
			return fmt.Errorf("kubeconfigs: %w", err)
		}
	}
	return nil
}

// EtcdSpec is how etcd is started. It does without fsync: the data is a test
// cluster's, and on a slow disk fsync is what everything else waits for.
func (p Parts) EtcdSpec() process.Spec {
	client := fmt.Sprintf("https://127.0.0.1:%d", layout.EtcdPort)
	peer := fmt.Sprintf("https://127.0.0.1:%d", layout.EtcdPeerPort)
	return p.spec(Etcd, []string{
		"--name=mpijob",
		"--data-dir=" + p.Layout.Etcd(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=mpijob=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + p.Store.Cert(etcdCA),
		"--cert-file=" + p.Store.Cert(etcdServer),
		"--key-file=" + p.Store.Key(etcdServer),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + p.Store.Cert(etcdCA),
		"--peer-cert-file=" + p.Store.Cert(etcdServer),
		"--peer-key-file=" + p.Store.Key(etcdServer),
		"--unsafe-no-fsync=true",
		"--snapshot-count=10000",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=10m",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}, p.Store.Cert(etcdCA), p.Store.Cert(etcdServer))
}

// APIServerSpec is how the API server is started.
func (p Parts) APIServerSpec() process.Spec {
	s := p.Store
	args := []string{
		"--bind-address=" + layout.ControlPlaneIP,
		"--advertise-address=" + layout.ControlPlaneIP,
		flag("--secure-port", layout.APIServerPort),
		"--tls-cert-file=" + s.Cert(apiServer),
		"--tls-private-key-file=" + s.Key(apiServer),
		"--client-ca-file=" + s.Cert(CA),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", layout.EtcdPort),
		"--etcd-cafile=" + s.Cert(etcdCA),
		"--etcd-certfile=" + s.Cert(etcdClient),
		"--etcd-keyfile=" + s.Key(etcdClient),
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc." + layout.ClusterDomain,
		"--service-account-key-file=" + s.Public(serviceAccounts),
		"--service-account-signing-key-file=" + s.Key(serviceAccounts),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--anonymous-auth=true", // health checks and service account issuer discovery
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + s.Cert(kubeletClient),
		"--kubelet-client-key=" + s.Key(kubeletClient),
		"--kubelet-certificate-authority=" + s.Cert(CA),
		// Node names do not resolve on this machine.
		"--kubelet-preferred-address-types=InternalIP",
		// Webhooks behind a Service are called at the pod's own address.
		"--enable-aggregator-routing=true",
		"--requestheader-client-ca-file=" + s.Cert(frontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + s.Cert(frontProxy),
		"--proxy-client-key-file=" + s.Key(frontProxy),
		"--profiling=false",
	}
	if config := p.Settings.RuntimeConfig; len(config) > 0 {
		pairs := make([]string, 0, len(config))
		for _, name := range slices.Sorted(maps.Keys(config)) {
			pairs = append(pairs, name+"="+config[name])
		}
		args = append(args, "--runtime-config="+strings.Join(pairs, ","))
	}
	return p.spec(APIServer, p.withGates(args), s.Cert(CA), s.Cert(apiServer), s.Cert(etcdCA))
}

// ControllerManagerSpec is how the controller manager is started.
func (p Parts) ControllerManagerSpec() process.Spec {
	s := p.Store
	config := p.Kubeconfig(ControllerManager)
	return p.spec(ControllerManager, p.withGates([]string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		flag("--secure-port", layout.ControllerManagerPort),
		"--tls-cert-file=" + s.Cert(ControllerManager),
		"--tls-private-key-file=" + s.Key(ControllerManager),
		"--root-ca-file=" + s.Cert(CA),
		"--client-ca-file=" + s.Cert(CA),
		"--requestheader-client-ca-file=" + s.Cert(frontProxyCA),
		"--service-account-private-key-file=" + s.Key(serviceAccounts),
		"--cluster-signing-cert-file=" + s.Cert(CA),
		"--cluster-signing-key-file=" + s.Key(CA),
		"--use-service-account-credentials=true",
		// Addresses of pods are the business of each node's CNI.
		"--allocate-node-cidrs=false",
		// Its default is a folder of the machine, which it makes.
		"--flex-volume-plugin-dir=" + p.Layout.Config() + "/volume-plugins",
		"--leader-elect=false",
		"--node-monitor-period=2s",
		"--node-monitor-grace-period=20s",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	}), config, s.Cert(ControllerManager))
}

// SchedulerSpec is how the scheduler is started.
func (p Parts) SchedulerSpec() process.Spec {
	config := p.Layout.Config() + "/scheduler.json"
	return p.spec(Scheduler, p.withGates([]string{
		"--config=" + config,
		"--authentication-kubeconfig=" + p.Kubeconfig(Scheduler),
		"--authorization-kubeconfig=" + p.Kubeconfig(Scheduler),
		"--bind-address=127.0.0.1",
		flag("--secure-port", layout.SchedulerPort),
		"--tls-cert-file=" + p.Store.Cert(Scheduler),
		"--tls-private-key-file=" + p.Store.Key(Scheduler),
	}), config, p.Kubeconfig(Scheduler), p.Store.Cert(Scheduler))
}

// ProxySpec is how kube-proxy is started: one for all nodes, because they
// share the machine's network namespace.
func (p Parts) ProxySpec() process.Spec {
	config := p.Layout.Config() + "/proxy.json"
	return p.spec(Proxy, []string{"--config=" + config}, config, p.Kubeconfig(Proxy))
}

// PolicyAgentSpec is how the policy agent is started: a command of the given
// program, one for all nodes.
func (p Parts) PolicyAgentSpec(program ...string) process.Spec {
	spec := p.spec(PolicyAgent, nil, program[0], p.Kubeconfig(PolicyAgent))
	spec.Args = append(slices.Clone(program), p.Kubeconfig(PolicyAgent))
	return spec
}

// Files renders the control plane's configuration files, by name.
func (p Parts) Files() (map[string]string, error) {
	type object = map[string]any
	scheduler, err := encode(object{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": object{"leaderElect": false},
		"clientConnection": object{
			"kubeconfig": p.Kubeconfig(Scheduler), "qps": 200, "burst": 400,
		},
	})
	if err != nil {
		return nil, err
	}
	proxy := object{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               "nftables",
		"clusterCIDR":        layout.PodCIDR,
		"bindAddress":        layout.ControlPlaneIP,
		"hostnameOverride":   layout.Node{Number: 1}.Name(),
		"healthzBindAddress": fmt.Sprintf("127.0.0.1:%d", layout.ProxyHealthPort),
		"metricsBindAddress": fmt.Sprintf("127.0.0.1:%d", layout.ProxyMetricsPort),
		"clientConnection":   object{"kubeconfig": p.Kubeconfig(Proxy)},
		// Zero leaves the machine's own limits alone.
		"conntrack": object{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
		"nftables": object{"minSyncPeriod": "0.2s", "syncPeriod": "30s"},
	}
	gates := map[string]bool{}
	maps.Copy(gates, p.Settings.FeatureGates)
	if p.Settings.Minor < firstNFTables {
		gates["NFTablesProxyMode"] = true
	}
	if len(gates) > 0 {
		proxy["featureGates"] = gates
	}
	proxyFile, err := encode(proxy)
	if err != nil {
		return nil, err
	}
	return map[string]string{"scheduler.json": scheduler, "proxy.json": proxyFile}, nil
}

func (p Parts) spec(name string, args []string, inputs ...string) process.Spec {
	return process.Spec{
		Name: name, Args: append([]string{p.Binaries.Path(name)}, args...), Log: p.Layout.Log(name), Inputs: inputs,
		Cgroup: layout.CgroupRoot + "/control-plane",
	}
}

func (p Parts) withGates(args []string) []string {
	gates := p.Settings.FeatureGates
	if len(gates) == 0 {
		return args
	}
	pairs := make([]string, 0, len(gates))
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		pairs = append(pairs, name+"="+strconv.FormatBool(gates[name]))
	}
	return append(args, "--feature-gates="+strings.Join(pairs, ","))
}

func flag(name string, value int) string { return name + "=" + strconv.Itoa(value) }

func encode(value any) (string, error) {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	return string(content) + "\n", nil
}
