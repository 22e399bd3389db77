// Package encryption finds out what encrypts the traffic between the pods of a cluster, from what network plug-ins publish about
// themselves.
package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plugIn is a network plug-in that can encrypt the traffic between nodes.
type plugIn struct {
	// what is the plug-in with its encryption.
	what string
	// sources are the objects that must all agree for it to encrypt, those that only administrators of the cluster write first.
	sources []source
}

// source is an object in which a plug-in publishes its configuration.
type source struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// agrees reports whether the plug-in encrypts by this object.
	agrees func(object map[string]any) bool
}

var (
	network = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"}
	felix   = schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "FelixConfiguration"}
	// ofCluster is the name of OpenShift's only Network.
	ofCluster = client.ObjectKey{Name: "cluster"}
)

// plugIns are OVN-Kubernetes of OpenShift (docs: "Configuring IPsec encryption"), Cilium (docs: "Transparent Encryption") and Calico
// (docs: "Encrypt in-cluster pod traffic"). On OpenShift, Cilium is installed in the namespace cilium. On other clusters users may create
// a namespace of this name.
var plugIns = []plugIn{
	{"OVN-Kubernetes by IPsec", []source{{network, ofCluster, usesIPsec}}},
	{"Cilium", []source{ciliumIn("kube-system")}},
	{"Cilium", []source{{network, ofCluster, isCilium}, ciliumIn("cilium")}},
	{"Calico by WireGuard", []source{{felix, client.ObjectKey{Name: "default"}, isTrue([]string{"spec", "wireguardEnabled"}, []string{"spec", "wireguardEnabledV6"})}}},
}

func ciliumIn(namespace string) source {
	return source{corev1.SchemeGroupVersion.WithKind("ConfigMap"), client.ObjectKey{Namespace: namespace, Name: "cilium-config"}, isTrue([]string{"data", "enable-wireguard"}, []string{"data", "enable-ipsec"})}
}

// usesIPsec reports whether OVN-Kubernetes encrypts the traffic between pods. Clusters that enabled IPsec before OpenShift 4.15 have no
// mode, which means Full (cluster-network-operator, GetIPsecMode). The mode External encrypts no traffic between pods.
func usesIPsec(network map[string]any) bool {
	ipsec, found, err := unstructured.NestedMap(network, "spec", "defaultNetwork", "ovnKubernetesConfig", "ipsecConfig")
	if err != nil || !found {
		return false
	}
	mode, _, err := unstructured.NestedString(ipsec, "mode")
	return err == nil && (mode == "" || mode == "Full")
}

// isCilium reports whether OpenShift was installed with Cilium.
func isCilium(network map[string]any) bool {
	name, _, err := unstructured.NestedString(network, "spec", "defaultNetwork", "type")
	return err == nil && strings.EqualFold(name, "cilium")
}

// isTrue returns a function that reports whether one of several fields is true, as a boolean or a text.
func isTrue(fields ...[]string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		return slices.ContainsFunc(fields, func(path []string) bool {
			value, _, err := unstructured.NestedFieldNoCopy(object, path...)
			return err == nil && (value == true || value == "true")
		})
	}
}

// Find returns what encrypts the traffic between pods on different nodes; empty for nothing that is known. The error is that of
// objects that could not be read, which may say more.
func Find(ctx context.Context, api client.Reader) (by []string, err error) {
	for _, p := range plugIns {
		switch on, failed := p.encrypts(ctx, api); {
		case failed != nil:
			err = errors.Join(err, failed)
		case on:
			by = append(by, p.what)
		}
	}
	return by, err
}

// encrypts reports whether a plug-in is there and encrypts.
func (p plugIn) encrypts(ctx context.Context, api client.Reader) (bool, error) {
	for _, from := range p.sources {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(from.kind)
		switch err := api.Get(ctx, from.key, object); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read %s %s: %w", from.kind.Kind, from.key.Name, err)
		case !from.agrees(object.Object):
			return false, nil
		}
	}
	return true, nil
}
