package operator_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// These tests run the operator, under the rights that config/rbac gives it, against a real kube-apiserver and
// etcd. There is no kubelet and no batch Job controller: the tests play them.

var (
	api        client.Client
	restConfig *rest.Config
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Println("SKIPPED internal/operator: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
		return
	}
	os.Exit(func() int {
		ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
		crds := filepath.Join("..", "..", "config", "crd")
		environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(crds, "kubeflow.org_mpijobs.yaml"), filepath.Join(crds, "mpi.opendatahub.io_jobreports.yaml"), filepath.Join(crds, "mpi.opendatahub.io_runtimetests.yaml"), filepath.Join("testdata", "workloads.yaml"), filepath.Join("testdata", "clusterresourcequotas.yaml")}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute}
		admin, err := environment.Start()
		if err != nil {
			fmt.Fprintln(os.Stderr, "start kube-apiserver and etcd:", err)
			return 1
		}
		defer func() { _ = environment.Stop() }()
		if err := prepare(admin); err != nil {
			fmt.Fprintln(os.Stderr, "prepare the API server:", err)
			return 1
		}
		return m.Run()
	}())
}

// prepare installs the operator's rights and takes its identity for the operators of the tests.
func prepare(admin *rest.Config) error {
	admin.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if api, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := installRights(api); err != nil {
		return err
	}
	restConfig = asOperator(admin)
	return nil
}

// installRights installs the operator's rights, the policies that limit them, and the one without which it runs no RuntimeTests. All tests
// prove that they allow what the operator does.
func installRights(c client.Client) error {
	if err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mpijob-system"}}); err != nil {
		return err
	}
	for _, path := range [][]string{{"rbac", "role.yaml"}, {"rbac", "bindings.yaml"}, {"webhook", "operator.yaml"}, {"webhook", "runtimetests.yaml"}} {
		objects, err := manifests(path...)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() == "ServiceAccount" {
				object.SetNamespace("mpijob-system")
			}
			if err := c.Create(context.Background(), object); err != nil && !unserved(object.GroupVersionKind(), err) {
				return err
			}
		}
	}
	return nil
}

// unserved reports whether an object was not created because the API server, of Kubernetes 1.29, serves no policies: the
// installation there has none (config/without-policies).
func unserved(kind schema.GroupVersionKind, err error) bool {
	return strings.HasPrefix(kind.Kind, "ValidatingAdmissionPolicy") && meta.IsNoMatchError(err)
}

// needsPolicies skips a test of policies where the API server serves none.
func needsPolicies(t *testing.T) {
	t.Helper()
	if !servesPolicies(t) {
		t.Skip("SKIPPED: this API server serves no ValidatingAdmissionPolicies, as Kubernetes before 1.30")
	}
}

func servesPolicies(t *testing.T) bool {
	t.Helper()
	_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}, "v1")
	if err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

// asOperator returns the way to an API server with the identity of the operator.
func asOperator(admin *rest.Config) *rest.Config {
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:mpijob-system:mpijob-operator"}
	return config
}

// manifests reads the objects of a file below config.
func manifests(path ...string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(filepath.Join("..", "..", "config", filepath.Join(path...)))
	if err != nil {
		return nil, err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// start runs an operator on one namespace, for tests run side by side; the returned function stops it.
func start(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	return startWith(t, namespace, func(*rest.Config) {})
}

// startWith is start with another way to the API server.
func startWith(t *testing.T, namespace string, way func(*rest.Config)) (stop func()) {
	t.Helper()
	config := rest.CopyConfig(restConfig)
	way(config)
	return operate(t, config, operator.Options{WatchNamespaces: []string{namespace}, NetworkPolicies: true})
}

// operate runs an operator, which serves nothing but what its options say; the returned function stops it, as the end of
// the test does.
func operate(t *testing.T, config *rest.Config, options operator.Options) (stop func()) {
	t.Helper()
	options.Namespace, options.HealthAddress = "mpijob-system", "0"
	options.MetricsAddress = cmp.Or(options.MetricsAddress, "0")
	// The nodes of other tests are no place for the pods of this one.
	options.GangScheduling = cmp.Or(options.GangScheduling, gang.None)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- operator.Run(ctx, config, options) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("operator: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	return namespace.Name
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func get[T client.Object](t *testing.T, namespace, name string, into T) T {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatalf("get %T %s: %v", into, name, err)
	}
	return into
}

// eventually waits until a check finds nothing wrong.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	eventuallyWithin(t, 30*time.Second, what, check)
}

func eventuallyWithin(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// exists waits for an object that was not there, or not the same, before.
func exists[T client.Object](t *testing.T, namespace, name string, into T, notUID ...string) T {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s", into, name), func() error {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
			return err
		}
		for _, uid := range notUID {
			if string(into.GetUID()) == uid {
				return errors.New("it is still the old one")
			}
		}
		return nil
	})
	return into
}

