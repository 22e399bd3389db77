package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/operator"
)

// trainerServer is an API server with the kinds of Kubeflow Trainer, of which nobody makes anything.
type trainerServer struct {
	config *rest.Config
	client client.Client
}

// newTrainerServer starts one, with the CRDs in further files. It takes any TrainJob but those with the image "refused".
func newTrainerServer(t *testing.T, more ...string) trainerServer {
	t.Helper()
	kind := func(group, version, plural, kind string, scope apiextensions.ResourceScope) *apiextensions.CustomResourceDefinition {
		spec := apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		if kind == trainjob.Kind {
			spec.Properties = map[string]apiextensions.JSONSchemaProps{"trainer": {
				Type: "object", XPreserveUnknownFields: new(true), Properties: map[string]apiextensions.JSONSchemaProps{"image": {Type: "string", Pattern: "^[^r]"}},
			}}
		}
		return &apiextensions.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
			Spec: apiextensions.CustomResourceDefinitionSpec{
				Group: group, Scope: scope,
				Names: apiextensions.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensions.CustomResourceDefinitionVersion{{
					Name: version, Served: true, Storage: true,
					Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
							"spec": spec, "status": {Type: "object", XPreserveUnknownFields: new(true)},
						},
					}},
				}},
			},
		}
	}
	trainer := trainjob.GroupVersion
	crds := filepath.Join("..", "..", "config", "crd")
	environment := &envtest.Environment{
		CRDDirectoryPaths: append([]string{
			filepath.Join(crds, "kubeflow.org_mpijobs.yaml"), filepath.Join(crds, "mpi.opendatahub.io_jobreports.yaml"), filepath.Join(crds, "mpi.opendatahub.io_runtimetests.yaml"),
		}, more...),
		CRDs: []*apiextensions.CustomResourceDefinition{
			kind(trainer.Group, trainer.Version, "trainjobs", trainjob.Kind, apiextensions.NamespaceScoped),
			kind(trainer.Group, trainer.Version, "trainingruntimes", trainjob.RuntimeKind, apiextensions.NamespaceScoped),
			kind(trainer.Group, trainer.Version, "clustertrainingruntimes", trainjob.ClusterRuntimeKind, apiextensions.ClusterScoped),
			kind(trainjob.JobSetKind.Group, trainjob.JobSetKind.Version, "jobsets", trainjob.JobSetKind.Kind, apiextensions.NamespaceScoped),
		},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start kube-apiserver and etcd: %v", err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := installRights(made); err != nil {
		t.Fatal(err)
	}
	return trainerServer{config: config, client: made}
}

func (s trainerServer) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// start runs an operator; the returned function stops it.
func (s trainerServer) start(t *testing.T, change ...func(*operator.Options)) (stop func()) {
	t.Helper()
	options := operator.Options{Namespace: "mpijob-system", HealthAddress: "0", MetricsAddress: "0"}
	for _, c := range change {
		c(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- operator.Run(ctx, asOperator(s.config), options)
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("operator: %v", err)
		}
	}
}

// runtime puts the base of our runtimes into the namespace default as a TrainingRuntime of a name, changed in its text.
func (s trainerServer) runtime(t *testing.T, name string, change ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "runtimes", "base", "runtime.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(change...).Replace(string(data))), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetKind(trainjob.RuntimeKind)
	object.SetNamespace("default")
	object.SetName(name)
	s.create(t, object)
}

func runtimeTest(name, runtime string, change ...func(*v1alpha1.RuntimeTest)) *v1alpha1.RuntimeTest {
	test := &v1alpha1.RuntimeTest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	test.Spec.RuntimeRef = v1alpha1.RuntimeReference{Name: runtime, Kind: trainjob.RuntimeKind}
	for _, c := range change {
		c(test)
	}
	return test
}

// says waits until a test is in a phase and says something.
func (s trainerServer) says(t *testing.T, test *v1alpha1.RuntimeTest, phase v1alpha1.TestPhase, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the test %s is %s", test.Name, phase), func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(test), test); err != nil {
			return err
		}
		if test.Status.Phase != phase || !strings.Contains(test.Status.Message, text) {
			return fmt.Errorf("it is %q: %s", test.Status.Phase, test.Status.Message)
		}
		return nil
	})
}

// jobs are the names of all TrainJobs.
func (s trainerServer) jobs(t *testing.T) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.Kind + "List"))
	if err := s.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names
}

