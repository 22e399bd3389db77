package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// newCluster returns a cluster that serves some resources, such as trainer.kubeflow.org/v1alpha1/trainjobs, and rejects invalid
// jobs. The user may do everything that refuse, which gets the verb and the resource, returns no error for.
func newCluster(t *testing.T, serves []string, refuse func(verb, resource string) error, objects ...client.Object) Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(kueue.LocalQueueKind.GroupVersion().WithKind("LocalQueue"), &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(kueue.LocalQueueKind.GroupVersion().WithKind("LocalQueueList"), &metav1.PartialObjectMetadataList{})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			switch object := object.(type) {
			case *authorizationv1.SelfSubjectAccessReview:
				asked := object.Spec.ResourceAttributes
				object.Status.Allowed = refuse(asked.Verb, strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")) == nil
				return nil
			case *kubeflow.MPIJob:
				return refuse("create", "invalid job")
			}
			return errors.New("unexpected object")
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if found, is := object.(*unstructured.Unstructured); is {
				if err := refuse("get", found.GetKind()); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refuse("list", kindOf(list)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{GitVersion: "v1.36.0"}}
	lists := map[string]*metav1.APIResourceList{}
	if !slices.Contains(serves, oldServer) {
		serves = append(slices.Clone(serves), "admissionregistration.k8s.io/v1/validatingadmissionpolicies")
	}
	for _, text := range serves {
		i := strings.LastIndex(text, "/")
		if lists[text[:i]] == nil {
			lists[text[:i]] = &metav1.APIResourceList{GroupVersion: text[:i]}
			served.Resources = append(served.Resources, lists[text[:i]])
		}
		lists[text[:i]].APIResources = append(lists[text[:i]].APIResources, metav1.APIResource{Name: text[i+1:]})
	}
	return Cluster{API: api, Discovery: served, Namespace: "ns", Now: now}
}

// kindOf returns the kind of the items of a list.
func kindOf(list client.ObjectList) string {
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		return strings.TrimSuffix(list.GetKind(), "List")
	case *appsv1.DeploymentList:
		return "Deployment"
	case *corev1.ResourceQuotaList:
		return "ResourceQuota"
	case *discoveryv1.EndpointSliceList:
		return "EndpointSlice"
	}
	return "LocalQueue"
}

func forbidden(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "", errors.New("no right"))
}

// summary returns the verdicts with the checks.
func summary(results []Result) []string {
	texts := make([]string, len(results))
	for i, r := range results {
		texts[i] = string(r.Verdict) + " " + r.Check + ": " + r.Found
		if r.Err != nil {
			texts[i] += "unknown"
		}
	}
	return texts
}

func deployment(namespace, name, app string, ready, wanted int32, env ...corev1.EnvVar) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{labelApp: app}},
		Spec:       appsv1.DeploymentSpec{Replicas: &wanted, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: name + ":v1", Env: env}}}}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready},
	}
}

// oldServer is, among what newCluster gets, an API server without ValidatingAdmissionPolicies.
const oldServer = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

var (
	ourKinds    = []string{"kubeflow.org/v2beta1/mpijobs", "mpi.opendatahub.io/v1alpha1/jobreports"}
	allKinds    = append(ourKinds, "trainer.kubeflow.org/v1alpha1/trainjobs", "jobset.x-k8s.io/v1alpha2/jobsets", "kueue.x-k8s.io/v1beta2/localqueues", "scheduling.k8s.io/v1alpha2/podgroups", "scheduling.volcano.sh/v1beta1/podgroups")
	errRejected = errors.New(`admission webhook "mpijob.mpi.opendatahub.io" denied the request`)
)

// complete returns what a cluster contains in which everything works.
func complete(t *testing.T) []client.Object {
	bundle := admissionv1.WebhookClientConfig{CABundle: authority(t, now.AddDate(1, 0, 0))}
	queue := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}}
	queue.SetGroupVersionKind(kueue.LocalQueueKind)
	return append(policies(policyNames...),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}},
		deployment("mpijob-system", "mpijob-operator", operatorApp, 2, 2, corev1.EnvVar{Name: "AGENT_IMAGE", Value: "agent:v1"}),
		deployment("kubeflow", "kubeflow-trainer-controller-manager", "", 1, 1), deployment("jobset", "x-controller-manager", "jobset", 1, 1), deployment("kueue", "kueue-controller-manager", "", 1, 1),
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookConfiguration}, Webhooks: []admissionv1.ValidatingWebhook{{Name: webhook, ClientConfig: bundle}}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingConfiguration}, Webhooks: []admissionv1.MutatingWebhook{{ClientConfig: bundle}}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: "dns", Labels: map[string]string{discoveryv1.LabelServiceName: "dns-default"}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}},
		queue,
	)
}

