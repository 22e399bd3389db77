package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/chart"
	"opendatahub.io/mpijob/hack/install/manifests"
)

const (
	olmNamespace = "olm"
	olmGroup     = "operators.coreos.com/"
	operatorUser = "system:serviceaccount:" + namespace + ":mpijob-operator"
	// refusedReport is in the message of the policy in config/olm.
	refusedReport = "only the operator and cluster administrators write JobReports"
)

// impersonate returns a client of the cluster with the rights of a user.
func impersonate(t *testing.T, kubeconfig, user string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apply applies objects, as kubectl apply --server-side does.
func (a api) apply(objects ...*unstructured.Unstructured) {
	a.t.Helper()
	for _, o := range objects {
		if err := a.Apply(a.t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			a.t.Fatalf("apply %s: %v", manifests.Key(o), err)
		}
	}
}

// delete deletes objects that may be gone.
func (a api) delete(objects ...*unstructured.Unstructured) {
	a.t.Helper()
	for _, o := range objects {
		if err := a.Delete(context.Background(), o.DeepCopy()); err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			a.t.Errorf("delete %s: %v", manifests.Key(o), err)
		}
	}
}

func readObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the test
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return objects
}

// parse returns the objects of a text.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// allowed asks the API server whether a user's roles grant a right.
func (a api) allowed(user, verb, group, resource, namespace, name string) bool {
	a.t.Helper()
	review := object("authorization.k8s.io/v1", "SubjectAccessReview", "", "")
	review.Object["spec"] = map[string]any{
		"user": user, "groups": []any{"system:authenticated"},
		"resourceAttributes": map[string]any{"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name},
	}
	if err := a.Create(a.t.Context(), review); err != nil {
		a.t.Fatal(err)
	}
	is, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
	return is
}

// TestReportsPolicy: a user with the roles that OLM creates for JobReports writes none. The operator and administrators do.
func TestReportsPolicy(t *testing.T) {
	a, kubeconfig := startAPIServer(t)
	if !servesPolicies(t, a) {
		t.Skip("this API server serves no ValidatingAdmissionPolicies")
	}
	applyAll(a, "default")
	a.wantCRDs(true)
	a.apply(parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: jobreports.mpi.opendatahub.io-v1alpha1-admin}
rules: [{apiGroups: [mpi.opendatahub.io], resources: [jobreports], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: controller-that-deletes-namespaces}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [delete, deletecollection, get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jobreports.mpi.opendatahub.io-v1alpha1-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deleter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: controller-that-deletes-namespaces}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: deleter}]
`)...)
	editor, operator, deleter := impersonate(t, kubeconfig, "editor"), impersonate(t, kubeconfig, operatorUser), impersonate(t, kubeconfig, "deleter")
	report := func(name string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: `+name+`, namespace: default}, spec: {jobRef: {apiVersion: kubeflow.org/v2beta1, kind: MPIJob, name: pi, uid: "1"}}}`)[0]
	}
	a.eventually("without the policy, the user can create a report", 10*time.Second, func() bool {
		return editor.Create(t.Context(), report("before")) == nil
	})
	a.apply(readObjects(t, root+"/config/olm/reports.yaml")...)
	refused := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), refusedReport)
	}
	a.eventually("with the policy, the user cannot", 30*time.Second, func() bool {
		return refused(editor.Create(t.Context(), report("forged"), client.DryRunAll))
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`))
	if err := editor.Patch(t.Context(), report("before"), patch); !refused(err) {
		t.Errorf("the user changes a report: %v", err)
	}
	if err := editor.Delete(t.Context(), report("before")); !refused(err) {
		t.Errorf("the user deletes a report: %v", err)
	}
	if err := operator.Create(t.Context(), report("by-the-operator")); err != nil {
		t.Errorf("the operator creates a report: %v", err)
	}
	if err := operator.Patch(t.Context(), report("by-the-operator"), patch); err != nil {
		t.Errorf("the operator changes a report: %v", err)
	}
	if err := deleter.Delete(t.Context(), report("by-the-operator")); err != nil {
		t.Errorf("a controller deletes a report: %v", err)
	}
	if err := a.Delete(t.Context(), report("before")); err != nil {
		t.Errorf("an administrator deletes a report: %v", err)
	}
}

// TestOLM installs the operator with the Operator Lifecycle Manager, upgrades, removes and installs it again under a job that runs. At the end
// neither OLM nor the operator is installed. hack/olm-check.sh prepares it.
func TestOLM(t *testing.T) {
	folder, kubeconfig := os.Getenv("OLM"), os.Getenv("KUBECONFIG")
	if folder == "" || kubeconfig == "" {
		t.Skip("OLM names no folder with images of OLM and of bundles; make olm-e2e does")
	}
	o := newOLM(t, folder, connect(t, kubeconfig))
	editor := impersonate(t, kubeconfig, "editor")
	o.installOLM()

	o.apply(parse(t, fmt.Sprintf(subscribed, namespace, olmNamespace, o.images["catalog-v0.0.1"]))...)
	o.wantVersion("v0.0.1")
	o.wantDoctor("all of the operator's", "mpijob-validating is not installed")
	o.applyAdmission("v0.0.1")
	o.wantRights()

	restrict(o.api, jobs)
	pi := readYAML(t, "config/samples/pi.yaml", "odh/mpi-sample-openmpi:dev", os.Getenv("SAMPLE_IMG"))
	pi.SetNamespace(jobs)
	if err := o.Create(t.Context(), pi); err != nil {
		t.Fatal(err)
	}
	wantCondition(o.api, "pi", "Succeeded")
	o.wantReportsRefused(editor, wantReport(o.api, "pi", "Succeeded"))

	long := readYAML(t, "config/samples/pi.yaml", "odh/mpi-sample-openmpi:dev", os.Getenv("SAMPLE_IMG"), "name: pi", "name: long", "job-name: pi", "job-name: long", `"4", pi]`, `"4", sleep, "1000"]`)
	long.SetNamespace(jobs)
	if err := o.Create(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	wantCondition(o.api, "long", "Running")
	before, report := stateOf(o.api), wantReport(o.api, "long", "Running")

	o.apply(parse(t, fmt.Sprintf(subscribed, namespace, olmNamespace, o.images["catalog-v0.0.2"]))...)
	o.wantVersion("v0.0.2")
	wantUnchanged(o.api, "the upgrade by OLM", before, report)
	o.wantDoctor("ValidatingAdmissionPolicies of v0.0.1 are installed, and the operator is v0.0.2", "Webhooks of v0.0.1 are installed")
	o.applyAdmission("v0.0.2")
	o.wantRights()

	o.remove("v0.0.2")
	o.wantCRDs(true)
	wantUnchanged(o.api, "the removal by OLM", before, report)

	o.apply(parse(t, fmt.Sprintf(subscribed, namespace, olmNamespace, o.images["catalog-v0.0.2"]))...)
	o.wantVersion("v0.0.2")
	o.applyAdmission("v0.0.2")
	wantUnchanged(o.api, "the second installation", before, report)
	o.get(job(jobs, "pi"))

	// The controller that deletes namespaces may delete reports.
	o.delete(long)
	o.delete(object("v1", "Namespace", "", jobs))
	o.eventually("the namespace with its reports is deleted", 2*time.Minute, func() bool { return !o.exists(object("v1", "Namespace", "", jobs)) })
	o.remove("v0.0.2")
}

// subscribed is what an administrator creates: with the operator's namespace, and that and the image of a catalog.
const subscribed = `
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: mpijob-operator, namespace: %[1]s}
spec: {}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: mpijob, namespace: %[2]s}
spec:
  sourceType: grpc
  image: %[3]s
  grpcPodConfig:
    securityContextConfig: restricted
    extractContent: {catalogDir: /configs}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: mpijob-operator, namespace: %[1]s}
