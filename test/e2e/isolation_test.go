package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Whom NetworkPolicies let through is judged by a table in internal/plan. Here it is tested that they are there, and that the
// network enforces them.

// isolation waits for a NetworkPolicy.
func networkPolicyOf(t *testing.T, namespace, name string) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	eventually(t, "there is the NetworkPolicy "+name, time.Minute, func() error {
		return api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, policy)
	})
	return policy
}

// selected are the pods that a NetworkPolicy is about.
func selected(t *testing.T, policy *networkingv1.NetworkPolicy) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(policy.Namespace), client.MatchingLabels(policy.Spec.PodSelector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// opens reports whether a NetworkPolicy lets pods connect to a port in a rule of its own.
func opens(policy *networkingv1.NetworkPolicy, port int32) bool {
	for _, rule := range policy.Spec.Egress {
		if len(rule.Ports) == 1 && rule.Ports[0].Port.IntVal == port {
			return true
		}
	}
	return false
}

// allow writes where an object lets pods connect to.
func allow(t *testing.T, object client.Object, text string) error {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mpi.AnnotationAllowEgress, text)
	return api.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// goes deletes a job and waits until its NetworkPolicy is gone with it.
func goes(t *testing.T, job client.Object, policy *networkingv1.NetworkPolicy) {
	t.Helper()
	if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the NetworkPolicy is gone with its job", time.Minute, func() error {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(policy), &networkingv1.NetworkPolicy{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// connectScript connects to each place, given as name,address,port, and prints whether that was possible.
const connectScript = `
import socket, sys
for place in sys.argv[1:]:
    name, address, port = place.split(",")
    try:
        socket.create_connection((address, int(port)), 3).close()
        print(name, "reached", flush=True)
    except OSError:
        print(name, "blocked", flush=True)
`

// plainPod runs a command in a pod that belongs to no job, and returns it when it has an address.
func plainPod(t *testing.T, namespace, name string, command ...string) *corev1.Pod {
	t.Helper()
	container := *worker(openMPI(namespace, 1))
	container.Command = command
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{container}},
	}
	if err := api.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pod "+name+" runs", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.PodIP == "" || pod.Status.Phase == corev1.PodPending {
			return fmt.Errorf("it is %s at %q: %w", pod.Status.Phase, pod.Status.PodIP, err)
		}
		return nil
	})
	return pod
}