// policies returns policies of names, and their bindings.
func policies(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		meta := metav1.ObjectMeta{Name: name}
		objects = append(objects, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta}, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})
	}
	return objects
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serves  []string
		refuse  func(verb, resource string) error
		objects []client.Object
		want    []string
	}{
		"everything works": {
			serves:  append(allKinds, "mpi.opendatahub.io/v1alpha1/runtimetests"),
			objects: complete(t),
			refuse: func(_, resource string) error {
				if resource == "invalid job" {
					return errRejected
				}
				return nil
			},
			want: []string{
				"ok API server: Kubernetes v1.36.0",
				"ok Kinds of objects: MPIJob, JobReport and RuntimeTest are installed",
				"ok Operator: 2 of 2 replicas of mpijob-system/mpijob-operator are ready, mpijob-operator:v1",
				"ok Agent: agent:v1",
				"ok Admission: invalid jobs are rejected",
				"ok Certificate: the webhook's certificate is valid until 2027-11-21",
				"ok Kubeflow Trainer: 1 of 1 replicas of kubeflow/kubeflow-trainer-controller-manager are ready, kubeflow-trainer-controller-manager:v1",
				"ok JobSet: 1 of 1 replicas of jobset/x-controller-manager are ready, x-controller-manager:v1",
				"ok Kueue: 1 of 1 replicas of kueue/kueue-controller-manager are ready, kueue-controller-manager:v1; queues of ns: team",
				"ok Gang scheduling: all pods of a job are placed together, or none, by Kubernetes' scheduler",
				notEncrypted,
				"ok DNS: 1 endpoints of service openshift-dns/dns-default are ready",
				"ok Namespace: ns, Pod Security baseline: no host network, no host paths",
				"ok Quota: no quotas in ns",
				"ok See jobs: allowed", "ok Run jobs: allowed", "ok Run TrainJobs: allowed", "ok Read logs: allowed", "ok Read events: allowed", "ok Enter pods: allowed",
			},
		},
		"an empty cluster": {
			refuse: func(string, string) error { return nil },
			want: []string{
				"ok API server: Kubernetes v1.36.0",
				"fail Kinds of objects: not installed: mpijobs.kubeflow.org/v2beta1, jobreports.mpi.opendatahub.io/v1alpha1, runtimetests.mpi.opendatahub.io/v1alpha1",
				"fail Operator: no Deployment found",
				"warn Admission: the operator's webhook does not respond: jobs are not validated, and fail later",
				"- Kubeflow Trainer: not installed: only MPIJobs can run, no TrainJobs",
				"- Kueue: not installed: no queues",
				"ok Gang scheduling: all pods of a job are placed together, or none, by the operator",
				notEncrypted,
				"- DNS: unknown: no service kube-system/kube-dns or openshift-dns/dns-default found",
				"fail Namespace: namespace ns not found",
				"ok Quota: no quotas in ns",
				"ok See jobs: allowed", "ok Run jobs: allowed", "ok Read logs: allowed", "ok Read events: allowed", "ok Enter pods: allowed",
			},
		},
		"a user without rights": {
			serves:  append(ourKinds, "trainer.kubeflow.org/v1alpha1/trainjobs", "kueue.x-k8s.io/v1beta2/localqueues"),
			objects: complete(t),
			refuse:  func(_, resource string) error { return forbidden(resource) },
			want: []string{
				"ok API server: Kubernetes v1.36.0",
				"fail Kinds of objects: not installed: runtimetests.mpi.opendatahub.io/v1alpha1",
				"- Operator: unknown", "- Admission: unknown", "- Policies: unknown",
				"ok Certificate: the webhook's certificate is valid until 2027-11-21",
				"ok Kubeflow Trainer: installed",
				"warn JobSet: not installed: Kubeflow Trainer requires it for TrainJobs; MPIJobs run",
				"ok Kueue: installed; ns has no queue",
				"ok Gang scheduling: all pods of a job are placed together, or none, by the operator",
				"- Encryption: unknown",
				"- DNS: unknown",
				"ok Namespace: ns, Pod Security baseline: no host network, no host paths",
				"- Quota: unknown",
				"fail See jobs: not allowed in ns: list mpijobs.kubeflow.org, list jobreports.mpi.opendatahub.io, watch jobreports.mpi.opendatahub.io",
				"fail Run jobs: not allowed in ns: create mpijobs.kubeflow.org, patch mpijobs.kubeflow.org, delete mpijobs.kubeflow.org",
				"warn Run TrainJobs: not allowed in ns: create trainjobs.trainer.kubeflow.org, patch trainjobs.trainer.kubeflow.org, delete trainjobs.trainer.kubeflow.org",
				"fail Read logs: not allowed in ns: list pods, watch pods, get pods/log",
				"warn Read events: not allowed in ns: list events",
				"warn Enter pods: not allowed in ns: create pods/exec, create pods/portforward",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := newCluster(t, test.serves, test.refuse, test.objects...).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, summary(results)); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
		})
	}
	old, err := newCluster(t, []string{oldServer}, func(string, string) error { return nil }).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const notServed = "warn Policies: the API server does not serve ValidatingAdmissionPolicies: limits of namespaces are not enforced, and RuntimeTests do not run"
	if !slices.Contains(summary(old), notServed) {
		t.Errorf("without ValidatingAdmissionPolicies the results are %q, want one to be %q", summary(old), notServed)
	}
	c := newCluster(t, nil, func(string, string) error { return nil })
	c.Discovery.(*fakediscovery.FakeDiscovery).PrependReactor("*", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if _, err := c.Check(t.Context()); err == nil {
		t.Error("an API server that does not respond is no error")
	}
}

