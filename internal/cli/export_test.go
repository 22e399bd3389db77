package cli

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// PrintChecks prints the checks of doctor.
var PrintChecks = printChecks

// PrintRuntimeTest prints the checks and the result of a runtime's test.
func PrintRuntimeTest(to io.Writer, test v1alpha1.RuntimeTest) {
	for _, check := range test.Status.Checks {
		printCheck(to, check)
	}
	printTestResult(to, test)
}

// HelpCommands returns the command lines in the help of all commands.
func HelpCommands() []string {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var lines []string
	root := newRoot(NewFactory(streams, time.Now), "kubectl odh mpijob")
	add := func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	add(root)
	eachCommand(root, add)
	return lines
}
