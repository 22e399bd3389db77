package operator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
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
	accounts, err := roles.Accounts(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), roles.AccountsTable(roles.AccountNames, accounts)) {
		t.Error("docs/roles.md does not have the table of the accounts' roles: run make generate")
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

// TestRolesOfTheCluster: view, edit and admin have, by aggregation, the rights of our roles on our resources, and no others.
func TestRolesOfTheCluster(t *testing.T) {
	installRolesForUsers(t)
	namespace, other := newNamespace(t), newNamespace(t)
	all := roles.ForUsers()
	for _, role := range all {
		aggregate(t, role.IncludedIn)
	}
	for _, role := range all {
		user := role.IncludedIn + "-of-" + namespace
		bind(t, api, namespace, role.IncludedIn, user)
		for _, resource := range resourcesOf(all[len(all)-1]) {
			ours := slices.Contains([]string{"kubeflow.org", "trainer.kubeflow.org", "mpi.opendatahub.io", "jobset.x-k8s.io", "kueue.x-k8s.io", "visibility.kueue.x-k8s.io"}, resource.Group)
			for _, verb := range verbs {
				right := roles.Right{Verb: verb, Group: resource.Group, Resource: resource.Resource}
				got, want := allowed(t, user, namespace, right), role.Grants(right)
				if want && !got || ours && got && !want {
					t.Errorf("%s may %s: %t, want %t", role.IncludedIn, right, got, want)
				}
			}
			if right := (roles.Right{Verb: "get", Group: resource.Group, Resource: resource.Resource}); allowed(t, user, other, right) {
				t.Errorf("%s may %s in another namespace", role.IncludedIn, right)
			}
		}
	}
}

// aggregate plays the controller of aggregated ClusterRoles.
func aggregate(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the ClusterRole "+name+" is aggregated", func() error {
		var whole rbacv1.ClusterRole
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, &whole); err != nil {
			return err
		}
		whole.Rules = nil
		for _, selector := range whole.AggregationRule.ClusterRoleSelectors {
			var parts rbacv1.ClusterRoleList
			if err := api.List(t.Context(), &parts, client.MatchingLabels(selector.MatchLabels)); err != nil {
				return err
			}
			for _, part := range parts.Items {
				whole.Rules = append(whole.Rules, part.Rules...)
			}
		}
		return api.Update(t.Context(), &whole)
	})
}

