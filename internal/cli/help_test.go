package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// eachCommand calls a function with each command below one.
func eachCommand(parent *cobra.Command, each func(*cobra.Command)) {
	for _, c := range parent.Commands() {
		each(c)
		eachCommand(c, each)
	}
}

// TestExamples: every example runs the command whose help it is part of, by its full name.
func TestExamples(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	eachCommand(newRoot(NewFactory(streams, time.Now), "kubectl odh mpijob"), func(c *cobra.Command) {
		if strings.Contains(c.Example, "{{") {
			t.Errorf("%s: the example has a placeholder:\n%s", c.CommandPath(), c.Example)
		}
		if c.Runnable() && c.Example == "" && !c.HasSubCommands() && c.Name() != "options" && !c.Hidden {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line+" ", c.CommandPath()+" ") {
				t.Errorf("%s: the example %q does not run the command", c.CommandPath(), line)
			}
		}
	})
}

// TestHelpTexts: short texts have one line of at most 60 characters, and flags one line; both start with a capital letter
// and have no full stop.
func TestHelpTexts(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	check := func(where, text string) {
		if text == "" || strings.Contains(text, "\n") || strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] {
			t.Errorf("%s: %q must be one line that starts with a capital letter and has no full stop", where, text)
		}
	}
	eachCommand(newRoot(NewFactory(streams, time.Now), "kubectl odh mpijob"), func(c *cobra.Command) {
		check(c.CommandPath(), c.Short)
		if utf8.RuneCountInString(c.Short) > 60 {
			t.Errorf("%s: the short text %q has more than 60 characters", c.CommandPath(), c.Short)
		}
		c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Name != "help" && c.InheritedFlags().Lookup(flag.Name) == nil {
				check(c.CommandPath()+" --"+flag.Name, flag.Usage)
			}
		})
	})
}
