// Package encryption finds out what encrypts the traffic between the pods of a cluster, from what network plug-ins publish about
// themselves.
package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plugIn is a network plug-in that can encrypt the traffic between nodes.
type plugIn struct {
	// what is the plug-in with its encryption, and networkType its name in the Network of OpenShift.
	what, networkType string
	// encrypts reports whether the plug-in runs and encrypts.
	encrypts func(cluster, context.Context) (bool, error)
}

// plugIns are OVN-Kubernetes of OpenShift (docs: "Configuring IPsec encryption"), Cilium (docs: "Transparent Encryption") and Calico
// (docs: "Encrypt in-cluster pod traffic").
var plugIns = []plugIn{
	{"OVN-Kubernetes by IPsec", "OVNKubernetes", cluster.ovnEncrypts},
	{"Cilium", "Cilium", cluster.ciliumEncrypts},
	{"Calico by WireGuard", "Calico", cluster.calicoEncrypts},
}

var (
	networkOfCluster  = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Network"}
	networkOfOperator = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"}
	configMap         = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	daemonSet         = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	felix             = schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "FelixConfiguration"}
	ipPool            = schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "IPPool"}
	// ofCluster is the name of both Networks of OpenShift.
	ofCluster = client.ObjectKey{Name: "cluster"}
)

// Find returns what encrypts the traffic between pods on different nodes; empty for nothing that is known. The error is that of
// objects that could not be read, which may say more.
func Find(ctx context.Context, api client.Reader) (by []string, err error) {
	c := cluster{api: api}
	network, err := c.read(ctx, networkOfCluster, ofCluster)
	if err != nil {
		return nil, err
	}
	c.isOpenShift = network != nil
	running := text(network, "status", "networkType")
	for _, p := range plugIns {
		if c.isOpenShift && !strings.EqualFold(running, p.networkType) {
			// Its objects are what it left when it was replaced.
			continue
		}
		switch on, failed := p.encrypts(c, ctx); {
		case failed != nil:
			err = errors.Join(err, failed)
		case on:
			by = append(by, p.what)
		}
	}
	return by, err
}

// cluster is where plug-ins are looked for.
type cluster struct {
	api         client.Reader
	isOpenShift bool
}

// ovnEncrypts reports whether OVN-Kubernetes encrypts the traffic between pods. Clusters that enabled IPsec before OpenShift 4.15 have no
// mode, which means Full (cluster-network-operator, GetIPsecMode). The mode External encrypts no traffic between pods. While OpenShift is
// moved to another plug-in, its two Networks may name different ones.
func (c cluster) ovnEncrypts(ctx context.Context) (bool, error) {
	network, err := c.read(ctx, networkOfOperator, ofCluster)
	if err != nil || text(network, "spec", "defaultNetwork", "type") != "OVNKubernetes" {
		return false, err
	}
	ipsec, found, err := unstructured.NestedMap(network, "spec", "defaultNetwork", "ovnKubernetesConfig", "ipsecConfig")
	if err != nil || !found {
		return false, nil
	}
	mode, _, err := unstructured.NestedString(ipsec, "mode")
	return err == nil && (mode == "" || mode == "Full"), nil
}

// ciliumEncrypts reports whether Cilium encrypts. On OpenShift it is installed in the namespace cilium. On other clusters users may create
// a namespace of this name.
func (c cluster) ciliumEncrypts(ctx context.Context) (bool, error) {
	namespaces := []string{metav1.NamespaceSystem}
	if c.isOpenShift {
		namespaces = append(namespaces, "cilium")
	}
	for _, namespace := range namespaces {
		config, err := c.read(ctx, configMap, client.ObjectKey{Namespace: namespace, Name: "cilium-config"})
		if err != nil {
			return false, err
		}
		if !isTrue(config, "data", "enable-wireguard") && !isTrue(config, "data", "enable-ipsec") {
			continue
		}
		if runs, err := c.runs(ctx, namespace, "cilium"); runs || err != nil {
			return runs, err
		}
	}
	return false, nil
}

// calicoEncrypts reports whether Calico encrypts the traffic of each family of addresses that its pods get.
func (c cluster) calicoEncrypts(ctx context.Context) (bool, error) {
	config, err := c.read(ctx, felix, client.ObjectKey{Name: "default"})
	if err != nil {
		return false, err
	}
	forIPv4, forIPv6 := isTrue(config, "spec", "wireguardEnabled"), isTrue(config, "spec", "wireguardEnabledV6")
	if !forIPv4 && !forIPv6 {
		return false, nil
	}
	agents, err := c.calicoAgents(ctx)
	if err != nil || agents == nil {
		return false, err
	}
	hasIPv4, hasIPv6, err := c.families(ctx, routesByWorkloads(config, agents))
	if err != nil || !hasIPv4 && !hasIPv6 || hasIPv4 && !forIPv4 || hasIPv6 && !forIPv6 {
		return false, err
	}
	return true, nil
}

