package controlplane

import (
	"context"
	"fmt"

	"opendatahub.io/mpijob/hack/cluster/certs"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
	"opendatahub.io/mpijob/hack/cluster/layout"
)

// EtcdHealth returns nil when etcd serves its clients.
func EtcdHealth(ctx context.Context, store certs.Store) error {
	client, err := kubeapi.New(fmt.Sprintf("https://127.0.0.1:%d", layout.EtcdPort),
		store.Cert(etcdCA), store.Cert(etcdClient), store.Key(etcdClient))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	var health struct {
		Health, Reason string
	}
	if err := client.Get(ctx, "/health", &health); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if health.Health != "true" {
		return fmt.Errorf("etcd: %s", health.Reason)
	}
	return nil
}

// Objects are the API objects that the control plane needs to work: that the
// API server may ask kubelets for logs and exec, whose role Kubernetes makes
// itself and leaves to the installer, and that the policy agent may read what
// NetworkPolicies are about.
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
	}, {
		Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + policyUser,
		Object: object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": object{"name": policyUser},
			"rules": []object{
				{"apiGroups": []string{""}, "resources": []string{"pods", "namespaces"}, "verbs": []string{"list", "watch"}},
				{"apiGroups": []string{"networking.k8s.io"}, "resources": []string{"networkpolicies"}, "verbs": []string{"list", "watch"}},
			},
		},
	}, {
		Path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + policyUser,
		Object: object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": policyUser},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": policyUser},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": policyUser}},
		},
	}}
}
