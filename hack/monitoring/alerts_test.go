package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// TestRules: rules are what Prometheus accepts, and ask for metrics that exist.
func TestRules(t *testing.T) {
	all, text := rules(t)
	if _, errs := rulefmt.Parse([]byte(text), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil); len(errs) > 0 {
		t.Errorf("Prometheus does not accept the rules: %v", errs)
	}
	known := withRules(metrics(t), all)
	for _, r := range all {
		check(t, r.Alert+r.Record, r.Expr, known)
		if r.Alert != "" && (r.Annotations["summary"] == "" || r.Annotations["description"] == "") {
			t.Errorf("%s has no summary or description", r.Alert)
		}
	}
}

// TestAlertsFire runs the tests of testdata/alerts.yaml with promtool. Each alert fires in one and does not in another.
func TestAlertsFire(t *testing.T) {
	all, text := rules(t)
	tests, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Tests []struct {
			Expressions []struct {
				Expr    string `json:"expr"`
				Samples []any  `json:"exp_samples"`
			} `json:"promql_expr_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(tests, &parsed); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	alert := regexp.MustCompile(`^ALERTS\{alertname="(\w+)", alertstate="firing"\}$`)
	for _, test := range parsed.Tests {
		for _, e := range test.Expressions {
			name := alert.FindStringSubmatch(e.Expr)
			if name == nil {
				t.Errorf("%s is no question for an alert", e.Expr)
				continue
			}
			if len(e.Samples) > 0 {
				fires[name[1]] = true
			} else {
				quiet[name[1]] = true
			}
		}
	}
	for _, r := range all {
		if r.Alert != "" && (!fires[r.Alert] || !quiet[r.Alert]) {
			t.Errorf("of %s there is a test in which it fires: %t, in which it does not: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
	promtool(t, text, string(tests))
}

// promtool checks rules and runs tests of them.
func promtool(t *testing.T, rules, tests string) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"rules.yaml": rules, "tests.yaml": tests} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// make unit builds the pinned promtool first; without it, it is compiled here, in minutes.
	program := []string{"go", "tool", "promtool"}
	if path, err := exec.LookPath("promtool"); err == nil {
		program = []string{path}
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		args[len(args)-1] = filepath.Join(folder, args[len(args)-1])
		command := exec.CommandContext(t.Context(), program[0], append(program[1:], args...)...)
		command.Env = append(os.Environ(), "GOFLAGS=-tags=remove_all_sd", "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}
