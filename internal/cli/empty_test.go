package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestEmptyNames: every command that takes a name refuses one that is empty, as that of a variable that is not set, before it asks a cluster.
// Arguments of another command may be empty.
func TestEmptyNames(t *testing.T) {
	t.Parallel()
	run := func(args ...string) string {
		var out bytes.Buffer
		root := newRoot(NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, time.Now), "odh")
		root.SetArgs(args)
		if err := root.ExecuteContext(context.Background()); err != nil {
			return err.Error()
		}
		return ""
	}
	tried := 0
	var try func(c *cobra.Command, path []string)
	try = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			try(sub, append(slices.Clip(path), sub.Name()))
		}
		if c.HasSubCommands() || !strings.Contains(c.Use, "NAME") {
			return
		}
		tried++
		args := append(slices.Clip(path), "")
		if c.Name() == "port-forward" {
			args = append(args, "80")
		}
		if got := run(args...); !strings.Contains(got, " is empty; usage: odh ") {
			t.Errorf("%q: %s", args, got)
		}
	}
	try(newRoot(NewFactory(genericiooptions.NewTestIOStreamsDiscard(), time.Now), "odh"), nil)
	if tried < 20 {
		t.Errorf("only %d commands take a name", tried)
	}
	for want, args := range map[string][]string{
		"B is empty":           {"compare", "a", " "},
		"NAME is empty; usage": {"delete", "a", ""},
		"REMOTE is empty":      {"port-forward", "a", ""},
		"IMAGE is empty":       {"image", "check", ""},
	} {
		if got := run(args...); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if got := run("exec", "a", "--", "printf", "", "--kubeconfig=/does/not/exist"); strings.Contains(got, "is empty") {
		t.Errorf("an argument of another command: %s", got)
	}
}
