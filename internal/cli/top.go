package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

type topOptions struct {
	*Factory
	everywhere, watch bool
	history           bool
	interval          time.Duration
	sortBy            string
	output            valueOutput
}

func newTop(f *Factory) *cobra.Command {
	o := &topOptions{Factory: f}
	c := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show the current CPU, memory and GPU usage of jobs",
		Long: `Show the current CPU and memory usage of the pods of a job, or without NAME, of all jobs that have running pods, with the
share of their requests. Usage comes from the cluster's metrics server.

GPU is the number of requested GPUs, with their utilization if the cluster serves the metric ` + jobs.GPUMetric + ` of
NVIDIA's dcgm-exporter as a custom metric of pods. Without it, --history shows what the agents measured.

--watch repeats the measurement until the job ends, or without NAME until Ctrl-C. On a terminal, it replaces the table.

--history shows what a job used over time instead, as the agents in its pods measured it: the means, 95th percentiles and
maximums of CPU, memory, throttling, network, I/O and GPUs, with a chart each, and the figures that the program printed,
such as its loss. It needs no metrics server, and also works for deleted jobs while their reports are retained.`,
		Example: `# The jobs of the namespace
{{name}}

# The pods of a job, sorted by memory
{{name}} pi --sort-by memory

# Measure a job every 10 seconds until it ends
{{name}} pi --watch --interval 10s

# Show what a job used since it was started, also if it has been deleted
{{name}} pi --history

# As JSON, in cores and bytes
{{name}} pi -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, c.Flags().Changed) },
	}
	c.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Show the jobs of all namespaces")
	c.Flags().StringVar(&o.sortBy, "sort-by", "name", "Sort by name, cpu or memory")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Repeat the measurement")
	c.Flags().BoolVar(&o.history, "history", false, "Show what the job used over time, by its report")
	c.Flags().DurationVar(&o.interval, "interval", 5*time.Second, "With --watch: time between measurements, 1s or more")
	o.output.add(c)
	_ = c.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(jobs.LoadSorts(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *topOptions) run(ctx context.Context, args []string, changed func(flag string) bool) error {
	if err := oneOf("--sort-by", o.sortBy, jobs.LoadSorts()...); err != nil {
		return err
	}
	if err := o.output.validate(); err != nil {
		return err
	}
	if o.history {
		if err := o.validateHistory(args, changed); err != nil {
			return err
		}
		job, err := o.Find(ctx, args[0])
		if err != nil {
			return err
		}
		return o.printHistory(job)
	}
	measure := o.jobs
	switch {
	case o.interval < time.Second:
		return usagef("--interval: %s is not allowed; use 1s or more", o.interval)
	case changed("interval") && !o.watch:
		return usagef("--interval requires --watch")
	case len(args) == 1 && o.everywhere:
		return usagef("NAME cannot be combined with -A")
	case len(args) == 1:
		measure = func(ctx context.Context) (measurement, error) { return o.pods(ctx, args[0]) }
	}
	if o.watch {
		return o.repeat(ctx, measure)
	}
	m, err := measure(ctx)
	if err != nil {
		return err
	}
	return o.show(m)
}

// measurement is what was measured at a time.
type measurement struct {
	// print prints the loads; nil if no pod runs.
	print func() error
	// note is for standard error: why there is nothing to print, or what was not measured.
	note string
	// isLast is set if the job has ended.
	isLast bool
}

// show prints a measurement.
func (o *topOptions) show(m measurement) error {
	if m.note != "" {
		say(o.ErrOut, "%s", m.note)
	}
	if m.print == nil {
		return nil
	}
	return m.print()
}

// repeat measures until the job ends, or the user interrupts. A note is only repeated on a terminal, which is cleared.
func (o *topOptions) repeat(ctx context.Context, measure func(context.Context) (measurement, error)) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	isScreen := onTerminal(o.Out) && !o.output.structured()
	note, measured := "", false
	for {
		m, err := measure(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && measured && jobs.IsTransient(err):
			m.note = "note: measuring again after an error: " + o.describeError(err)
		case err != nil:
			return err
		}
		switch {
		case isScreen:
			fmt.Fprint(o.Out, "\x1b[H\x1b[2J")
		case m.note == note:
			m.note = ""
		default:
			note = m.note
		}
		if m.print != nil && measured && !isScreen { // between two measurements
			say(o.Out, "%s", map[bool]string{true: "---"}[o.output.form == "yaml"])
		}
		if err := o.show(m); err != nil || m.isLast {
			return err
		}
		measured = measured || m.print != nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// pods measures the pods of a job.
func (o *topOptions) pods(ctx context.Context, reference string) (measurement, error) {
	c, namespace, err := o.jobsHere()
	if err != nil {
		return measurement{}, err
	}
	job, err := c.Find(ctx, namespace, reference)
	if err != nil {
		return measurement{}, err
	}
	loads, err := c.MeasurePods(ctx, job, o.sortBy)
	if err != nil {
		return measurement{}, err
	}
	if len(loads) == 0 {
		return measurement{note: fmt.Sprintf("%s has no running pods. %s.", job, job.Headline(o.Now())), isLast: job.Ended() || job.Object == nil}, nil
	}
	var all jobs.Load
	for _, load := range loads {
		all.Add(load.Load)
	}
	return measurement{print: func() error { return printPodLoads(o.Out, o.output, loads) }, note: o.gpuNote(all), isLast: job.Ended()}, nil
}

// jobs measures the jobs that have running pods.
func (o *topOptions) jobs(ctx context.Context) (measurement, error) {
	selection, err := o.selection(o.everywhere, "")
	if err != nil {
		return measurement{}, err
	}
	selected, err := o.List(ctx, selection)
	if err != nil {
		return measurement{}, err
	}
	c, err := o.Jobs()
	if err != nil {
		return measurement{}, err
	}
	loads, err := c.MeasureJobs(ctx, selection.Namespace, selected, o.sortBy)
	if err != nil {
		return measurement{}, err
	}
	if len(loads) == 0 {
		return measurement{note: "no job has running pods"}, nil
	}
	var all jobs.Load
	for _, load := range loads {
		all.Add(load.Load)
	}
	return measurement{print: func() error { return printJobLoads(o.Out, o.output, loads, o.everywhere) }, note: o.gpuNote(all)}, nil
}

// gpuNote returns the note that figures about GPUs are requests; empty if usage is known, or no GPU is requested.
func (o *topOptions) gpuNote(all jobs.Load) string {
	if all.GPUs == 0 || all.GPUUse != nil || o.output.structured() {
		return ""
	}
	return "note: GPU is the number of requested GPUs: the cluster serves no metric of their usage (" + jobs.GPUMetric + "). --history shows what agents measured"
}
