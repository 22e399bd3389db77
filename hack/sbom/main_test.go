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
	if err := run([]string{"--binary", binary, "--component", "pkg:pypi/impi-rt@1.0", "sbom", "v1.0.0"}, &out); err != nil {
		t.Fatal(err)
	}
	var bill document
	if err := json.Unmarshal(out.Bytes(), &bill); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(bill.Components, func(c component) bool { return c.Name == "std" }) {
		t.Errorf("the standard library is missing in %s", out.String())
	}
	if last := bill.Components[len(bill.Components)-1]; last.Name != "impi-rt" || last.Version != "1.0" {
		t.Errorf("the last component is %+v", last)
	}
	for _, arguments := range [][]string{nil, {"sbom", "v1.0.0"}, {"--binary", "main_test.go", "sbom", "v1.0.0"}, {"--npm", "main_test.go", "sbom", "v1.0.0"}, {"--dpkg", "main.go", "sbom", "v1.0.0"}, {"--component", "numpy", "sbom", "v1.0.0"}} {
		if err := run(arguments, &out); err == nil {
			t.Errorf("run(%q) succeeds", arguments)
		}
	}
}

func TestNPMPackages(t *testing.T) {
	got, err := npmPackages([]byte(`{"packages": {
		"": {"version": "1.0.0"},
		"node_modules/b/node_modules/@scope/a": {"version": "1.0.0", "integrity": "sha512-AAEC"},
		"node_modules/@scope/a": {"version": "1.0.0", "integrity": "sha512-AAEC"},
		"node_modules/vite": {"version": "8.0.0", "dev": true},
		"node_modules/b": {"version": "2.0.0+x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []component{
		{Type: "library", Ref: "pkg:npm/%40scope/a@1.0.0", Name: "@scope/a", Version: "1.0.0", PURL: "pkg:npm/%40scope/a@1.0.0", Hashes: []hash{{"SHA-512", "000102"}}},
		{Type: "library", Ref: "pkg:npm/b@2.0.0%2Bx", Name: "b", Version: "2.0.0+x", PURL: "pkg:npm/b@2.0.0%2Bx"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDashboardPackages reads the dashboard's own lock file.
func TestDashboardPackages(t *testing.T) {
	content, err := os.ReadFile("../../web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	found, err := npmPackages(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"react", "@patternfly/react-core", "@module-federation/runtime"} {
		if !slices.ContainsFunc(found, func(c component) bool { return c.Name == name && len(c.Hashes) == 1 }) {
			t.Errorf("%s is missing", name)
		}
	}
	if slices.ContainsFunc(found, func(c component) bool { return c.Name == "eslint" }) {
		t.Error("a package for development is listed")
	}
}

func TestDebianPackages(t *testing.T) {
	got, err := debianPackages([]byte(`Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.41-12
Description: GNU C Library
 Version: of the text

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: libstdc++6
Status: install ok installed
Architecture: amd64
Version: 1:14.2.0-19
`))
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, part := range got {
		urls = append(urls, part.PURL)
	}
	if diff := cmp.Diff([]string{"pkg:deb/debian/libc6@2.41-12?arch=amd64", "pkg:deb/debian/libstdc++6@1%3A14.2.0-19?arch=amd64"}, urls); diff != "" {
		t.Error(diff)
	}
}
