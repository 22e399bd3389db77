// Package roles answers which of the roles for users grants a right, and what the accounts of programs may do, from the
// manifests that install them.
package roles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"opendatahub.io/mpijob/config/rbac"
)

// A Right is the permission to use a verb on objects of a resource, such as "get" on "pods/log" of the core group "".
type Right struct{ Verb, Group, Resource string }

// String returns the right as kubectl names resources, such as "list jobreports.mpi.opendatahub.io".
func (r Right) String() string {
	if r.Group == "" {
		return r.Verb + " " + r.Resource
	}
	return r.Verb + " " + r.Resource + "." + r.Group
}

// A Role is a ClusterRole, or a Role of a namespace.
type Role struct {
	// Name is its name, such as mpijob-user.
	Name string
	// Namespace is that of a Role; empty for a ClusterRole.
	Namespace string
	// IncludedIn is the cluster's own role that has these rights by aggregation: view, edit or admin.
	IncludedIn string
	rules      []rbacv1.PolicyRule
}

// ForUsers returns the roles of config/rbac/users.yaml, from the smallest to the largest.
func ForUsers() []Role {
	roles, err := Parse(rbac.Users)
	if err != nil {
		panic(fmt.Sprintf("config/rbac/users.yaml: %v", err)) // built into the binary, and tested
	}
	return roles
}

// SmallestWith returns the smallest role for users that grants a right; false if none does.
func SmallestWith(right Right) (Role, bool) {
	roles := ForUsers()
	i := slices.IndexFunc(roles, func(role Role) bool { return role.Grants(right) })
	if i < 0 {
		return Role{}, false
	}
	return roles[i], true
}

// With returns the text "the role edit (or mpijob-user)" for the smallest role for users that grants a right, or "a role that
// allows it".
func With(right Right) string {
	role, found := SmallestWith(right)
	if !found {
		return "a role that allows it"
	}
	return fmt.Sprintf("the role %s (or %s)", role.IncludedIn, role.Name)
}

// Grants reports whether the role grants a right on all objects of its resource.
func (r Role) Grants(right Right) bool {
	return slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, right.Verb) &&
			slices.Contains(rule.APIGroups, right.Group) && slices.Contains(rule.Resources, right.Resource)
	})
}

// Rights returns all rights of the role, in the order of the manifest.
func (r Role) Rights() []Right {
	var rights []Right
	for _, rule := range r.rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, Right{Verb: verb, Group: group, Resource: resource})
				}
			}
		}
	}
	return rights
}

// Table returns a Markdown table with a row per resource and a column per role, whose cells list verbs. A verb that a
// smaller role has as well is not repeated: the larger role has it too.
func Table(roles []Role) string {
	var rows []string
	cells := map[string][]string{}
	had := map[Right]bool{}
	for column, role := range roles {
		for _, right := range role.Rights() {
			row := rowOf(right.Group, right.Resource)
			if !slices.Contains(rows, row) {
				rows = append(rows, row)
				cells[row] = make([]string, len(roles))
			}
			if had[right] {
				continue
			}
			had[right] = true
			cell := &cells[row][column]
			*cell = strings.TrimPrefix(*cell+", "+right.Verb, ", ")
		}
	}
	var b strings.Builder
	b.WriteString("| resource |")
	for i, role := range roles {
		if i > 0 {
			b.WriteString(" also")
		}
		fmt.Fprintf(&b, " `%s` |", role.Name)
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(roles)+1) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", row, strings.Join(cells[row], " | "))
	}
	return b.String()
}

// AccountNames are the accounts of programs, in the order of their table.
var AccountNames = []string{"operator", "dashboard", "metrics reader"}

// Accounts returns the roles of the accounts of programs by AccountNames, from the manifests in the repository at a path.
func Accounts(root string) (map[string][]Role, error) {
	roles := map[string][]Role{}
	for account, file := range map[string]string{
		"operator": "rbac/role.yaml", "dashboard": "dashboard/base/rbac.yaml", "metrics reader": "rbac/metrics_reader_role.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(root, "config", file))
		if err != nil {
			return nil, fmt.Errorf("read the roles of the %s: %w", account, err)
		}
		if roles[account], err = Parse(data); err != nil {
			return nil, fmt.Errorf("read the roles of the %s: %w", account, err)
		}
	}
	return roles, nil
}

// AccountsTable returns a Markdown table with a row per resource and a column per account, whose cells list the verbs that its
// roles grant. Verbs on single objects, or in a single namespace, are marked.
func AccountsTable(accounts []string, roles map[string][]Role) string {
	var rows []string
	cells := map[string][][]string{}
	add := func(row string, column int, text string) {
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
			cells[row] = make([][]string, len(accounts))
		}
		cells[row][column] = append(cells[row][column], text)
	}
	for column, account := range accounts {
		for _, role := range roles[account] {
			for _, rule := range role.rules {
				text := strings.Join(rule.Verbs, ", ")
				if len(rule.ResourceNames) > 0 {
					text += " of `" + strings.Join(rule.ResourceNames, "`, `") + "`"
				}
				if role.Namespace != "" {
					text += " in its namespace"
				}
				for _, url := range rule.NonResourceURLs {
					add(url, column, text)
				}
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						add(rowOf(group, resource), column, text)
					}
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("| resource | " + strings.Join(accounts, " | ") + " |\n|" + strings.Repeat("---|", len(accounts)+1) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row + " |")
		for _, texts := range cells[row] {
			b.WriteString(" " + strings.Join(texts, "; ") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rowOf returns the name of a resource in tables, such as mpijobs.kubeflow.org/status.
func rowOf(group, resource string) string {
	resource, subresource, _ := strings.Cut(resource, "/")
	return strings.TrimSuffix(strings.TrimSuffix(resource+"."+group, ".")+"/"+subresource, "/")
}

// Parse returns the roles in manifests, in their order.
func Parse(manifests []byte) ([]Role, error) {
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(manifests))
	var roles []Role
	for {
		var found rbacv1.ClusterRole
		switch err := decoder.Decode(&found); {
		case errors.Is(err, io.EOF):
			return roles, nil
		case err != nil:
			return nil, fmt.Errorf("read a role: %w", err)
		case found.Kind != "ClusterRole" && found.Kind != "Role": // also comments before the first separator
			continue
		}
		role := Role{Name: found.Name, Namespace: found.Namespace, rules: found.Rules}
		for label, value := range found.Labels {
			if name, aggregates := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); aggregates && value == "true" {
				role.IncludedIn = name
			}
		}
		roles = append(roles, role)
	}
}
