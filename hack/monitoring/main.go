// Monitoring generates the dashboards of config/dashboards, for Grafana and for Perses, from one description, and its tests check
// them, the alerts and the recording rules.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], filepath.Join("..", "..", "config")); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// run runs the command line, with the folder of the manifests.
func run(args []string, config string) error {
	if len(args) != 1 || args[0] != "generate" {
		return fmt.Errorf("%q is not allowed; use generate", args)
	}
	files, err := generate()
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(config, "dashboards", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write dashboards: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write dashboards: %w", err)
		}
	}
	return nil
}

// generate returns the files of all dashboards, by their paths in config/dashboards.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, d := range dashboards() {
		for folder, content := range map[string]any{"grafana": grafana(d), "perses": perses(d)} {
			var text bytes.Buffer
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(content); err != nil {
				return nil, fmt.Errorf("write dashboard %s: %w", d.name, err)
			}
			files[filepath.Join(folder, d.name+".json")] = text.Bytes()
		}
	}
	return files, nil
}