spec: {name: mpijob-operator, channel: candidate, source: mpijob, sourceNamespace: %[2]s}
`

// olm is a cluster with the Operator Lifecycle Manager.
type olm struct {
	api
	folder string
	// images are references by their names in hack/olm-check.sh.
	images map[string]string
}

func newOLM(t *testing.T, folder string, a api) olm {
	t.Helper()
	o := olm{api: a, folder: folder, images: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(folder, "images.txt")) //nolint:gosec // written by hack/olm-check.sh
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	for i := 0; i+1 < len(words); i += 2 {
		o.images[words[i]] = words[i+1]
	}
	return o
}

// installOLM installs upstream's chart with images that were built from the same version, and removes everything at the end of the test.
// The server of PackageManifests, with which consoles list what catalogs have, is left out.
func (o olm) installOLM() {
	o.t.Helper()
	source, err := os.ReadFile(filepath.Join(o.folder, "source"))
	if err != nil {
		o.t.Fatal(err)
	}
	deploy := filepath.Join(strings.TrimSpace(string(source)), "deploy")
	loaded, err := chart.Load(filepath.Join(deploy, "chart"))
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(deploy, "upstream", "values.yaml")) //nolint:gosec // part of the module
	if err != nil {
		o.t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		o.t.Fatal(err)
	}
	values["installType"] = "without-catalog"
	values["olm"].(map[string]any)["image"] = map[string]any{"ref": o.images["olm"], "pullPolicy": "IfNotPresent"}
	values["catalog"].(map[string]any)["image"] = map[string]any{"ref": o.images["olm"], "pullPolicy": "IfNotPresent"}
	values["catalog"].(map[string]any)["opmImageArgs"] = "--opmImage=" + o.images["opm"]
	values["networkPolicy"] = map[string]any{"kubeAPIServer": map[string]any{"ports": []any{map[string]any{"protocol": "TCP", "port": 443}}}}
	rendered, err := chart.Render(loaded, olmNamespace, values, chart.Cluster{Version: "v1.37.1"})
	if err != nil {
		o.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(deploy, "chart", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		o.t.Fatalf("no CRDs in %s: %v", deploy, err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		all = append(all, readObjects(o.t, file)...)
	}
	crds := len(all)
	all = append(all, slices.DeleteFunc(rendered.Objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "ClusterServiceVersion" })...)
	all = append(all, parse(o.t, unpackPolicy)...)
	o.t.Cleanup(func() { o.removeAll(all) })
	o.apply(all[:crds]...)
	for _, c := range all[:crds] {
		o.eventually(c.GetName()+" is served", 30*time.Second, func() bool {
			conditions, _, _ := unstructured.NestedSlice(o.get(crd(c.GetName())).Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(c any) bool {
				return c.(map[string]any)["type"] == "Established" && c.(map[string]any)["status"] == "True"
			})
		})
	}
	o.apply(all[crds:]...)
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		o.wantReady(olmNamespace, name)
	}
}

// unpackPolicy lets the pods that unpack bundles connect to the API server: OLM's own policy allows port 6443, which the API server of the
// one-machine cluster does not have.
const unpackPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: unpack-bundles-on-one-machine, namespace: olm}
spec:
  podSelector: {matchExpressions: [{key: operatorframework.io/bundle-unpack-ref, operator: Exists}]}
  policyTypes: [Egress]
  egress: [{ports: [{protocol: TCP, port: 443}]}]
`

