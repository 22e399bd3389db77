package docs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	sigsyaml "sigs.k8s.io/yaml"
)

// A call is a simple command of a script: its words without quotes, and what it sets in its environment is left out.
type call []string

// callsOf returns the commands of a script, also those within others.
func callsOf(script string) (calls []call, err error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("no shell reads this: %w", err)
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if command, is := node.(*syntax.CallExpr); is && len(command.Args) > 0 {
			var words call
			for _, word := range command.Args {
				words = append(words, wordOf(word))
			}
			calls = append(calls, words)
		}
		return true
	})
	return calls, nil
}

// scriptOf returns what a reader of a block types, or "" if it is no script. Text that the reader replaces is a name.
func scriptOf(b block) string {
	switch b.language {
	case "sh":
		return placeholder.ReplaceAllString(b.text, "NAME")
	case "console":
		return placeholder.ReplaceAllString(typed(b.text), "NAME")
	}
	return ""
}

// parsers check the commands of programs. Commands of kubectl are checked by kubectl itself (TestOnAPIServer).
func parsers(t *testing.T) map[string]func(call) error {
	t.Helper()
	targets, variables := makefile(t)
	values := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(read(t, filepath.Join(root, "charts", "mpijob-operator", "values.yaml"))), &values); err != nil {
		t.Fatal(err)
	}
	kubectl := func(words call) error {
		if len(words) > 3 && words[1] == "odh" && words[2] == "mpijob" {
			return parse(words[3:])
		}
		if words[0] == "oc" && !slices.Contains(sharedVerbs, verb(words)) {
			return errUnchecked
		}
		return nil
	}
	return map[string]func(call) error{
		"kubectl": kubectl,
		"oc":      kubectl,
		"make":    func(words call) error { return checkMake(words, targets, variables) },
		"helm":    func(words call) error { return checkHelm(words, values) },
		"export":  nil, "cd": nil, "set": nil, "echo": nil, "printf": nil, "grep": nil,
	}
}

// errUnchecked is for commands that no test knows.
var errUnchecked = errors.New("nothing checks this command")

// sharedVerbs are the commands of oc that are those of kubectl.
var sharedVerbs = []string{"annotate", "apply", "create", "delete", "describe", "get", "label", "logs", "patch"}

// verb returns the first word of a command of kubectl or oc that is no flag and no flag's value.
func verb(words call) string {
	for i := 1; i < len(words); i++ {
		switch {
		case words[i] == "-n", words[i] == "--namespace", words[i] == "--kubeconfig":
			i++
		case !strings.HasPrefix(words[i], "-"):
			return words[i]
		}
	}
	return ""
}

