package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// reviews answers reviews of rights: those in other namespaces are granted if granted contains them, as "user verb resource".
func reviews(granted ...string) func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
	return func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		review, is := object.(*authorizationv1.SubjectAccessReview)
		if !is {
			return c.Create(ctx, object, options...)
		}
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = slices.Contains(granted, fmt.Sprintf("%s %s %s", review.Spec.User, asked.Verb, asked.Resource)) &&
			slices.Contains(review.Spec.Groups, "system:serviceaccounts:ns") && asked.Namespace == "other"
		return nil
	}
}

// serviceOf returns a Service named store, whose port 80 is a named one of its pods, and the pod behind it.
func serviceOf(namespace string) []client.Object {
	labels := map[string]string{"a": "b"}
	return []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store"}, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
			{Name: "a", Port: 80, TargetPort: intstr.FromString("api"), Protocol: corev1.ProtocolTCP},
			{Name: "b", Port: 81, TargetPort: intstr.FromInt32(9001), Protocol: corev1.ProtocolTCP},
		}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store", Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: 9000}}}},
		}},
	}
}

// TestPoliciesShowNoOtherProjects: what a job's policy allows for the endpoints of its connections is the same whatever exists in
// another namespace, unless the service accounts of all of its pods may read it.
func TestPoliciesShowNoOtherProjects(t *testing.T) {
	const launcher, worker = "system:serviceaccount:ns:default", "system:serviceaccount:ns:trainer"
	get := func(user string) string { return user + " get services" }
	list := func(user string) string { return user + " list pods" }
	for name, test := range map[string]struct {
		endpoint        string
		granted         []string
		without, exists string
	}{
		"no right":                        {"http://store.other.svc:81", nil, "namespace/other:81", "namespace/other:81"},
		"no right, a name of two parts":   {"http://store.other:81", nil, "namespace/other:81,81", "namespace/other:81,81"},
		"no right, HTTPS":                 {"https://store.other.svc", nil, "", ""},
		"the right of the launcher alone": {"http://store.other.svc:81", []string{get(launcher)}, "namespace/other:81", "namespace/other:81"},
		"the right of the worker alone":   {"http://store.other.svc:81", []string{get(worker)}, "namespace/other:81", "namespace/other:81"},
		"the right of both":               {"http://store.other.svc:81", []string{get(launcher), get(worker)}, "namespace/other:81", "namespace/other:9001"},
		"a named port, not its pods":      {"http://store.other.svc:80", []string{get(launcher), get(worker), list(worker)}, "namespace/other:80", "namespace/other:80"},
		"a named port and its pods":       {"http://store.other.svc:80", []string{get(launcher), get(worker), list(launcher), list(worker)}, "namespace/other:80", "namespace/other:9000"},
		"the right, a name of two parts":  {"http://store.other:81", []string{get(launcher), get(worker)}, "namespace/other:81,81", "namespace/other:9001"},
		"a service account of a wrong ns": {"http://store.other.svc:81", []string{"system:serviceaccount:other:default get services"}, "namespace/other:81", "namespace/other:81"},
		"a namespace of the cluster":      {"http://store.kube-system.svc:81", nil, "", ""},
		"the job's own namespace":         {"http://store.ns.svc:81", nil, "", ""},
		"an alias in the job's namespace": {"http://alias.ns.svc:81", nil, "namespace/other:81", "namespace/other:81"},
		"what a service account may read": {"http://store.third.svc:81", []string{get(launcher), get(worker)}, "namespace/third:81", "namespace/third:81"},
		"a port that the Service lacks":   {"http://store.other.svc:82", []string{get(launcher), get(worker)}, "namespace/other:82", "namespace/other:82"},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(1, func(j *mpi.Job) { j.Namespace, j.Connections = "ns", []string{"data"} })
			job.Workers.Template.Spec.DeprecatedServiceAccount = "trainer"
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{"AWS_S3_ENDPOINT": []byte(test.endpoint)}}
			alias := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alias"}, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeExternalName, ExternalName: "store.other.svc.cluster.local",
			}}
			allows := func(objects ...client.Object) string {
				live := mpitest.FakeAPI().WithObjects(append(objects, secret, alias)...).
					WithInterceptorFuncs(interceptor.Funcs{Create: reviews(test.granted...)}).Build()
				seen := jobstate.Observed{}
				cluster.New(live, live, nil, clock.RealClock{}).ObserveEndpoints(t.Context(), job, plan.Settings{NetworkPolicies: true}, &seen)
				if seen.EndpointsMissing {
					t.Error("the endpoints are not known")
				}
				return strings.TrimPrefix(seen.Endpoints, "data=")
			}
			if got := allows(); got != test.without {
				t.Errorf("without the Service it allows %q, want %q", got, test.without)
			}
			if got := allows(slices.Concat(serviceOf("other"), serviceOf("third"), serviceOf("kube-system"))...); got != test.exists {
				t.Errorf("with the Service it allows %q, want %q", got, test.exists)
			}
		})
	}
}