// says waits until a job has a condition with a status and a reason, and returns the job.
func says(t *testing.T, namespace, name string, kind kubeflow.JobConditionType, status corev1.ConditionStatus, reason string) *kubeflow.MPIJob {
	t.Helper()
	var job kubeflow.MPIJob
	eventually(t, fmt.Sprintf("condition %s=%s (%s)", kind, status, reason), func() error {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &job); err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Status == status && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", job.Status.Conditions)
	})
	return &job
}

func message(job *kubeflow.MPIJob, kind kubeflow.JobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// setPhase plays the kubelet.
func setPhase(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	pod.Status.Phase = phase
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := api.Status().Update(t.Context(), pod); err != nil {
		t.Fatalf("set phase of %s: %v", pod.Name, err)
	}
}

// launcherPod plays the batch Job controller.
func launcherPod(t *testing.T, launcher *batchv1.Job) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: launcher.Namespace, GenerateName: launcher.Name + "-", Labels: launcher.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(launcher, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: launcher.Spec.Template.Spec,
	}
	create(t, pod)
	return pod
}

// finish plays the batch Job controller when the launcher has ended.
func finish(t *testing.T, launcher *batchv1.Job) {
	t.Helper()
	now := metav1.Now()
	launcher.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1,
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatalf("finish the launcher: %v", err)
	}
}

// events waits for a job's events by reason, those that mpi-operator tells, too.
func events(t *testing.T, namespace string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("events %v", want), func() error {
		var list corev1.EventList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		have := map[string]int32{}
		for _, e := range list.Items {
			if e.Source.Component == "mpijob-operator" {
				continue
			}
			if e.Source.Component != "mpi-job-controller" || e.InvolvedObject.Kind != "MPIJob" || e.InvolvedObject.APIVersion != "kubeflow.org/v2beta1" {
				return fmt.Errorf("an event comes from %q about %s: %s", e.Source.Component, e.InvolvedObject.Kind, e.Reason)
			}
			have[e.Reason] += e.Count
		}
		if len(have) != len(want) {
			return fmt.Errorf("events are %v", have)
		}
		for _, reason := range want {
			if have[reason] != 1 {
				return fmt.Errorf("events are %v", have)
			}
		}
		return nil
	})
}

func TestJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 3, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyRunning) }))

	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	for i := range 3 {
		setPhase(t, exists(t, namespace, fmt.Sprintf("pi-worker-%d", i), &corev1.Pod{}), corev1.PodRunning)
	}
	secret := get(t, namespace, "pi-ssh", &corev1.Secret{})
	if len(secret.Data["ssh-privatekey"]) == 0 || len(secret.Data["ssh-publickey"]) == 0 || secret.Type != corev1.SecretTypeSSHAuth {
		t.Errorf("the Secret holds no key pair: type %s, keys %v", secret.Type, len(secret.Data))
	}
	setPhase(t, launcherPod(t, launcher), corev1.PodRunning)
	job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	if active := job.Status.ReplicaStatuses[kubeflow.MPIReplicaTypeWorker].Active; active != 3 {
		t.Errorf("%d workers are active, want 3", active)
	}
	want := "#!/bin/sh\necho pi-worker-0.pi." + namespace + ".svc\necho pi-worker-1.pi." + namespace + ".svc\necho pi-worker-2.pi." + namespace + ".svc\n"
	eventually(t, "discover_hosts.sh lists the workers", func() error {
		if got := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data["discover_hosts.sh"]; got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})

	finish(t, get(t, namespace, "pi-launcher", launcher))
	job = says(t, namespace, "pi", kubeflow.JobSucceeded, corev1.ConditionTrue, "MPIJobSucceeded")
	if job.Status.CompletionTime == nil {
		t.Error("a finished job has no completion time")
	}
	workersAre(t, namespace)
	events(t, namespace, "MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded")
}