// TestAdmissionObjects: policies and webhooks that an upgrade of the cluster or OLM has not installed are reported, with the command of the
// way in which the operator was installed.
func TestAdmissionObjects(t *testing.T) {
	t.Parallel()
	operator := func(change func(*appsv1.Deployment)) client.Object {
		d := deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1)
		if change != nil {
			change(d)
		}
		return d
	}
	helm := operator(func(d *appsv1.Deployment) { d.Annotations = map[string]string{"meta.helm.sh/release-name": "mpi"} })
	olm := operator(func(d *appsv1.Deployment) { d.Labels["olm.owner"] = "mpijob-operator.v0.2.0" })
	webhooks := []client.Object{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookConfiguration}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingConfiguration}},
	}
	// labeled returns an operator that OLM installed, webhooks and policies with versions; empty: none.
	labeled := func(operatorVersion, webhookVersion, policyVersion string) []client.Object {
		all := []client.Object{olm.DeepCopyObject().(client.Object)}
		versions := []string{operatorVersion}
		for _, o := range webhooks {
			all, versions = append(all, o.DeepCopyObject().(client.Object)), append(versions, webhookVersion)
		}
		for _, o := range policies(append(slices.Clone(policyNames), reportsPolicy)...) {
			all, versions = append(all, o), append(versions, policyVersion)
		}
		for i, o := range all {
			labels := o.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			if versions[i] != "" {
				labels[labelVersion] = versions[i]
			}
			o.SetLabels(labels)
		}
		return all
	}
	const notEnforced = "limits of namespaces and of the operator's account may not be enforced, and RuntimeTests may not run"
	const none = "warn Policies: ValidatingAdmissionPolicies or their bindings are not installed: all of the operator's; " + notEnforced
	for name, test := range map[string]struct {
		serves  []string
		objects []client.Object
		want    []string
		remedy  string
	}{
		"all are installed":    {objects: slices.Concat(policies(policyNames...), webhooks, []client.Object{operator(nil)})},
		"there is no operator": {},
		"no policy":            {objects: append(webhooks, operator(nil)), want: []string{none}, remedy: "kubectl apply --server-side -f install.yaml of the installed release (docs/install.md)"},
		"no policy, by Helm":   {objects: append(webhooks, helm), want: []string{none}, remedy: "helm upgrade mpi CHART --namespace mpijob-system --reset-then-reuse-values (docs/install.md)"},
		"no policy, by OLM": {
			objects: append(webhooks, olm),
			want:    []string{"warn Policies: ValidatingAdmissionPolicies or their bindings are not installed: all of the operator's; users with the role edit can write JobReports, " + notEnforced},
			remedy:  "kubectl apply --server-side -f olm-admission.yaml of the installed release (docs/install.md)",
		},
		"not the policy that only OLM needs": {
			objects: slices.Concat(policies(policyNames...), webhooks, []client.Object{olm}),
			want:    []string{"warn Policies: ValidatingAdmissionPolicies or their bindings are not installed: mpijob-reports; users with the role edit can write JobReports"},
			remedy:  "-f olm-admission.yaml",
		},
		"the policy that only OLM needs, and an operator elsewhere": {
			objects: slices.Concat(policies(append(slices.Clone(policyNames), reportsPolicy)...), webhooks, []client.Object{operator(func(d *appsv1.Deployment) { d.Namespace = "mpi" })}),
			want:    []string{"fail Policies: mpijob-reports, which OLM needs, refuses the JobReports of an operator in namespace mpi"},
			remedy:  "kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding mpijob-reports",
		},
		"the policy that only OLM needs, and an operator in its place": {
			objects: slices.Concat(policies(append(slices.Clone(policyNames), reportsPolicy)...), webhooks, []client.Object{helm}),
		},
		"a binding is missing": {
			objects: slices.Concat(policies(policyNames[1:]...), policies(policyNames[0])[:1], webhooks, []client.Object{operator(nil)}),
			want:    []string{"warn Policies: ValidatingAdmissionPolicies or their bindings are not installed: mpijob-authors; " + notEnforced},
			remedy:  "install.yaml",
		},
		"no mutating webhooks": {
			objects: slices.Concat(policies(policyNames...), webhooks[:1], []client.Object{operator(nil)}),
			want:    []string{"warn Webhooks: mpijob-mutating is not installed: TrainJobs with MPI runtimes do not run correctly, and the users who create jobs are not recorded"},
			remedy:  "-f install.yaml",
		},
		"no webhooks on Kubernetes 1.29": {
			serves: []string{oldServer}, objects: []client.Object{operator(nil)},
			want: []string{
				"warn Webhooks: mpijob-validating is not installed: jobs are not validated before their creation; mpijob-mutating is not installed: TrainJobs with MPI runtimes do not run correctly, and the users who create jobs are not recorded",
				"warn Policies: the API server does not serve ValidatingAdmissionPolicies: limits of namespaces are not enforced, and RuntimeTests do not run",
			},
			remedy: "-f install-without-policies.yaml",
		},
		"no mutating webhooks on OpenShift 4.16, by OLM": {
			serves: []string{oldServer}, objects: append(webhooks[:1:1], olm),
			want: []string{
				"warn Webhooks: mpijob-mutating is not installed: TrainJobs with MPI runtimes do not run correctly, and the users who create jobs are not recorded",
				"warn Policies: the API server does not serve ValidatingAdmissionPolicies: limits of namespaces are not enforced, and RuntimeTests do not run",
			},
			remedy: "kubectl apply --server-side -f olm-admission-without-policies.yaml of the installed release (docs/install.md)",
		},
		"all of the operator's version": {objects: labeled("v0.3.0", "v0.3.0", "v0.3.0")},
		"webhooks and policies of an earlier version, by OLM": {
			objects: labeled("v0.3.0", "v0.2.0", "v0.2.0"),
			want: []string{
				"warn Webhooks: Webhooks of v0.2.0 are installed, and the operator is v0.3.0: jobs may be refused, or changed, by rules that are not this operator's",
				"warn Policies: ValidatingAdmissionPolicies of v0.2.0 are installed, and the operator is v0.3.0: jobs may be refused, or changed, by rules that are not this operator's",
			},
			remedy: "Ask a cluster administrator to install those of the operator's version: kubectl apply --server-side -f olm-admission.yaml of the installed release (docs/install.md)",
		},
		"policies without a version": {
			objects: labeled("v0.3.0", "v0.3.0", ""),
			want:    []string{"warn Policies: ValidatingAdmissionPolicies of an unknown version are installed, and the operator is v0.3.0: jobs may be refused, or changed, by rules that are not this operator's"},
			remedy:  "-f olm-admission.yaml",
		},
		"an operator without a version": {objects: labeled("", "v0.2.0", "v0.1.0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, test.serves, func(string, string) error { return nil }, test.objects...)
			results := append(c.webhooks(t.Context()), c.policies(t.Context())...)
			if diff := cmp.Diff(test.want, summary(results), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
			if len(results) > 0 && !strings.Contains(results[0].Remedy, test.remedy) {
				t.Errorf("the remedy is %q, want %q", results[0].Remedy, test.remedy)
			}
		})
	}
}

