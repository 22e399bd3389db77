package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme compares README.md with the commands, their flags and the packages.
func TestReadme(t *testing.T) {
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	for _, command := range command().Commands() {
		if command.Hidden {
			continue
		}
		if !strings.Contains(readme, "`"+command.Name()) {
			t.Errorf("README.md does not list the command %s", command.Name())
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(command.LocalNonPersistentFlags().FlagUsages(), -1) {
			if flag != "--help" && !strings.Contains(readme, flag) {
				t.Errorf("README.md does not list %s of %s", flag, command.Name())
			}
		}
	}
	folders := map[string]bool{}
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		folders[filepath.Dir(file)] = true
	}
	for folder := range folders {
		if !strings.Contains(readme, "`"+folder+"`") {
			t.Errorf("README.md does not list the package %s", folder)
		}
	}
}
