package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlain: the configuration for a Prometheus without the Prometheus operator is current.
func TestPlain(t *testing.T) {
	files, err := plain(filepath.Join(root, "config", "prometheus"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if read(t, "config", "prometheus", name) != string(want) {
			t.Errorf("config/prometheus/%s is not what the generator writes: make generate", name)
		}
	}
}

// TestPlainRefuses: what the translation would lose is an error.
func TestPlainRefuses(t *testing.T) {
	for says, change := range map[string]func(string) string{
		`unknown field "params"`: func(text string) string {
			return strings.Replace(text, "port: metrics", "port: metrics\n    params: {a: [b]}", 1)
		},
		"with 2 endpoints": func(text string) string { return text + "  - port: metrics\n" },
		"operator Exists": func(text string) string {
			return strings.Replace(text, "    matchLabels:\n      app.kubernetes.io/name: mpijob-operator\n  endpoints", "    matchExpressions: [{key: a, operator: Exists}]\n  endpoints", 1)
		},
		"the port of a PodMonitor": func(text string) string {
			return strings.NewReplacer("ServiceMonitor", "PodMonitor", "endpoints:", "podMetricsEndpoints:").Replace(text)
		},
		"a Probe with 1 endpoints":      func(text string) string { return strings.Replace(text, "ServiceMonitor", "Probe", 1) },
		"read monitors: open ":          func(string) string { return "" },
		"error converting YAML to JSON": func(string) string { return "a: [" },
	} {
		t.Run(says, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "config", "prometheus"))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, "monitor.yaml")
			text := change(read(t, "config", "prometheus", "monitor.yaml"))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := plain(folder); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("error %v, want %q", err, says)
			}
		})
	}
}
