package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestReference: docs/cli-reference.md says what the commands say of themselves; -update writes it anew.
func TestReference(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := newRoot(NewFactory(streams, time.Now), "kubectl odh mpijob")
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- question: Which commands and flags are there? -->\n\nThe help of each command of `kubectl odh mpijob` ([cli.md](cli.md)). This file is generated: `go test ./internal/cli -run TestReference -update`.\n")
	for _, group := range commands() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.title, ":"))
		for _, construct := range group.commands {
			name := construct(NewFactory(streams, time.Now)).Name()
			c, _, err := root.Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			describeCommand(&b, c)
		}
	}
	file := filepath.Join("..", "..", "docs", "cli-reference.md")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s is not what the commands say of themselves: write it anew with -update", file)
	}
}

// describeCommand writes a command and those below it.
func describeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n", strings.TrimPrefix(c.CommandPath(), c.Root().CommandPath()+" "))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "```\n%s\n\n%s\n", c.UseLine(), long)
	if c.Example != "" {
		var lines []string
		for line := range strings.Lines(c.Example) {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
		fmt.Fprintf(b, "\n%s\n", strings.Join(lines, "\n"))
	}
	b.WriteString("```\n")
	if flags := flagTable(c); flags != "" {
		b.WriteString("\n| flag | description |\n|---|---|\n" + flags)
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			describeCommand(b, below)
		}
	}
}

func flagTable(c *cobra.Command) string {
	var b strings.Builder
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		usage := f.Usage
		if d := f.DefValue; d != "" && d != "[]" && d != "false" && d != "0" && d != "0s" && !strings.Contains(usage, "default") {
			usage += " (default " + d + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}
