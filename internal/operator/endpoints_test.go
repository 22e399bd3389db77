package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// connection returns the Secret of a data connection with an endpoint.
func connection(namespace, name, endpoint string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{
		"AWS_S3_ENDPOINT": endpoint, name + "_SECRET": "hunter2",
	}}
}

// connectedJob returns a job with data connections.
func connectedJob(namespace, names string) *kubeflow.MPIJob {
	return mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationConnections: names}
	})
}

// storage makes a project with an object storage: a Service on port 80, whose pods listen on 9000 by the name of the port.
func storage(t *testing.T) (namespace string) {
	t.Helper()
	namespace = newNamespace(t)
	labels := map[string]string{"app": "minio"}
	create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "minio", Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "minio", Image: "minio", Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: 9000}}}},
	}})
	create(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "minio"}, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("api")}},
	}})
	return namespace
}

// mayRead lets the service accounts of a namespace read the Services of another one, and list its pods.
func mayRead(t *testing.T, namespace, in string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: in, Name: "read-services"}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}}, {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + namespace}},
	})
}

// TestEndpointsOfConnectionsAreAllowed: the policy of a job allows the endpoints of its connections, also of a Secret that
// appears after the job. Each Secret is read until it is known, also by a later operator. A hostile endpoint opens nothing. The port
// behind a Service of another namespace is only shown to jobs whose service account may read it.
func TestEndpointsOfConnectionsAreAllowed(t *testing.T) {
	t.Parallel()
	namespace, store, closed := newNamespace(t), storage(t), storage(t)
	mayRead(t, namespace, store)
	var reads atomic.Int32
	counted := func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return secretReads{next, namespace, &reads} })
	}
	stop := startWith(t, namespace, counted)
	create(t, connection(namespace, "evil", "http://me:hunter2@[::ffff:169.254.169.254]/hunter2"))
	create(t, connection(namespace, "out", "http://s3.example.com:8333"))
	create(t, connection(namespace, "closed", "http://minio."+closed+".svc"))
	create(t, connectedJob(namespace, "data,evil,out,closed"))
	first := lets(t, namespace, "pi")
	create(t, connection(namespace, "data", "http://minio."+store+".svc/hunter2"))
	policy := lets(t, namespace, "pi", 80, 9000, 8333)
	if policy.UID != first.UID {
		t.Error("the NetworkPolicy was made anew, which leaves pods without one for a moment")
	}
	want := fmt.Sprintf("closed=namespace/%s:80;data=namespace/%s:9000;evil=;out=8333", closed, store)
	if got := policy.Annotations[mpi.AnnotationEndpoints]; got != want {
		t.Errorf("the policy contains the endpoints %q, want %q", got, want)
	}
	to := policy.Spec.Egress[5].To
	if len(to) != 1 || to[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != store {
		t.Errorf("port 9000 is allowed to %+v", to)
	}

	before := reads.Load()
	allow(t, namespace, "2049")
	lets(t, namespace, "pi", 2049, 80, 9000, 8333)
	stop()
	changed := connection(namespace, "data", "http://elsewhere.example.com:1234")
	if err := api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	startWith(t, namespace, counted)
	allow(t, namespace, "2050")
	lets(t, namespace, "pi", 2050, 80, 9000, 8333)
	if again := reads.Load() - before; again != 0 {
		t.Errorf("known connections were read %d times", again)
	}
}

// secretReads counts the reads of single Secrets of a namespace.
type secretReads struct {
	http.RoundTripper
	namespace string
	count     *atomic.Int32
}

func (s secretReads) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && strings.Contains(request.URL.Path, "/namespaces/"+s.namespace+"/secrets/") {
		s.count.Add(1)
	}
	return s.RoundTripper.RoundTrip(request)
}

// TestEndpointsOfTrainJobsAreAllowed is the same for TrainJobs.
func TestEndpointsOfTrainJobsAreAllowed(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	server.runtime(t, "mpi")
	defer server.start(t, func(options *operator.Options) { options.NetworkPolicies = true })()
	job := trainjob.New()
	job.SetNamespace("default")
	job.SetName("pi")
	job.SetAnnotations(map[string]string{mpi.AnnotationConnections: "data"})
	job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"kind": trainjob.RuntimeKind, "name": "mpi"}, "trainer": map[string]any{"command": []any{"mpirun", "pi"}}}
	server.create(t, job)
	policy := &networkingv1.NetworkPolicy{}
	has := func(want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the NetworkPolicy has the endpoints %q", want), func() error {
			if err := server.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "pi.trainjob"}, policy); err != nil {
				return err
			}
			if got := policy.Annotations[mpi.AnnotationEndpoints]; got != want {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		})
	}
	has("")
	server.create(t, connection("default", "data", "http://minio.storage.svc.cluster.local:9000"))
	has("data=namespace/storage:9000")
	last := policy.Spec.Egress[len(policy.Spec.Egress)-1]
	if last.Ports[0].Port.IntVal != 9000 || last.To[0].NamespaceSelector == nil {
		t.Errorf("the last rule is %+v", last)
	}
}

