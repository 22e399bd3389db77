package encryption_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/encryption"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	object := func(apiVersion, kind, name string, spec map[string]any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
	}
	// openShift is the Network of a cluster of OpenShift in which a plug-in runs.
	openShift := func(networkType string) client.Object {
		network := object("config.openshift.io/v1", "Network", "cluster", nil).(*unstructured.Unstructured)
		network.Object["status"] = map[string]any{"networkType": networkType}
		return network
	}
	// ovn is the configuration of OVN-Kubernetes, and of the plug-in of another type that replaces it.
	ovn := func(ipsec any, of ...string) client.Object {
		return object("operator.openshift.io/v1", "Network", "cluster", map[string]any{"defaultNetwork": map[string]any{
			"type": append(of, "OVNKubernetes")[0], "ovnKubernetesConfig": ipsec,
		}})
	}
	mode := func(mode string) any {
		return map[string]any{"ipsecConfig": map[string]any{"mode": mode}}
	}
	cilium := func(namespace, key, value string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cilium-config"}, Data: map[string]string{key: value}}
	}
	agents := func(namespace, name string, nodes int32) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: nodes}}
	}
	felix := func(forIPv4, forIPv6 any) client.Object {
		return object("crd.projectcalico.org/v1", "FelixConfiguration", "default", map[string]any{"wireguardEnabled": forIPv4, "wireguardEnabledV6": forIPv6})
	}
	pool := func(name, cidr string, disabled any) client.Object {
		return object("crd.projectcalico.org/v1", "IPPool", name, map[string]any{"cidr": cidr, "disabled": disabled})
	}
	ciliumAgents, calicoAgents := agents("kube-system", "cilium", 3), agents("calico-system", "calico-node", 3)
	// byWorkloads are agents of Calico with a variable for the source of routes, and byPods the configuration for it.
	byWorkloads := func(source string) client.Object {
		set := agents("calico-system", "calico-node", 3).(*appsv1.DaemonSet)
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "calico-node", Env: []corev1.EnvVar{{Name: "FELIX_ROUTESOURCE", Value: source}}}}
		return set
	}
	byPods := object("crd.projectcalico.org/v1", "FelixConfiguration", "default", map[string]any{"wireguardEnabled": true, "routeSource": "WorkloadIPs"})
	node := func(podCIDRs []string, addresses ...string) client.Object {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{PodCIDRs: podCIDRs}}
		for _, address := range addresses {
			made.Status.Addresses = append(made.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
		made.Status.Addresses = append(made.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: "a:b"})
		return made
	}
	node4, node6, nodeBoth := node(nil, "10.0.0.1"), node(nil, "fd00::1"), node(nil, "10.0.0.1", "fd00::1")
	pool4, pool6 := pool("four", "10.1.0.0/16", nil), pool("six", "fd00:1::/48", false)
	type objects = []client.Object
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing":                           {},
		"IPsec":                             {objects{openShift("OVNKubernetes"), ovn(mode("Full"))}, "OVN-Kubernetes by IPsec"},
		"IPsec since before 4.15":           {objects{openShift("OVNKubernetes"), ovn(map[string]any{"ipsecConfig": map[string]any{}})}, "OVN-Kubernetes by IPsec"},
		"IPsec with other networks":         {objects{openShift("OVNKubernetes"), ovn(mode("External"))}, ""},
		"IPsec is off":                      {objects{openShift("OVNKubernetes"), ovn(mode("Disabled"))}, ""},
		"IPsec was never on":                {objects{openShift("OVNKubernetes"), ovn(map[string]any{})}, ""},
		"IPsec without a value":             {objects{openShift("OVNKubernetes"), ovn(map[string]any{"ipsecConfig": nil})}, ""},
		"IPsec before OVN-Kubernetes runs":  {objects{openShift("OpenShiftSDN"), ovn(mode("Full"))}, ""},
		"IPsec before anything runs":        {objects{openShift(""), ovn(mode("Full"))}, ""},
		"IPsec of a plug-in being replaced": {objects{openShift("OVNKubernetes"), ovn(mode("Full"), "Calico")}, ""},

		"Cilium by WireGuard":                    {objects{cilium("kube-system", "enable-wireguard", "true"), ciliumAgents}, "Cilium"},
		"Cilium by IPsec":                        {objects{cilium("kube-system", "enable-ipsec", "true"), ciliumAgents}, "Cilium"},
		"Cilium in plain text":                   {objects{cilium("kube-system", "enable-wireguard", "false"), ciliumAgents}, ""},
		"Cilium was removed":                     {objects{cilium("kube-system", "enable-wireguard", "true")}, ""},
		"Cilium runs on no node":                 {objects{cilium("kube-system", "enable-wireguard", "true"), agents("kube-system", "cilium", 0)}, ""},
		"Cilium of OpenShift":                    {objects{openShift("Cilium"), cilium("cilium", "enable-wireguard", "true"), agents("cilium", "cilium", 3)}, "Cilium"},
		"Cilium of OpenShift in plain text":      {objects{openShift("Cilium"), cilium("cilium", "enable-wireguard", "false"), agents("cilium", "cilium", 3)}, ""},
		"a user's namespace cilium":              {objects{cilium("cilium", "enable-wireguard", "true"), agents("cilium", "cilium", 3)}, ""},
		"a user's namespace cilium on OpenShift": {objects{openShift("OVNKubernetes"), cilium("cilium", "enable-wireguard", "true"), agents("cilium", "cilium", 3)}, ""},
		"Cilium, but OpenShift runs another one": {objects{openShift("OVNKubernetes"), cilium("kube-system", "enable-wireguard", "true"), ciliumAgents}, ""},

		"Calico":                                 {objects{felix(true, nil), pool4, calicoAgents}, "Calico by WireGuard"},
		"Calico from its manifests":              {objects{felix(true, nil), pool4, agents("kube-system", "calico-node", 3)}, "Calico by WireGuard"},
		"Calico of OpenShift":                    {objects{openShift("Calico"), felix(true, nil), pool4, calicoAgents}, "Calico by WireGuard"},
		"Calico for IPv6":                        {objects{felix(false, true), pool6, calicoAgents}, "Calico by WireGuard"},
		"Calico for IPv6, and pods have IPv4":    {objects{felix(false, true), pool4, calicoAgents}, ""},
		"Calico for IPv4, and pods have both":    {objects{felix(true, false), pool4, pool6, calicoAgents}, ""},
		"Calico for IPv6, and pods have both":    {objects{felix(nil, true), pool4, pool6, calicoAgents}, ""},
		"Calico for both":                        {objects{felix(true, true), pool4, pool6, calicoAgents}, "Calico by WireGuard"},
		"Calico for IPv4, and IPv6 is disabled":  {objects{felix(true, nil), pool4, pool("six", "fd00:1::/48", true), calicoAgents}, "Calico by WireGuard"},
		"Calico gives pods no addresses":         {objects{felix(true, true), calicoAgents}, ""},
		"Calico with the addresses of another":   {objects{felix(true, nil), node4, byWorkloads("WorkloadIPs")}, "Calico by WireGuard"},
		"the same, by its configuration":         {objects{byPods, node4, calicoAgents}, "Calico by WireGuard"},
		"the same, which a variable precedes":    {objects{byPods, node4, byWorkloads("CalicoIPAM")}, ""},
		"the same, and routes are of pools":      {objects{felix(true, true), node4, calicoAgents}, ""},
		"the same, and all pools are disabled":   {objects{byPods, node4, pool("four", "10.1.0.0/16", true), calicoAgents}, ""},
		"the same, and nodes are unknown":        {objects{byPods, calicoAgents}, "Calico by WireGuard"},
		"the same, and nodes have both":          {objects{byPods, nodeBoth, calicoAgents}, ""},
		"the same, and pods have both":           {objects{byPods, node([]string{"10.1.0.0/24", "fd00:1::/64"}, "10.0.0.1"), calicoAgents}, ""},
		"the same for both":                      {objects{felix(true, true), nodeBoth, byWorkloads("WorkloadIPs")}, "Calico by WireGuard"},
		"the same for IPv6":                      {objects{felix(nil, true), node6, byWorkloads("WorkloadIPs")}, "Calico by WireGuard"},
		"the same for IPv6, and nodes have IPv4": {objects{felix(nil, true), node4, byWorkloads("WorkloadIPs")}, ""},
		"the same for IPv6, unknown":             {objects{felix(nil, true), byWorkloads("WorkloadIPs")}, ""},
		"Calico in plain text":                   {objects{felix(nil, nil), pool4, calicoAgents}, ""},
		"Calico was removed":                     {objects{felix(true, nil), pool4}, ""},
		"Calico, but OpenShift runs another one": {objects{openShift("OVNKubernetes"), felix(true, nil), pool4, calicoAgents}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := mpitest.FakeAPI()
			for _, object := range test.objects {
				// Several cases share it, and the client changes it.
				api.WithObjects(object.DeepCopyObject().(client.Object))
			}
			by, err := encryption.Find(t.Context(), api.Build())
			if got := strings.Join(by, ", "); got != test.want || err != nil {
				t.Errorf("%q encrypts, want %q; error: %v", got, test.want, err)
			}
		})
	}
}