// removeAll removes OLM and what it installed, also after a test that failed. CRDs of jobs and the operator's namespace stay.
func (o olm) removeAll(all []*unstructured.Unstructured) {
	if o.t.Failed() {
		o.describe()
	}
	o.delete(object(olmGroup+"v1alpha1", "Subscription", namespace, "mpijob-operator"), object(olmGroup+"v1alpha1", "CatalogSource", olmNamespace, "mpijob"))
	for _, version := range []string{"v0.0.1", "v0.0.2"} {
		o.delete(readObjects(o.t, filepath.Join(o.folder, version, "olm-admission.yaml"))...)
		o.delete(object(olmGroup+"v1alpha1", "ClusterServiceVersion", namespace, "mpijob-operator."+version))
	}
	o.delete(object("v1", "Namespace", "", jobs))
	// OLM removes its finalizers, and its copies in other namespaces, while it runs.
	o.eventually("the ClusterServiceVersions are gone", time.Minute, func() bool {
		return len(o.list(olmGroup+"v1alpha1", "ClusterServiceVersion", "")) == 0
	})
	o.delete(object(olmGroup+"v1", "OperatorGroup", namespace, "mpijob-operator"))
	isCRD := func(object *unstructured.Unstructured) bool { return object.GetKind() == "CustomResourceDefinition" }
	slices.Reverse(all)
	o.delete(slices.DeleteFunc(slices.Clone(all), isCRD)...)
	o.delete(slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool { return !isCRD(object) })...)
	for _, name := range []string{olmNamespace, "operators", jobs} {
		o.eventually("the namespace "+name+" is gone", 2*time.Minute, func() bool { return !o.exists(object("v1", "Namespace", "", name)) })
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		for _, left := range o.list("rbac.authorization.k8s.io/v1", kind, "") {
			if left.GetLabels()["olm.managed"] == "true" || strings.HasPrefix(left.GetName(), "olm.og.") {
				o.delete(&left)
			}
		}
	}
}

