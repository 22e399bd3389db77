// Monitoring generates the dashboards of config/dashboards, for Grafana and for Perses, from one description, the configuration of a
// Prometheus without the Prometheus operator from the objects for it, and the rules for OpenShift's monitoring of user-defined projects.
// Its tests check them, the alerts and the recording rules.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
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
	boards, err := generate()
	if err != nil {
		return err
	}
	configuration, err := plain(filepath.Join(config, "prometheus"))
	if err != nil {
		return err
	}
	rules, err := userWorkload(filepath.Join(config, "prometheus"))
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(config, "dashboards"), boards),
		write(filepath.Join(config, "prometheus"), configuration),
		write(filepath.Join(config, "prometheus-user-workload"), rules),
	)
}

// write writes files into a folder.
func write(folder string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write generated files: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write generated files: %w", err)
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
