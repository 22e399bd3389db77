package addon

import (
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
)

// kueue is Kueue, which queues jobs until their namespace's quota has room for
// all of their pods. Its readme asks for Kubernetes 1.29.
func kueue() AddOn {
	const module = "sigs.k8s.io/kueue"
	return AddOn{Name: "kueue", Versions: []Version{{Version: "v0.19.2", OldestMinor: 29, Controllers: []Controller{{
		Controller: binaries.Controller{
			Name: "kueue", Version: "v0.19.2", Module: module, Package: module + "/cmd/kueue",
		},
		Manifests: "config", Overlay: "default",
		Namespace: "kueue-system", Deployment: "kueue-controller-manager", Container: "manager",
		Probe: kubeapi.Object{
			Path: "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
			Object: object{
				"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": object{"generateName": "probe-"},
				"spec": object{"namespaceSelector": object{}},
			},
		},
	}}}}}
}
