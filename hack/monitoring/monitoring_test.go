package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rule is an alert or a recording rule.
type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations"`
}

// rules returns the rules of all PrometheusRules, and their groups as Prometheus reads them.
func rules(t *testing.T) (all []rule, groups string) { return rulesOf(t, "prometheus") }

// rulesOf is rules for a folder of config.
func rulesOf(t *testing.T, folder string) (all []rule, groups string) {
	t.Helper()
	var together struct {
		Groups []map[string]any `json:"groups"`
	}
	for _, file := range []string{"alerts.yaml", "recording.yaml"} {
		var object struct {
			Spec struct {
				Groups []map[string]any `json:"groups"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(read(t, "config", folder, file)), &object); err != nil {
			t.Fatal(err)
		}
		together.Groups = append(together.Groups, object.Spec.Groups...)
	}
	text, err := yaml.Marshal(together)
	if err != nil {
		t.Fatal(err)
	}
	var flat struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &flat); err != nil {
		t.Fatal(err)
	}
	for _, group := range flat.Groups {
		all = append(all, group.Rules...)
	}
	return all, string(text)
}

// metrics returns the labels of the metrics of the operator and the agents, from files that their tests write, and of the
// recording rules.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for _, path := range []string{"internal/metrics/testdata/names.yaml", "internal/agent/status/testdata/names.yaml"} {
		var names map[string]string
		if err := yaml.Unmarshal([]byte(read(t, path)), &names); err != nil {
			t.Fatal(err)
		}
		for name, of := range names {
			known[name] = strings.Split(of, ",")
		}
	}
	return known
}

// target are the labels that a series gets from its target.
var target = []string{"job", "namespace", "pod", "instance", "le"}

// check parses a query, and compares its metrics and labels with those that exist.
func check(t *testing.T, where, query string, known map[string][]string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %s: %v", where, query, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		of, exists := known[selector.Name]
		if base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(selector.Name, ""); !exists {
			of, exists = known[base]
		}
		if !exists {
			t.Errorf("%s: %s asks for %s, which does not exist", where, query, selector.Name)
			return nil
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && !slices.Contains(of, matcher.Name) && !slices.Contains(target, matcher.Name) {
				t.Errorf("%s: %s: %s has no label %s, only %v", where, query, selector.Name, matcher.Name, of)
			}
		}
		return nil
	})
}

// withRules adds the recording rules; their labels are those that their names begin with.
func withRules(known map[string][]string, all []rule) map[string][]string {
	for _, r := range all {
		if r.Record != "" {
			level, _, _ := strings.Cut(r.Record, ":")
			known[r.Record] = strings.Split(level, "_")
		}
	}
	return known
}

// TestQueriesOfDocuments: the queries in docs/metrics.md and docs/admin/capacity.md can be copied. The latter count jobs of both kinds.
func TestQueriesOfDocuments(t *testing.T) {
	all, _ := rules(t)
	known := withRules(metrics(t), all)
	rows := regexp.MustCompile("(?m)^\\| `[a-z_]+` \\|.*\\| [^|`]*`(.*)` \\|$").FindAllStringSubmatch(read(t, "docs", "metrics.md"), -1)
	if len(rows) < 30 {
		t.Errorf("only %d queries are found", len(rows))
	}
	for _, row := range rows {
		check(t, "docs/metrics.md", strings.ReplaceAll(row[1], `\|`, "|"), known)
	}
	known["kube_node_status_allocatable"] = []string{"resource"}
	capacity := regexp.MustCompile("(?m)^\\|[^|]*\\| `(.*)` \\|$|^```promql\n([^`]*)\n```").FindAllStringSubmatch(read(t, "docs", "admin", "capacity.md"), -1)
	if len(capacity) < 12 {
		t.Errorf("only %d queries are found", len(capacity))
	}
	for _, row := range capacity {
		query := strings.ReplaceAll(row[1]+row[2], `\|`, "|")
		check(t, "docs/admin/capacity.md", query, known)
		if strings.Contains(query, "training_operator_") {
			t.Errorf("docs/admin/capacity.md: %s counts no TrainJobs", query)
		}
	}
}
