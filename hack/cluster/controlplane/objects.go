package controlplane

import "opendatahub.io/mpijob/hack/cluster/kubeapi"

// Objects are the API objects that the control plane needs to work: that the
// API server may ask kubelets for logs and exec. Kubernetes makes the role
// itself and leaves it to the installer who has it.
func Objects() []kubeapi.Object {
	type object = map[string]any
	return []kubeapi.Object{{
		Path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-apiserver-kubelet",
		Object: object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": "kube-apiserver-kubelet"},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KubeletClientUser}},
		},
	}}
}