// makefile returns the targets of the Makefile, and the variables that a user may set.
func makefile(t *testing.T) (targets, variables map[string]bool) {
	t.Helper()
	text := read(t, filepath.Join(root, "Makefile"))
	targets, variables = map[string]bool{}, map[string]bool{}
	// make dashboard-e2e and make test pass these on.
	for _, script := range []string{"web/test/cluster.sh", "hack/test.sh"} {
		for _, found := range regexp.MustCompile(`\b[A-Z]{4,}\b`).FindAllString(read(t, filepath.Join(root, script)), -1) {
			variables[found] = true
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(text, -1) {
		targets[found[1]] = true
	}
	for _, pattern := range []string{`(?m)^(?:[a-z0-9-]+: )?([A-Z_0-9]+) [?:]?=`, `\$[({]+([A-Z_0-9]+)[)}]`, `\$\(if (?:\$\(filter[^)]*)?\$\(([A-Z_0-9]+)\)`} {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			variables[found[1]] = true
		}
	}
	return targets, variables
}

// checkMake: the targets and variables exist. UPDATE and others of the environment are those of the tests.
func checkMake(words call, targets, variables map[string]bool) error {
	for _, word := range words[1:] {
		name, _, assigns := strings.Cut(word, "=")
		switch {
		case assigns && !variables[name]:
			return fmt.Errorf("the Makefile does not read %s", name)
		case !assigns && !targets[word]:
			return fmt.Errorf("the Makefile has no target %s", word)
		}
	}
	return nil
}

// checkHelm: the values that a command of Helm sets exist in the chart.
func checkHelm(words call, values map[string]any) error {
	for i, word := range words {
		if word != "--set" || i+1 == len(words) {
			continue
		}
		for assignment := range strings.SplitSeq(words[i+1], ",") {
			name, _, _ := strings.Cut(assignment, "=")
			if !hasValue(values, strings.Split(name, ".")) {
				return fmt.Errorf("the chart has no value %s", name)
			}
		}
	}
	return nil
}

// hasValue reports whether the values of a chart have a path, or an empty object on the way to it, whose keys are the user's.
func hasValue(values map[string]any, path []string) bool {
	value, has := values[path[0]]
	if below, is := value.(map[string]any); is && len(path) > 1 && len(below) > 0 {
		return hasValue(below, path[1:])
	}
	return has
}

// TestBlocksAreChecked: each block of commands, YAML and Python of each page is run by TestPages, or checked, or says why not.
// TestManifests and TestOnAPIServer check YAML, TestPythonCompiles and the SDK's test_documents Python.
func TestBlocksAreChecked(t *testing.T) {
	programs, guides, exist := parsers(t), pages(t), allTests(t)
	// In these languages there is nothing to check, or another test does it.
	others := map[string]string{
		"": "outputs and lines of files", "dockerfile": "TestContainerfiles", "promql": "TestDocs", "pycon": "docs/sdk-reference.md: the SDK's test of docstrings",
		"yaml": "TestManifests", "python": "TestPythonCompiles",
	}
	counts := map[string]int{}
	for _, page := range siteOf(t) {
		blocks, notRun := blocksOf(t, page)
		reasons := notRun
		for _, b := range blocks {
			if b.mark == "example" {
				reasons += " " + b.of
			}
		}
		for _, name := range regexp.MustCompile(`\b(?:Test[A-Z]|test_)\w+`).FindAllString(reasons, -1) {
			if !exist[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
		for _, b := range blocks {
			isRun := notRun == "" && slices.Contains(guides, page) && b.mark != "example" && b.mark != "part"
			explained := notRun != "" || b.mark == "example"
			switch script := scriptOf(b); {
			case script != "":
				counts["commands"]++
				calls, err := callsOf(script)
				if err != nil {
					t.Errorf("%s:%d: %v", page, b.line, err)
				}
				for _, words := range calls {
					check, known := programs[words[0]]
					if known && check != nil {
						err = check(words)
					} else if !known {
						err = errUnchecked
					}
					if err != nil && (!errors.Is(err, errUnchecked) || !isRun && !explained) {
						t.Errorf("%s:%d: %s: %v; mark the block with <!-- example: REASON -->, or the page with <!-- not run: REASON -->", page, b.line, strings.Join(words, " "), err)
					}
					err = nil
				}
			case others[b.language] == "" && !explained:
				t.Errorf("%s:%d: nothing checks blocks of %s", page, b.line, b.language)
			case b.language == "yaml" && !isObject(b.text) && b.mark != "part" && !explained:
				t.Errorf("%s:%d: this is no whole object: mark it with <!-- part: KIND PATH -->, so that it can be checked", page, b.line)
			}
			counts[b.language]++
		}
	}
	if counts["commands"] < 200 || counts["yaml"] < 25 || counts["python"] < 15 {
		t.Errorf("found %v", counts)
	}
}

// allTests returns the names of all tests in Go and of the SDK.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	exist := tests(t)
	for _, path := range files(t, ".py") {
		for _, found := range regexp.MustCompile(`(?m)^def (test_\w+)`).FindAllStringSubmatch(read(t, path), -1) {
			exist[found[1]] = true
		}
	}
	return exist
}

// TestCommandsAreFenced: commands and manifests are in fenced blocks, so that the tests find them, and not only indented.
func TestCommandsAreFenced(t *testing.T) {
	for _, page := range siteOf(t) {
		text := fenced.ReplaceAllString(read(t, filepath.Join(root, page)), "")
		if found := regexp.MustCompile(`(?m)^ {4,}(?:\$ )?(?:kubectl|oc|make|helm|apiVersion:|pip|import) .*`).FindString(text); found != "" {
			t.Errorf("%s: put this into a fenced block: %s", page, found)
		}
	}
}

// isObject reports whether a block is whole objects of Kubernetes.
func isObject(text string) bool {
	return regexp.MustCompile(`(?m)^apiVersion: `).MatchString(text) && regexp.MustCompile(`(?m)^kind: `).MatchString(text)
}

// TestWrongProgramsAreFound: what TestBlocksAreChecked would miss if it did not look.
func TestWrongProgramsAreFound(t *testing.T) {
	programs := parsers(t)
	for script, fails := range map[string]bool{
		"make docs":                                false,
		"make doks":                                true,
		"make e2e SUITE=TestPi":                    false,
		"make e2e SUIT=TestPi":                     true,
		"make docs && make e2e KUBERNETES=1":       false,
		"helm install a b --set agent.image.tag=1": false,
		"helm install a b --set agent.imag.tag=1":  true,
		"oc adm top":                               true,
		"oc -n a create -f b":                      false,
		"kubectl odh mpijob lst":                   true,
	} {
		calls, err := callsOf(script)
		if err != nil {
			t.Errorf("%s: %v", script, err)
		}
		failed := false
		for _, words := range calls {
			failed = failed || programs[words[0]](words) != nil
		}
		if failed != fails {
			t.Errorf("%s: failed is %t, want %t", script, failed, fails)
		}
	}
}

// TestPathsExist: the files and folders of this repository that commands name exist.
func TestPathsExist(t *testing.T) {
	folders := map[string]bool{}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			folders[entry.Name()] = true
		}
	}
	for _, built := range []string{"bin", "dist"} {
		delete(folders, built)
	}
	checked := 0
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, b := range blocks {
			calls, err := callsOf(scriptOf(b))
			if err != nil {
				continue // TestBlocksAreChecked reports it
			}
			for _, words := range calls {
				for _, word := range words[1:] {
					path := strings.TrimPrefix(word, "./")
					first, rest, deeper := strings.Cut(path, "/")
					if !deeper || rest == "" || !folders[first] || strings.ContainsAny(path, "*:[ ") || strings.HasSuffix(path, "...") {
						continue
					}
					checked++
					if _, err := os.Stat(filepath.Join(root, path)); err != nil {
						t.Errorf("%s:%d: %s: %v", page, b.line, strings.Join(words, " "), err)
					}
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("%d paths were found in the folders %v", checked, slices.Sorted(maps.Keys(folders)))
	}
}

// TestInlineCommands: commands of make and of the command line in the text of pages exist.
func TestInlineCommands(t *testing.T) {
	programs, checked := parsers(t), 0
	code := regexp.MustCompile("`((?:make|(?:kubectl|oc) odh mpijob) [a-z][^`\n]*)`")
	for _, page := range siteOf(t) {
		for _, found := range code.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, filepath.Join(root, page)), ""), -1) {
			calls, err := callsOf(placeholder.ReplaceAllString(found[1], "NAME"))
			if err != nil {
				t.Errorf("%s: `%s`: %v", page, found[1], err)
				continue
			}
			checked++
			// Text may name a command without its arguments.
			if err := programs[calls[0][0]](calls[0]); err != nil && !strings.Contains(err.Error(), "validate the arguments") && !strings.Contains(err.Error(), "flag needs an argument") {
				t.Errorf("%s: `%s`: %v", page, found[1], err)
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d commands were found", checked)
	}
}
