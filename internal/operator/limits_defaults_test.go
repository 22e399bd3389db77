package operator_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestLimitsOfCluster: the annotations of the operator's namespace limit jobs of both kinds in each namespace that has none of its own, also
// if no operator answers. Only who may change them may allow a namespace more.
func TestLimitsOfCluster(t *testing.T) {
	needsPolicies(t)
	server := newTrainerServer(t)
	namespaces := map[string]map[string]string{
		"new":      nil,
		"own":      {mpi.AnnotationMaxWorkers: "8", mpi.AnnotationNodeLabels: ""},
		"stricter": {mpi.AnnotationMaxWorkers: "2"},
	}
	for name, annotations := range namespaces {
		server.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
	}
	objects, err := manifests("webhook", "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		server.create(t, object)
	}
	annotate := func(by client.Client, namespace, name, value string) error {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value))
		return by.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch)
	}
	try := func(template, namespace string, values ...any) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, template, values...), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		return server.client.Create(t.Context(), object, client.DryRunAll)
	}
	for name, value := range map[string]string{mpi.AnnotationMaxWorkers: "4", mpi.AnnotationMaxGPUs: "2", mpi.AnnotationNodeLabels: "pool=mpi"} {
		if err := annotate(server.client, "mpijob-system", name, value); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the limits of the cluster apply", func() error {
		err := try(limitedMPIJob, "new", 5, 3, "other")
		if err == nil || !strings.Contains(err.Error(), "mpijob-limits") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	const ofCluster = "at most 4, the limit of the cluster; ask its administrator for more (annotation mpi.opendatahub.io/max-workers of the namespace new, or of mpijob-system for all)"
	for name, test := range map[string]struct {
		namespace, template string
		values              []any
		// refused are parts of the error; none for what is admitted.
		refused []string
	}{
		"MPIJob":                    {"new", limitedMPIJob, []any{4, 2, "mpi"}, nil},
		"MPIJob of many workers":    {"new", limitedMPIJob, []any{5, 2, "mpi"}, []string{"[Worker].replicas: Invalid value: 5", ofCluster}},
		"MPIJob of many GPUs":       {"new", limitedMPIJob, []any{4, 3, "mpi"}, []string{"3 GPUs", "at most 2, the limit of the cluster"}},
		"MPIJob elsewhere":          {"new", limitedMPIJob, []any{4, 2, "other"}, []string{"nodeSelector pool=mpi, which the cluster requires", "mpijob-system"}},
		"TrainJob of many nodes":    {"new", limitedTrainJob, []any{5}, []string{"spec.trainer.numNodes: Invalid value: 5", ofCluster}},
		"TrainJob":                  {"new", limitedTrainJob, []any{4}, nil},
		"JobSet of many nodes":      {"new", limitedJobSet, []any{5, 2, "mpi"}, []string{"spec.replicatedJobs: Invalid value: 5", ofCluster}},
		"JobSet of many GPUs":       {"new", limitedJobSet, []any{4, 3, "mpi"}, []string{"at most 2, the limit of the cluster"}},
		"JobSet elsewhere":          {"new", limitedJobSet, []any{4, 2, "other"}, []string{"which the cluster requires"}},
		"the namespace's own":       {"own", limitedMPIJob, []any{8, 2, "other"}, nil},
		"beyond the own":            {"own", limitedTrainJob, []any{9}, []string{"at most 8, the limit of the namespace own;"}},
		"GPUs besides the own":      {"own", limitedMPIJob, []any{8, 3, "other"}, []string{"at most 2, the limit of the cluster"}},
		"beyond a stricter one":     {"stricter", limitedTrainJob, []any{3}, []string{"at most 2, the limit of the namespace stricter;"}},
		"in the operator's":         {"mpijob-system", limitedTrainJob, []any{5}, []string{"at most 4, the limit of the namespace mpijob-system;"}},
		"labels besides a stricter": {"stricter", limitedMPIJob, []any{2, 2, "other"}, []string{"pool=mpi, which the cluster requires"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := try(test.template, test.namespace, test.values...)
			if len(test.refused) == 0 && err != nil && strings.Contains(err.Error(), "mpijob-limits") {
				t.Error(err)
			}
			for _, part := range test.refused {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v, want %q", err, part)
				}
			}
		})
	}

	server.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status"}, ResourceNames: []string{"new", "own"}, Verbs: []string{"get", "patch", "update"}}},
	})
	server.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "owner"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "owner"}},
	})
	config := rest.CopyConfig(server.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "owner"}
	owner, err := client.New(config, client.Options{Scheme: server.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner of a namespace may annotate it", func() error { return annotate(owner, "new", "any", "value") })
	for _, test := range []struct{ name, value, refused string }{
		{mpi.AnnotationMaxWorkers, "5", `max-workers]: Invalid value: "5": allows more than 4, the default of the cluster`},
		{mpi.AnnotationMaxWorkers, "3", ""},
		{mpi.AnnotationMaxGPUs, "3", "allows more than 2"},
		{mpi.AnnotationNodeLabels, "", "allows more than pool=mpi"},
		{mpi.AnnotationNodeLabels, "pool=other", "allows more than pool=mpi"},
		{mpi.AnnotationNodeLabels, "zone=a, pool=mpi", ""},
	} {
		err := annotate(owner, "new", test.name, test.value)
		if (err == nil) != (test.refused == "") || err != nil && (!strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "update the namespace mpijob-system")) {
			t.Errorf("%s=%s: the answer is %v, want %q", test.name, test.value, err, test.refused)
		}
		if err := annotate(server.client, "new", test.name, test.value); err != nil {
			t.Errorf("%s=%s by an administrator: %v", test.name, test.value, err)
		}
	}
	// Annotations are also changed with the status of a Namespace.
	status := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"5"}}}`, mpi.AnnotationMaxWorkers))
	if err := owner.SubResource("status").Patch(t.Context(), status, patch); err == nil || !strings.Contains(err.Error(), "allows more than 4") {
		t.Errorf("with the status: the answer is %v", err)
	}
	// What was allowed before is kept by other changes.
	if err := annotate(owner, "own", "any", "value"); err != nil {
		t.Error(err)
	}
	// An invalid default is refused where it is written.
	if err := annotate(server.client, "mpijob-system", mpi.AnnotationMaxWorkers, "many"); err == nil || !strings.Contains(err.Error(), "must be a whole number") {
		t.Errorf("the answer is %v", err)
	}
}

// TestLimitsWithoutParameter: the limits of a namespace itself apply while the bindings are those of an earlier version, which name no namespace of
// the operator.
func TestLimitsWithoutParameter(t *testing.T) {
	needsPolicies(t)
	server := newTrainerServer(t)
	for name, annotations := range map[string]map[string]string{"limited": {mpi.AnnotationMaxWorkers: "4"}, "free": nil} {
		server.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
	}
	objects, err := manifests("webhook", "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		unstructured.RemoveNestedField(object.Object, "spec", "paramRef")
		server.create(t, object)
	}
	try := func(namespace string) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, limitedTrainJob, 5), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		return server.client.Create(t.Context(), object, client.DryRunAll)
	}
	eventually(t, "the limits of the namespace apply", func() error {
		err := try("limited")
		if err == nil || !strings.Contains(err.Error(), "at most 4, the limit of the namespace limited") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if err := try("free"); err != nil && strings.Contains(err.Error(), "mpijob-limits") {
		t.Error(err)
	}
	for value, refused := range map[string]bool{"9": false, "many": true} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another", Annotations: map[string]string{mpi.AnnotationMaxWorkers: value}}}
		err := server.client.Create(t.Context(), namespace, client.DryRunAll)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "must be a whole number") {
			t.Errorf("%s: the answer is %v", value, err)
		}
	}
}
