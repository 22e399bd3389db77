package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"mvdan.cc/sh/v3/syntax"

	"opendatahub.io/mpijob/internal/cli"
)

// siteOf returns all pages of the site, and the README.
func siteOf(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	for _, path := range documents(t) {
		relative, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(relative, "docs/") && !strings.HasPrefix(relative, "docs/decisions/") {
			all = append(all, relative)
		}
	}
	return all
}

// placeholder matches text that a reader of the page replaces, such as <name>.
var placeholder = regexp.MustCompile(`…|<[a-z]+>`)

// TestCommandsExist: every call of the command line in the pages has a command, arguments and flags that exist.
func TestCommandsExist(t *testing.T) {
	checked := 0
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, b := range blocks {
			text := b.text
			switch b.language {
			case "sh":
			case "console":
				text = typed(text)
			default:
				continue
			}
			text = placeholder.ReplaceAllString(text, "NAME")
			calls, err := callsIn(text)
			if err != nil {
				t.Errorf("%s:%d: %v", page, b.line, err)
				continue
			}
			for _, args := range calls {
				if err := parse(args); err != nil {
					t.Errorf("%s:%d: %s: %v", page, b.line, strings.Join(args, " "), err)
				}
				checked++
			}
		}
	}
	if checked < 80 {
		t.Errorf("%d calls were found", checked)
	}
}

// TestWrongCommandsAreFound: what TestCommandsExist would miss if it did not look.
func TestWrongCommandsAreFound(t *testing.T) {
	for name, script := range map[string]string{
		"a flag that does not exist":    "kubectl odh mpijob create a --image b --workerz 3",
		"a command that does not exist": "oc odh mpijob make a",
		"a value that is no number":     "kubectl odh mpijob create a --workers many",
		"too many arguments":            "kubectl odh mpijob logs a b",
		"after another command":         "cd x && kubectl odh mpijob list --nope | head",
		"in another line":               "kubectl odh mpijob list\\\n  --nope",
	} {
		calls, err := callsIn(script)
		if err != nil || len(calls) != 1 {
			t.Errorf("%s: %d calls: %v", name, len(calls), err)
		} else if parse(calls[0]) == nil {
			t.Errorf("%s is not found: %q", name, calls[0])
		}
	}
}

// typed returns the commands of a session: what follows "$ ", with its continuations.
func typed(session string) string {
	var b strings.Builder
	continues := false
	for line := range strings.Lines(session) {
		command, prompt := strings.CutPrefix(line, "$ ")
		if prompt || continues {
			b.WriteString(command)
		}
		continues = (prompt || continues) && strings.HasSuffix(strings.TrimRight(line, "\n"), `\`)
	}
	return b.String()
}

// callsIn returns the arguments of each call of the command line in a script, without the program's name.
func callsIn(script string) (calls [][]string, err error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("no shell reads this: %w", err)
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		if !is {
			return true
		}
		var words []string
		for _, word := range call.Args {
			words = append(words, wordOf(word))
		}
		for _, name := range [][]string{{"kubectl", "odh", "mpijob"}, {"oc", "odh", "mpijob"}} {
			if len(words) > 3 && slices.Equal(words[:3], name) {
				calls = append(calls, words[3:])
			}
		}
		return true
	})
	return calls, nil
}

// wordOf returns a word without quotes. What a shell would replace is a 1, which is a name and a number.
func wordOf(word *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				b.WriteString(part.Value)
			case *syntax.SglQuoted:
				b.WriteString(part.Value)
			case *syntax.DblQuoted:
				add(part.Parts)
			default:
				b.WriteString("1")
			}
		}
	}
	add(word.Parts)
	return b.String()
}

// parse has the real commands read arguments, without running them.
func parse(args []string) error {
	var out bytes.Buffer
	command, rest, err := cli.NewCommand(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}).Find(args)
	if err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	if !command.Runnable() || command.Name() == "mpijob" {
		return errors.New("there is no such command")
	}
	if err := command.ParseFlags(rest); err != nil {
		return fmt.Errorf("parse the flags: %w", err)
	}
	return arguments(command)
}

func arguments(command *cobra.Command) error {
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return fmt.Errorf("validate the arguments: %w", err)
	}
	return nil
}

// TestPythonCompiles: every Python block in the pages is a program, or the part of one, that Python's compiler accepts.
func TestPythonCompiles(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: python3 is not installed")
	}
	type program struct{ At, Text string }
	var programs []program
	for _, page := range siteOf(t) {
		// It is generated from signatures, which are no programs; the SDK's tests run its examples.
		if page == "docs/sdk-reference.md" {
			continue
		}
		blocks, _ := blocksOf(t, page)
		for _, b := range blocks {
			if b.language == "python" {
				programs = append(programs, program{fmt.Sprintf("%s:%d", page, b.line), b.text})
			}
		}
	}
	if len(programs) < 15 {
		t.Errorf("%d blocks were found", len(programs))
	}
	input, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	// Await outside of a function is for notebooks.
	const compile = `
import ast, json, sys
for program in json.load(sys.stdin):
    try:
        compile(program["Text"], program["At"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        print(program["At"], error)
`
	compiler := exec.CommandContext(t.Context(), python, "-c", compile)
	compiler.Stdin = bytes.NewReader(input)
	if output, err := compiler.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("Python does not compile these blocks: %v\n%s", err, output)
	}
}

// TestRunbooks: each alert has a runbook, which its annotation links to, and each runbook is that of an alert.
func TestRunbooks(t *testing.T) {
	const address = "https://github.com/opendatahub-io/mpijob/blob/main/"
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert       string            `json:"alert"`
					Annotations map[string]string `json:"annotations"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, "config", "prometheus", "alerts.yaml"))), &rule); err != nil {
		t.Fatal(err)
	}
	page := read(t, filepath.Join(root, "docs", "runbooks.md"))
	var alerts []string
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			alerts = append(alerts, r.Alert)
			if want := address + "docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook_url %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
			}
		}
	}
	sections := regexp.MustCompile(`(?m)^## (\S+)$`).FindAllStringSubmatchIndex(page, -1)
	var described []string
	for i, at := range sections {
		name, end := page[at[2]:at[3]], len(page)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		described = append(described, name)
		for _, part := range []string{"**Meaning.**", "**Check.**", "**Fix.**", "**Escalate.**"} {
			if !strings.Contains(page[at[1]:end], part) {
				t.Errorf("the runbook of %s has no %s", name, part)
			}
		}
	}
	if !slices.Equal(alerts, described) || len(alerts) == 0 {
		t.Errorf("the alerts are %v, the runbooks %v", alerts, described)
	}
}

// TestREADMEIsShort: it has what a newcomer needs, and the rest a page.
func TestREADMEIsShort(t *testing.T) {
	text := read(t, filepath.Join(root, "README.md"))
	if lines := strings.Count(text, "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, want at most 150", lines)
	}
	for _, command := range []string{"make run", "make test"} {
		if !regexp.MustCompile(`(?m)^` + command + `\b`).MatchString(text) {
			t.Errorf("README.md does not show %s", command)
		}
	}
}
