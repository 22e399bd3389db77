package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// groupings are lists of labels in expressions, and alertLabel is a label in the text of an alert.
	groupings      = regexp.MustCompile(`\b(by|on|without|ignoring) \([^)]*\)`)
	alertLabel     = regexp.MustCompile(`(\$labels\.)namespace\b`)
	namespaceLabel = regexp.MustCompile(`\bnamespace\b`)
)

// userWorkload returns the rules for OpenShift's monitoring of user-defined projects, from those in a folder: there, the label namespace is
// always that of the operator, and the namespace of a job is exported_namespace.
func userWorkload(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, file := range []string{"alerts.yaml", "recording.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, file)) //nolint:gosec // part of the source tree
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		_, rules, _ := strings.Cut(string(text), "\n") // its first line is a comment
		rules = groupings.ReplaceAllStringFunc(rules, func(labels string) string { return namespaceLabel.ReplaceAllString(labels, "exported_namespace") })
		files[file] = []byte(plainHeader + alertLabel.ReplaceAllString(rules, "${1}exported_namespace"))
	}
	return files, nil
}
