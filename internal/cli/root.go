// Package cli is the command line: kubectl odh mpijob, and oc odh mpijob. What it says of a job is what the job's
// JobReport says; it finds no phase and no cause by itself.
//
// A command is a file: a function that makes the cobra command, with its flags and help, and an options type with a
// method run that does the work. It is one line in commands below. What all of them share stands in factory.go (clients
// and streams), find.go (jobs by name), errors.go (exit codes) and story.go (what is said of a job).
package cli

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"
	kubectlterm "k8s.io/kubectl/pkg/util/term"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// group is a heading of the help and the commands below it, in their order.
type group struct {
	title    string
	commands []func(*Factory) *cobra.Command
}

// commands are all of them.
func commands() []group {
	return []group{
		{"Run jobs:", []func(*Factory) *cobra.Command{
			newCreate,
			newClone,
			newSuspend,
			newResume,
			newDelete,
		}},
		{"See jobs:", []func(*Factory) *cobra.Command{
			newList,
			newDescribe,
			newLogs,
			newExplain,
			newDoctor,
			newEvents,
			newTop,
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
			newMigrate,
		}},
		{"The program itself:", []func(*Factory) *cobra.Command{
			newCompletion,
		}},
	}
}

// Main runs the command line: argv is the program's name and its arguments. It returns the code to exit with. The context
// ends when the user interrupts the program.
func Main(ctx context.Context, argv []string, streams genericiooptions.IOStreams, now func() time.Time) int {
	// What clients log of their work is said again, in words for people, by the errors that they return.
	klog.SetLogger(logr.Discard())
	crlog.SetLogger(logr.Discard())
	f := NewFactory(streams, now)
	root := newRoot(f, displayName(argv[0]))
	root.SetArgs(argv[1:])
	return f.exit(ctx, root.ExecuteContext(ctx))
}

// displayName is how users call a binary: one that is named as a plug-in of oc is called by it. krew makes one word of a
// plug-in's name.
func displayName(program string) string {
	switch program = strings.TrimSuffix(filepath.Base(program), ".exe"); {
	case strings.HasPrefix(program, "oc-"):
		return "oc odh mpijob"
	case program == "kubectl-odh_mpijob":
		return "kubectl odh-mpijob"
	}
	return "kubectl odh mpijob"
}

// call runs another command, with the same cluster and streams.
func (f *Factory) call(ctx context.Context, args ...string) error {
	root := newRoot(f, f.name)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func newRoot(f *Factory, name string) *cobra.Command {
	f.name = name
	root := &cobra.Command{
		Use:         "mpijob",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:       "Run MPI jobs, see how they are doing, and repair them",
		Long: `Run MPI jobs, see how they are doing, and repair them.

The jobs are MPIJobs (kubeflow.org) and TrainJobs (trainer.kubeflow.org) alike. A NAME may be either's; where both kinds
have a job of that name, write mpijob/NAME or trainjob/NAME.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the job failed, 4 timed out, 5 not found, 130 interrupted.`,
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
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usagef("%v; see %s --help", err, c.CommandPath()) })
	f.completeFlags(root)
	return root
}

// callByName puts the whole name of the program where kubectl's templates, which know programs of one word, have a part.
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

// newOptions lists the flags of every command; the help of each refers to it.
func newOptions() *cobra.Command {
	c := &cobra.Command{
		Use:                   "options",
		Short:                 "List the flags that every command takes",
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, _ []string) error { return c.Usage() },
	}
	templates.UseOptionsTemplates(c)
	return c
}

// prepare gives all commands below one what is the same for each: texts in the form of kubectl's, and wrong numbers of
// arguments as errors of usage.
func prepare(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		prepare(c)
		c.DisableFlagsInUseLine = true
		c.Long = strings.TrimSpace(c.Long)
		c.Example = templates.Examples(strings.ReplaceAll(c.Example, "{{name}}", c.Root().CommandPath()))
		check := c.Args
		if check == nil {
			check = cobra.NoArgs
		}
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usagef("%v; usage: %s", err, c.UseLine())
			}
			return nil
		}
	}
}

// unknownCommand takes no arguments of the root: what is none of its commands comes here.
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
	return usagef("there is no command %q%s", args[0], cmp.Or(meant(args[0], names), "; see "+f.name+" --help"))
}
