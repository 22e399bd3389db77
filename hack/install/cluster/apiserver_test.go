package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/hack/install/chart"
	"opendatahub.io/mpijob/hack/install/manifests"
)

const namespace = manifests.Namespace

// startAPIServer starts a kube-apiserver with an etcd and nothing else, and returns a client and the path of a kubeconfig.
func startAPIServer(t *testing.T) (api, string) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names no kube-apiserver and etcd; make unit does")
	}
	environment := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute}
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
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return api{t, c}, path
}

// TestRelease takes a release through its life on an API server: the objects are accepted, CRDs are upgraded, what the operator
// writes into its webhooks stays, and jobs and CRDs stay until their removal is asked for. No controller runs here, so that
// nothing is waited for.
func TestRelease(t *testing.T) {
	a, kubeconfig := startAPIServer(t)
	h := newHelm(t, kubeconfig, namespace, kube.HookOnlyStrategy, "")

	h.mustInstall("", false)
	a.wantCRDs(true)
	wantSmallRelease(a)
	wantRightsOfTest(a, kubeconfig)
	pi := readYAML(t, "config/samples/pi.yaml")
	pi.SetNamespace("default")
	if err := a.Create(t.Context(), pi); err != nil {
		t.Fatal(err)
	}
	writeWebhooks(a)

	if err := newHelm(t, kubeconfig, "elsewhere", kube.HookOnlyStrategy, "").install(load(t), "", false); err == nil || !strings.Contains(err.Error(), "release-namespace") {
		t.Errorf("a second installation returns %v, want an error that names the release that the objects belong to", err)
	}

	// A version whose CRD has one more column.
	next := load(t)
	for _, file := range next.Templates {
		if strings.HasSuffix(file.Name, "/crds.yaml") {
			text := strings.Replace(string(file.Data), "- description: The reason of the latest condition.", "- {name: Added, type: string, jsonPath: .spec.added}\n    - description: The reason of the latest condition.", 1)
			*file = common.File{Name: file.Name, Data: []byte(text)}
		}
	}
	h.mustUpgrade(next, "{replicas: 1, settings: {logLevel: debug}}", false)
	wantColumns(a, 6)
	wantArguments(a, "[--log-level=debug]")
	wantWebhooks(a)
	if a.exists(object("policy/v1", "PodDisruptionBudget", namespace, "mpijob-operator")) {
		t.Error("with one replica, the PodDisruptionBudget is still there")
	}

	h.mustRollback(1)
	wantColumns(a, 5)
	wantArguments(a, "<nil>")
	wantWebhooks(a)

	h.mustUninstall()
	a.wantCRDs(true)
	a.get(job("default", "pi"))
	for _, gone := range []*unstructured.Unstructured{
		object("apps/v1", "Deployment", namespace, "mpijob-operator"), object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "mpijob-validating"),
		object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "mpijob-operator"), object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "mpijob-operator"),
	} {
		if a.exists(gone) {
			t.Errorf("%s is still there after the uninstallation", manifests.Key(gone))
		}
	}

	h.mustInstall("", false)
	a.get(job("default", "pi"))
	h.mustUpgrade(load(t), "crds: {keep: false}", false)
	a.get(job("default", "pi"))
	h.mustUninstall()
	a.wantCRDs(false)
}

// TestTakeOver proves that Helm can take over an installation of kustomize, but only if this is asked for.
func TestTakeOver(t *testing.T) {
	a, kubeconfig := startAPIServer(t)
	applyAll(a, "default")
	a.wantCRDs(true)
	pi := readYAML(t, "config/samples/pi.yaml")
	pi.SetNamespace("default")
	if err := a.Create(t.Context(), pi); err != nil {
		t.Fatal(err)
	}
	h := newHelm(t, kubeconfig, namespace, kube.HookOnlyStrategy, "")
	if err := h.install(load(t), "", false); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("helm install returns %v, want an error about the ownership", err)
	}
	h.mustInstall("replicas: 3", true)
	a.get(job("default", "pi"))
	deployment := a.get(object("apps/v1", "Deployment", namespace, "mpijob-operator"))
	if replicas, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas"); replicas != 3 {
		t.Errorf("the Deployment has %d replicas, want 3", replicas)
	}
}

