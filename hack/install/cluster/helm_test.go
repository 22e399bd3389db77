package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/chart"
	"opendatahub.io/mpijob/hack/install/manifests"
)

const (
	root        = "../../.."
	release     = "mpijob-operator"
	helmTimeout = 2 * time.Minute
)

var crdNames = []string{"jobreports.mpi.opendatahub.io", "mpijobs.kubeflow.org", "runtimetests.mpi.opendatahub.io"}

// helm installs one release of the chart, as the commands of Helm do.
type helm struct {
	t         *testing.T
	config    *action.Configuration
	namespace string
	// wait is whether commands wait until the operator is ready.
	wait kube.WaitStrategy
	// values are those of every command.
	values string
}

func newHelm(t *testing.T, kubeconfig, namespace string, wait kube.WaitStrategy, values string) helm {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(namespace)
	config := action.NewConfiguration()
	config.SetLogger(slog.DiscardHandler)
	if err := config.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return helm{t, config, namespace, wait, values}
}

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	loaded, err := chart.Load(root + "/charts/mpijob-operator")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// parse returns the values of the release with others, which are texts of YAML, each replacing those before.
func (h helm) parse(more string) map[string]any {
	h.t.Helper()
	var values, others map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(h.values), &values), yaml.Unmarshal([]byte(more), &others)); err != nil {
		h.t.Fatal(err)
	}
	if values == nil {
		values = map[string]any{}
	}
	maps.Copy(values, others)
	return values
}

// install is helm install --create-namespace, and with take also --take-ownership --force-conflicts.
func (h helm) install(source *chartv2.Chart, values string, take bool) error {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, h.namespace, true
	install.WaitStrategy, install.Timeout = h.wait, helmTimeout
	install.TakeOwnership, install.ForceConflicts = take, take
	h.forget()
	_, err := install.RunWithContext(h.t.Context(), source, h.parse(values))
	return err
}

// forget makes the next command ask the API server for its kinds, as a new process does.
func (h helm) forget() { h.config.Capabilities = nil }

func (h helm) mustInstall(values string, take bool) {
	h.t.Helper()
	defer h.step("helm install")()
	if err := h.install(load(h.t), values, take); err != nil {
		h.t.Fatalf("helm install: %v", err)
	}
}

// mustUpgrade is helm upgrade, and with take also --force-conflicts: kubectl still manages the fields that it has applied.
func (h helm) mustUpgrade(source *chartv2.Chart, values string, take bool) {
	h.t.Helper()
	defer h.step("helm upgrade")()
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout, upgrade.ServerSideApply = h.namespace, h.wait, helmTimeout, "auto"
	upgrade.ForceConflicts = take
	h.forget()
	if _, err := upgrade.RunWithContext(h.t.Context(), release, source, h.parse(values)); err != nil {
		h.t.Fatalf("helm upgrade: %v", err)
	}
}

func (h helm) mustRollback(revision int) {
	h.t.Helper()
	defer h.step("helm rollback")()
	rollback := action.NewRollback(h.config)
	rollback.Version, rollback.WaitStrategy, rollback.Timeout = revision, h.wait, helmTimeout
	h.forget()
	if err := rollback.Run(release); err != nil {
		h.t.Fatalf("helm rollback: %v", err)
	}
}

func (h helm) mustUninstall() {
	h.t.Helper()
	defer h.step("helm uninstall")()
	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DeletionPropagation = h.wait, helmTimeout, "background"
	if _, err := uninstall.Run(release); err != nil {
		h.t.Fatalf("helm uninstall: %v", err)
	}
}

// check is helm test; it returns what the test's pod printed.
func (h helm) check() (string, error) {
	defer h.step("helm test")()
	testing := action.NewReleaseTesting(h.config)
	testing.Namespace, testing.Timeout = h.namespace, helmTimeout
	result, shutdown, err := testing.Run(release)
	var output bytes.Buffer
	if v1, is := result.(*releasev1.Release); is {
		err = errors.Join(err, testing.GetPodLogs(&output, v1))
	}
	return output.String(), errors.Join(err, shutdown())
}

// step logs how long a command takes.
func (h helm) step(name string) func() {
	start := time.Now()
	return func() { h.t.Logf("%-15s %5.1f s", name, time.Since(start).Seconds()) }
}

// api is a client without types.
type api struct {
	t *testing.T
	client.Client
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func crd(name string) *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
}

func job(namespace, name string) *unstructured.Unstructured {
	return object("kubeflow.org/v2beta1", "MPIJob", namespace, name)
}

// get reads an object that must exist.
func (a api) get(o *unstructured.Unstructured) *unstructured.Unstructured {
	a.t.Helper()
	if err := a.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
		a.t.Fatalf("get %s: %v", manifests.Key(o), err)
	}
	return o
}

// exists is whether an object exists.
func (a api) exists(o *unstructured.Unstructured) bool {
	a.t.Helper()
	err := a.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return err == nil
	}
	a.t.Fatalf("get %s: %v", manifests.Key(o), err)
	return false
}

func (a api) list(apiVersion, kind, namespace string, options ...client.ListOption) []unstructured.Unstructured {
	a.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := a.List(context.Background(), list, append(options, client.InNamespace(namespace))...); err != nil {
		a.t.Fatalf("list %s of %s: %v", kind, namespace, err)
	}
	return list.Items
}

// eventually waits until a condition holds.
func (a api) eventually(what string, within time.Duration, holds func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// wantCRDs fails unless all CRDs exist and are served, or none of them does.
func (a api) wantCRDs(exist bool) {
	a.t.Helper()
	for _, name := range crdNames {
		a.eventually(fmt.Sprintf("the CRD %s exists: %t", name, exist), 30*time.Second, func() bool {
			o := crd(name)
			// The API server removes a CRD some time after it was deleted, which can take minutes on a busy machine.
			if !a.exists(o) || o.GetDeletionTimestamp() != nil {
				return !exist
			}
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			return exist && slices.ContainsFunc(conditions, func(c any) bool {
				return c.(map[string]any)["type"] == "Established" && c.(map[string]any)["status"] == "True"
			})
		})
	}
}

// readYAML reads an object from a file of the repository.
func readYAML(t *testing.T, path string, replace ...string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(replace); i += 2 {
		text = bytes.ReplaceAll(text, []byte(replace[i]), []byte(replace[i+1]))
	}
	objects, err := manifests.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}
