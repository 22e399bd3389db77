package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "example.com/app", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:AAEC"},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.1.0+incompatible"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-trimpath", Value: "true"}},
	}
	got, err := describe("app", "v2.0.0", info)
	if err != nil {
		t.Fatal(err)
	}
	want := &document{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{component{
			Type: "application", Ref: "pkg:golang/example.com/app@v2.0.0", Name: "app", Version: "v2.0.0", PURL: "pkg:golang/example.com/app@v2.0.0",
			Properties: []property{{"go:GOOS", "linux"}},
		}},
		Components: []component{
			{Type: "library", Ref: "pkg:golang/std@1.26.0", Name: "std", Version: "1.26.0", PURL: "pkg:golang/std@1.26.0"},
			{Type: "library", Ref: "pkg:golang/example.com/a@v1.0.0", Name: "example.com/a", Version: "v1.0.0", PURL: "pkg:golang/example.com/a@v1.0.0", Hashes: []hash{{"SHA-256", "000102"}}},
			{Type: "library", Ref: "pkg:golang/example.com/fork@v1.1.0%2Bincompatible", Name: "example.com/fork", Version: "v1.1.0+incompatible", PURL: "pkg:golang/example.com/fork@v1.1.0%2Bincompatible"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	info.Deps[0].Sum = "h1:*"
	if _, err := describe("app", "v2.0.0", info); err == nil {
		t.Error("a broken checksum is accepted")
	}
}

// TestRun describes the test's own binary. The go command records no modules in test binaries, except the standard library.
func TestRun(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"sbom", "v1.0.0", binary}, &out); err != nil {
		t.Fatal(err)
	}
	var bill document
	if err := json.Unmarshal(out.Bytes(), &bill); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(bill.Components, func(c component) bool { return c.Name == "std" }) {
		t.Errorf("the standard library is missing in %s", out.String())
	}
	for _, arguments := range [][]string{nil, {"sbom", "v1.0.0", "main_test.go"}} {
		if err := run(arguments, &out); err == nil {
			t.Errorf("run(%q) succeeds", arguments)
		}
	}
}
