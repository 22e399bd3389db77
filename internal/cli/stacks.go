package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
)

type stacksOptions struct {
	*Factory
	rank   int
	output valueOutput
}

func newStacks(f *Factory) *cobra.Command {
	o := &stacksOptions{Factory: f}
	c := &cobra.Command{
		Use:   "stacks NAME [--rank R]",
		Short: "Show where the ranks of a job are in their code",
		Long: `Show the Python call stacks of the ranks of a running job: file, line and function of each call, the innermost first.
Ranks with the same stacks are shown together, the few that differ from the others first.

The agents in the job's pods read the stacks from the memory of the ranks. No rank is stopped, no tool is needed in the
image, and no values of variables are read. Python 3.9 to 3.14 is supported. Stacks of compiled code are not shown.

The command runs mpi-agent in the launcher's pod, which requires the right to create pods/exec.`,
		Example: `# Find out where a job hangs
{{name}} train

# Show the threads of rank 5
{{name}} train --rank 5`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args[0], c.Flags().Changed("rank"))
		},
	}
	c.Flags().IntVarP(&o.rank, "rank", "r", 0, "Rank to show (default: all)")
	o.output.add(c)
	return c
}

func (o *stacksOptions) run(ctx context.Context, name string, one bool) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if one && o.rank < 0 {
		return usagef("--rank: %d is not allowed; use 0 or more", o.rank)
	}
	job, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	command := []string{agentapi.Binary, "stacks"}
	if one {
		command = append(command, "--rank", strconv.Itoa(o.rank))
	}
	answer, err := o.runInLauncher(ctx, job, command)
	if err != nil {
		return err
	}
	hosts, err := parseStacks(answer)
	if err != nil {
		return exitf(ExitError, "the answer of the agent of %s cannot be read: %v", job, err)
	}
	if o.output.structured() {
		return o.output.print(o.Out, map[string]any{"hosts": hosts})
	}
	if !printStacks(o.Out, o.ErrOut, hosts) {
		if one {
			return exitf(ExitNotFound, "rank %d of %s does not run, or no agent observes it", o.rank, job)
		}
		say(o.ErrOut, "no rank of %s runs", job)
	}
	return nil
}

// runInLauncher runs a command of the agent in the launcher's pod, and returns its output.
func (o *stacksOptions) runInLauncher(ctx context.Context, job jobs.Job, command []string) ([]byte, error) {
	pod, config, request, err := o.reach(ctx, job, logstream.Place{Role: mpi.RoleLauncher}, "exec")
	if err != nil {
		return nil, err
	}
	request = request.VersionedParams(&corev1.PodExecOptions{Container: logstream.Container(pod, ""), Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := executorOf(config, request)
	if err != nil {
		return nil, err
	}
	var output, errorOutput limitedBuffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &output, Stderr: &errorOutput})
	if err != nil {
		return nil, explainAgent(job, err, errorOutput.kept.String())
	}
	return output.kept.Bytes(), nil
}

// explainAgent explains why the agent did not answer.
func explainAgent(job jobs.Job, err error, printed string) error {
	text := err.Error() + " " + printed
	switch ended, _ := errors.AsType[utilexec.CodeExitError](err); {
	case strings.Contains(text, "no such file or directory"), strings.Contains(text, "not found"):
		return exitf(ExitError, "the launcher of %s has no agent, because sshd or a command of the workers starts its ranks; "+
			"set the annotation %s: %s to use the agent", job, mpi.AnnotationLaunch, mpi.LaunchAgent)
	case ended.Code == 2 && strings.Contains(printed, "mpi-agent serve"):
		return exitf(ExitError, "the agent of %s cannot read stacks: it is older than this command; jobs that are created after an update of the operator have a newer one", job)
	case ended.Code != 0 && printed != "":
		return exitf(ExitError, "the agent of %s failed: %s", job, logs.Clean(strings.TrimSpace(printed)))
	}
	return err
}

// limitedBuffer keeps the first bytes of what is written to it: the pod belongs to the job's user.
type limitedBuffer struct{ kept bytes.Buffer }

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 256 << 20
	if b.kept.Len()+len(p) > most {
		return 0, errors.New("the output is too long")
	}
	return b.kept.Write(p)
}

// parseStacks reads the answer of the agent: a line of JSON for each host.
func parseStacks(answer []byte) (hosts []agentapi.HostStacks, err error) {
	decoder := json.NewDecoder(bytes.NewReader(answer))
	for {
		var host agentapi.HostStacks
		if err := decoder.Decode(&host); errors.Is(err, io.EOF) {
			return sortHosts(hosts), nil
		} else if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
}