// TestPolicyNames: the names are those of the objects that are installed.
func TestPolicyNames(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "webhook", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			found[object.Kind] = append(found[object.Kind], object.Name)
		}
	}
	for kind, want := range map[string][]string{
		"ValidatingAdmissionPolicy":        policyNames,
		"ValidatingAdmissionPolicyBinding": policyNames,
		"ValidatingWebhookConfiguration":   {webhookConfiguration}, "MutatingWebhookConfiguration": {mutatingConfiguration},
	} {
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(found[kind]))); diff != "" {
			t.Errorf("%s (-doctor +config)\n%s", kind, diff)
		}
	}
}

// TestInstallRemedy: the files that it names exist, and the API server takes them.
func TestInstallRemedy(t *testing.T) {
	t.Parallel()
	for served, want := range map[string][]string{"a/v1/b": {"-f install.yaml", "-k config/default"}, oldServer: {"-f install-without-policies.yaml", "-k config/without-policies"}} {
		got := newCluster(t, []string{served}, nil).installRemedy()
		for _, text := range append(want, "docs/install.md") {
			if !strings.Contains(got, text) {
				t.Errorf("%q does not contain %q", got, text)
			}
		}
	}
}

// TestTrainingOperator: where the CRD of Kubeflow Training Operator is, which has the same name, the remedy is to remove it first.
func TestTrainingOperator(t *testing.T) {
	t.Parallel()
	const remedy = "docs/migration.md#replace-training-operator"
	for name, test := range map[string]struct {
		serves []string
		found  string
		remedy bool
	}{
		"Training Operator":            {[]string{"kubeflow.org/v1/mpijobs"}, "not installed: mpijobs.kubeflow.org/v2beta1, jobreports.mpi.opendatahub.io/v1alpha1, runtimetests.mpi.opendatahub.io/v1alpha1; the cluster has the MPIJobs of Kubeflow Training Operator (kubeflow.org/v1)", true},
		"both versions":                {[]string{"kubeflow.org/v1/mpijobs", "kubeflow.org/v2beta1/mpijobs"}, "not installed: jobreports.mpi.opendatahub.io/v1alpha1, runtimetests.mpi.opendatahub.io/v1alpha1", false},
		"other kinds of kubeflow.org":  {[]string{"kubeflow.org/v1/pytorchjobs"}, "not installed: mpijobs.kubeflow.org/v2beta1, jobreports.mpi.opendatahub.io/v1alpha1, runtimetests.mpi.opendatahub.io/v1alpha1", false},
		"the operator's, and old ones": {append(allKinds, "mpi.opendatahub.io/v1alpha1/runtimetests", "kubeflow.org/v1/mpijobs"), "MPIJob, JobReport and RuntimeTest are installed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := newCluster(t, test.serves, nil).kinds(t.Context())[0]
			if result.Found != test.found || strings.Contains(result.Remedy, remedy) != test.remedy {
				t.Errorf("the result is %q with the remedy %q, want %q and the remedy %s: %v", result.Found, result.Remedy, test.found, remedy, test.remedy)
			}
		})
	}
}

func TestFlagOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string
		value string
		set   bool
	}{
		"not set":          {args: []string{"--other=1", "name", "--names=x"}},
		"with a value":     {args: []string{"--name=x"}, value: "x", set: true},
		"an empty value":   {args: []string{"--name="}, set: true},
		"one dash":         {args: []string{"-name=x"}, value: "x", set: true},
		"a value apart":    {args: []string{"--name", "x"}, value: "x", set: true},
		"without a value":  {args: []string{"--name", "--other"}, value: "true", set: true},
		"as the last one":  {args: []string{"--name"}, value: "true", set: true},
		"a value of words": {args: []string{"--name=a=b"}, value: "a=b", set: true},
	} {
		d := *deployment("ns", "operator", operatorApp, 1, 1)
		d.Spec.Template.Spec.Containers[0].Args = test.args
		if value, set := flagOf(d, "name"); value != test.value || set != test.set {
			t.Errorf("%s: %q, %v, want %q, %v", name, value, set, test.value, test.set)
		}
	}
}

// TestClusterQuotas: OpenShift's quotas for several namespaces are shown next to those of the namespace, with the user's rights.
func TestClusterQuotas(t *testing.T) {
	t.Parallel()
	served := []string{"quota.openshift.io/v1/appliedclusterresourcequotas"}
	applied := func(namespace, name, used string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"quota": map[string]any{"hard": map[string]any{"requests.nvidia.com/gpu": "12"}}},
			"status": map[string]any{"total": map[string]any{"hard": map[string]any{"requests.nvidia.com/gpu": "12"}, "used": map[string]any{"requests.nvidia.com/gpu": used}}},
		}}
		object.SetAPIVersion("quota.openshift.io/v1")
		object.SetKind("AppliedClusterResourceQuota")
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	objects := []client.Object{
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("4")}, Used: corev1.ResourceList{"pods": resource.MustParse("1")},
		}},
		applied("ns", "full", "12"), applied("ns", "team", "4"), applied("other", "theirs", "12"),
	}
	for name, test := range map[string]struct {
		serves  []string
		refused string
		objects []client.Object
		want    []string
	}{
		"all": {serves: served, objects: objects, want: []string{
			"ok Quota: own: used 1 of 4 pods", "warn Quota: full (ClusterResourceQuota): used 12 of 12 requests.nvidia.com/gpu",
			"ok Quota: team (ClusterResourceQuota): used 4 of 12 requests.nvidia.com/gpu",
		}},
		"none":                       {serves: served, want: []string{"ok Quota: no quotas in ns"}},
		"not on OpenShift":           {objects: objects[:1], want: []string{"ok Quota: own: used 1 of 4 pods"}},
		"no right for the cluster's": {serves: served, refused: "AppliedClusterResourceQuota", objects: objects, want: []string{"ok Quota: own: used 1 of 4 pods", "- Quota: unknown"}},
		"no right for its own": {serves: served, refused: "ResourceQuota", objects: objects, want: []string{
			"- Quota: unknown", "warn Quota: full (ClusterResourceQuota): used 12 of 12 requests.nvidia.com/gpu", "ok Quota: team (ClusterResourceQuota): used 4 of 12 requests.nvidia.com/gpu",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse := func(_, kind string) error {
				if kind == test.refused {
					return forbidden(kind)
				}
				return nil
			}
			results := newCluster(t, test.serves, refuse, test.objects...).quotas(t.Context())
			if diff := cmp.Diff(test.want, summary(results)); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
			for _, result := range results {
				if result.Verdict == Warn && !strings.HasSuffix(result.Remedy, "kubectl -n ns describe appliedclusterresourcequota full") {
					t.Errorf("the remedy is %q", result.Remedy)
				}
			}
		})
	}
}

// notEncrypted is the result for a cluster without an encryption that is known.
const notEncrypted = "- Encryption: no encryption of the traffic between pods was found: messages of MPI cross the network in plain text, only their start is encrypted (docs/security.md)"

