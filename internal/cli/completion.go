package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// pluginCompletion is what kubectl and oc run to complete the arguments of a plug-in: a program named after it.
const pluginCompletion = `#!/bin/sh
# %[1]s_complete-odh-mpijob: put it into $PATH, next to %[1]s-odh-mpijob.
exec %[1]s-odh-mpijob __complete "$@"
`

func newCompletion(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "completion (kubectl | oc | bash | zsh | fish)",
		Short: "Print a shell completion script",
		Long: `Print a completion script for names, runtimes and flags.

kubectl and oc complete the arguments of a plug-in with a program kubectl_complete-odh-mpijob or oc_complete-odh-mpijob in
$PATH: save the script for kubectl or oc under that name and make it executable. The completion of kubectl or oc itself must
be enabled in your shell (kubectl completion --help).

The scripts for bash, zsh and fish are for the program under its own name, kubectl-odh-mpijob.`,
		Example: `# For kubectl odh mpijob
{{name}} kubectl > ~/bin/kubectl_complete-odh-mpijob && chmod +x ~/bin/kubectl_complete-odh-mpijob

# For oc odh mpijob
{{name}} oc > ~/bin/oc_complete-odh-mpijob && chmod +x ~/bin/oc_complete-odh-mpijob`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions([]string{"kubectl", "oc", "bash", "zsh", "fish"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			// The scripts name the program as the root does.
			root := *c.Root()
			root.Use, root.Annotations = "kubectl-odh-mpijob", nil
			switch args[0] {
			case "kubectl", "oc":
				_, err := fmt.Fprintf(f.Out, pluginCompletion, args[0])
				return err
			case "bash":
				return root.GenBashCompletionV2(f.Out, true)
			case "zsh":
				return root.GenZshCompletion(f.Out)
			case "fish":
				return root.GenFishCompletion(f.Out, true)
			}
			return usagef("no completion for %s; use kubectl, oc, bash, zsh or fish", args[0])
		},
	}
}
