package start

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/hack/bench/cluster"
)

// template is that of the manifests of this checkout, with the given images.
func template(t *testing.T, operatorImage, agentImage string) *corev1.PodTemplateSpec {
	t.Helper()
	manifests, err := os.ReadFile("../../../config/manager/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := operatorTemplate(string(manifests), operatorImage, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

func TestOperatorTemplate(t *testing.T) {
	pods := template(t, "operator:earlier", "agent:earlier")
	container := pods.Spec.Containers[0]
	if container.Image != "operator:earlier" {
		t.Errorf("the operator's image is %s", container.Image)
	}
	if !slices.Contains(container.Env, corev1.EnvVar{Name: "AGENT_IMAGE", Value: "agent:earlier"}) {
		t.Errorf("the variables do not have the agent's image: %v", container.Env)
	}
	if container.StartupProbe == nil || pods.Spec.ServiceAccountName != "mpijob-operator" {
		t.Errorf("the template is not that of the manifests: %v", pods.Spec)
	}
	for manifests, failure := range map[string]string{
		"kind: Service\nmetadata: {name: mpijob-operator}":                                                           "no Deployment mpijob-operator",
		"kind: Deployment\nmetadata: {name: mpijob-operator}":                                                        "0 containers",
		"{kind: Deployment, metadata: {name: mpijob-operator}, spec: {template: {spec: {containers: [{name: a}]}}}}": "no variable AGENT_IMAGE",
	} {
		if _, err := operatorTemplate(manifests, "a", "b"); err == nil || !strings.Contains(err.Error(), failure) {
			t.Errorf("the error for %q is %v, want %q", manifests, err, failure)
		}
	}
}

// TestDeployBefore replaces the operator while it has no pods, and puts it back. The test takes the role of the Deployment
// controller.
func TestDeployBefore(t *testing.T) {
	ours, before := template(t, "operator:ours", "agent:ours"), template(t, "operator:earlier", "agent:earlier")
	operator := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Operator.Namespace, Name: cluster.Operator.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1)), Template: *ours, Selector: &metav1.LabelSelector{MatchLabels: ours.Labels}},
		Status:     appsv1.DeploymentStatus{AvailableReplicas: 1},
	}
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Operator.Namespace, Name: "operator-0", Labels: ours.Labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: image}}},
		}
	}
	var states []string
	control := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			scaled := &appsv1.Deployment{}
			if err := c.Get(ctx, cluster.Operator, scaled); err != nil {
				return err
			}
			scaled.Status.AvailableReplicas = *scaled.Spec.Replicas
			if err := c.Status().Update(ctx, scaled); err != nil {
				return err
			}
			if *scaled.Spec.Replicas == 0 {
				states = append(states, "none")
				return c.Delete(ctx, pod(""))
			}
			image := scaled.Spec.Template.Spec.Containers[0].Image
			states = append(states, image)
			return c.Create(ctx, pod(image))
		},
	}
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(operator, pod("operator:ours")).
		WithStatusSubresource(operator).WithInterceptorFuncs(control).Build()
	f := &field{Cluster: &cluster.Cluster{Client: api, Replicas: 1}, before: before}
	putBack, err := f.deployBefore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := putBack(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"none", "operator:earlier", "none", "operator:ours"}, states); diff != "" {
		t.Errorf("the operators that ran differ (-want +got):\n%s", diff)
	}
	var after appsv1.Deployment
	if err := f.Client.Get(t.Context(), cluster.Operator, &after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*ours, after.Spec.Template); diff != "" {
		t.Errorf("our template is not back (-want +got):\n%s", diff)
	}
}