// TestRuntimeTestRefusals: what cannot be tested says why, and leaves nothing; what goes on outlasts the operator.
func TestRuntimeTestRefusals(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	server := newTrainerServer(t)
	server.runtime(t, "mpi")
	server.runtime(t, "torch", "mpi:", "torch:", "mpi-implementation: OpenMPI", "other: annotation")
	stop := server.start(t)

	missing, other := runtimeTest("missing", "none"), runtimeTest("other", "torch")
	refused := runtimeTest("refused", "mpi", func(test *v1alpha1.RuntimeTest) { test.Spec.Image = "refused" })
	server.create(t, missing)
	server.create(t, other)
	server.create(t, refused)
	server.says(t, missing, v1alpha1.TestFailed, "TrainingRuntime none does not exist in namespace default")
	server.says(t, other, v1alpha1.TestFailed, "is not an MPI runtime")
	for _, check := range missing.Status.Checks {
		if check.Result != v1alpha1.CheckUnknown {
			t.Errorf("%s is %s, though nothing was tried", check.Name, check.Result)
		}
	}
	server.says(t, refused, v1alpha1.TestFailed, "The cluster does not take the test's job")
	if left := server.jobs(t); len(left) > 0 {
		t.Fatalf("tests that cannot be made have left the TrainJobs %v", left)
	}

	slow := runtimeTest("slow", "mpi", func(test *v1alpha1.RuntimeTest) {
		test.Spec.TimeoutSeconds, test.Spec.TTLSecondsAfterFinished = 15, new(int32(3600))
	})
	server.create(t, slow)
	server.says(t, slow, v1alpha1.TestRunning, "Waiting for Kubeflow Trainer")
	ref := slow.Status.JobRef
	stop()
	defer server.start(t)()
	server.says(t, slow, v1alpha1.TestFailed, "Timed out after 15 s")
	if ref == nil || slow.Status.JobRef == nil || *slow.Status.JobRef != *ref {
		t.Errorf("its job was %+v, and is %+v with another operator", ref, slow.Status.JobRef)
	}
	eventually(t, "its job is gone", func() error {
		if left := server.jobs(t); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})

	doomed := runtimeTest("doomed", "mpi")
	server.create(t, doomed)
	server.says(t, doomed, v1alpha1.TestRunning, "")
	eventually(t, "its job is made", func() error {
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(doomed), doomed); err != nil || doomed.Status.JobRef == nil {
			return fmt.Errorf("%w: its status is %+v", err, doomed.Status)
		}
		return nil
	})
	job := trainjob.New()
	job.SetNamespace("default")
	job.SetName(doomed.Status.JobRef.Name)
	if err := server.client.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	server.says(t, doomed, v1alpha1.TestFailed, "was deleted before it had ended")

	doomed.Spec.TimeoutSeconds = 20
	if err := server.client.Update(t.Context(), doomed); !apierrors.IsInvalid(err) {
		t.Errorf("a test can be changed: %v", err)
	}
	expired := runtimeTest("expired", "none", func(test *v1alpha1.RuntimeTest) { test.Spec.TTLSecondsAfterFinished = new(int32(0)) })
	server.create(t, expired)
	eventually(t, "a test whose time is over is gone", func() error {
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(expired), expired); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is %+v: %w", expired.Status, err)
		}
		return nil
	})
}

// TestRuntimeTestWithoutTrainer: where there is no Trainer a test waits for it, and says so.
func TestRuntimeTestWithoutTrainer(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	namespace := newNamespace(t)
	test := runtimeTest("early", "mpi")
	test.Namespace = namespace
	create(t, test)
	start(t, namespace)
	trainerServer{client: api}.says(t, test, v1alpha1.TestPending, "Kubeflow Trainer is not installed")
}

// TestRuntimeTestRights: who may not create TrainJobs cannot have the operator do it.
func TestRuntimeTestRights(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	server := newTrainerServer(t)
	tests := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runtimetests"}, Verbs: []string{"create"}}
	jobs := rbacv1.PolicyRule{APIGroups: []string{trainjob.GroupVersion.Group}, Resources: []string{"trainjobs"}, Verbs: []string{"create"}}
	server.allow(t, "tester", tests)
	server.allow(t, "user", tests, jobs)
	as := func(user string) client.Client {
		config := rest.CopyConfig(server.config)
		// A right that comes with a group counts as well.
		config.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{user, "system:authenticated"}}
		made, err := client.New(config, client.Options{Scheme: server.client.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	eventually(t, "a test by one who may not create TrainJobs is refused", func() error {
		err := as("tester").Create(t.Context(), runtimeTest("test", "mpi"), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "somebody may not create TrainJobs in the namespace default") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if err := as("user").Create(t.Context(), runtimeTest("test", "mpi")); err != nil {
		t.Errorf("one who may create TrainJobs may not test: %v", err)
	}
}

// allow gives a group rights in the namespace default.
func (s trainerServer) allow(t *testing.T, group string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: group}
	s.create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	s.create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: group},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	})
}