// TestUndeploy proves that make undeploy removes the operator, and keeps its namespace, the CRDs and the jobs.
func TestUndeploy(t *testing.T) {
	a, kubeconfig := startAPIServer(t)
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl") + " --kubeconfig " + kubeconfig
	run := func(name string, arguments ...string) {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir, command.Env = root, append(os.Environ(), "KUBECTL="+kubectl)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
		}
	}
	words := strings.Fields(kubectl)
	run(words[0], append(words[1:], "apply", "--server-side", "-k", "config/default")...)
	a.wantCRDs(true)
	pi := readYAML(t, "config/samples/pi.yaml")
	pi.SetNamespace("default")
	if err := a.Create(t.Context(), pi); err != nil {
		t.Fatal(err)
	}
	run("make", "undeploy", "KUBECTL="+kubectl)
	a.wantCRDs(true)
	a.get(job("default", "pi"))
	if o := a.get(object("v1", "Namespace", "", namespace)); o.GetDeletionTimestamp() != nil {
		t.Error("the namespace is being deleted, with the sums of deleted reports")
	}
	for _, gone := range []*unstructured.Unstructured{
		object("apps/v1", "Deployment", namespace, "mpijob-operator"), object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "mpijob-mutating"),
		object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "mpijob-operator"),
	} {
		if a.exists(gone) {
			t.Errorf("%s is still there", manifests.Key(gone))
		}
	}
}

// trainingOperatorCRD is the CRD of Kubeflow Training Operator, without most of its schema.
const trainingOperatorCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mpijobs.kubeflow.org}
spec:
  group: kubeflow.org
  names: {kind: MPIJob, listKind: MPIJobList, plural: mpijobs, singular: mpijob}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestTrainingOperator: the API server refuses the operator's CRD where that of Kubeflow Training Operator is, so that chart and deploy.sh
// refuse to start, with the remedy; after the CRD was deleted, the operator is installed.
func TestTrainingOperator(t *testing.T) {
	a, kubeconfig := startAPIServer(t)
	definitions, err := manifests.Parse([]byte(trainingOperatorCRD))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Create(t.Context(), definitions[0]); err != nil {
		t.Fatal(err)
	}
	a.eventually("the API server stores MPIJobs of v1", 30*time.Second, func() bool {
		stored, _, _ := unstructured.NestedStringSlice(a.get(crd("mpijobs.kubeflow.org")).Object, "status", "storedVersions")
		return slices.Equal(stored, []string{"v1"})
	})
	ours := readYAML(t, "config/crd/kubeflow.org_mpijobs.yaml")
	if err := a.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(ours), client.FieldOwner("kubectl"), client.ForceOwnership); err == nil || !strings.Contains(err.Error(), "storedVersions") {
		t.Errorf("the API server answers to the operator's CRD %v, want that it must have the stored versions", err)
	}

	const remedy = "docs/migration.md#replace-training-operator"
	h := newHelm(t, kubeconfig, namespace, kube.HookOnlyStrategy, "")
	for _, take := range []bool{false, true} {
		if err := h.install(load(t), "", take); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("helm install, taking ownership: %v, returns %v, want an error that names %s", take, err, remedy)
		}
	}
	deploy := exec.CommandContext(t.Context(), root+"/hack/deploy.sh", "operator:1", "agent:1")
	deploy.Env = append(os.Environ(), "KUBECTL="+filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")+" --kubeconfig "+kubeconfig)
	if output, err := deploy.CombinedOutput(); err == nil || !strings.Contains(string(output), remedy) {
		t.Errorf("deploy.sh returns %v and prints %s, want an error that names %s", err, output, remedy)
	}
	if a.exists(object("apps/v1", "Deployment", namespace, "mpijob-operator")) {
		t.Error("the operator was installed")
	}

	if err := a.Delete(t.Context(), definitions[0]); err != nil {
		t.Fatal(err)
	}
	a.eventually("the CRD is deleted", time.Minute, func() bool { return !a.exists(crd("mpijobs.kubeflow.org")) })
	h.mustInstall("", false)
	a.wantCRDs(true)
}

