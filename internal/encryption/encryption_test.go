package encryption_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/encryption"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	object := func(apiVersion, kind, name string, spec map[string]any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
	}
	network := func(of map[string]any) client.Object {
		return object("operator.openshift.io/v1", "Network", "cluster", map[string]any{"defaultNetwork": of})
	}
	ovn := func(config map[string]any) client.Object {
		return network(map[string]any{"type": "OVNKubernetes", "ovnKubernetesConfig": config})
	}
	cilium := func(namespace, key, value string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cilium-config"}, Data: map[string]string{key: value}}
	}
	felix := func(spec map[string]any) client.Object {
		return object("crd.projectcalico.org/v1", "FelixConfiguration", "default", spec)
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing":                            {},
		"IPsec":                              {[]client.Object{ovn(map[string]any{"ipsecConfig": map[string]any{"mode": "Full"}})}, "OVN-Kubernetes by IPsec"},
		"IPsec since before 4.15":            {[]client.Object{ovn(map[string]any{"ipsecConfig": map[string]any{}})}, "OVN-Kubernetes by IPsec"},
		"IPsec with other networks":          {[]client.Object{ovn(map[string]any{"ipsecConfig": map[string]any{"mode": "External"}})}, ""},
		"IPsec is off":                       {[]client.Object{ovn(map[string]any{"ipsecConfig": map[string]any{"mode": "Disabled"}})}, ""},
		"IPsec was never on":                 {[]client.Object{ovn(map[string]any{})}, ""},
		"IPsec without a value":              {[]client.Object{ovn(map[string]any{"ipsecConfig": nil})}, ""},
		"Cilium by WireGuard":                {[]client.Object{cilium("kube-system", "enable-wireguard", "true")}, "Cilium"},
		"Cilium by IPsec":                    {[]client.Object{cilium("kube-system", "enable-ipsec", "true")}, "Cilium"},
		"Cilium in plain text":               {[]client.Object{cilium("kube-system", "enable-wireguard", "false")}, ""},
		"Cilium of OpenShift":                {[]client.Object{network(map[string]any{"type": "Cilium"}), cilium("cilium", "enable-wireguard", "true")}, "Cilium"},
		"Cilium of OpenShift in plain text":  {[]client.Object{network(map[string]any{"type": "Cilium"}), cilium("cilium", "enable-wireguard", "false")}, ""},
		"a user's namespace cilium":          {[]client.Object{cilium("cilium", "enable-wireguard", "true")}, ""},
		"a user's namespace cilium with OVN": {[]client.Object{ovn(map[string]any{}), cilium("cilium", "enable-wireguard", "true")}, ""},
		"Calico":                             {[]client.Object{felix(map[string]any{"wireguardEnabled": true})}, "Calico by WireGuard"},
		"Calico for IPv6":                    {[]client.Object{felix(map[string]any{"wireguardEnabled": false, "wireguardEnabledV6": true})}, "Calico by WireGuard"},
		"Calico in plain text":               {[]client.Object{felix(map[string]any{})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by, err := encryption.Find(t.Context(), mpitest.FakeAPI().WithObjects(test.objects...).Build())
			if got := strings.Join(by, ", "); got != test.want || err != nil {
				t.Errorf("%q encrypts, want %q; error: %v", got, test.want, err)
			}
		})
	}
}