// TestFindIsRefused: what cannot be read is an error, not the answer that nothing encrypts.
func TestFindIsRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Network", "ConfigMap", "FelixConfiguration", "IPPool", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			refused := errors.New("no right")
			of := func(object runtime.Object) bool {
				is := object.GetObjectKind().GroupVersionKind().Kind
				return is == kind || is == kind+"List"
			}
			felix := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "crd.projectcalico.org/v1", "kind": "FelixConfiguration", "metadata": map[string]any{"name": "default"}, "spec": map[string]any{"wireguardEnabled": true},
			}}
			pool := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": map[string]any{"name": "four"}, "spec": map[string]any{"cidr": "10.1.0.0/16"},
			}}
			objects := []client.Object{felix, pool}
			if kind == "IPPool" {
				// Pools are read only if Calico runs.
				objects = append(objects, &appsv1.DaemonSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "calico-node"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1},
				})
			}
			api := interceptor.NewClient(mpitest.FakeAPI().WithObjects(objects...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if of(object) {
						return refused
					}
					return c.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if of(list) {
						return refused
					}
					return c.List(ctx, list, options...)
				},
			})
			if by, err := encryption.Find(t.Context(), api); len(by) > 0 || !errors.Is(err, refused) {
				t.Errorf("%v encrypts; error: %v", by, err)
			}
		})
	}
}

// TestNodesAreRefused: without the right to read nodes, pods of another plug-in have IPv4. Another failure is an error.
func TestNodesAreRefused(t *testing.T) {
	t.Parallel()
	failed := errors.New("no answer")
	for name, test := range map[string]struct {
		field string
		err   error
		want  int
	}{
		"no right":           {"wireguardEnabled", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil), 1},
		"no right, for IPv6": {"wireguardEnabledV6", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil), 0},
		"no answer":          {"wireguardEnabled", failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			felix := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "crd.projectcalico.org/v1", "kind": "FelixConfiguration", "metadata": map[string]any{"name": "default"},
				"spec": map[string]any{test.field: true, "routeSource": "WorkloadIPs"},
			}}
			agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "calico-node"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}
			api := interceptor.NewClient(mpitest.FakeAPI().WithObjects(felix, agents).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*corev1.NodeList); is {
						return test.err
					}
					return c.List(ctx, list, options...)
				},
			})
			by, err := encryption.Find(t.Context(), api)
			if len(by) != test.want || errors.Is(err, failed) != errors.Is(test.err, failed) {
				t.Errorf("%v encrypts; error: %v", by, err)
			}
		})
	}
}
