package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestNodeVersion: documents and scripts name the version of Node.js that the dashboard's pages need.
func TestNodeVersion(t *testing.T) {
	engines := regexp.MustCompile(`"node": ">=([\d.]+)"`).FindStringSubmatch(read(t, filepath.Join(root, "web", "package.json")))
	if engines == nil {
		t.Fatal("web/package.json does not name a version of Node.js")
	}
	named, checked := regexp.MustCompile(`Node\.js (\d[\d.]*\d)`), 0
	for _, path := range slices.Concat(documents(t), files(t, ".sh"), files(t, "Makefile")) {
		for _, found := range named.FindAllStringSubmatch(read(t, path), -1) {
			checked++
			if found[1] != engines[1] {
				t.Errorf("%s names Node.js %s, and web/package.json %s", path, found[1], engines[1])
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d versions are found", checked)
	}
}

// TestOutputOfRun: docs/one-machine.md shows each line that make run prints at its end.
func TestOutputOfRun(t *testing.T) {
	shown := read(t, filepath.Join(root, "docs", "one-machine.md"))
	line, checked := regexp.MustCompile(`(?m)^\s*(?:echo; )?echo "((?:run|dashboard): [^$"]+)[^"]*"$`), 0
	for _, script := range []string{"run.sh", "dashboard.sh"} {
		for _, found := range line.FindAllStringSubmatch(read(t, filepath.Join(root, "hack", script)), -1) {
			checked++
			if !strings.Contains(shown, "\n"+found[1]) {
				t.Errorf("hack/%s prints a line that docs/one-machine.md does not show: %s", script, found[1])
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d lines are found", checked)
	}
}

// TestSuitesOnRequest: docs/one-machine.md names each suite that only runs on request.
func TestSuitesOnRequest(t *testing.T) {
	named := read(t, filepath.Join(root, "docs", "one-machine.md"))
	suite, checked := regexp.MustCompile(`(?:whenAsked|needImage)\(t, "(\w+)"`), 0
	for _, path := range files(t, "_test.go") {
		for _, found := range suite.FindAllStringSubmatch(read(t, path), -1) {
			checked++
			if !strings.Contains(named, "`"+found[1]+"`") {
				t.Errorf("%s: the suite %s only runs on request, and docs/one-machine.md does not name it", path, found[1])
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d suites are found", checked)
	}
}

// TestWhatTheOperatorDeletes: docs/architecture.md names each kind of object that the operator's role lets it delete, and no other.
func TestWhatTheOperatorDeletes(t *testing.T) {
	sentence := regexp.MustCompile(`It may delete only ([^.]+)\.`).FindStringSubmatch(read(t, filepath.Join(root, "docs", "architecture.md")))
	if sentence == nil {
		t.Fatal("docs/architecture.md does not name what the operator may delete")
	}
	named := regexp.MustCompile(`[a-z]+`).FindAllString(strings.ReplaceAll(strings.ToLower(sentence[1]), " and ", ", "), -1)
	var may []string
	for document := range strings.SplitSeq(read(t, filepath.Join(root, "config", "rbac", "role.yaml")), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := sigsyaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "delete") {
				may = append(may, rule.Resources...)
			}
		}
	}
	slices.Sort(named)
	slices.Sort(may)
	if !slices.Equal(named, slices.Compact(may)) {
		t.Errorf("docs/architecture.md names %v, and config/rbac/role.yaml %v", named, may)
	}
}