// calicoAgents returns Calico's DaemonSet; nil if it does not run.
func (c cluster) calicoAgents(ctx context.Context) (map[string]any, error) {
	for _, namespace := range []string{"calico-system", metav1.NamespaceSystem} {
		agents, err := c.read(ctx, daemonSet, client.ObjectKey{Namespace: namespace, Name: "calico-node"})
		if err != nil {
			return nil, err
		}
		if hasNodes(agents) {
			return agents, nil
		}
	}
	return nil, nil
}

// routesByWorkloads reports whether Calico learns the addresses to encrypt from the pods, not from its pools, as where another plug-in, such as
// that of EKS or AKS, gives pods their addresses. A variable of the agents precedes the configuration.
func routesByWorkloads(config, agents map[string]any) bool {
	source := text(config, "spec", "routeSource")
	containers, _, _ := unstructured.NestedSlice(agents, "spec", "template", "spec", "containers")
	for _, container := range containers {
		of, _ := container.(map[string]any)
		variables, _, _ := unstructured.NestedSlice(of, "env")
		for _, variable := range variables {
			if v, _ := variable.(map[string]any); strings.EqualFold(text(v, "name"), "FELIX_ROUTESOURCE") {
				source = text(v, "value")
			}
		}
	}
	return strings.EqualFold(source, "WorkloadIPs")
}

// families returns whether pods get addresses of IPv4 and of IPv6: new pods get Calico's from all pools that are not disabled. Without any pool,
// they get none that Calico encrypts, unless another plug-in gives them addresses.
func (c cluster) families(ctx context.Context, byOther bool) (hasIPv4, hasIPv6 bool, err error) {
	pools := &unstructured.UnstructuredList{}
	pools.SetGroupVersionKind(ipPool.GroupVersion().WithKind(ipPool.Kind + "List"))
	switch err := c.api.List(ctx, pools); {
	case meta.IsNoMatchError(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("list %ss: %w", ipPool.Kind, err)
	}
	if len(pools.Items) == 0 && byOther {
		return c.nodeFamilies(ctx)
	}
	for _, pool := range pools.Items {
		if isTrue(pool.Object, "spec", "disabled") {
			continue
		}
		if strings.Contains(text(pool.Object, "spec", "cidr"), ":") {
			hasIPv6 = true
		} else {
			hasIPv4 = true
		}
	}
	return hasIPv4, hasIPv6, nil
}

// nodeFamilies returns whether nodes have addresses of IPv4 and of IPv6. It is IPv4 alone if nodes cannot be read. A few are enough, because those of
// a cluster have the same.
func (c cluster) nodeFamilies(ctx context.Context) (hasIPv4, hasIPv6 bool, err error) {
	var nodes corev1.NodeList
	switch err := c.api.List(ctx, &nodes, client.Limit(10)); {
	case apierrors.IsForbidden(err):
		return true, false, nil
	case err != nil:
		return false, false, fmt.Errorf("list Nodes: %w", err)
	}
	for _, node := range nodes.Items {
		addresses := node.Spec.PodCIDRs
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				addresses = append(addresses, address.Address)
			}
		}
		for _, address := range addresses {
			isIPv6 := strings.Contains(address, ":")
			hasIPv4, hasIPv6 = hasIPv4 || !isIPv6, hasIPv6 || isIPv6
		}
	}
	return hasIPv4 || !hasIPv6, hasIPv6, nil
}

// runs reports whether a plug-in runs on nodes: the configuration of one that was replaced may still be there.
func (c cluster) runs(ctx context.Context, namespace, name string) (bool, error) {
	agents, err := c.read(ctx, daemonSet, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return false, err
	}
	return hasNodes(agents), nil
}

// hasNodes reports whether a DaemonSet has pods.
func hasNodes(agents map[string]any) bool {
	nodes, _, err := unstructured.NestedInt64(agents, "status", "desiredNumberScheduled")
	return err == nil && nodes > 0
}

// read returns an object; nil if it does not exist.
func (c cluster) read(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	switch err := c.api.Get(ctx, key, object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, key.Name, err)
	}
	return object.Object, nil
}

// text returns a field; "" if it is missing.
func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

// isTrue reports whether a field is true, as a boolean or a text.
func isTrue(object map[string]any, path ...string) bool {
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	return err == nil && (value == true || value == "true")
}
