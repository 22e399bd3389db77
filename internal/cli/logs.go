package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
)

type logsOptions struct {
	*Factory
	follow, previous, timestamps, launcher, agent bool
	ranks, workers, level, grep, container        string
	since                                         time.Duration
	sinceTime, until, form                        string
	tail                                          int64
}

func newLogs(f *Factory) *cobra.Command {
	o := &logsOptions{Factory: f, tail: -1}
	c := &cobra.Command{
		Use:     "logs NAME",
		Aliases: []string{"log"},
		Short:   "Show the output of a job, or of some of its ranks",
		Long: `Show the output of a job's launcher and workers in order of time. Each line starts with its pod and rank: [launcher],
[worker-2], [worker-2 r5]. Secrets are masked.

Most output of ranks goes through the launcher, because mpirun collects it. Let mpirun tag lines with their ranks (Open MPI:
--tag-output, or --output tag in version 5; Intel MPI and MPICH: -prepend-rank), so that they can be selected.

Only warnings and errors of the agent, which starts the ranks, are shown; --agent shows all of its lines.

With --follow, output is shown until the job ends, through restarts and lost connections; the exit code is then 3 if the job
failed. Ctrl-C does not stop the job. While a container restarts, the output of its previous run is shown.

When the job has ended, its complete logs are shown if the administrator has set a bucket for them, for a day or as long as it keeps
them. A worker that printed more than 10 MiB itself may lack its first lines. Without complete logs, if the pods are deleted,
the last lines of the launcher and of all workers are shown from the job's report.`,
		Example: `# All output
{{name}} train

# Follow the output until the job ends
{{name}} train -f

# Ranks 0 and 4 to 7, in the last ten minutes
{{name}} train --rank 0,4-7 --since 10m

# What was printed in an hour of yesterday
{{name}} train --since-time 2026-11-21T13:00:00Z --until 2026-11-21T14:00:00Z

# Errors of all ranks
{{name}} train --level error

# Lines that match a regular expression, as JSON
{{name}} train --grep 'loss=\S+' -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "Follow the output until the job ends")
	flags.StringVarP(&o.ranks, "rank", "r", "", "Only show these ranks, such as 0,4-7")
	flags.StringVar(&o.workers, "worker", "", "Only show these workers and their ranks, such as 0-3")
	flags.BoolVar(&o.launcher, "launcher", false, "Only show the launcher; with --worker, also show it")
	flags.StringVar(&o.level, "level", "", "Only show lines at or above this level (debug, info, warning, error)")
	flags.StringVar(&o.grep, "grep", "", "Only show lines that match this regular expression (RE2)")
	flags.DurationVar(&o.since, "since", 0, "Only show lines newer than this duration, such as 30s or 10m")
	flags.StringVar(&o.sinceTime, "since-time", "", "Only show lines since this time, such as 2026-11-21T13:00:00Z")
	flags.StringVar(&o.until, "until", "", "Only show lines until this time, such as 2026-11-21T14:00:00Z, or until this long ago, such as 10m")
	flags.BoolVar(&o.agent, "agent", false, "Also show the lines of the agent, which starts the ranks")
	flags.Int64Var(&o.tail, "tail", -1, "Number of last lines to read from each pod, before other filters (-1 for all)")
	flags.BoolVarP(&o.previous, "previous", "p", false, "Show the previous runs of restarted containers")
	flags.BoolVar(&o.timestamps, "timestamps", false, "Prefix each line with its timestamp")
	flags.StringVarP(&o.container, "container", "c", "", "Container to read (default: the main container), such as mpi-agent")
	flags.StringVarP(&o.form, "output", "o", "", "Output format: json (time, pod, role, index, rank, level and text of each line)")
	_ = c.RegisterFlagCompletionFunc("level", cobra.FixedCompletions([]string{"debug", "info", "warning", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *logsOptions) run(ctx context.Context, arg string) error {
	options, err := o.options()
	if err != nil {
		return err
	}
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	if isStored, err := o.printStored(ctx, job, options); isStored {
		return err
	}
	if job.Object == nil {
		return o.printReported(job, options)
	}
	stats, job, err := o.read(ctx, job, options)
	switch {
	case ctx.Err() != nil && o.follow:
		say(o.ErrOut, "detached: %s continues; run %s attach %s -n %s to follow it again", job, o.name, job.Name, job.Namespace)
		return silently(ExitDetached)
	case err != nil:
		return err
	case stats.Lines == 0 && o.beyond(job, options.Filter.Ranks):
		return usagef("--rank: %s is not allowed; %s has ranks 0 to %d", o.ranks, job, job.Status().MPI.Ranks-1)
	case stats.Lines == 0 && stats.WithoutRank > 0:
		return o.untagged(stats)
	case stats.Lines == 0 && !o.previous:
		if stats.Runs == 0 || len(job.KeptLogs().Recall(withHosts(options, job))) > 0 {
			return o.printReported(job, options)
		}
		say(o.ErrOut, "note: %s", o.noLines(job))
	case stats.Runs == 0:
		return exitf(ExitNotFound, "no container of %s was restarted; omit --previous", job)
	}
	return o.printResult(job)
}

// printStored prints the complete logs of a job that has ended, if a bucket has them. It returns false if it has printed none, since there
// is no bucket, or it cannot be read.
func (o *logsOptions) printStored(ctx context.Context, job jobs.Job, options logstream.Options) (bool, error) {
	if o.previous || o.container != "" || !job.Ended() || !job.HasCompleteLogs(o.Now()) {
		return false, nil
	}
	stored, err := job.CompleteLogs(ctx, jobs.NewFetch(nil, "add its CA to the trusted certificates of this machine, or on Linux set SSL_CERT_FILE to a file with it"))
	if err != nil {
		say(o.ErrOut, "note: %v; showing what the pods and the report of the job have", err)
		return false, nil
	}
	options = withHosts(options, job)
	options.Follow = false
	shown := o.newLogPrinter(job)
	stats, err := stored.Run(ctx, options, shown.print)
	job = shown.end()
	if err != nil {
		return true, err
	}
	say(o.ErrOut, "note: these are the complete logs of %s: %s", job, job.CompleteLogsNotice())
	switch {
	case stats.Lines == 0 && o.beyond(job, options.Filter.Ranks):
		return true, usagef("--rank: %s is not allowed; %s has ranks 0 to %d", o.ranks, job, job.Status().MPI.Ranks-1)
	case stats.Lines == 0 && stats.WithoutRank > 0:
		return true, o.untagged(stats)
	case stats.Lines == 0:
		say(o.ErrOut, "note: %s", o.noLines(job))
	}
	return true, o.printResult(job)
}

// untagged returns the error that no line has a rank.
func (o *logsOptions) untagged(stats logstream.Stats) error {
	return exitf(ExitError, "no log lines are tagged with these ranks (%s without a tag); let mpirun tag them (Open MPI: --tag-output; version 5: --output tag; Intel MPI and MPICH: -prepend-rank)", phrase.Count(stats.WithoutRank, "line"))
}

// beyond reports whether the job has none of some ranks.
func (o *logsOptions) beyond(job jobs.Job, ranks logstream.Set) bool {
	all := int(job.Status().MPI.Ranks)
	return all > 0 && len(ranks) > 0 && !slices.ContainsFunc(ranks, func(r logstream.Range) bool { return r.First < all })
}

// noLines says why there is nothing to show of a job with pods.
func (o *logsOptions) noLines(job jobs.Job) string {
	isFiltered := o.ranks != "" || o.workers != "" || o.launcher || o.level != "" || o.grep != "" || o.since > 0 || o.sinceTime != "" || o.until != "" || o.tail >= 0
	switch {
	case isFiltered:
		return fmt.Sprintf("no lines of %s match", job)
	case job.Ended():
		return fmt.Sprintf("%s has printed nothing", job)
	}
	return fmt.Sprintf("%s has printed nothing yet; run %s logs %s -f to wait for output", job, o.name, job.Name)
}

// printResult prints the result of a job that was followed to its end.
func (o *logsOptions) printResult(job jobs.Job) error {
	if !o.follow || job.Report == nil || job.Report.Status.CompletionTime == nil {
		return nil
	}
	say(o.ErrOut, "%s: %s", job, paintOn(o.ErrOut, phaseColour(job.Phase()), job.Headline(o.Now())))
	if job.Phase() == v1alpha1.PhaseFailed {
		say(o.ErrOut, "To see why, and what to do, run %s explain %s -n %s", o.name, job.Name, job.Namespace)
		return silently(ExitJobFailed)
	}
	return nil
}

// options returns the options of the flags.
func (o *logsOptions) options() (logstream.Options, error) {
	options := logstream.Options{Container: o.container, Follow: o.follow, Previous: o.previous, Since: o.since, Levels: o.form == "json"}
	filter := &options.Filter
	filter.Launcher, filter.Agent = o.launcher, o.agent || o.container == agentapi.Container
	var wrong []string
	check := func(flag string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("--%s: %v", flag, err))
		}
	}
	var err error
	if o.ranks != "" {
		filter.Ranks, err = logstream.ParseSet(o.ranks)
		check("rank", err)
	}
	if o.workers != "" {
		filter.Workers, err = logstream.ParseSet(o.workers)
		check("worker", err)
	}
	if o.level != "" {
		filter.Level, err = logs.ParseLevel(o.level)
		check("level", err)
	}
	if o.grep != "" {
		filter.Grep, err = regexp.Compile(o.grep)
		check("grep", err)
	}
	if o.sinceTime != "" {
		options.SinceTime, err = time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			check("since-time", fmt.Errorf("%s is not a time; use a value such as 2026-11-21T13:00:00Z", o.sinceTime))
		}
	}
	if o.until != "" {
		filter.Until, err = parseUntil(o.until, o.Now())
		check("until", err)
	}
	if o.tail >= 0 {
		options.Tail = &o.tail
	}
	switch {
	case o.until != "" && o.follow:
		check("until", errors.New("cannot be combined with --follow"))
	case o.since < 0:
		check("since", fmt.Errorf("%s is not allowed; use 0 or more", o.since))
	case o.since > 0 && o.sinceTime != "":
		check("since", errors.New("cannot be combined with --since-time"))
	case o.tail < -1:
		check("tail", fmt.Errorf("%d is not allowed; use 0 or more, or -1 for all", o.tail))
	case o.previous && o.follow:
		check("previous", errors.New("cannot be combined with --follow"))
	}
	if o.form != "" && o.form != "json" {
		check("output", fmt.Errorf("%s is not allowed; use json", o.form))
	}
	if len(wrong) > 0 {
		return options, usagef("%s", strings.Join(wrong, "; "))
	}
	return options, nil
}

// parseUntil reads a time, or how long ago it was.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s is not a time; use a value such as 2026-11-21T14:00:00Z or 10m", text)
}

// read prints the logs of a job's pods, and returns the job with its last report.
func (o *logsOptions) read(ctx context.Context, job jobs.Job, options logstream.Options) (logstream.Stats, jobs.Job, error) {
	c, err := o.Jobs()
	if err != nil {
		return logstream.Stats{}, job, err
	}
	pods, err := o.podLogs(job.Namespace)
	if err != nil {
		return logstream.Stats{}, job, err
	}
	options.Selector, options.Place, options.Hosts = labels.Set(job.PodLabels()).String(), c.OwnPlace(ctx, job), job.Hosts()
	shown := o.newLogPrinter(job)
	options.Says = shown.note
	options.Waits = shown.waits
	if job.Ended() {
		options.Follow, options.Kept = false, job.KeptLogs()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if shown.follows = options.Follow; shown.follows {
		over := make(chan struct{})
		options.Over = over
		go func() {
			c.AwaitEnd(ctx, job, shown.seen)
			close(over)
		}()
		go shown.tick(ctx)
	}
	stats, err := logstream.Run(ctx, pods, options, shown.print)
	return stats, shown.end(), err
}

// podLogs returns a client for the pods of a namespace and their logs.
func (f *Factory) podLogs(namespace string) (typedcore.PodInterface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// The settings below need a connection of its own.
	config.NextProtos = []string{"h2", "http/1.1"}
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		inner := transport
		for wrapper, is := inner.(utilnet.RoundTripperWrapper); is; wrapper, is = inner.(utilnet.RoundTripperWrapper) {
			inner = wrapper.WrappedRoundTripper()
		}
		// The buffer of each log that is not read; the default is 4 MiB.
		if t, is := inner.(*http.Transport); is {
			t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 512 << 10}
		}
		return transport
	})
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clients.CoreV1().Pods(namespace), nil
}

// printReported prints the log lines in the report of a job whose pods are deleted.
func (o *logsOptions) printReported(job jobs.Job, options logstream.Options) error {
	switch {
	case job.Object != nil && job.Phase() == v1alpha1.PhaseRunning:
		return exitf(ExitNotFound, "%s has no pods with output, although its report shows %s; run %s describe %s -n %s to see its pods", job, job.Progress(), o.name, job.Name, job.Namespace)
	case job.Report == nil || job.Report.Status.CompletionTime == nil && job.Object != nil:
		return exitf(ExitNotFound, "no pod of %s has run yet: %s; run %s logs %s -f to wait for them", job, job.Progress(), o.name, job.Name)
	}
	kept := job.KeptLogs()
	if len(kept.Lines) == 0 {
		return exitf(ExitNotFound, "the pods of %s and their logs are deleted, and its report has no log lines%s", job, after(": ", kept.Note))
	}
	lines := kept.Recall(withHosts(options, job))
	say(o.ErrOut, "note: the pods of %s are deleted; showing the last log lines from its report%s", job, after(": ", kept.Note))
	if complete := job.Status().CompleteLogs; complete != nil && complete.Index == "" {
		say(o.ErrOut, "note: %s", complete.Message)
	} else if complete != nil && !job.HasCompleteLogs(o.Now()) {
		say(o.ErrOut, "note: its complete logs were deleted on %s", complete.Expires.UTC().Format(time.RFC3339))
	}
	if link := job.Report.Status.LogsLink; link != "" {
		say(o.ErrOut, "note: all log lines: %s", link)
	}
	shown := o.newLogPrinter(job)
	if err := shown.print(lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		say(o.ErrOut, "note: none of its %d lines match", len(kept.Lines))
	}
	return o.printResult(job)
}

// withHosts returns options for the lines in a job's report.
func withHosts(options logstream.Options, job jobs.Job) logstream.Options {
	options.Hosts = job.Hosts()
	return options
}

// after returns a text with what separates it from the text before; empty if the text is empty.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// newLogPrinter returns a printer of a job's lines and its progress.
func (o *logsOptions) newLogPrinter(job jobs.Job) *logPrinter {
	p := &logPrinter{f: o.Factory, timestamps: o.timestamps, colours: isColoured(o.Out), job: job, progress: o.newProgress(), out: bufio.NewWriterSize(o.Out, 64<<10)}
	if o.form == "json" {
		p.json = json.NewEncoder(p.out)
		p.json.SetEscapeHTML(false)
	}
	return p
}
