// Command packagemap writes the maps of packages in AGENTS.md and docs/architecture.md. What a package holds is the
// first sentence of its doc comment; what it may import is its depguard rule in .golangci.yml. Run it at the root.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const module = "opendatahub.io/mpijob/"

// pkg is a package of this module.
type pkg struct {
	// Path is relative to the module, Synopsis the first sentence of the doc comment.
	Path, Synopsis string
	// Imports are the packages of this module that it imports, Allowed those that its rule allows.
	Imports, Allowed []string
	// Pure packages are functions of values: the rule "pure" holds for them.
	Pure bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "packagemap:", err)
		os.Exit(1)
	}
}

func run() error {
	config, err := os.ReadFile(".golangci.yml")
	if err != nil {
		return fmt.Errorf("read import rules: %w", err)
	}
	rules, err := parseRules(config)
	if err != nil {
		return err
	}
	list := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", "./api/...", "./cmd/...", "./internal/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	packages, err := parsePackages(out, rules)
	if err != nil {
		return err
	}
	if err := errors.Join(check(packages)...); err != nil {
		return err
	}
	for file, text := range map[string]string{"AGENTS.md": tree(packages), "docs/architecture.md": table(packages)} {
		if err := replace(file, text); err != nil {
			return err
		}
	}
	return nil
}

// rule is one rule of depguard.
type rule struct {
	Files []string `json:"files"`
	Allow []string `json:"allow"`
}

// parseRules reads the depguard rules of a golangci-lint configuration by name.
func parseRules(config []byte) (map[string]rule, error) {
	var parsed struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(config, &parsed); err != nil {
		return nil, fmt.Errorf("parse import rules: %w", err)
	}
	return parsed.Linters.Settings.Depguard.Rules, nil
}

// parsePackages reads the output of go list -json and adds the rules, sorted by path.
func parsePackages(list []byte, rules map[string]rule) ([]pkg, error) {
	var packages []pkg
	decoder := json.NewDecoder(strings.NewReader(string(list)))
	for {
		var listed struct {
			ImportPath, Doc  string
			Imports, GoFiles []string
		}
		switch err := decoder.Decode(&listed); {
		case errors.Is(err, io.EOF):
			slices.SortFunc(packages, func(a, b pkg) int { return strings.Compare(a.Path, b.Path) })
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("parse list of packages: %w", err)
		}
		if len(listed.GoFiles) == 0 {
			continue
		}
		p := pkg{Path: strings.TrimPrefix(listed.ImportPath, module), Synopsis: listed.Doc}
		for _, i := range listed.Imports {
			if path, ours := strings.CutPrefix(i, module); ours {
				p.Imports = append(p.Imports, path)
			}
		}
		glob := "**/" + p.Path + "/*.go"
		for name, r := range rules {
			switch {
			case !slices.Contains(r.Files, glob):
			case name == "pure":
				p.Pure = true
			default:
				for _, path := range r.Allow {
					p.Allowed = append(p.Allowed, strings.TrimPrefix(path, module))
				}
			}
		}
		slices.Sort(p.Allowed)
		packages = append(packages, p)
	}
}

// check returns what is wrong with the packages: no doc comment, or a rule that allows an import which is not used.
func check(packages []pkg) []error {
	var errs []error
	for _, p := range packages {
		if p.Synopsis == "" {
			errs = append(errs, fmt.Errorf("%s has no doc comment", p.Path))
		}
		for _, path := range p.Allowed {
			if !slices.Contains(p.Imports, path) {
				errs = append(errs, fmt.Errorf("%s may import %s (.golangci.yml) and does not: remove it from the rule", p.Path, path))
			}
		}
	}
	return errs
}

// tree is the map of AGENTS.md: a line for each package.
func tree(packages []pkg) string {
	width := 0
	for _, p := range packages {
		width = max(width, len(p.Path))
	}
	var text strings.Builder
	text.WriteString("```\n")
	for _, p := range packages {
		fmt.Fprintf(&text, "%-*s  %s\n", width, p.Path, describe(p))
	}
	text.WriteString("```\n")
	return text.String()
}

// table is the map of docs/architecture.md: what each package holds and may import.
func table(packages []pkg) string {
	var text strings.Builder
	text.WriteString("| package | content | imports |\n|---|---|---|\n")
	for _, p := range packages {
		name := "`" + strings.TrimPrefix(p.Path, "internal/") + "`"
		if p.Pure {
			name += " (pure)"
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", name, describe(p), strings.ReplaceAll(strings.Join(p.Imports, ", "), "internal/", ""))
	}
	return text.String()
}

// describe is the synopsis without its first words: "Package x holds y." becomes "holds y".
func describe(p pkg) string {
	words := strings.Fields(strings.TrimSuffix(p.Synopsis, "."))
	if len(words) > 2 && (words[0] == "Package" || words[0] == "Command") {
		words = words[2:]
	}
	return strings.Join(words, " ")
}

// markers enclose what is generated in a file.
const begin, end = "<!-- packages: generated by hack/packagemap from .golangci.yml and doc comments -->\n", "<!-- /packages -->\n"

// replace writes text between the markers of a file.
func replace(name, text string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read map: %w", err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s lacks the lines %q and %q", name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	if err := os.WriteFile(name, []byte(before+begin+text+end+after), 0o644); err != nil {
		return fmt.Errorf("write map: %w", err)
	}
	return nil
}
