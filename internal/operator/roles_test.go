package operator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/roles"
)

// verbs are all verbs of RBAC on objects of a namespace.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// TestRolesForUsers asks the API server for the answer to each resource and verb of each role, and compares the page in docs.
func TestRolesForUsers(t *testing.T) {
	all := roles.ForUsers()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "roles.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), roles.Table(all)) {
		t.Error("docs/roles.md does not have the table of config/rbac/users.yaml: run make generate")
	}
	installRolesForUsers(t)
	namespace, other := newNamespace(t), newNamespace(t)
	resources := resourcesOf(all[len(all)-1])
	resources = append(resources,
		roles.Right{Resource: "secrets"}, roles.Right{Resource: "nodes"}, roles.Right{Resource: "serviceaccounts/token"},
		roles.Right{Group: "mpi.opendatahub.io", Resource: "jobreports/status"},
		roles.Right{Group: "rbac.authorization.k8s.io", Resource: "roles"})
	for _, role := range all {
		user := role.Name + "-of-" + namespace
		bind(t, api, namespace, role.Name, user)
		for _, resource := range resources {
			for _, verb := range verbs {
				right := roles.Right{Verb: verb, Group: resource.Group, Resource: resource.Resource}
				if got := allowed(t, user, namespace, right); got != role.Grants(right) {
					t.Errorf("%s may %s %s.%s: %t, want %t", role.Name, verb, right.Resource, right.Group, got, role.Grants(right))
				}
			}
			if allowed(t, user, other, roles.Right{Verb: "get", Group: resource.Group, Resource: resource.Resource}) {
				t.Errorf("%s may get %s.%s in another namespace", role.Name, resource.Resource, resource.Group)
			}
		}
	}
}

// TestNoRoleForUsersCanForge lists the rights with which a user could forge a record, take a quota or read a password.
func TestNoRoleForUsersCanForge(t *testing.T) {
	for _, role := range roles.ForUsers() {
		for _, verb := range verbs {
			read := verb == "get" || verb == "list" || verb == "watch"
			for _, resource := range []roles.Right{
				{Group: "mpi.opendatahub.io", Resource: "jobreports"},
				{Group: "mpi.opendatahub.io", Resource: "jobreports/status"},
				{Group: "mpi.opendatahub.io", Resource: "runtimetests/status"},
				{Group: "kubeflow.org", Resource: "mpijobs/status"},
				{Group: "kueue.x-k8s.io", Resource: "workloads"},
				{Group: "", Resource: "resourcequotas"},
			} {
				if !read && role.Grants(roles.Right{Verb: verb, Group: resource.Group, Resource: resource.Resource}) {
					t.Errorf("%s may %s %s.%s", role.Name, verb, resource.Resource, resource.Group)
				}
			}
			if role.Grants(roles.Right{Verb: verb, Resource: "secrets"}) {
				t.Errorf("%s may %s Secrets", role.Name, verb)
			}
		}
	}
}

// TestAdminGrantsRolesForUsers: an administrator of a namespace can grant the three roles there, and no larger ones.
func TestAdminGrantsRolesForUsers(t *testing.T) {
	installRolesForUsers(t)
	namespace := newNamespace(t)
	bind(t, api, namespace, "mpijob-admin", "ada")
	bind(t, api, namespace, "mpijob-user", "uli")
	ada, uli := user(t, "ada"), user(t, "uli")
	for _, role := range roles.ForUsers() {
		if err := ada.Create(t.Context(), binding(namespace, role.Name, "new-of-"+role.Name)); err != nil {
			t.Errorf("an administrator grants %s: %v", role.Name, err)
		}
	}
	for who, attempt := range map[string]error{
		"an administrator grants cluster-admin":    ada.Create(t.Context(), binding(namespace, "cluster-admin", "eve")),
		"an administrator grants a role elsewhere": ada.Create(t.Context(), binding(newNamespace(t), "mpijob-viewer", "eve")),
		"a user grants mpijob-viewer":              uli.Create(t.Context(), binding(namespace, "mpijob-viewer", "eve")),
		"a user reads Secrets":                     uli.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)),
	} {
		if !apierrors.IsForbidden(attempt) {
			t.Errorf("%s: %v, want Forbidden", who, attempt)
		}
	}
}

func installRolesForUsers(t *testing.T) {
	t.Helper()
	objects, err := manifests("rbac", "users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := api.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// resourcesOf returns the resources on which a role has rights, each once, without verbs.
func resourcesOf(role roles.Role) []roles.Right {
	var resources []roles.Right
	for _, right := range role.Rights() {
		right.Verb = ""
		if !slices.Contains(resources, right) {
			resources = append(resources, right)
		}
	}
	return resources
}

// bind grants a ClusterRole in a namespace to a user, and waits until the API server acts on it.
func bind(t *testing.T, c client.Client, namespace, role, user string) {
	t.Helper()
	if err := c.Create(t.Context(), binding(namespace, role, user)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server knows the new binding", func() error {
		if !allowed(t, user, namespace, roles.Right{Verb: "get", Group: "kubeflow.org", Resource: "mpijobs"}) {
			return fmt.Errorf("%s may not get mpijobs yet", user)
		}
		return nil
	})
}

func binding(namespace, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// user returns a client with the rights of a user.
func user(t *testing.T, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	c, err := client.New(config, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allowed asks the API server whether a user has a right in a namespace.
func allowed(t *testing.T, user, namespace string, right roles.Right) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: subresource,
		},
	}}
	if err := api.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