func TestEncryption(t *testing.T) {
	t.Parallel()
	plugin := func(apiVersion, kind, namespace, name string, fields map[string]any) client.Object {
		object := &unstructured.Unstructured{Object: fields}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	ovn := func(mode string) []client.Object {
		return []client.Object{
			plugin("config.openshift.io/v1", "Network", "", "cluster", map[string]any{"status": map[string]any{"networkType": "OVNKubernetes"}}),
			plugin("operator.openshift.io/v1", "Network", "", "cluster", map[string]any{"spec": map[string]any{
				"defaultNetwork": map[string]any{"type": "OVNKubernetes", "ovnKubernetesConfig": map[string]any{"ipsecConfig": map[string]any{"mode": mode}}},
			}}),
		}
	}
	calico := func(on bool) []client.Object {
		return []client.Object{
			plugin("crd.projectcalico.org/v1", "FelixConfiguration", "", "default", map[string]any{"spec": map[string]any{"wireguardEnabled": on}}),
			plugin("crd.projectcalico.org/v1", "IPPool", "", "four", map[string]any{"spec": map[string]any{"cidr": "10.1.0.0/16"}}),
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "calico-system", Name: "calico-node"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}},
		}
	}
	requires := func(flag string) client.Object {
		d := deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1)
		d.Spec.Template.Spec.Containers[0].Args = []string{flag}
		return d
	}
	annotated := func(value string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{mpi.AnnotationRequireEncryption: value}}}
	}
	const encrypts = " encrypts the traffic between nodes, also that of MPI"
	for name, test := range map[string]struct {
		objects []client.Object
		refused string
		want    string
	}{
		"nothing":                   {want: notEncrypted},
		"OVN-Kubernetes":            {objects: ovn("Full"), want: "ok Encryption: OVN-Kubernetes by IPsec" + encrypts},
		"OVN-Kubernetes, not pods'": {objects: ovn("External"), want: notEncrypted},
		"Cilium":                    {objects: mpitest.Encrypted(), want: "ok Encryption: Cilium" + encrypts},
		"Cilium that does not run":  {objects: mpitest.Encrypted()[:1], want: notEncrypted},
		"Calico":                    {objects: calico(true), want: "ok Encryption: Calico by WireGuard" + encrypts},
		"Calico without":            {objects: calico(false), want: notEncrypted},
		"no right for OpenShift's":  {objects: ovn("Full"), refused: "Network", want: "- Encryption: unknown"},
		"one is known, and no right for another": {
			objects: calico(true), refused: "ConfigMap", want: "ok Encryption: Calico by WireGuard" + encrypts,
		},
		"required by the operator":          {objects: []client.Object{requires("--require-encryption")}, want: "fail Encryption: the operator's flag --require-encryption requires it, but no encryption of the traffic between pods was found: jobs of more than one pod are refused"},
		"not required by the operator":      {objects: []client.Object{requires("--require-encryption=false")}, want: notEncrypted},
		"required by the operator, and on":  {objects: append(calico(true), requires("--require-encryption=true")), want: "ok Encryption: Calico by WireGuard" + encrypts},
		"required by the operator, unknown": {objects: []client.Object{requires("--require-encryption=true")}, refused: "Network", want: "- Encryption: unknown"},
		"required by the namespace":         {objects: []client.Object{annotated("true")}, want: "fail Encryption: the annotation mpi.opendatahub.io/require-encryption of namespace ns requires it, but no encryption of the traffic between pods was found: jobs of more than one pod are refused"},
		"a value that admission refuses":    {objects: []client.Object{annotated("yes")}, want: "fail Encryption: the annotation mpi.opendatahub.io/require-encryption of namespace ns requires it, but no encryption of the traffic between pods was found: jobs of more than one pod are refused"},
		"not required by the namespace":     {objects: []client.Object{annotated("false")}, want: notEncrypted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, func(_, kind string) error {
				if kind == test.refused {
					return forbidden(kind)
				}
				return nil
			}, test.objects...)
			if diff := cmp.Diff([]string{test.want}, summary(c.encryption(t.Context()))); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
		})
	}
}

// authority returns a CA certificate in PEM that is valid until a time.
func authority(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
}

