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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/follow"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

type logsOptions struct {
	*Factory
	follow, previous, timestamps, launcher bool
	ranks, workers, level, grep, container string
	since                                  time.Duration
	sinceTime, form                        string
	tail                                   int64
}

func newLogs(f *Factory) *cobra.Command {
	o := &logsOptions{Factory: f, tail: -1}
	c := &cobra.Command{
		Use:     "logs NAME",
		Aliases: []string{"log"},
		Short:   "Show what all pods of a job write, or some of its ranks",
		Long: `Show what the launcher and the workers of a job write, in the order of time, each line with the pod and the rank that it
is of: [launcher], [worker-2], [worker-2 r5]. Secrets are masked.

Ranks mostly speak through the launcher: mpirun collects what they write. Whose line it is can be told where mpirun says so:
have it tag them (Open MPI: --tag-output, or --output tag with version 5; Intel MPI and MPICH: -prepend-rank).

With --follow it goes on until the job has ended, through restarts and lost connections, and takes in pods as they come; the
exit code is then 3 if the job failed. Ctrl-C leaves the job alone. Of a pod whose container is being started again the
run before is shown. When the pods are gone, the record of a job that failed still has the ends of their logs.`,
		Example: `# All that there is
{{name}} logs train

# Go on until the job has ended
{{name}} logs train -f

# What ranks 0 and 4 to 7 say, of the last ten minutes
{{name}} logs train --rank 0,4-7 --since 10m

# Errors alone, of whichever rank
{{name}} logs train --level error

# Lines that match a regular expression, for a program
{{name}} logs train --grep 'loss=\S+' -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "Go on until the job has ended")
	flags.StringVarP(&o.ranks, "rank", "r", "", "Lines of these ranks alone, such as 0,4-7")
	flags.StringVar(&o.workers, "worker", "", "Lines of these workers and of their ranks, such as 0-3")
	flags.BoolVar(&o.launcher, "launcher", false, "What stands in the launcher's log; with --worker that as well")
	flags.StringVar(&o.level, "level", "", "Lines that say of themselves that they matter so much at least: debug, info, warning or error")
	flags.StringVar(&o.grep, "grep", "", "Lines that match this regular expression (RE2)")
	flags.DurationVar(&o.since, "since", 0, "Lines that are no older, such as 30s or 10m")
	flags.StringVar(&o.sinceTime, "since-time", "", "Lines since a time, such as 2026-11-21T13:00:00Z")
	flags.Int64Var(&o.tail, "tail", -1, "The last lines of each pod, so many, before any other choice; -1: all")
	flags.BoolVarP(&o.previous, "previous", "p", false, "What the runs before the present ones wrote, of containers that were started again")
	flags.BoolVar(&o.timestamps, "timestamps", false, "Put the time before each line, by the clock of the pod's machine")
	flags.StringVarP(&o.container, "container", "c", "", "Read this container rather than the main one, such as mpi-agent")
	flags.StringVarP(&o.form, "output", "o", "", "json: each line as an object with time, pod, role, index, rank, level and text")
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
	if job.Object == nil {
		return o.recall(job, options)
	}
	stats, job, err := o.read(ctx, job, options)
	switch {
	case ctx.Err() != nil && o.follow:
		say(o.ErrOut, "detached: %s goes on; come back with %s logs %s -f --since 1m -n %s", job, o.name, job.Name, job.Namespace)
		return silently(ExitDetached)
	case err != nil:
		return err
	case stats.Lines == 0 && stats.WithoutRank > 0:
		return exitf(ExitError, "no line tells of these ranks, and %d lines tell of none: have mpirun tag them (Open MPI: --tag-output; version 5: --output tag; Intel MPI and MPICH: -prepend-rank)", stats.WithoutRank)
	case stats.Lines == 0 && !o.previous:
		if stats.Runs == 0 || len(o.recalled(job, options)) > 0 {
			return o.recall(job, options)
		}
		say(o.ErrOut, "note: %s has written nothing of that kind", job)
	case stats.Runs == 0:
		return exitf(ExitNotFound, "no container of %s was started again: leave --previous out", job)
	}
	return o.judged(job)
}

// judged tells, at the end of a job that was followed, what became of it.
func (o *logsOptions) judged(job Job) error {
	if !o.follow || job.Report == nil || job.Report.Status.CompletionTime == nil {
		return nil
	}
	say(o.ErrOut, "%s: %s", job, o.paintOn(o.ErrOut, phaseColour(job.Phase()), headline(job, o.Now())))
	if job.Phase() == mpi.PhaseFailed {
		say(o.ErrOut, "%s explain %s -n %s says why, and what to do", o.name, job.Name, job.Namespace)
		return silently(ExitJobFailed)
	}
	return nil
}

// options are the flags, checked.
func (o *logsOptions) options() (follow.Options, error) {
	options := follow.Options{Container: o.container, Follow: o.follow, Previous: o.previous, Since: o.since, Levels: o.form == "json"}
	filter := &options.Filter
	filter.Launcher = o.launcher
	var wrong []string
	check := func(flag string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("--%s: %v", flag, err))
		}
	}
	var err error
	if o.ranks != "" {
		filter.Ranks, err = follow.ParseSet(o.ranks)
		check("rank", err)
	}
	if o.workers != "" {
		filter.Workers, err = follow.ParseSet(o.workers)
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
			check("since-time", fmt.Errorf("%q must be as 2026-11-21T13:00:00Z", o.sinceTime))
		}
	}
	if o.tail >= 0 {
		options.Tail = &o.tail
	}
	switch {
	case o.since < 0:
		check("since", fmt.Errorf("%s must not be below 0", o.since))
	case o.since > 0 && o.sinceTime != "":
		check("since", errors.New("goes not with --since-time: choose one"))
	case o.tail < -1:
		check("tail", fmt.Errorf("%d must be 0 or more, or -1 for all", o.tail))
	case o.previous && o.follow:
		check("previous", errors.New("what has ended cannot be followed: leave --follow out"))
	}
	if o.form != "" && o.form != "json" {
		check("output", fmt.Errorf("%q must be json", o.form))
	}
	if len(wrong) > 0 {
		return options, usagef("%s", strings.Join(wrong, "; "))
	}
	return options, nil
}

// read shows the logs of a job's pods, and returns the job with the record that was seen last.
func (o *logsOptions) read(ctx context.Context, job Job, options follow.Options) (follow.Stats, Job, error) {
	pods, err := o.podLogs(job.Namespace)
	if err != nil {
		return follow.Stats{}, job, err
	}
	options.Selector, options.Place, options.Hosts = selectorOf(job), placeOf(job), hostsOf(job)
	shown := o.newLogPrinter(job)
	options.Says = shown.note
	options.Waits = shown.waits
	if hasEnded(job) {
		options.Follow = false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if shown.follows = options.Follow; shown.follows {
		over := make(chan struct{})
		options.Over = over
		go func() {
			o.awaitEnd(ctx, job, shown.seen)
			close(over)
		}()
		go shown.tick(ctx)
	}
	stats, err := follow.Run(ctx, pods, options, shown.print)
	return stats, shown.end(), err
}

// podLogs reads the pods of a namespace and their logs.
func (f *Factory) podLogs(namespace string) (typedcore.PodInterface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// A connection of its own: what follows holds from its beginning.
	config.NextProtos = []string{"h2", "http/1.1"}
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		inner := transport
		for wrapper, is := inner.(utilnet.RoundTripperWrapper); is; wrapper, is = inner.(utilnet.RoundTripperWrapper) {
			inner = wrapper.WrappedRoundTripper()
		}
		// Of each log so much may be on its way while nobody reads it; by default that is 4 MiB.
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

// awaitEnd returns when a job has ended or is gone, as its record or itself tells.
func (f *Factory) awaitEnd(ctx context.Context, job Job, seen func(*v1alpha1.JobReport)) {
	const often = 5 * time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		labels := client.MatchingLabels(mpi.Job{Name: job.Name, Kind: job.Kind}.ReportLabels())
		err := f.watchReports(ctx, job.Namespace, labels, func(report *v1alpha1.JobReport) (bool, error) {
			if report.Spec.JobRef.UID != job.UID {
				return false, nil
			}
			seen(report)
			return report.Status.CompletionTime != nil, nil
		})
		if err != nil {
			// The job itself tells, too, if later.
			<-ctx.Done()
		}
	}()
	c, err := f.Client()
	if err != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(often):
		}
		object, err := getJob(ctx, c, job.Object.GroupVersionKind(), job.Namespace, job.Name)
		switch {
		case err != nil:
		case object == nil, object.GetUID() != job.UID:
			return
		case hasEnded(newJob(object)) && !f.hasReports(ctx, job):
			return
		}
	}
}

// hasReports tells whether a job's record can be read, so that it will tell of the job's end, with its cause.
func (f *Factory) hasReports(ctx context.Context, job Job) bool {
	c, err := f.Client()
	if err != nil {
		return false
	}
	reports, err := reportsOf(ctx, c, job.Namespace, jobKinds, job.Name)
	return err == nil && slices.ContainsFunc(reports, func(r v1alpha1.JobReport) bool { return r.Spec.JobRef.UID == job.UID && r.Status.CompletionTime == nil })
}

// hasEnded tells whether a job is over, by its record or, where there is none, by its own conditions.
func hasEnded(job Job) bool {
	if job.Report != nil {
		return job.Report.Status.CompletionTime != nil
	}
	return finished(job)
}

// selectorOf picks a job's pods.
func selectorOf(job Job) string {
	if job.Kind == trainjob.Kind {
		return labels.Set{trainjob.LabelJobSet: job.Name}.String()
	}
	return labels.Set{mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: job.Name}.String()
}

// placeOf says which of a job's pods one is. Pods of an earlier job of the same name, which may be on their way out, are
// none of its.
func placeOf(job Job) func(*corev1.Pod) (follow.Place, bool) {
	at := placeOfMPIJob
	if job.Kind == trainjob.Kind {
		at = placeOfTrainJob
	}
	return func(pod *corev1.Pod) (follow.Place, bool) {
		place, is := at(pod)
		return place, is && (job.Object == nil || !pod.CreationTimestamp.Time.Before(job.Object.GetCreationTimestamp().Time))
	}
}

func placeOfTrainJob(pod *corev1.Pod) (follow.Place, bool) {
	role, index := trainjob.Place(pod)
	return follow.Place{Role: role, Index: index}, true
}

func placeOfMPIJob(pod *corev1.Pod) (follow.Place, bool) {
	place := follow.Place{Role: mpi.Role(pod.Labels[mpi.LabelRole])}
	if place.Role == mpi.RoleWorker {
		var err error
		place.Index, err = strconv.Atoi(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
		return place, err == nil
	}
	return place, place.Role == mpi.RoleLauncher
}

// hostsOf says how a job's ranks are spread, as its record tells; of an MPIJob without one, as it is written.
func hostsOf(job Job) follow.Hosts {
	if job.Report != nil && job.Report.Status.MPI.Ranks > 0 {
		status := job.Report.Status
		hosts := follow.Hosts{Slots: int(status.MPI.SlotsPerWorker), Ranks: int(status.MPI.Ranks)}
		hosts.LauncherRuns = hosts.Ranks == hosts.Slots*(int(status.Workers.Wanted)+1)
		return hosts
	}
	if job.Object == nil || job.Kind == trainjob.Kind {
		return follow.Hosts{}
	}
	number := func(otherwise int64, path ...string) int {
		value, found, err := unstructured.NestedInt64(job.Object.Object, path...)
		if !found || err != nil {
			value = otherwise
		}
		return int(value)
	}
	hosts := follow.Hosts{Slots: number(1, "spec", "slotsPerWorker")}
	hosts.LauncherRuns, _, _ = unstructured.NestedBool(job.Object.Object, "spec", "runLauncherAsWorker")
	pods := number(0, "spec", "mpiReplicaSpecs", "Worker", "replicas")
	if hosts.LauncherRuns {
		pods++
	}
	hosts.Ranks = hosts.Slots * pods
	return hosts
}

// recall shows what is left of the logs in the record of a job whose pods are gone.
func (o *logsOptions) recall(job Job, options follow.Options) error {
	switch {
	case job.Report == nil || job.Report.Status.CompletionTime == nil && job.Object != nil:
		return exitf(ExitNotFound, "%s has no pods that have run yet: %s; %s logs %s -f waits for them", job, stage(job), o.name, job.Name)
	case job.Report.Status.Failure == nil || len(job.Report.Status.Failure.LogTail) == 0:
		return exitf(ExitNotFound, "the pods of %s are gone, and their logs with them; a record keeps the ends of logs of jobs that fail, and this is %s", job, job.Phase())
	}
	lines := o.recalled(job, options)
	say(o.ErrOut, "note: the pods of %s are gone; this is what its record has of the ends of their logs", job)
	shown := o.newLogPrinter(job)
	if err := shown.print(lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		say(o.ErrOut, "note: none of its %d lines is of that kind", len(job.Report.Status.Failure.LogTail))
	}
	return o.judged(job)
}

// recalled are the lines in a job's record.
func (o *logsOptions) recalled(job Job, options follow.Options) []follow.Line {
	if job.Report == nil || job.Report.Status.Failure == nil {
		return nil
	}
	options.Hosts = hostsOf(job)
	places := map[string]follow.Place{}
	for _, pod := range job.Report.Status.Pods {
		places[pod.Name] = follow.Place{Role: mpi.Role(pod.Role), Index: int(pod.Index)}
	}
	return follow.Recall(job.Report.Status.Failure.LogTail, places, options)
}

// logLine is a line as -o json has it. Time is left out where it is not known, rank where there is none.
type logLine struct {
	Time  *metav1.MicroTime `json:"time,omitempty"`
	Pod   string            `json:"pod"`
	Role  string            `json:"role"`
	Index int               `json:"index"`
	Rank  *int              `json:"rank,omitempty"`
	Level string            `json:"level,omitempty"`
	Text  string            `json:"text"`
}

func asLogLine(line follow.Line) logLine {
	l := logLine{Pod: line.Pod, Role: string(line.Place.Role), Index: line.Place.Index, Level: line.Level.String(), Text: line.Text}
	if line.Rank != follow.NoRank {
		l.Rank = &line.Rank
	}
	if !line.Time.IsZero() {
		l.Time = &metav1.MicroTime{Time: line.Time.UTC()}
	}
	return l
}

// newLogPrinter shows lines of a job, and what is waited for.
func (o *logsOptions) newLogPrinter(job Job) *logPrinter {
	p := &logPrinter{f: o.Factory, timestamps: o.timestamps, colours: o.colours(o.Out), job: job, progress: o.newProgress(), out: bufio.NewWriterSize(o.Out, 64<<10)}
	if o.form == "json" {
		p.json = json.NewEncoder(p.out)
		p.json.SetEscapeHTML(false)
	}
	return p
}
