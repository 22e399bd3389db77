// Package dns says how the cluster's DNS server runs: CoreDNS as a process of
// the machine behind the usual Service kube-dns. As a process it needs no
// image, is there before the first node, and can forward to a resolver on the
// machine's loopback.
package dns

import (
	"bufio"
	"fmt"
	"net"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/kubeapi"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// Name is the process's name.
const Name = "coredns"

// Corefile renders CoreDNS's configuration. resolvConf is the content of the
// machine's /etc/resolv.conf: without a name server there, names outside the
// cluster do not resolve. Names of the cluster are never cached: a worker's
// name that was asked for too early must be found as soon as it exists.
func Corefile(kubeconfig, resolvConf string) string {
	forward := ""
	if hasNameServer(resolvConf) {
		forward = "\n    forward . /etc/resolv.conf"
	}
	return strings.NewReplacer(
		"{PORT}", fmt.Sprint(layout.DNSPort),
		"{IP}", layout.ControlPlaneIP,
		"{HEALTH}", fmt.Sprint(layout.DNSHealthPort),
		"{READY}", fmt.Sprint(layout.DNSReadyPort),
		"{DOMAIN}", layout.ClusterDomain,
		"{KUBECONFIG}", kubeconfig,
		"{FORWARD}", forward,
	).Replace(`.:{PORT} {
    bind {IP}
    errors
    health 127.0.0.1:{HEALTH}
    ready 127.0.0.1:{READY}
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {
        kubeconfig {KUBECONFIG}
        pods insecure
        ttl 5
        fallthrough in-addr.arpa ip6.arpa
    }{FORWARD}
    cache 30 {
        disable success {DOMAIN}
        disable denial {DOMAIN}
    }
    loadbalance
}
`)
}

// hasNameServer reports whether a resolv.conf names a server.
func hasNameServer(resolvConf string) bool {
	for lines := bufio.NewScanner(strings.NewReader(resolvConf)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "nameserver" && net.ParseIP(strings.Split(fields[1], "%")[0]) != nil {
			return true
		}
	}
	return false
}

// Spec is how CoreDNS is started.
func Spec(l layout.Layout, binary, corefile, kubeconfig string) process.Spec {
	return process.Spec{
		Name:   Name,
		Args:   []string{binary, "-conf", corefile},
		Log:    l.Log(Name),
		Inputs: []string{corefile, kubeconfig},
		Cgroup: layout.CgroupRoot + "/control-plane",
	}
}

// Objects are what makes the process the cluster's DNS: its permissions as
// user, the Service and the endpoint.
func Objects(user string) []kubeapi.Object {
	type object = map[string]any
	ports := func(targets bool) []object {
		var list []object
		for _, protocol := range []string{"UDP", "TCP"} {
			port := object{"name": "dns", "port": 53, "protocol": protocol}
			if protocol == "TCP" {
				port["name"] = "dns-tcp"
			}
			if targets {
				port["port"] = layout.DNSPort
			} else {
				port["targetPort"] = layout.DNSPort
			}
			list = append(list, port)
		}
		return list
	}
	labels := map[string]string{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
	return []kubeapi.Object{
		{Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns", Object: object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": object{"name": "system:coredns"},
			"rules": []object{
				{"apiGroups": []string{""}, "resources": []string{"endpoints", "services", "pods", "namespaces"}, "verbs": []string{"list", "watch"}},
				{"apiGroups": []string{"discovery.k8s.io"}, "resources": []string{"endpointslices"}, "verbs": []string{"list", "watch"}},
			},
		}},
		{Path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:coredns", Object: object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": "system:coredns"},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
		}},
		{Path: "/api/v1/namespaces/kube-system/services/kube-dns", Object: object{
			"apiVersion": "v1", "kind": "Service",
			"metadata": object{"name": "kube-dns", "namespace": "kube-system", "labels": labels},
			"spec":     object{"clusterIP": layout.DNSIP, "ports": ports(false)},
		}},
		{Path: "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns", Object: object{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata": object{
				"name": "kube-dns", "namespace": "kube-system",
				"labels": map[string]string{"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "mpijob-cluster"},
			},
			"addressType": "IPv4",
			"endpoints":   []object{{"addresses": []string{layout.ControlPlaneIP}, "conditions": object{"ready": true}}},
			"ports":       ports(true),
		}},
	}
}