func TestJudgeCertificate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bundle []byte
		want   Verdict
		found  string
	}{
		"valid":        {authority(t, now.AddDate(0, 0, 31)), OK, "valid until 2026-12-22"},
		"not renewed":  {authority(t, now.AddDate(0, 0, 29)), Warn, "valid until 2026-12-20"},
		"expired":      {authority(t, now.Add(-time.Hour)), Fail, "expired on 2026-11-21"},
		"none":         {nil, Fail, "has no CA certificate"},
		"not readable": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), Fail, "is not valid"},
	} {
		if got := judgeCertificate(test.bundle, now); got.Verdict != test.want || !strings.Contains(got.Found, test.found) || (got.Remedy == "") != (test.want == OK) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	service := client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}
	quota := func(used string) corev1.ResourceQuota {
		return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("4"), "requests.cpu": resource.MustParse("8")}, Used: corev1.ResourceList{"pods": resource.MustParse(used)},
		}}
	}
	namespace := func(level string) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
	}
	gone := namespace("")
	gone.DeletionTimestamp = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		got  Result
		want string
		// remedy is a part of it; empty for none.
		remedy string
	}{
		"all replicas":          {judgeDeployment("c", *deployment("n", "d", "", 2, 2)), "ok c: 2 of 2 replicas of n/d are ready, d:v1", ""},
		"no standby":            {judgeDeployment("c", *deployment("n", "d", "", 1, 2)), "warn c: 1 of 2 replicas of n/d are ready, d:v1", "no standby"},
		"no replica":            {judgeDeployment("c", *deployment("n", "d", "", 0, 2)), "fail c: 0 of 2 replicas of n/d are ready, d:v1", "kubectl -n n logs deployment/d"},
		"another's deployment":  {judgeAddOn("c", "kueue", "kueue-controller-manager", []appsv1.Deployment{*deployment("n", "web", "kueue", 1, 1)}), "warn c: installed, but no Deployment found", "kueue-controller-manager"},
		"no DNS":                {judgeDNS("c", service, []discoveryv1.EndpointSlice{{}}), "fail c: no endpoint of service kube-system/kube-dns is ready: host names of workers cannot be resolved", "kube-system get pods"},
		"quota left":            {judgeQuota("c", quota("3"), "see"), "ok c: team: used 3 of 4 pods, 0 of 8 requests.cpu", ""},
		"quota used up":         {judgeQuota("c", quota("4"), "see"), "warn c: team: used 4 of 4 pods, 0 of 8 requests.cpu", "The quota for pods is exhausted: new jobs that request it are refused until others end, or wait with --wait-for-quota or in a queue. Ask a cluster administrator for more, or see"},
		"restricted":            {judgeNamespace("c", namespace("restricted")), "ok c: ns, Pod Security restricted: pods must run unprivileged as non-root; the agent does, sshd in images mostly does not", ""},
		"privileged by default": {judgeNamespace("c", namespace("")), "ok c: ns, Pod Security privileged: all pods are allowed", ""},
		"being deleted":         {judgeNamespace("c", gone), "fail c: ns is being deleted and does not accept new objects", "-n"},
		"gangs by default":      {judgeGangs("auto", false), "ok Gang scheduling: all pods of a job are placed together, or none, by the operator", ""},
		"gangs by Kubernetes":   {judgeGangs("auto", true), "ok Gang scheduling: all pods of a job are placed together, or none, by Kubernetes' scheduler", ""},
		"gangs by Volcano":      {judgeGangs("volcano", true), "ok Gang scheduling: all pods of a job are placed together, or none, by volcano", ""},
		"gangs on request": {
			judgeGangs("requested", false),
			"ok Gang scheduling: all pods of a job are placed together, or none, by the operator, if the job has a schedulingPolicy (--gang-scheduling=requested)", "",
		},
		"no gangs": {
			judgeGangs("none", true),
			"warn Gang scheduling: the pods of a job are placed one by one (--gang-scheduling=none): a job can hold nodes with a part of its pods", "--gang-scheduling=auto",
		},
		"limits": {
			limited(nil, mpi.AnnotationMaxWorkers, "4", mpi.AnnotationMaxGPUs, "2", mpi.AnnotationNodeLabels, "pool=mpi", mpi.AnnotationRequireEncryption, "true"),
			"ok Limits: each job of ns: at most 4 workers, at most 2 GPUs per pod, only nodes with pool=mpi, only with encrypted traffic between pods", "",
		},
		"an invalid limit": {
			limited(nil, mpi.AnnotationMaxWorkers, "x"),
			`fail Limits: namespace ns has invalid limits, with which jobs are refused: metadata.annotations[mpi.opendatahub.io/max-workers]: Invalid value: "x": must be a whole number, 0 or more`,
			"kubectl annotate --overwrite namespace ns",
		},
		"limits of the cluster": {
			limited(map[string]string{mpi.AnnotationMaxWorkers: "64", mpi.AnnotationMaxGPUs: "8", mpi.AnnotationNodeLabels: "region=eu"}, mpi.AnnotationMaxWorkers, "128", mpi.AnnotationNodeLabels, ""),
			"ok Limits: each job of ns: at most 128 workers, at most 8 GPUs per pod (of the cluster, by the namespace mpijob-system)", "",
		},
		"an invalid limit of the cluster": {
			limited(map[string]string{mpi.AnnotationMaxGPUs: "x"}),
			`fail Limits: namespace mpijob-system has invalid limits, with which jobs are refused: metadata.annotations[mpi.opendatahub.io/max-gpus-per-worker]: Invalid value: "x": must be a whole number, 0 or more`,
			"Ask the administrator of the cluster to correct the annotations: kubectl annotate --overwrite namespace mpijob-system",
		},
		"a missing right for TrainJobs": {
			purposes(true)[2].judge(purposes(true)[2].rights[1:2], "ns"), "warn Run TrainJobs: not allowed in ns: patch trainjobs.trainer.kubeflow.org", "the role edit (or mpijob-user) in this namespace",
		},
		"no admitted jobs":       {Result{Verdict: OK, Check: "c", Found: judgePodsReady(workloads("{}", "{status: {conditions: [{type: PodsReady, status: 'False'}]}}"))}, "ok c: ", ""},
		"jobs with PodsReady":    {Result{Verdict: OK, Check: "c", Found: judgePodsReady(workloads("{}", admitted, admittedAndReady))}, "ok c: ; takes back the quota of jobs whose pods do not start (waitForPodsReady)", ""},
		"jobs without PodsReady": {Result{Verdict: OK, Check: "c", Found: judgePodsReady(workloads("{}", admitted))}, "ok c: ; jobs whose pods do not start keep their quota (waitForPodsReady is off), unless they have a timeout of their own", ""},
		"a missing right":        {purposes(false)[2].judge(purposes(false)[2].rights[2:], "ns"), "fail Read logs: not allowed in ns: get pods/log", "the role view (or mpijob-viewer) in this namespace"},
	} {
		if text := summary([]Result{test.got})[0]; text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
		if (test.got.Remedy == "") != (test.remedy == "") || !strings.Contains(test.got.Remedy, test.remedy) {
			t.Errorf("%s: remedy %q, want %q", name, test.got.Remedy, test.remedy)
		}
	}
}