// TestNetworkEnforcesPolicies: a launcher of either kind reaches the workers of its job, the services of its namespace and the API server, but no other
// job and no other namespace. A pod without a policy reaches no job.
func TestNetworkEnforcesPolicies(t *testing.T) {
	parallel(t, 5)
	own, other := newNamespace(t), newNamespace(t)
	runtimeIn(t, own, "mpi-openmpi")
	running := func(namespace string) string {
		job := agentJob(namespace, "neighbour", "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "mpirun", "-n", "1", "ranks", "--sleep", "600")
		create(t, job)
		waitFor(t, job, "it runs", runs)
		return podsOf(t, job, mpi.RoleWorker)[0].Status.PodIP
	}
	serve := []string{"python3", "-m", "http.server", "8080"}
	service, foreign := plainPod(t, own, "service", serve...).Status.PodIP, plainPod(t, other, "service", serve...).Status.PodIP
	neighbour, stranger, trainer := running(own), running(other), trainingWorker(t, own)
	places := fmt.Sprintf("service,%s,8080 foreign,%s,8080 neighbour,%s,2222 status,%[3]s,2223 trainer,%[4]s,2222 stranger,%[5]s,2222", service, foreign, neighbour, trainer, stranger)
	program := func(worker string) []string {
		return []string{"sh", "-c", `mpirun -n 1 ranks --sleep 1 && python3 -c "$CONNECT" $PLACES apiserver,kubernetes.default.svc,443 worker,` + worker + ",2222"}
	}
	env := []corev1.EnvVar{{Name: "CONNECT", Value: connectScript}, {Name: "PLACES", Value: places}}
	const fromJob = "service reached\nforeign blocked\nneighbour blocked\nstatus blocked\ntrainer blocked\nstranger blocked\napiserver reached\nworker reached\n"

	job := openMPI(own, 1, program("job-worker-0.job")...)
	launcher(job).Env = env
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	if got := output(t, job); !strings.HasSuffix(got, fromJob) {
		t.Errorf("from an MPIJob: %s, want %s", got, fromJob)
	}

	settings, err := json.Marshal(map[string]any{"numNodes": 2, "command": program("pi-node-0-0.pi"), "env": env})
	if err != nil {
		t.Fatal(err)
	}
	train := trainJob(t, own, string(settings))
	createTrainJob(t, train)
	ends(t, train, "Complete")
	if got := printed(t, train); !strings.HasSuffix(got, fromJob) {
		t.Errorf("from a TrainJob: %s, want %s", got, fromJob)
	}

	prober := plainPod(t, own, "prober", append([]string{"python3", "-c", connectScript}, strings.Fields(places)...)...)
	const fromPod = "service reached\nforeign reached\nneighbour blocked\nstatus blocked\ntrainer blocked\nstranger blocked\n"
	eventually(t, "a pod without a policy has connected", time.Minute, func() error {
		got, err := logs.CoreV1().Pods(own).GetLogs(prober.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && string(got) != fromPod {
			err = fmt.Errorf("it printed %q, want %q", got, fromPod)
		}
		return err
	})
}

// trainingWorker runs a TrainJob and returns the address of its worker.
func trainingWorker(t *testing.T, namespace string) (address string) {
	t.Helper()
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}")
	job.SetName("trainer")
	createTrainJob(t, job)
	policy := networkPolicyOf(t, namespace, "trainer.trainjob")
	eventually(t, "the TrainJob's worker runs", time.Minute, func() error {
		for _, pod := range selected(t, policy) {
			if strings.HasPrefix(pod.Name, "trainer-node-") && pod.Status.Phase == corev1.PodRunning {
				address = pod.Status.PodIP
				return nil
			}
		}
		return errors.New("it does not run")
	})
	return address
}

// TestEndpointOfConnectionIsReached: a job reaches a store of another project by its data connection, through a Service whose
// pods listen on another port, if its service account may read the Service. Without the connection or the right, it does not.
func TestEndpointOfConnectionIsReached(t *testing.T) {
	parallel(t, 3)
	own, other := newNamespace(t), newNamespace(t)
	pod := plainPod(t, other, "store", "python3", "-m", "http.server", "8080")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":"store"}}}`))
	if err := api.Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
	create(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "store"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "store"}, Ports: []corev1.ServicePort{{Port: 9000, TargetPort: intstr.FromInt32(8080)}},
	}})
	host := "store." + other + ".svc"
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "data"}, StringData: map[string]string{
		"AWS_S3_ENDPOINT": "http://" + host + ":9000", "AWS_S3_BUCKET": "training",
	}})
	for _, name := range []string{"unconnected", "unread", "connected"} {
		want := "store blocked\n"
		job := openMPI(own, 1, "sh", "-c", `mpirun -n 1 ranks --sleep 1 && python3 -c "$CONNECT" store,`+host+`,9000`)
		job.Name = name
		launcher(job).Env = []corev1.EnvVar{{Name: "CONNECT", Value: connectScript}}
		if name != "unconnected" {
			job.Annotations = map[string]string{mpi.AnnotationConnections: "data"}
		}
		if name == "connected" {
			want = "store reached\n"
			readServices(t, own, other)
		}
		create(t, job)
		waitFor(t, job, "it succeeds", succeeded)
		if got := output(t, job); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// readServices lets the service accounts of a namespace read the Services of another one.
func readServices(t *testing.T, namespace, in string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: in, Name: "read-services"}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}}}})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + namespace}},
	})
}

// openNetwork lets all pods of a namespace connect, as if there were no policies: policies are combined.
func openNetwork(t *testing.T, namespace string) {
	t.Helper()
	err := api.Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "open"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMPIJobIsIsolated: an MPIJob has a NetworkPolicy before it has pods. It selects the job's launcher and workers, and is deleted with
// the job.
func TestMPIJobIsIsolated(t *testing.T) {
	parallel(t, 4)
	namespace := newNamespace(t)
	job := sample(t, "pi", namespace)
	create(t, job)
	policy := networkPolicyOf(t, namespace, "pi")
	waitFor(t, job, "the job succeeds", succeeded)
	launchers := podsOf(t, job, mpi.RoleLauncher)
	if pods := selected(t, policy); len(launchers) != 1 || len(pods) < len(launchers) {
		t.Errorf("it is about %d pods, and the job has %d launchers", len(pods), len(launchers))
	}
	for _, pod := range selected(t, policy) {
		if pod.CreationTimestamp.Before(&policy.CreationTimestamp) {
			t.Errorf("%s was there before its NetworkPolicy", pod.Name)
		}
	}
	goes(t, job, policy)
}

// TestNamespaceAllowsEgress: the annotation is judged when it is written, and reaches a job that is there.
func TestNamespaceAllowsEgress(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := sample(t, "pi", namespace)
	job.Spec.RunPolicy.Suspend = new(true)
	create(t, job)
	policy := networkPolicyOf(t, namespace, "pi")
	where := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := allow(t, where, "2049,nfs"); err == nil || !strings.Contains(err.Error(), `"nfs": must have a port`) {
		t.Errorf("an annotation that names no place is answered by %v", err)
	}
	if err := allow(t, where, "2049"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job's pods may use NFS", time.Minute, func() error {
		if policy = networkPolicyOf(t, namespace, "pi"); !opens(policy, 2049) {
			return fmt.Errorf("it lets out %+v", policy.Spec.Egress)
		}
		return nil
	})
}