// wantRightsOfTest proves that the account of helm test may do what its pod does, and nothing else that matters.
func wantRightsOfTest(a api, kubeconfig string) {
	a.t.Helper()
	rendered, err := chart.Render(load(a.t), namespace, nil, chart.Cluster{Version: "v1.37.1"})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, o := range rendered.Hooks {
		if o.GetKind() == "Pod" {
			continue
		}
		if err := a.Create(context.Background(), o); err != nil {
			a.t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		a.t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":mpijob-operator-test"}
	account, err := client.New(config, client.Options{})
	if err != nil {
		a.t.Fatal(err)
	}
	deployment := object("apps/v1", "Deployment", namespace, "mpijob-operator")
	if err := account.Get(context.Background(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		a.t.Errorf("the account of the test reads the Deployment: %v", err)
	}
	pi := func(namespace string) *unstructured.Unstructured {
		o := readYAML(a.t, "config/samples/pi.yaml")
		o.SetNamespace(namespace)
		return o
	}
	if err := account.Create(context.Background(), pi(namespace), client.DryRunAll); err != nil {
		a.t.Errorf("the account of the test creates a job as a dry run: %v", err)
	}
	if err := account.Create(context.Background(), pi("default"), client.DryRunAll); !apierrors.IsForbidden(err) {
		a.t.Errorf("the account of the test creates a job in another namespace: %v, want that it is forbidden", err)
	}
	if err := account.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "any"}, object("v1", "Secret", "", "")); !apierrors.IsForbidden(err) {
		a.t.Errorf("the account of the test reads a Secret: %v, want that it is forbidden", err)
	}
}

// wantSmallRelease fails if the Secret with the release comes close to the limit of Secrets, 1 MiB.
func wantSmallRelease(a api) {
	a.t.Helper()
	secret := a.get(object("v1", "Secret", namespace, "sh.helm.release.v1."+release+".v1"))
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "release")
	size := base64.StdEncoding.DecodedLen(len(encoded))
	a.t.Logf("the release has %d kB", size/1000)
	if limit := 700_000; size > limit {
		a.t.Errorf("the release has %d bytes, want at most %d: the API server refuses Secrets of more than 1048576", size, limit)
	}
}

// writeWebhooks writes what the operator writes into its webhook configurations.
func writeWebhooks(a api) {
	a.t.Helper()
	for kind, name := range webhooks {
		o := a.get(object("admissionregistration.k8s.io/v1", kind, "", name))
		before := o.DeepCopy()
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, hook := range hooks {
			config := hook.(map[string]any)["clientConfig"].(map[string]any)
			config["caBundle"] = base64.StdEncoding.EncodeToString(authority(a.t))
			config["service"].(map[string]any)["path"] = "/secret"
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			a.t.Fatal(err)
		}
		if err := a.Patch(context.Background(), o, client.MergeFrom(before), client.FieldOwner("operator")); err != nil {
			a.t.Fatal(err)
		}
	}
}

var webhooks = map[string]string{"ValidatingWebhookConfiguration": "mpijob-validating", "MutatingWebhookConfiguration": "mpijob-mutating"}

// wantWebhooks fails if a webhook does not have what writeWebhooks wrote.
func wantWebhooks(a api) {
	a.t.Helper()
	for kind, name := range webhooks {
		hooks, _, _ := unstructured.NestedSlice(a.get(object("admissionregistration.k8s.io/v1", kind, "", name)).Object, "webhooks")
		if len(hooks) == 0 {
			a.t.Errorf("%s has no webhooks", name)
		}
		for _, hook := range hooks {
			config := hook.(map[string]any)["clientConfig"].(map[string]any)
			if config["caBundle"] == nil || config["service"].(map[string]any)["path"] != "/secret" {
				a.t.Errorf("%s: the operator's certificate authority and path are lost", hook.(map[string]any)["name"])
			}
		}
	}
}

func wantColumns(a api, want int) {
	a.t.Helper()
	versions, _, _ := unstructured.NestedSlice(a.get(crd("mpijobs.kubeflow.org")).Object, "spec", "versions")
	columns, _, _ := unstructured.NestedSlice(versions[0].(map[string]any), "additionalPrinterColumns")
	if len(columns) != want {
		a.t.Errorf("the CRD of MPIJobs has %d columns, want %d", len(columns), want)
	}
}

func wantArguments(a api, want string) {
	a.t.Helper()
	containers, _, _ := unstructured.NestedSlice(a.get(object("apps/v1", "Deployment", namespace, "mpijob-operator")).Object, "spec", "template", "spec", "containers")
	if got := fmt.Sprint(containers[0].(map[string]any)["args"]); got != want {
		a.t.Errorf("the operator has the arguments %s, want %s", got, want)
	}
}
