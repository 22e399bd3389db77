package roles_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/roles"
)

func TestSmallestWith(t *testing.T) {
	for _, test := range []struct {
		right roles.Right
		want  string
	}{
		{roles.Right{Verb: "list", Group: "kubeflow.org", Resource: "mpijobs"}, "mpijob-viewer"},
		{roles.Right{Verb: "get", Resource: "pods/log"}, "mpijob-viewer"},
		{roles.Right{Verb: "create", Group: "trainer.kubeflow.org", Resource: "trainjobs"}, "mpijob-user"},
		{roles.Right{Verb: "create", Resource: "pods/exec"}, "mpijob-user"},
		{roles.Right{Verb: "update", Group: "trainer.kubeflow.org", Resource: "trainingruntimes"}, "mpijob-admin"},
		{roles.Right{Verb: "update", Group: "mpi.opendatahub.io", Resource: "jobreports"}, ""},
		{roles.Right{Verb: "get", Resource: "secrets"}, ""},
		{roles.Right{Verb: "list", Group: "apps", Resource: "pods"}, ""},
	} {
		role, found := roles.SmallestWith(test.right)
		if role.Name != test.want || found != (test.want != "") {
			t.Errorf("%+v: %q, %t, want %q", test.right, role.Name, found, test.want)
		}
	}
}

// TestRolesGrow: each role includes the smaller ones, and is part of a role of the cluster.
func TestRolesGrow(t *testing.T) {
	all := roles.ForUsers()
	for i, includedIn := range []string{"view", "edit", "admin"} {
		if all[i].IncludedIn != includedIn {
			t.Errorf("%s is included in %q, want %q", all[i].Name, all[i].IncludedIn, includedIn)
		}
		if i == 0 {
			continue
		}
		for _, right := range all[i-1].Rights() {
			if !all[i].Grants(right) {
				t.Errorf("%s lacks %+v, which %s has", all[i].Name, right, all[i-1].Name)
			}
		}
	}
}
