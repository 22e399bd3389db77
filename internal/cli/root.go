// Package cli is the command line: kubectl odh mpijob, and oc odh mpijob. It parses flags and prints; package jobs does the
// work.
//
// Each command is a file with a function that makes the cobra command, and an options type with a method run. It is listed
// in commands below. Commands share factory.go (clients and streams), find.go (jobs by name), errors.go (texts of errors and
// exit codes), table.go and describe_printer.go (reports as text).
package cli

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"
	kubectlterm "k8s.io/kubectl/pkg/util/term"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/phrase"
)

// group is a heading of the help and its commands, in order.
type group struct {
	title    string
	commands []func(*Factory) *cobra.Command
}

// commands returns all commands by group.
func commands() []group {
	return []group{
		{"Run jobs:", []func(*Factory) *cobra.Command{
			newCreate,
			newClone,
			newUpdate,
			newSuspend,
			newResume,
			newCancel,
			newDelete,
		}},
		{"View jobs:", []func(*Factory) *cobra.Command{
			newList,
			newDescribe,
			newLogs,
			newAttach,
			newExplain,
			newDoctor,
			newEvents,
			newTop,
			newProfile,
			newStacks,
			newWait,
			newExec,
			newPortForward,
			newCompare,
			newUsage,
		}},
		{"Prepare jobs:", []func(*Factory) *cobra.Command{
			newPlan,
			newTemplates,
			newRuntimes,
			newImage,
			newMigrate,
		}},
		{"Other commands:", []func(*Factory) *cobra.Command{
			newCompletion,
			newVersion,
		}},
	}
}

// Main runs the command line of argv (program name and arguments) and returns the exit code. The context ends when the user
// interrupts the program.
func Main(ctx context.Context, argv []string, streams genericiooptions.IOStreams, now func() time.Time) int {
	// Errors that clients log are also returned.
	klog.SetLogger(logr.Discard())
	crlog.SetLogger(logr.Discard())
	f := NewFactory(streams, now)
	root := newRoot(f, displayName(argv[0]))
	root.SetArgs(argv[1:])
	return f.exit(ctx, root.ExecuteContext(ctx))
}

// displayName returns how users call a binary: through oc if it is named as a plug-in of oc, else through kubectl. krew
// installs the plug-in under another name.
func displayName(program string) string {
	switch program = strings.TrimSuffix(filepath.Base(program), ".exe"); {
	case strings.HasPrefix(program, "oc-"):
		return "oc odh mpijob"
	case program == "kubectl-odh_mpijob":
		return "kubectl odh-mpijob"
	}
	return "kubectl odh mpijob"
}

// call runs another command with the same cluster and streams.
func (f *Factory) call(ctx context.Context, args ...string) error {
	root := newRoot(f, f.name)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// NewCommand returns the command line without running it, for what reads its commands and flags.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newRoot(NewFactory(streams, time.Now), displayName(""))
}

func newRoot(f *Factory, name string) *cobra.Command {
	f.name = name
	root := &cobra.Command{
		Use:         "mpijob",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:       "Run, observe and repair MPI jobs",
		Long: `Run, observe and repair MPI jobs.

Jobs are MPIJobs (kubeflow.org) and TrainJobs (trainer.kubeflow.org). NAME refers to a job of either kind; if both have a
job of that name, use mpijob/NAME or trainjob/NAME.

Exit codes: 0 success, 1 error, 2 wrong usage, 3 the job failed, 4 timeout, 5 not found, 130 interrupted.`,
		Example: templates.Examples(strings.ReplaceAll(`# Check that jobs can run in the namespace
{{name}} doctor

# Run a program in 2 workers, and show its output until it ends
{{name}} create train --image quay.io/me/train --workers 2 --command "python train.py" --logs

# Find out why it waits or has failed, and what to do
{{name}} explain train

# Run it again with a change
{{name}} clone train --set workers=4 --logs`, "{{name}}", name)),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          f.unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.ErrOut)
	root.CompletionOptions.DisableDefaultCmd = true
	f.flags.AddFlags(root.PersistentFlags())

	groups := make(templates.CommandGroups, 0, len(commands()))
	for _, g := range commands() {
		made := templates.CommandGroup{Message: g.title}
		for _, construct := range g.commands {
			made.Commands = append(made.Commands, construct(f))
		}
		groups = append(groups, made)
	}
	groups.Add(root)
	root.AddCommand(newOptions())
	templates.ActsAsRootCommand(root, []string{"options", "help"}, groups...)
	callByName(root, name)
	prepare(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usagef("%v; run %s --help", err, c.CommandPath()) })
	f.completeFlags(root)
	return root
}

// callByName prints the full name of the program in help, where kubectl's templates only print its last word.
func callByName(root *cobra.Command, name string) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		var text bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&text)
		help(c, args)
		c.SetOut(out)
		_, _ = strings.NewReplacer("Use \""+root.Name()+" ", "Use \""+name+" ").WriteString(kubectlterm.NewResponsiveWriter(out), text.String())
	})
}

// newOptions lists the flags of all commands; the help of each command refers to it.
func newOptions() *cobra.Command {
	c := &cobra.Command{
		Use:                   "options",
		Short:                 "List the flags of all commands",
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, _ []string) error { return c.Usage() },
	}
	templates.UseOptionsTemplates(c)
	return c
}

// prepare sets what all commands below one share: the format of help texts, {{name}} in examples, which is the command with
// its parents, and usage errors for wrong numbers of arguments.
func prepare(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		prepare(c)
		c.DisableFlagsInUseLine = true
		c.Long = strings.TrimSpace(c.Long)
		c.Example = templates.Examples(strings.ReplaceAll(c.Example, "{{name}}", c.CommandPath()))
		check := c.Args
		if check == nil {
			check = cobra.NoArgs
		}
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				text := err.Error()
				if strings.Contains(text, "arg(s)") {
					text = "got " + phrase.Count(len(args), "argument")
				}
				return usagef("%s; usage: %s", text, c.UseLine())
			}
			return checkNotEmpty(c, args)
		}
	}
}

// placeholder is the name of an argument in the usage of a command, with dots if it can be repeated. That of a flag's value has the flag before
// it, and that of an optional part its bracket.
var placeholder = regexp.MustCompile(`(-\S+ [A-Z]|\[[A-Z]+:)?([A-Z]+)?(\.\.\.)?`)

// checkNotEmpty returns an error if an argument is empty, such as a name from a variable that is not set. Those of another command, after --,
// may be.
func checkNotEmpty(c *cobra.Command, args []string) error {
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	i := slices.IndexFunc(args, func(arg string) bool { return strings.TrimSpace(arg) == "" })
	if i < 0 {
		return nil
	}
	what := "an argument"
	n := 0
	for _, found := range placeholder.FindAllStringSubmatch(c.Use, -1) {
		// The value of a flag is not an argument, and neither is an optional part of one.
		if found[1] != "" && !strings.HasSuffix(found[1], ":") || found[2] == "" {
			continue
		}
		if what = found[2]; n == i || found[3] != "" {
			break
		}
		n++
	}
	return usagef("%s is empty; usage: %s", what, c.UseLine())
}

// unknownCommand returns an error for arguments of the root, which are not commands.
func (f *Factory) unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("unknown command %q%s", args[0], cmp.Or(didYouMean(args[0], names), "; run "+f.name+" --help"))
}
