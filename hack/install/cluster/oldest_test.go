package cluster

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/hack/install/manifests"
)

// TestManifests applies what make deploy applies to an API server of any version, with and without policies: all objects are accepted, the
// CRDs are established, and a job of theirs is validated. make oldest runs it on the oldest version.
func TestManifests(t *testing.T) {
	a, _ := startAPIServer(t)
	folder := "default"
	if !servesPolicies(t, a) {
		folder = "without-policies"
	}
	applyAll(a, folder)
	a.wantCRDs(true)
	for _, name := range []string{"mpijobs.kubeflow.org", "jobreports.mpi.opendatahub.io", "runtimetests.mpi.opendatahub.io"} {
		a.eventually(name+" is established", 30*time.Second, func() bool {
			conditions, _, _ := unstructured.NestedSlice(a.get(crd(name)).Object, "status", "conditions")
			states := map[string]string{}
			for _, c := range conditions {
				states[c.(map[string]any)["type"].(string)] = c.(map[string]any)["status"].(string)
			}
			if states["NonStructuralSchema"] == "True" {
				t.Fatalf("the schema of %s is not structural: %v", name, conditions)
			}
			return states["Established"] == "True" && states["NamesAccepted"] == "True"
		})
	}
	pi := readYAML(t, "config/samples/pi.yaml")
	pi.SetNamespace("default")
	// The webhooks have no server here.
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		if err := a.DeleteAllOf(t.Context(), object("admissionregistration.k8s.io/v1", kind, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Create(t.Context(), pi); err != nil {
		t.Errorf("a job is refused: %v", err)
	}
	wrong := readYAML(t, "config/samples/pi.yaml")
	wrong.SetNamespace("default")
	wrong.SetName("wrong")
	if err := unstructured.SetNestedField(wrong.Object, "Slurm", "spec", "mpiImplementation"); err != nil {
		t.Fatal(err)
	}
	if err := a.Create(t.Context(), wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a job with an unknown implementation returns %v, want that it is invalid", err)
	}
}

// TestPolicies: the API server compiles the expressions of all policies. Kubernetes 1.29 has them behind a gate, as a beta: this shows that
// the first versions that enforce them, 1.30 and 1.31, know all functions that they call.
func TestPolicies(t *testing.T) {
	a, _ := startAPIServer(t)
	version := "v1"
	if !servesPolicies(t, a) {
		version = "v1beta1"
		a = startBetaPolicies(t)
	}
	objects, err := manifests.Build(root + "/config/default")
	if err != nil {
		t.Fatal(err)
	}
	create := func(o *unstructured.Unstructured) error {
		o.SetAPIVersion("admissionregistration.k8s.io/" + version)
		return a.Create(t.Context(), o)
	}
	policies := 0
	for _, o := range append(objects, readObjects(t, root+"/config/olm/reports.yaml")...) {
		if !strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			continue
		}
		policies++
		if err := create(o); err != nil {
			t.Errorf("%s: %v", manifests.Key(o), err)
		}
	}
	if policies < 10 {
		t.Errorf("there are %d policies and bindings", policies)
	}
	wrong := object("admissionregistration.k8s.io/"+version, "ValidatingAdmissionPolicy", "", "wrong")
	wrong.Object["spec"] = map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"}}}},
		"validations":      []any{map[string]any{"expression": "object.metadata.name.noFunction()"}},
	}
	if err := create(wrong); err == nil || !strings.Contains(err.Error(), "noFunction") {
		t.Errorf("a policy that calls an unknown function returns %v: expressions are not compiled", err)
	}
}

func servesPolicies(t *testing.T, a api) bool {
	t.Helper()
	_, err := a.RESTMapper().RESTMapping(schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}, "v1")
	return err == nil
}

// startBetaPolicies starts an API server that serves the policies of Kubernetes 1.29.
func startBetaPolicies(t *testing.T) api {
	t.Helper()
	environment := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute}
	environment.ControlPlane.GetAPIServer().Configure().
		Append("feature-gates", "ValidatingAdmissionPolicy=true").
		Append("runtime-config", "admissionregistration.k8s.io/v1beta1=true")
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start kube-apiserver and etcd: %v", err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return api{t, c}
}

// applyAll applies a folder of config, its namespace first.
func applyAll(a api, folder string) {
	a.t.Helper()
	objects, err := manifests.Build(root + "/config/" + folder)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, first := range []bool{true, false} {
		for _, o := range objects {
			if (o.GetKind() == "Namespace") != first {
				continue
			}
			if err := a.Apply(a.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
				a.t.Fatalf("apply %s: %v", manifests.Key(o), err)
			}
		}
	}
}