func TestWhatBelongsToSomebodyElseIsNotTouched(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stranger := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pi"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	create(t, stranger)
	// This one even wears our labels.
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pi-config", Labels: mpitest.Job(1).Labels()}, Data: map[string]string{"a": "b"}})
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))

	job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "ErrResourceExists")
	t.Log(message(job, kubeflow.JobRunning))
	if now := get(t, namespace, "pi", &corev1.Service{}); now.ResourceVersion != stranger.ResourceVersion {
		t.Error("the stranger's Service was changed")
	}
	if data := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data; len(data) != 1 || data["a"] != "b" {
		t.Errorf("the stranger's ConfigMap was changed to %v", data)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi-worker-0"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("a worker was made without its Service: %v", err)
	}
	if err := errors.Join(api.Delete(t.Context(), stranger), api.Delete(t.Context(), get(t, namespace, "pi-config", &corev1.ConfigMap{}))); err != nil {
		t.Fatal(err)
	}
	exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "PodsStarting")
}

func TestRefusalIsTold(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2, func(o *kubeflow.MPIJob) {
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.PriorityClassName = "no-such-class"
	}))
	job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "ObjectRefused")
	t.Log(message(job, kubeflow.JobRunning))
	events(t, namespace, "MPIJobCreated", "ObjectRefused")
}

func TestInvalidJobSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 0, func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = new(int32(-1)) }))
	job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "ValidationError")
	want := "Invalid job (2 errors): spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be 1 or more; omit Worker for a job with only a launcher; " +
		"spec.slotsPerWorker: Invalid value: -1: must be 0 or more: it is the number of ranks per worker"
	if got := message(job, kubeflow.JobRunning); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	events(t, namespace, "ValidationError")
	var services corev1.ServiceList
	if err := api.List(t.Context(), &services, client.InNamespace(namespace)); err != nil || len(services.Items) > 0 {
		t.Errorf("an invalid job has objects: %v %v", services.Items, err)
	}
	// Mended, it runs.
	job.Spec.SlotsPerWorker = new(int32(1))
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(1))
	if err := api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	exists(t, namespace, "pi-worker-0", &corev1.Pod{})
}

func TestWhatIsRemovedOrChangedByHandComesBack(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2))
	exists(t, namespace, "pi-launcher", &batchv1.Job{})
	kept := exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	for name, object := range map[string]client.Object{
		"pi": &corev1.Service{}, "pi-config": &corev1.ConfigMap{}, "pi-ssh": &corev1.Secret{}, "pi-worker-0": &corev1.Pod{},
	} {
		exists(t, namespace, name, object)
		uid := string(object.GetUID())
		if err := api.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatalf("delete %T: %v", object, err)
		}
		exists(t, namespace, name, object, uid)
	}
	config := get(t, namespace, "pi-config", &corev1.ConfigMap{})
	config.Data["hostfile"] = "elsewhere slots=8\n"
	service := get(t, namespace, "pi", &corev1.Service{})
	service.Spec.Selector = map[string]string{"a": "b"}
	if err := errors.Join(api.Update(t.Context(), config), api.Update(t.Context(), service)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "changes by hand are mended", func() error {
		hostfile := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data["hostfile"]
		selector := get(t, namespace, "pi", &corev1.Service{}).Spec.Selector
		if hostfile != fmt.Sprintf("pi-worker-0.pi.%[1]s.svc slots=1\npi-worker-1.pi.%[1]s.svc slots=1\n", namespace) || selector[mpi.LabelJob] != "pi" {
			return fmt.Errorf("hostfile is %q, selector %v", hostfile, selector)
		}
		return nil
	})
	if now := get(t, namespace, "pi-worker-1", &corev1.Pod{}); now.UID != kept.UID {
		t.Error("a worker that nobody touched was made anew")
	}
}