// TestRightsOfAccounts asks the API server for each resource that it has, and each verb, whether the accounts of programs may use
// it: they may what their manifests contain, and nothing else.
func TestRightsOfAccounts(t *testing.T) {
	t.Parallel()
	server := newTokenServer(t)
	accounts, err := roles.Accounts(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests("dashboard", "base", "rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := manifests("rbac", "metrics_reader_role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range append(objects, metrics...) {
		if object.GetKind() == "ServiceAccount" {
			object.SetNamespace("mpijob-system")
		}
		server.create(t, object)
	}
	const prometheus = "system:serviceaccount:monitoring:prometheus-k8s"
	server.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mpijob-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "prometheus-k8s"}},
	})
	users := map[string]string{"operator": "system:serviceaccount:mpijob-system:mpijob-operator", "dashboard": "system:serviceaccount:mpijob-system:mpijob-dashboard", "metrics reader": prometheus}
	ask := func(user string, spec authorizationv1.SubjectAccessReviewSpec) bool {
		t.Helper()
		spec.User = user
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := server.client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	metricsRead := authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}}
	eventually(t, "the API server knows the bindings", func() error {
		if !ask(prometheus, metricsRead) {
			return fmt.Errorf("the metrics reader may not read metrics")
		}
		return nil
	})
	for account, want := range map[string]bool{"operator": false, "dashboard": false} {
		if got := ask(users[account], metricsRead); got != want {
			t.Errorf("the %s may read metrics: %t", account, got)
		}
	}

	found, err := discovery.NewDiscoveryClientForConfigOrDie(server.config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	everything := []roles.Right{
		{Group: "", Resource: "serviceaccounts/token"},
		{Group: "", Resource: "pods/exec"},
		{Group: "", Resource: "pods/attach"},
		{Group: "", Resource: "pods/portforward"},
		{Group: "", Resource: "pods/proxy"},
		{Group: "", Resource: "pods/log"},
		{Group: "", Resource: "pods/status"},
		{Group: "", Resource: "pods/eviction"},
		{Group: "", Resource: "pods/binding"},
		{Group: "", Resource: "pods/ephemeralcontainers"},
		{Group: "", Resource: "nodes/proxy"},
		{Group: "", Resource: "services/proxy"},
		{Group: "batch", Resource: "jobs/status"},
		{Group: "kubeflow.org", Resource: "mpijobs/status"},
		{Group: "kubeflow.org", Resource: "mpijobs/finalizers"},
		{Group: "trainer.kubeflow.org", Resource: "trainjobs/status"},
		{Group: "trainer.kubeflow.org", Resource: "trainjobs/finalizers"},
		{Group: "mpi.opendatahub.io", Resource: "runtimetests/status"},
		{Group: "mpi.opendatahub.io", Resource: "runtimetests/finalizers"},
		{Group: "kueue.x-k8s.io", Resource: "workloads/status"},
		{Group: "kueue.x-k8s.io", Resource: "clusterqueues"},
		{Group: "kueue.x-k8s.io", Resource: "localqueues"},
		{Group: "kueue.x-k8s.io", Resource: "workloadpriorityclasses"},
		{Group: "visibility.kueue.x-k8s.io", Resource: "localqueues/pendingworkloads"},
		{Group: "quota.openshift.io", Resource: "clusterresourcequotas"},
		{Group: "scheduling.k8s.io", Resource: "podgroups"},
		{Group: "", Resource: "users"},
		{Group: "", Resource: "groups"},
		{Group: "security.openshift.io", Resource: "securitycontextconstraints"},
	}
	for _, list := range found {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if right := (roles.Right{Group: group.Group, Resource: resource.Name}); !slices.Contains(everything, right) {
				everything = append(everything, right)
			}
		}
	}
	if len(everything) < 80 {
		t.Fatalf("the API server has only %d resources", len(everything))
	}
	type question struct {
		account, namespace string
		right              roles.Right
	}
	var questions []question
	for account := range users {
		for _, resource := range everything {
			for _, verb := range append([]string{"impersonate", "bind", "escalate", "use"}, verbs...) {
				for _, namespace := range []string{"default", "mpijob-system"} {
					questions = append(questions, question{account, namespace, roles.Right{Verb: verb, Group: resource.Group, Resource: resource.Resource}})
				}
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, q := range questions {
		group.Go(func() error {
			want := slices.ContainsFunc(accounts[q.account], func(role roles.Role) bool {
				return (role.Namespace == "" || role.Namespace == q.namespace) && role.Grants(q.right)
			})
			resource, subresource, _ := strings.Cut(q.right.Resource, "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: users[q.account], ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: q.namespace, Verb: q.right.Verb, Group: q.right.Group, Resource: resource, Subresource: subresource, Name: "any",
				},
			}}
			if err := server.client.Create(t.Context(), review); err != nil {
				return err
			}
			if review.Status.Allowed != want {
				t.Errorf("the %s may %s in %s: %t, want %t", q.account, q.right, q.namespace, review.Status.Allowed, want)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	// What a thief would want most.
	for _, right := range []roles.Right{
		{Verb: "create", Resource: "serviceaccounts/token"},
		{Verb: "create", Resource: "pods/exec"},
		{Verb: "get", Resource: "nodes/proxy"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
		{Verb: "update", Resource: "namespaces"},
		{Verb: "patch", Resource: "nodes"},
		{Verb: "delete", Resource: "secrets"},
		{Verb: "create", Group: "apps", Resource: "daemonsets"},
		{Verb: "delete", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Verb: "deletecollection", Resource: "pods"},
	} {
		for account := range users {
			if slices.ContainsFunc(accounts[account], func(role roles.Role) bool { return role.Grants(right) }) {
				t.Errorf("the %s may %s", account, right)
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
