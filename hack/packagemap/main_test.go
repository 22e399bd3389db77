package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const config = `
linters:
  settings:
    depguard:
      rules:
        pure:
          files: ["**/internal/mpi/*.go", "!$test"]
        mpi:
          files: ["**/internal/mpi/*.go", "!$test"]
          allow: [opendatahub.io/mpijob/internal/agentapi]
`

func TestParsePackages(t *testing.T) {
	rules, err := parseRules([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parsePackages([]byte(`
		{"ImportPath": "opendatahub.io/mpijob/internal/mpi", "Doc": "Package mpi holds jobs.", "Imports": ["fmt", "opendatahub.io/mpijob/internal/agentapi"], "GoFiles": ["job.go"]}
		{"ImportPath": "opendatahub.io/mpijob/internal/agentapi", "Doc": "Package agentapi holds names.", "GoFiles": ["names.go"]}
		{"ImportPath": "opendatahub.io/mpijob/internal/onlytests"}`), rules)
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{
		{Path: "internal/agentapi", Synopsis: "Package agentapi holds names."},
		{
			Path: "internal/mpi", Synopsis: "Package mpi holds jobs.", Pure: true,
			Imports: []string{"internal/agentapi"}, Allowed: []string{"internal/agentapi"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("```\ninternal/agentapi  holds names\ninternal/mpi       holds jobs\n```\n", tree(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	got := errors.Join(check([]pkg{{Path: "internal/a", Allowed: []string{"internal/b"}}})...)
	want := "internal/a has no doc comment\ninternal/a may import internal/b (.golangci.yml) and does not: remove it from the rule"
	if got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