// TestObjectsOfMPIOperatorAreAdopted: mpi-operator labels pods only; its jobs go on under this operator.
func TestObjectsOfMPIOperatorAreAdopted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := mpitest.MPIJob(namespace, 1)
	create(t, object)
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(object, kubeflow.SchemeGroupVersionKind)}
	made := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owner, Labels: map[string]string{"app": "pi"}}
	}
	launcher := &batchv1.Job{ObjectMeta: made("pi-launcher"), Spec: batchv1.JobSpec{Template: mpitest.Template()}}
	launcher.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	launcher.Spec.Template.Labels = map[string]string{mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "pi", mpi.LabelRole: "launcher"}
	secret := &corev1.Secret{ObjectMeta: made("pi-ssh"), Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{"ssh-privatekey": []byte("k"), "ssh-publickey": []byte("p")}}
	create(t, launcher)
	setPhase(t, launcherPod(t, launcher), corev1.PodRunning)
	create(t, secret)
	create(t, &corev1.Service{ObjectMeta: made("pi"), Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: mpitest.Job(1).Selector()}})
	create(t, &corev1.ConfigMap{ObjectMeta: made("pi-config")})
	start(t, namespace)

	eventually(t, "all is labelled and as it should be", func() error {
		for name, object := range map[string]client.Object{"pi": &corev1.Service{}, "pi-config": &corev1.ConfigMap{}, "pi-ssh": &corev1.Secret{}, "pi-launcher": &batchv1.Job{}} {
			if labels := get(t, namespace, name, object).GetLabels(); labels[mpi.LabelJob] != "pi" || labels[mpi.LabelOperator] != mpi.OperatorName {
				return fmt.Errorf("%T has the labels %v", object, labels)
			}
		}
		if !get(t, namespace, "pi", &corev1.Service{}).Spec.PublishNotReadyAddresses {
			return errors.New("the Service does not publish addresses of pods that are not ready")
		}
		return nil
	})
	setPhase(t, exists(t, namespace, "pi-worker-0", &corev1.Pod{}), corev1.PodRunning)
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	if now := get(t, namespace, "pi-launcher", &batchv1.Job{}); now.UID != launcher.UID {
		t.Error("the running launcher was replaced")
	}
	if now := get(t, namespace, "pi-ssh", &corev1.Secret{}); string(now.Data["ssh-privatekey"]) != "k" {
		t.Error("the keys of a running job were changed")
	}
}

func TestRestartChangesNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2))
	for i := range 2 {
		setPhase(t, exists(t, namespace, fmt.Sprintf("pi-worker-%d", i), &corev1.Pod{}), corev1.PodRunning)
	}
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	setPhase(t, launcherPod(t, launcher), corev1.PodRunning)
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	stop()

	versions := func() map[string]string {
		all := map[string]string{}
		for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}, &batchv1.JobList{}, &kubeflow.MPIJobList{}, &corev1.EventList{}} {
			if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			err := meta.EachListItem(list, func(item runtime.Object) error {
				object := item.(client.Object)
				all[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	before := versions()
	start(t, namespace)
	// A change that the operator must answer, in another job, tells that it has looked at this one too.
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Name = "other" }))
	exists(t, namespace, "other-worker-0", &corev1.Pod{})
	after := versions()
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written although nothing had changed", name)
		}
	}
}

func TestFinishedJobIsRemovedAfterItsTTL(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(2)) }))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	if launcher.Spec.TTLSecondsAfterFinished != nil {
		t.Error("the launcher has the TTL too and would vanish from under its job")
	}
	finish(t, launcher)
	eventually(t, "the job is removed", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi"}, &kubeflow.MPIJob{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

func TestJobOfAnotherManagerIsLeftAlone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.ManagedBy = new(kubeflow.MultiKueueController) }))
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Name = "ours" }))
	says(t, namespace, "ours", kubeflow.JobCreated, corev1.ConditionTrue, "MPIJobCreated")
	if status := get(t, namespace, "pi", &kubeflow.MPIJob{}).Status; len(status.Conditions) > 0 {
		t.Errorf("its status was written: %+v", status)
	}
}

func TestManyWorkers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	const workers = 200
	create(t, mpitest.MPIJob(namespace, workers))
	eventually(t, "all workers exist", func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelRole: "worker"}); err != nil {
			return err
		}
		if len(pods.Items) != workers {
			return fmt.Errorf("%d exist", len(pods.Items))
		}
		return nil
	})
}