// describe logs what explains why a test failed.
func (o olm) describe() {
	for _, args := range [][]string{
		{"get", "catalogsources,subscriptions,installplans,csv", "-A", "-o", "wide"},
		{"-n", namespace, "get", "subscriptions,installplans", "-o", "jsonpath={range .items[*]}{.kind}{\" \"}{.status.conditions}{\" \"}{.status.bundleLookups}{\"\\n\"}{end}"},
		{"-n", namespace, "get", "csv", "-o", "jsonpath={range .items[*]}{.metadata.name}{\" \"}{.status.phase}{\" \"}{.status.message}{\" \"}{.status.requirementStatus}{\"\\n\"}{end}"},
		{"get", "pods", "-A", "-o", "wide"},
		{"-n", olmNamespace, "get", "events"},
		{"-n", namespace, "get", "events"},
		{"-n", olmNamespace, "logs", "deployment/catalog-operator", "--tail=60"},
		{"-n", olmNamespace, "logs", "deployment/olm-operator", "--tail=60"},
		{"-n", namespace, "logs", "deployment/mpijob-operator", "--tail=40"},
	} {
		output, _ := exec.CommandContext(context.Background(), "kubectl", args...).CombinedOutput() //nolint:gosec // fixed arguments
		o.t.Logf("kubectl %s\n%s", strings.Join(args, " "), output)
	}
}

// wantReady waits until all replicas of a Deployment are ready.
func (o olm) wantReady(in, name string) {
	o.t.Helper()
	o.eventually(in+"/"+name+" is ready", 2*time.Minute, func() bool {
		d := object("apps/v1", "Deployment", in, name)
		if !o.exists(d) {
			return false
		}
		replicas, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		updated, _, _ := unstructured.NestedInt64(d.Object, "status", "updatedReplicas")
		ready, _, _ := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
		total, _, _ := unstructured.NestedInt64(d.Object, "status", "replicas")
		observed, _, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
		return observed == d.GetGeneration() && updated == replicas && ready == replicas && total == replicas
	})
}

// wantVersion waits until OLM has installed a version, and no other.
func (o olm) wantVersion(version string) {
	o.t.Helper()
	start := time.Now()
	o.eventually("OLM has installed "+version, 5*time.Minute, func() bool {
		versions := o.list(olmGroup+"v1alpha1", "ClusterServiceVersion", namespace)
		if len(versions) != 1 || versions[0].GetName() != "mpijob-operator."+version {
			return false
		}
		phase, _, _ := unstructured.NestedString(versions[0].Object, "status", "phase")
		return phase == "Succeeded"
	})
	o.wantReady(namespace, "mpijob-operator")
	if got := o.get(object("apps/v1", "Deployment", namespace, "mpijob-operator")).GetLabels()["app.kubernetes.io/version"]; got != version {
		o.t.Errorf("the operator has the version %q, want %q", got, version)
	}
	unpacked := o.list("batch/v1", "Job", olmNamespace)
	if len(unpacked) == 0 {
		o.t.Error("OLM has unpacked no image of a bundle")
	}
	o.t.Logf("%5.1f s  until OLM has installed %s", time.Since(start).Seconds(), version)
}

// applyAdmission applies what OLM cannot install, and waits until the operator's webhooks respond.
func (o olm) applyAdmission(version string) {
	o.t.Helper()
	start := time.Now()
	o.apply(readObjects(o.t, filepath.Join(o.folder, version, "olm-admission.yaml"))...)
	// Also what doctor reports of a policy or a webhook that is missing, of another version or without the certificate's authority.
	problem := regexp.MustCompile("mpijob-validating|mpijob-mutating|ValidatingAdmissionPolicies|Webhooks of")
	for deadline := start.Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		output := o.doctor()
		if strings.Contains(output, "invalid jobs are rejected") && !problem.MatchString(output) {
			break
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("two minutes after the files of %s were applied, doctor reports\n%s", version, output)
		}
	}
	o.t.Logf("%5.1f s  until the webhooks of %s respond", time.Since(start).Seconds(), version)
}

func (o olm) doctor() string {
	output, _ := exec.CommandContext(o.t.Context(), "kubectl", "odh", "mpijob", "doctor", "-n", "default").CombinedOutput()
	return string(output)
}

// wantDoctor fails unless doctor reports texts.
func (o olm) wantDoctor(texts ...string) {
	o.t.Helper()
	output := o.doctor()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			o.t.Errorf("doctor does not report %q:\n%s", text, output)
		}
	}
}

