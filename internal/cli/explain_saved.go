package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/offline"
)

// savedFlags name saved files to diagnose.
type savedFlags struct {
	files []string
	logs  []string
	now   string
}

func (o *savedFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder with saved objects, events, logs or a JobReport (- for standard input); repeatable")
	flags.StringArrayVar(&o.logs, "log", nil, "With -f: the log of a pod as POD=FILE or POD/CONTAINER=FILE; repeatable")
	flags.StringVar(&o.now, "now", "", "With -f: the time at which the files were saved, such as 2026-01-31T12:00:00Z (default: the latest time in them)")
}

func (o *savedFlags) isSet() bool { return len(o.files) > 0 }

func (o *savedFlags) validate() error {
	if !o.isSet() && (len(o.logs) > 0 || o.now != "") {
		return usagef("--log and --now require -f")
	}
	for _, entry := range o.logs {
		if pod, file, found := strings.Cut(entry, "="); !found || pod == "" || file == "" {
			return usagef("--log: %s is not allowed; use POD=FILE, such as pi-launcher-abcde=launcher.log", entry)
		}
	}
	if o.now != "" {
		if _, err := time.Parse(time.RFC3339, o.now); err != nil {
			return usagef("--now: %s is not allowed; use a time such as 2026-01-31T12:00:00Z", o.now)
		}
	}
	return nil
}

func (o *savedFlags) input(f *Factory) offline.Input {
	in := offline.Input{Paths: o.files, Logs: map[string]string{}, Stdin: f.In}
	for _, entry := range o.logs {
		pod, file, _ := strings.Cut(entry, "=")
		in.Logs[pod] = file
	}
	return in
}

// diagnosed is a job in files.
type diagnosed struct {
	job     jobs.Job
	missing []string
}

// runSaved explains the jobs of files.
func (o *explainOptions) runSaved(ctx context.Context, args []string) error {
	saved, err := offline.Read(o.saved.input(o.Factory))
	if err != nil {
		return err
	}
	for _, problem := range saved.Problems {
		say(o.ErrOut, "note: not read: %s", oneLine(problem))
	}
	// Ages in the output are those at the time of the files.
	at := saved.Time()
	if o.saved.now != "" {
		at, _ = time.Parse(time.RFC3339, o.saved.now) // it was validated
	}
	found, err := o.diagnose(ctx, saved, at, args)
	if err != nil {
		return err
	}
	onlyReports := true
	for _, one := range found {
		onlyReports = onlyReports && one.job.Object == nil
	}
	if !onlyReports && !at.IsZero() {
		o.Now = func() time.Time { return at }
	}
	if o.output.structured() {
		all := make([]explanation, len(found))
		for i, one := range found {
			all[i] = o.explain(one.job)
			all[i].Missing = one.missing
		}
		if len(all) == 1 {
			return o.output.print(o.Out, all[0])
		}
		return o.output.print(o.Out, all)
	}
	for i, one := range found {
		if i > 0 {
			say(o.Out, "\n")
		}
		if err := o.printSaved(one, at); err != nil {
			return err
		}
	}
	return nil
}

// printSaved prints what describe prints of a job in a cluster, and what the files lack; of a report alone, the explanation.
func (o *explainOptions) printSaved(one diagnosed, at time.Time) error {
	if one.job.Object == nil {
		return o.printText(one.job)
	}
	const lines = 20
	if err := (&describeOptions{Factory: o.Factory, lines: lines}).printText(one.job); err != nil {
		return err
	}
	s := newDescribePrinter(o.Factory, o.Out)
	if len(one.missing) > 0 {
		s.heading("NOT IN THE FILES")
		for _, note := range one.missing {
			s.text("  - ", note)
		}
	}
	s.line("")
	s.line("Diagnosed from files as of %s.", at.UTC().Format(time.RFC3339))
	return s.err
}

// diagnose returns the jobs of files that are named by the arguments and -n; without arguments all.
func (o *explainOptions) diagnose(ctx context.Context, saved *offline.Saved, at time.Time, args []string) ([]diagnosed, error) {
	var all []diagnosed
	var names []string
	isMeant := func(job jobs.Job) bool {
		names = append(names, job.Namespace+"/"+job.Name)
		return (*o.flags.Namespace == "" || job.Namespace == *o.flags.Namespace) && (len(args) == 0 || args[0] == job.Name || strings.EqualFold(args[0], job.String()))
	}
	for _, object := range saved.Jobs() {
		if !isMeant(jobs.FromObject(object)) {
			continue
		}
		made, err := saved.Diagnose(ctx, object, at, logs.Masker{})
		if err != nil {
			return nil, err
		}
		job := jobs.FromObject(object)
		job.Report = &made.Report
		all = append(all, diagnosed{job: job, missing: made.Missing})
	}
	reports, err := saved.Reports()
	if err != nil {
		return nil, err
	}
	for i := range reports {
		if job := jobs.FromReport(&reports[i]); isMeant(job) {
			all = append(all, diagnosed{job: job})
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(names) == 0:
		return nil, exitf(ExitError, "the files contain no MPIJobs, TrainJobs and JobReports; save them with kubectl get mpijobs,trainjobs,jobs,pods,events -o yaml")
	}
	return nil, exitf(ExitNotFound, "no such job in the files; they contain %s", strings.Join(names, ", "))
}
