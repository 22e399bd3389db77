// Package encryption finds out what encrypts the traffic between the pods of a cluster, from what network plug-ins publish about
// themselves.
package encryption

import (
	"context"
	"errors"
	"fmt"

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
	// kind and key name the object in which it publishes its configuration.
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// fields are the paths to values, and on the values that mean that it encrypts.
	fields [][]string
	on     string
}

// plugIns are OVN-Kubernetes of OpenShift (docs: "Configuring IPsec encryption"; mode External encrypts no traffic between pods), Cilium
// (docs: "Transparent Encryption") and Calico (docs: "Encrypt in-cluster pod traffic").
var plugIns = []plugIn{
	{
		what: "OVN-Kubernetes by IPsec", kind: schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"}, key: client.ObjectKey{Name: "cluster"},
		fields: [][]string{{"spec", "defaultNetwork", "ovnKubernetesConfig", "ipsecConfig", "mode"}}, on: "Full",
	},
	{
		what: "Cilium", kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), key: client.ObjectKey{Namespace: "kube-system", Name: "cilium-config"},
		fields: [][]string{{"data", "enable-wireguard"}, {"data", "enable-ipsec"}}, on: "true",
	},
	{
		what: "Calico by WireGuard", kind: schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "FelixConfiguration"}, key: client.ObjectKey{Name: "default"},
		fields: [][]string{{"spec", "wireguardEnabled"}, {"spec", "wireguardEnabledV6"}}, on: "true",
	},
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
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(p.kind)
	switch err := api.Get(ctx, p.key, object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s %s: %w", p.kind.Kind, p.key.Name, err)
	}
	for _, path := range p.fields {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if text, is := value.(string); err == nil && found && is && text == p.on {
			return true, nil
		}
		if flag, is := value.(bool); err == nil && is && flag && p.on == "true" {
			return true, nil
		}
	}
	return false, nil
}