// TestTrainJobIsIsolated: a TrainJob has a NetworkPolicy with the ports that its runtime allowed when the job was created. It selects the
// job's launcher and workers, and is deleted with the job.
func TestTrainJobIsIsolated(t *testing.T) {
	parallel(t, 2)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	used := &unstructured.Unstructured{}
	used.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	used.SetNamespace(namespace)
	used.SetName("mpi")
	if err := allow(t, used, "nfs"); err == nil || !strings.Contains(err.Error(), `"nfs": must have a port`) {
		t.Errorf("an annotation that names no place is answered by %v", err)
	}
	if err := allow(t, used, "2049"); err != nil {
		t.Fatal(err)
	}
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '10']}")
	createTrainJob(t, job)
	policy := networkPolicyOf(t, namespace, "pi.trainjob")
	if !opens(policy, 2049) {
		t.Errorf("the runtime allows NFS, and the NetworkPolicy lets out %+v", policy.Spec.Egress)
	}
	if err := allow(t, used, "8080"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job has its pods", time.Minute, func() error {
		if n := len(selected(t, policy)); n != 2 {
			return fmt.Errorf("the NetworkPolicy is about %d pods", n)
		}
		return nil
	})
	ends(t, job, "Complete")
	if now := networkPolicyOf(t, namespace, "pi.trainjob"); now.UID != policy.UID || opens(now, 8080) || !opens(now, 2049) {
		t.Errorf("after its runtime was changed the job's NetworkPolicy lets out %+v", now.Spec.Egress)
	}
	goes(t, job, policy)
}

// TestEncryptionIsRequired: in a namespace that requires that the traffic between pods is encrypted, jobs of both kinds are refused with
// the reason as long as nothing encrypts it, and run when a network plug-in says that it does. The plug-in is simulated by the object in
// which it publishes this.
func TestEncryptionIsRequired(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	within := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	annotate := func(value string) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mpi.AnnotationRequireEncryption, value)
		return api.Patch(t.Context(), within, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if err := annotate("yes"); err == nil || !strings.Contains(err.Error(), `supported values: "true", "false"`) {
		t.Errorf("a value that is not allowed: %v", err)
	}
	if err := annotate("true"); err != nil {
		t.Fatal(err)
	}
	const required = "requires that the traffic between pods is encrypted, and nothing on this cluster is known to do so"
	jobs := func() []client.Object {
		return []client.Object{quickJob(namespace, "mpijob"), trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")}
	}
	for _, job := range jobs() {
		eventually(t, "the job is refused", 30*time.Second, func() error {
			err := submit(t, api, job)
			if err == nil {
				_ = api.Delete(t.Context(), job)
				return errors.New("it was created")
			}
			if !strings.Contains(err.Error(), required) {
				t.Errorf("%T is refused: %v", job, err)
			}
			return nil
		})
	}

	// The configuration alone may be what a plug-in left behind.
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cilium-config"}, Data: map[string]string{"enable-wireguard": "true"}}
	labels := map[string]string{"app": "cilium-of-test"}
	agents := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cilium"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: "agent", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "600"}}},
				},
			},
		},
	}
	for _, object := range []client.Object{config, agents} {
		create(t, object)
		t.Cleanup(func() {
			_ = api.Delete(context.Background(), object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
	}
	for _, job := range jobs() {
		eventually(t, "the job is created", 90*time.Second, func() error { return submit(t, api, job) })
	}
}
