package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/streaming/pkg/httpstream"

	"opendatahub.io/mpijob/internal/logstream"
)

type execOptions struct {
	*Factory
	target     *target
	container  string
	stdin, tty bool
}

func newExec(f *Factory) *cobra.Command {
	o := &execOptions{Factory: f}
	c := &cobra.Command{
		Use:   "exec NAME [--worker N | --rank R] [-it] [-- COMMAND...]",
		Short: "Run a command in a pod of a job",
		Long: `Run a command in the launcher's pod, in a worker's pod, or in the pod of a rank. Without a command, sh is run on this
terminal. The exit code is that of the command.`,
		Example: `# Show the GPUs of rank 5
{{name}} train --rank 5 -- nvidia-smi

# Open a shell in worker 2
{{name}} train --worker 2 -it -- bash

# Show the state of the agent
{{name}} train -- /opt/mpi-agent/mpi-agent status`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash >= 0 && dash != 1 || dash < 0 && len(args) > 1 {
				return usagef("write the command after --, such as exec %s -- ls", args[0])
			}
			return o.run(c.Context(), args[0], args[1:])
		},
	}
	o.target = addTarget(c)
	flags := c.Flags()
	flags.BoolVarP(&o.stdin, "stdin", "i", false, "Pass standard input to the command")
	flags.BoolVarP(&o.tty, "tty", "t", false, "Allocate a terminal")
	flags.StringVarP(&o.container, "container", "c", "", "Container to use (default: the main container)")
	return c
}

func (o *execOptions) run(ctx context.Context, arg string, command []string) error {
	pod, config, request, err := o.target.reach(ctx, o.Factory, arg, "exec")
	if err != nil {
		return err
	}
	if len(command) == 0 {
		command = []string{"sh"}
		o.stdin, o.tty = true, onTerminal(o.In)
	}
	container := logstream.Container(pod, o.container)
	tty := o.tty && o.stdin && onTerminal(o.In)
	request = request.VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdin: o.stdin, Stdout: true, Stderr: !tty, TTY: tty}, scheme.ParameterCodec)
	executor, err := executorOf(config, request)
	if err != nil {
		return err
	}
	return ofCommand(o.stream(ctx, executor, tty))
}

// stream connects the command with this program's streams. A terminal passes every key on, and is as it was afterwards.
func (o *execOptions) stream(ctx context.Context, executor remotecommand.Executor, tty bool) error {
	streams := remotecommand.StreamOptions{Stdout: o.Out, Stderr: o.ErrOut, Tty: tty}
	if o.stdin {
		streams.Stdin = o.In
	}
	if !tty {
		return executor.StreamWithContext(ctx, streams)
	}
	terminal := term.TTY{In: o.In, Out: o.Out, Raw: true}
	streams.Stderr = nil
	if sizes := terminal.MonitorSize(terminal.GetSize()); sizes != nil {
		streams.TerminalSizeQueue = terminalSizes{sizes}
	}
	return terminal.Safe(func() error { return executor.StreamWithContext(ctx, streams) })
}

// terminalSizes passes on how large the terminal is.
type terminalSizes struct{ term.TerminalSizeQueue }

// Next implements remotecommand.TerminalSizeQueue.
func (s terminalSizes) Next() *remotecommand.TerminalSize {
	next := s.TerminalSizeQueue.Next()
	if next == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: next.Width, Height: next.Height}
}

// executorOf speaks to the API server over a websocket or, with older ones, SPDY.
func executorOf(config *rest.Config, request *rest.Request) (remotecommand.Executor, error) {
	newer, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	older, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// ofCommand ends the program as the command has ended.
func ofCommand(err error) error {
	if ended, is := errors.AsType[utilexec.CodeExitError](err); is {
		return silently(ended.Code)
	}
	return err
}
