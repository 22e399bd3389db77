package operator_test

import (
	"context"
	"slices"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
	"opendatahub.io/mpijob/internal/plan"
)

// node makes a node with a label, a kubelet and a container runtime.
func node(t *testing.T, pool, runtime string) {
	t.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-", Labels: map[string]string{"pool": pool}}}
	create(t, object)
	t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	object.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.37.1", ContainerRuntimeVersion: runtime}
	if err := api.Status().Update(t.Context(), object); err != nil {
		t.Fatalf("set the runtime of %s: %v", object.Name, err)
	}
}

// keepsImageVolumes reports whether the API server keeps the image volumes of pods; older ones drop the field.
func keepsImageVolumes(t *testing.T) bool {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "image-volume"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "main:1"}},
		Volumes:    []corev1.Volume{{Name: agentapi.Volume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "agent:1"}}}},
	}}
	if err := api.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	return plan.KeepsImageVolume(pod)
}

// TestAgentIsDeliveredAsNodesAllow: the pods of a job mount the agent's image if all nodes that they may run on support it,
// and copy it by an init container otherwise.
func TestAgentIsDeliveredAsNodesAllow(t *testing.T) {
	pools := map[string]struct {
		runtimes []string
		wanted   plan.Delivery
		image    bool
	}{
		"new":    {[]string{"containerd://2.4.2"}, plan.AutoDelivery, true},
		"mixed":  {[]string{"containerd://2.4.2", "containerd://1.7.27"}, plan.AutoDelivery, false},
		"crio":   {[]string{"cri-o://1.37.0"}, plan.AutoDelivery, false},
		"forced": {[]string{"cri-o://1.37.0"}, plan.ImageVolume, true},
		"off":    {[]string{"containerd://2.4.2"}, plan.InitContainer, false},
	}
	for pool, test := range pools {
		t.Run(pool, func(t *testing.T) {
			if test.image && !keepsImageVolumes(t) {
				t.Skip("SKIPPED: this API server drops image volumes, as Kubernetes before 1.35 by default")
			}
			for _, runtime := range test.runtimes {
				node(t, pool, runtime)
			}
			namespace := newNamespace(t)
			operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, AgentImage: "agent:1", AgentDelivery: test.wanted})
			create(t, mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) {
				for _, role := range job.Spec.MPIReplicaSpecs {
					role.Template.Spec.NodeSelector = map[string]string{"pool": pool}
				}
			}))
			worker := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
			launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
			for name, spec := range map[string]corev1.PodSpec{"worker": worker.Spec, "launcher": launcher.Spec.Template.Spec} {
				mounts := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
					return v.Name == agentapi.Volume && v.Image != nil && v.Image.Reference == "agent:1"
				})
				copies := slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == agentapi.Container })
				if mounts != test.image || copies == test.image {
					t.Errorf("the %s mounts the agent's image: %t, has an init container: %t; want %t, %t", name, mounts, copies, test.image, !test.image)
				}
			}
		})
	}
}