// recorder keeps warnings.
type recorder struct {
	mu    sync.Mutex
	texts []string
}

func (r *recorder) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

// TestDeniedConnectionsAreWarnedOf: what a job's policy will deny is known when the job is created, without the secrets in
// the URLs.
func TestDeniedConnectionsAreWarnedOf(t *testing.T) {
	t.Parallel()
	namespace, store := newNamespace(t), storage(t)
	guarded(t, namespace, func(options *operator.Options) {
		options.NetworkPolicies, options.AllowEgress = true, "7000"
	})
	create(t, connection(namespace, "data", "http://minio."+store+".svc"))
	create(t, connection(namespace, "system", "http://me:hunter2@etcd.kube-system.svc:9000/hunter2"))
	create(t, connection(namespace, "meta", "http://169.254.169.254/hunter2"))
	heard := &recorder{}
	config := rest.CopyConfig(restConfig)
	config.Impersonate, config.WarningHandlerWithContext = rest.ImpersonationConfig{UserName: "ada", Groups: []string{"system:masters"}}, heard
	by, err := client.New(config, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	job := connectedJob(namespace, "data")
	launcher := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
	launcher.Env = []corev1.EnvVar{
		{Name: "STORE", Value: "http://minio." + store + ".svc"},
		{Name: "ALLOWED", Value: "tcp://x.example.com:7000"},
		{Name: "DATABASE", Value: "postgresql://me:hunter2@db.example.com:5432/hunter2"},
	}
	warned := func(job *kubeflow.MPIJob, want ...string) {
		t.Helper()
		eventually(t, "a dry run warns", func() error {
			heard.texts = nil
			if err := by.Create(t.Context(), job.DeepCopy(), client.DryRunAll); err != nil {
				return err
			}
			got := slices.DeleteFunc(slices.Clone(heard.texts), func(text string) bool { return !strings.Contains(text, "NetworkPolicy") })
			if !slices.Equal(got, want) {
				return fmt.Errorf("warnings %q", got)
			}
			return nil
		})
	}
	ask := func(entry string) string {
		return "; to use it, ask an administrator to add " + entry + " to the annotation mpi.opendatahub.io/allow-egress of Namespace " + namespace
	}
	database := "variable DATABASE of the launcher: the job's NetworkPolicy denies connections to db.example.com:5432" + ask("5432")
	port := fmt.Sprintf("metadata.annotations[opendatahub.io/connections]: Secret \"data\", key AWS_S3_ENDPOINT: the job's NetworkPolicy allows port 80 of the pods in Namespace %s; "+
		"if the targetPort of Service minio is another one, ask an administrator to add namespace/%[1]s:TARGETPORT to the annotation mpi.opendatahub.io/allow-egress of Namespace %s, "+
		"or let ServiceAccount default of this Namespace get services and list pods there", store, namespace)
	warned(job, port, database)
	mayRead(t, namespace, store)
	warned(job, database)

	job.Annotations[mpi.AnnotationConnections] = ""
	warned(job, "variable STORE of the launcher: the job's NetworkPolicy denies connections to minio."+store+".svc:80, which is in another project, whether it exists or not"+ask("namespace/"+store+":80, with the port of its pods,"), database)

	const at = "metadata.annotations[opendatahub.io/connections]: Secret "
	for name, want := range map[string]string{
		"system": at + `"system", key AWS_S3_ENDPOINT: the job's NetworkPolicy denies connections to etcd.kube-system.svc:9000, because the namespace kube-system belongs to the cluster` + ask("namespace/kube-system:9000, with the port of its pods,"),
		"meta":   at + `"meta", key AWS_S3_ENDPOINT: the job's NetworkPolicy denies connections to 169.254.169.254:80, because the address is one of the node, the network or the cloud itself`,
	} {
		warned(connectedJob(namespace, name), want)
	}
	allow(t, namespace, "namespace/kube-system:9000,namespace/"+store+",5432")
	warned(connectedJob(namespace, "system"))
	warned(job)
}