const (
	admitted         = "{status: {conditions: [{type: Admitted, status: 'True'}]}}"
	admittedAndReady = "{status: {conditions: [{type: Admitted, status: 'True'}, {type: PodsReady, status: 'False', reason: WaitForStart}]}}"
)

// workloads returns Workloads of Kueue.
func workloads(texts ...string) []kueue.Workload {
	all := make([]kueue.Workload, len(texts))
	for i, text := range texts {
		if err := yaml.Unmarshal([]byte(text), &all[i]); err != nil {
			panic(err)
		}
	}
	return all
}

// limited returns the result about a namespace with annotations, by pairs of names and values, and defaults of the cluster.
func limited(defaults map[string]string, pairs ...string) Result {
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		namespace.Annotations[pairs[i]] = pairs[i+1]
	}
	return judgeLimits(namespace, trainjob.Limits{Namespace: namespace.Annotations, Defaults: defaults, DefaultsFrom: "mpijob-system"})[0]
}

// TestLimitsThatNobodyMayRead: the limits of the namespace are shown if the user may not read those of the cluster.
func TestLimitsThatNobodyMayRead(t *testing.T) {
	t.Parallel()
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{mpi.AnnotationMaxWorkers: "4"}}}
	c := newCluster(t, nil, func(string, string) error { return nil }, own, deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1))
	c.Namespace, c.API = "ns", interceptor.NewClient(c.API.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == "mpijob-system" {
				return forbidden("namespaces")
			}
			return api.Get(ctx, key, object, options...)
		},
	})
	want := []string{
		"ok Limits: each job of ns: at most 4 workers",
		"- Limits: the cluster's limits are annotations of the operator's namespace mpijob-system, which you may not read; jobs are compared with them anyway",
	}
	if diff := cmp.Diff(want, summary(c.namespace(t.Context())[1:])); diff != "" {
		t.Error(diff)
	}
}

func TestFindOperator(t *testing.T) {
	t.Parallel()
	withFlag := deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1)
	withFlag.Labels[labelVersion] = "v2"
	withFlag.Spec.Template.Spec.Containers[0].Args = []string{"--agent-image=agent:v3"}
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       [4]string
	}{
		"by its label and flag":    {withFlag, [4]string{"v2", "mpijob-operator:v1", "agent:v3", "v3"}},
		"by its image, no agent":   {deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1), [4]string{"v1", "mpijob-operator:v1", "", ""}},
		"by a variable":            {deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1, corev1.EnvVar{Name: "AGENT_IMAGE", Value: "agent"}), [4]string{"v1", "mpijob-operator:v1", "agent", ""}},
		"with an agent left empty": {deployment("mpijob-system", "mpijob-operator", operatorApp, 1, 1, corev1.EnvVar{Name: "AGENT_IMAGE"}), [4]string{"v1", "mpijob-operator:v1", "", ""}},
	} {
		// The user may only list the operator's own namespace.
		refused := false
		c := newCluster(t, nil, func(verb, kind string) error {
			if verb == "list" && !refused {
				refused = true
				return forbidden(kind)
			}
			return nil
		}, test.deployment)
		found, err := FindOperator(t.Context(), c.API)
		if got := [4]string{found.Version, found.Image, found.AgentImage, found.AgentVersion}; err != nil || got != test.want || found.Namespace != "mpijob-system" {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
	_, err := FindOperator(t.Context(), newCluster(t, nil, func(string, string) error { return nil }).API)
	if want := "no Deployment has the label app.kubernetes.io/name=mpijob-operator; the operator is not installed"; err == nil || err.Error() != want {
		t.Errorf("without an operator: %v", err)
	}
}

func TestImageTag(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/org/operator:v1.2.3":                "v1.2.3",
		"operator:dev":                               "dev",
		"registry:5000/org/operator":                 "",
		"registry:5000/operator:v1":                  "v1",
		"quay.io/org/operator@sha256:0123":           "",
		"quay.io/org/operator:v1.2.3@sha256:0123abc": "v1.2.3",
		"": "",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("imageTag(%q) = %q, want %q", image, got, want)
		}
	}
}
