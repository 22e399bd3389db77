// Command sbom prints the software bill of materials of a Go binary, in CycloneDX's JSON format (version 1.6): the modules
// that the binary was linked from, with their versions and checksums.
//
//	sbom NAME VERSION BINARY
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

// document is the part of CycloneDX that is used: https://cyclonedx.org/docs/1.6/json/.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(arguments []string, stdout io.Writer) error {
	if len(arguments) != 3 {
		return fmt.Errorf("%d arguments, want 3: NAME VERSION BINARY", len(arguments))
	}
	info, err := buildinfo.ReadFile(arguments[2])
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", arguments[2], err)
	}
	bill, err := describe(arguments[0], arguments[1], info)
	if err != nil {
		return fmt.Errorf("%s: %w", arguments[2], err)
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(bill)
}

// describe makes the document of a binary from its build information. The order of modules is that of the linker's list,
// so that the same binary makes the same document.
func describe(name, version string, info *debug.BuildInfo) (*document, error) {
	main := component{Type: "application", Ref: purl(info.Main.Path, version), Name: name, Version: version, PURL: purl(info.Main.Path, version)}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS", "GOARCH", "GOFIPS140", "CGO_ENABLED":
			main.Properties = append(main.Properties, property{"go:" + setting.Key, setting.Value})
		}
	}
	library := func(path, version string) component {
		return component{Type: "library", Ref: purl(path, version), Name: path, Version: version, PURL: purl(path, version)}
	}
	bill := &document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{main}}
	bill.Components = append(bill.Components, library("std", strings.TrimPrefix(info.GoVersion, "go")))
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		part := library(module.Path, module.Version)
		if sum, is := strings.CutPrefix(module.Sum, "h1:"); is {
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("checksum of %s: %w", module.Path, err)
			}
			part.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
		}
		bill.Components = append(bill.Components, part)
	}
	return bill, nil
}

// purl is a package URL: https://github.com/package-url/purl-spec.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + url.QueryEscape(version)
}