// TestUnreviewedRightsAreAskedAgain: without an answer to a review, nothing is known, and nothing is read.
func TestUnreviewedRightsAreAskedAgain(t *testing.T) {
	job := mpitest.Job(1, func(j *mpi.Job) { j.Namespace, j.Connections = "ns", []string{"data"} })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{"URI": []byte("http://store.other.svc:81")}}
	live := mpitest.FakeAPI().WithObjects(append(serviceOf("other"), secret)...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("no answer")
		},
	}).Build()
	seen := jobstate.Observed{}
	cluster.New(live, live, nil, clock.RealClock{}).ObserveEndpoints(t.Context(), job, plan.Settings{NetworkPolicies: true}, &seen)
	if !seen.EndpointsMissing || seen.Endpoints != "" {
		t.Errorf("observed %q, missing: %v", seen.Endpoints, seen.EndpointsMissing)
	}
}

// TestJobWithoutPodsHasNoRights: nothing of another namespace is read for a job that has no pods, and so no service account.
func TestJobWithoutPodsHasNoRights(t *testing.T) {
	job := mpitest.Job(0, func(j *mpi.Job) { j.Namespace, j.Connections, j.Launcher.None = "ns", []string{"data"}, true })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{"URI": []byte("http://store.other.svc:81")}}
	live := mpitest.FakeAPI().WithObjects(append(serviceOf("other"), secret)...).WithInterceptorFuncs(interceptor.Funcs{Create: reviews()}).Build()
	seen := jobstate.Observed{}
	cluster.New(live, live, nil, clock.RealClock{}).ObserveEndpoints(t.Context(), job, plan.Settings{NetworkPolicies: true}, &seen)
	if want := "data=namespace/other:81"; seen.Endpoints != want {
		t.Errorf("it allows %q, want %q", seen.Endpoints, want)
	}
}

// TestWarningsShowNoOtherProjects: the warnings about denied destinations are the same whatever exists in other namespaces, of
// which nothing is read.
func TestWarningsShowNoOtherProjects(t *testing.T) {
	settings := plan.Settings{NetworkPolicies: true}
	home := settings.Home("ns")
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "LONG", Value: "http://store.fourth.svc:80"}, {Name: "SHORT", Value: "http://store.other:81"}, {Name: "SYSTEM", Value: "http://store.kube-system:82"},
		}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{
		"AWS_S3_ENDPOINT": []byte("http://store.openshift-storage.svc:80"), "AWS_ENDPOINT_URL": []byte("http://store.other:2379"), "URI": []byte("http://[::1]:2379"),
		"AWS_ENDPOINT_URL_S3": []byte("http://store.third.svc:80"),
	}}
	warnings := func(services ...client.Object) []string {
		live := mpitest.FakeAPI().WithObjects(append(services, secret)...).WithInterceptorFuncs(interceptor.Funcs{
			Create: reviews(),
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
	without := warnings()
	if diff := cmp.Diff(without, warnings(slices.Concat(serviceOf("other"), serviceOf("third"), serviceOf("fourth"), serviceOf("kube-system"), serviceOf("openshift-storage"))...)); diff != "" {
		t.Errorf("the warnings depend on other projects (-without +with):\n%s", diff)
	}
	want := []string{
		`key AWS_ENDPOINT_URL_S3: the job's NetworkPolicy allows port 80 of the pods in Namespace third; if the targetPort of Service store is another one, ask an administrator to add namespace/third:TARGETPORT to the annotation mpi.opendatahub.io/allow-egress of Namespace ns, or let ServiceAccount default of this Namespace get services and list pods there`,
		"because the namespace openshift-storage belongs to the cluster", "key URI: the endpoint [::1]:2379 is a loopback address",
		"variable LONG of the launcher: the job's NetworkPolicy denies connections to store.fourth.svc:80, which is in another project, whether it exists or not; to use it, ask an administrator to add namespace/fourth:80, with the port of its pods, to",
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

// TestOtherConnections: if a connection does not exist, the names of the others of the namespace are read, and nothing else of Secrets.
func TestOtherConnections(t *testing.T) {
	secret := func(namespace, name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	is := map[string]string{mpi.LabelConnection: "true"}
	api := mpitest.FakeAPI().WithObjects(secret("ns", "b", is), secret("ns", "a", is), secret("ns", "token", nil), secret("other", "c", is)).Build()
	c := cluster.New(api, api, nil, clock.RealClock{})
	home := plan.Settings{}.Home("ns")
	if got := c.Connections(t.Context(), home, []string{"a"}).Others; got != nil {
		t.Errorf("all exist, and the others are %q", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.Connections(t.Context(), home, []string{"a", "none"}).Others); diff != "" {
		t.Errorf("one does not exist, and the others are (-want +got):\n%s", diff)
	}
}
