// Command sbom prints a software bill of materials in CycloneDX's JSON format (version 1.6): the modules that a Go binary was
// linked from, the npm packages of a lock file that are not only for development, the installed Debian packages of an image,
// and components by their package URLs.
//
//	sbom [--binary FILE] [--npm package-lock.json] [--dpkg STATUS] [--component PURL]... NAME VERSION
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
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
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	binary := flags.String("binary", "", "Go binary")
	lock := flags.String("npm", "", "lock file of npm")
	status := flags.String("dpkg", "", "status file of dpkg")
	var others []string
	flags.Func("component", "package URL of another component", func(text string) error {
		others = append(others, text)
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("%d arguments, want 2: NAME VERSION", flags.NArg())
	}
	bill, err := start(flags.Arg(0), flags.Arg(1), *binary)
	if err != nil {
		return err
	}
	for _, list := range []struct {
		file string
		read func([]byte) ([]component, error)
	}{{*lock, npmPackages}, {*status, debianPackages}} {
		if list.file == "" {
			continue
		}
		content, err := os.ReadFile(list.file)
		if err != nil {
			return fmt.Errorf("read packages: %w", err)
		}
		found, err := list.read(content)
		if err != nil {
			return fmt.Errorf("read packages of %s: %w", list.file, err)
		}
		bill.Components = append(bill.Components, found...)
	}
	for _, text := range others {
		part, err := parsePURL(text)
		if err != nil {
			return err
		}
		bill.Components = append(bill.Components, part)
	}
	if len(bill.Components) == 0 {
		return fmt.Errorf("%s has no components: name a binary or a list of packages", flags.Arg(0))
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(bill)
}

// start makes the document of a binary, or one of an image without components if there is no binary.
func start(name, version, binary string) (*document, error) {
	if binary == "" {
		url := "pkg:generic/" + name + "@" + url.QueryEscape(version)
		return &document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{component{Type: "container", Ref: url, Name: name, Version: version, PURL: url}}}, nil
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", binary, err)
	}
	bill, err := describe(name, version, info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	return bill, nil
}

// npmPackages reads the packages of npm's lock file (version 2 or 3), without those that are only for development.
func npmPackages(content []byte) ([]component, error) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev, Link          bool
		}
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		return nil, err
	}
	if len(lock.Packages) == 0 {
		return nil, fmt.Errorf("it lists no packages")
	}
	var all []component
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		one := lock.Packages[path]
		at := strings.LastIndex(path, "node_modules/")
		if at < 0 || one.Link {
			continue
		}
		name := path[at+len("node_modules/"):]
		// Pages contain the runtime of module federation, although it belongs to a plug-in for development.
		if one.Dev && !strings.HasPrefix(name, "@module-federation/") {
			continue
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + url.QueryEscape(one.Version)
		part := component{Type: "library", Ref: purl, Name: name, Version: one.Version, PURL: purl}
		if sum, is := strings.CutPrefix(one.Integrity, "sha512-"); is {
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("checksum of %s: %w", name, err)
			}
			part.Hashes = []hash{{"SHA-512", hex.EncodeToString(raw)}}
		}
		// A version may be installed in several folders.
		if !slices.ContainsFunc(all, func(have component) bool { return have.Ref == part.Ref }) {
			all = append(all, part)
		}
	}
	return all, nil
}

// debianPackages reads the installed packages of dpkg's status file.
func debianPackages(content []byte) ([]component, error) {
	var all []component
	for paragraph := range strings.SplitSeq(string(content), "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(paragraph) {
			if name, value, found := strings.Cut(line, ":"); found && !strings.HasPrefix(line, " ") {
				fields[name] = strings.TrimSpace(value)
			}
		}
		if fields["Status"] != "install ok installed" {
			continue
		}
		name, version := fields["Package"], fields["Version"]
		purl := "pkg:deb/debian/" + url.PathEscape(name) + "@" + url.QueryEscape(version) + "?arch=" + fields["Architecture"]
		all = append(all, component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it lists no installed packages")
	}
	return all, nil
}

// parsePURL reads a component from a package URL with a version.
func parsePURL(text string) (component, error) {
	rest, is := strings.CutPrefix(text, "pkg:")
	path, version, versioned := strings.Cut(rest, "@")
	_, name, named := strings.Cut(path, "/")
	if !is || !versioned || !named || version == "" || name == "" {
		return component{}, fmt.Errorf("%q is no package URL such as pkg:pypi/numpy@2.0.0", text)
	}
	return component{Type: "library", Ref: text, Name: name, Version: version, PURL: text}, nil
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
