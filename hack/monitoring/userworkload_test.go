package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

const userWorkloadFolder = "prometheus-user-workload"

// TestUserWorkload: the rules for OpenShift's monitoring of user-defined projects are current, and none of them groups by the label that
// OpenShift sets, or names it.
func TestUserWorkload(t *testing.T) {
	files, err := userWorkload(filepath.Join(root, "config", "prometheus"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if read(t, "config", userWorkloadFolder, name) != string(want) {
			t.Errorf("config/%s/%s is not what the generator writes: make generate", userWorkloadFolder, name)
		}
	}
	all, _ := rulesOf(t, userWorkloadFolder)
	original, _ := rules(t)
	if len(all) != len(original) {
		t.Errorf("there are %d rules, want %d", len(all), len(original))
	}
	for _, r := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Errorf("%s%s: %v", r.Alert, r.Record, err)
			continue
		}
		var labels []string
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch node := node.(type) {
			case *parser.AggregateExpr:
				labels = append(labels, node.Grouping...)
			case *parser.BinaryExpr:
				if node.VectorMatching != nil {
					labels = append(labels, node.VectorMatching.MatchingLabels...)
				}
			case *parser.VectorSelector:
				for _, matcher := range node.LabelMatchers {
					labels = append(labels, matcher.Name)
				}
			}
			return nil
		})
		if slices.Contains(labels, "namespace") {
			t.Errorf("%s%s distinguishes jobs by the label namespace: %s", r.Alert, r.Record, r.Expr)
		}
		for _, text := range r.Annotations {
			if regexp.MustCompile(`\$labels\.namespace\b`).MatchString(text) {
				t.Errorf("%s names the operator's namespace as that of a job: %s", r.Alert, text)
			}
		}
	}
}

// TestUserWorkloadAlertsFire runs the tests of testdata/alerts.yaml with the labels of this monitoring: the namespace of a job is
// exported_namespace, and namespace that of the operator.
func TestUserWorkloadAlertsFire(t *testing.T) {
	_, text := rulesOf(t, userWorkloadFolder)
	namespace := regexp.MustCompile(`\bnamespace="([^"]*)"`)
	var tests []string
	for line := range strings.Lines(read(t, "hack", "monitoring", "testdata", "alerts.yaml")) {
		isSeries := strings.Contains(line, "{series: ")
		tests = append(tests, namespace.ReplaceAllStringFunc(line, func(label string) string {
			switch {
			case strings.Contains(label, operatorNamespace):
				return label // of the operator's own metrics
			case isSeries:
				return `namespace="` + operatorNamespace + `",exported_` + label
			}
			return "exported_" + label
		}))
	}
	promtool(t, text, strings.Join(tests, ""))
}
