package cluster_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestWarningsShowNoOtherProjects: the warnings about denied destinations are the same whatever exists in other namespaces, of
// which nothing is read.
func TestWarningsShowNoOtherProjects(t *testing.T) {
	settings := plan.Settings{NetworkPolicies: true}
	home := settings.Home("ns")
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "LONG", Value: "http://store.other.svc:80"}, {Name: "SHORT", Value: "http://store.other:81"}, {Name: "SYSTEM", Value: "http://store.kube-system:82"},
		}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{
		"AWS_S3_ENDPOINT": []byte("http://store.openshift-storage.svc:80"), "AWS_ENDPOINT_URL": []byte("http://store.other:2379"), "URI": []byte("http://[::1]:2379"),
	}}
	warnings := func(services ...client.Object) []string {
		live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(services, secret)...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if key.Namespace != "ns" && key.Namespace != "" {
					t.Errorf("%T %s is read", into, key)
				}
				return c.Get(ctx, key, into, options...)
			},
		}).Build()
		c := cluster.New(live, live, nil, clock.RealClock{})
		return c.DeniedConnections(t.Context(), job, settings, c.Connections(t.Context(), home, []string{"data"}))
	}
	service := func(namespace string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{
				{Name: "a", Port: 80, TargetPort: intstr.FromInt32(9000), Protocol: corev1.ProtocolTCP},
				{Name: "b", Port: 81, TargetPort: intstr.FromInt32(9001), Protocol: corev1.ProtocolTCP},
				{Name: "c", Port: 82, TargetPort: intstr.FromInt32(9002), Protocol: corev1.ProtocolTCP},
				{Name: "d", Port: 2379, TargetPort: intstr.FromInt32(9003), Protocol: corev1.ProtocolTCP},
			},
		}}
	}
	without := warnings()
	if diff := cmp.Diff(without, warnings(service("other"), service("kube-system"), service("openshift-storage"))); diff != "" {
		t.Errorf("the warnings depend on other projects (-without +with):\n%s", diff)
	}
	want := []string{
		"because the namespace openshift-storage belongs to the cluster", "key URI: the endpoint [::1]:2379 is a loopback address",
		"variable LONG of the launcher: the job's NetworkPolicy denies connections to store.other.svc:80, which is in another project, whether it exists or not; to use it, ask an administrator to add namespace/other:80, with the port of its pods, to",
		"variable SYSTEM of the launcher: the job's NetworkPolicy denies connections to store.kube-system:82",
	}
	if len(without) != len(want) {
		t.Fatalf("the warnings are %q", without)
	}
	for i, text := range without {
		if !strings.Contains(text, want[i]) {
			t.Errorf("warning %d is %q, want %q in it", i, text, want[i])
		}
	}
}
