package operator_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// userWith returns the client of a user who has a right in a namespace.
func userWith(t *testing.T, namespace, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	made, err := client.New(config, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestSnapshotsAreWrittenByTrainer: a user who writes ConfigMaps neither creates nor changes the one in which Trainer stores the
// runtime of a TrainJob, from which Trainer builds the JobSet.
func TestSnapshotsAreWrittenByTrainer(t *testing.T) {
	needsPolicies(t)
	objects, err := manifests("webhook", "snapshots.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
	namespace := newNamespace(t)
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	user := userWith(t, namespace, "mallory", configMaps)
	trainer := userWith(t, namespace, "trainer", configMaps, rbacv1.PolicyRule{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}, Verbs: []string{"create"}})
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const policy = "ValidatingAdmissionPolicy 'mpijob-snapshots'"

	eventually(t, "a user cannot create a snapshot", func() error {
		return isDenied(user.Create(t.Context(), named("forged-runtime-snapshot"), client.DryRunAll), policy)
	})
	snapshot := named("pi-runtime-snapshot")
	if err := trainer.Create(t.Context(), snapshot); err != nil {
		t.Fatalf("Trainer creates a snapshot: %v", err)
	}
	for what, err := range map[string]error{
		"change its data":   user.Patch(t.Context(), snapshot.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`))),
		"change its owners": user.Patch(t.Context(), snapshot.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null,"labels":{"a":"b"}}}`))),
	} {
		if err := isDenied(err, policy); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := user.Create(t.Context(), named("runtime-snapshots")); err != nil {
		t.Errorf("a user creates another ConfigMap: %v", err)
	}
	if err := user.Delete(t.Context(), snapshot); err != nil {
		t.Errorf("a user deletes a snapshot, as with all of the namespace: %v", err)
	}
	if err := isDenied(user.Create(t.Context(), named("pi-runtime-snapshot")), policy); err != nil {
		t.Errorf("replace a snapshot: %v", err)
	}
}