// wantRights fails if OLM has granted the operator's account in all namespaces what it needs in its own.
func (o olm) wantRights() {
	o.t.Helper()
	for _, right := range []struct {
		verb, group, resource, namespace, name string
		want                                   bool
	}{
		{"update", "coordination.k8s.io", "leases", namespace, "mpijob-operator", true},
		{"update", "", "secrets", namespace, "mpijob-webhook-certificate", true},
		{"list", "kubeflow.org", "mpijobs", "default", "", true},
		{"create", "coordination.k8s.io", "leases", "kube-system", "", false},
		{"update", "coordination.k8s.io", "leases", "default", "mpijob-operator", false},
		{"update", "", "secrets", "default", "mpijob-webhook-certificate", false},
	} {
		if got := o.allowed(operatorUser, right.verb, right.group, right.resource, right.namespace, right.name); got != right.want {
			o.t.Errorf("the operator may %s %s %q in %s: %t, want %t", right.verb, right.resource, right.name, right.namespace, got, right.want)
		}
	}
}

// wantReportsRefused fails unless users with the role edit have OLM's right to write JobReports, and are refused nevertheless.
func (o olm) wantReportsRefused(editor client.Client, uid string) {
	o.t.Helper()
	o.apply(parse(o.t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: `+jobs+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
`)...)
	o.eventually("OLM grants editors the right to delete JobReports", 30*time.Second, func() bool {
		return o.allowed("editor", "delete", "mpi.opendatahub.io", "jobreports", jobs, "any")
	})
	for _, report := range o.list("mpi.opendatahub.io/v1alpha1", "JobReport", jobs) {
		if string(report.GetUID()) != uid {
			continue
		}
		if err := editor.Delete(o.t.Context(), &report); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusedReport) {
			o.t.Errorf("an editor deletes a report: %v", err)
		}
	}
}

// remove removes the operator as docs/install.md says.
func (o olm) remove(version string) {
	o.t.Helper()
	start := time.Now()
	var kept []*unstructured.Unstructured
	for _, admission := range readObjects(o.t, filepath.Join(o.folder, version, "olm-admission.yaml")) {
		if _, keep := admission.GetLabels()["mpi.opendatahub.io/keep"]; keep {
			kept = append(kept, admission)
			continue
		}
		o.delete(admission)
	}
	o.delete(object(olmGroup+"v1alpha1", "Subscription", namespace, "mpijob-operator"))
	versions := o.list(olmGroup+"v1alpha1", "ClusterServiceVersion", namespace, client.HasLabels{"operators.coreos.com/mpijob-operator." + namespace})
	if len(versions) != 1 {
		o.t.Errorf("%d ClusterServiceVersions have the label of the operator, want 1", len(versions))
	}
	for _, v := range versions {
		o.delete(&v)
	}
	o.eventually("the operator's pods are gone", 2*time.Minute, func() bool {
		return len(o.list("v1", "Pod", namespace, client.MatchingLabels{"app.kubernetes.io/name": "mpijob-operator"})) == 0 &&
			!o.exists(object("apps/v1", "Deployment", namespace, "mpijob-operator"))
	})
	for _, policy := range kept {
		o.get(policy)
	}
	o.t.Logf("%5.1f s  until OLM has removed the operator", time.Since(start).Seconds())
	o.wantLeft("Role mpijob-system/mpijob-operator", "Role mpijob-system/mpijob-prices", "RoleBinding mpijob-system/mpijob-operator", "RoleBinding mpijob-system/mpijob-prices",
		"ClusterRole mpijob-admin", "ClusterRole mpijob-metrics-reader", "ClusterRole mpijob-user", "ClusterRole mpijob-viewer")
}

// wantLeft fails unless these are the objects that OLM keeps of what it created for the operator, besides its own roles for the kinds.
func (o olm) wantLeft(want ...string) {
	o.t.Helper()
	slices.Sort(want)
	list := func() []string {
		var left []string
		for _, kind := range []string{"v1 ServiceAccount", "v1 Service", "rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 ClusterRoleBinding", "rbac.authorization.k8s.io/v1 Role", "rbac.authorization.k8s.io/v1 RoleBinding"} {
			apiVersion, kind, _ := strings.Cut(kind, " ")
			for _, found := range o.list(apiVersion, kind, "") {
				if strings.HasPrefix(found.GetName(), "mpijob-") {
					left = append(left, strings.Replace(manifests.Key(&found), ".rbac.authorization.k8s.io", "", 1))
				}
			}
		}
		slices.Sort(left)
		return left
	}
	for deadline := time.Now().Add(time.Minute); !slices.Equal(list(), want); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			o.t.Errorf("after the removal there are\n%s\nwant\n%s", strings.Join(list(), "\n"), strings.Join(want, "\n"))
			return
		}
	}
}
