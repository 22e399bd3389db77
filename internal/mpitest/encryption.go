package mpitest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Encrypted returns what a cluster has in which Cilium encrypts the traffic between pods.
func Encrypted() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cilium-config"}, Data: map[string]string{"enable-wireguard": "true"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cilium"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}},
	}
}
