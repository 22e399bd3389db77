package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

type waitOptions struct {
	*Factory
	until   string
	timeout time.Duration
}

func newWait(f *Factory) *cobra.Command {
	o := &waitOptions{Factory: f}
	c := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a job has ended, or has come to a phase",
		Long: `Wait until a job has succeeded, or has come to another phase (--for), and show meanwhile what it waits for.

A phase that the job has been through already counts: a job that has succeeded has been Running. The exit code is 3 if the
job failed instead, and 4 if it took longer than --timeout. Ctrl-C ends the waiting with code 130, and never the job.`,
		Example: `# Until the end; then go on if it went well
{{name}} wait pi && echo done

# Until it runs, ten minutes at most
{{name}} wait pi --for phase=Running --timeout 10m

# Until it is gone
{{name}} wait pi --for delete`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&o.until, "for", "phase=Succeeded", "What to wait for: phase=PHASE, several separated by commas, or delete")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "Give up after so long, such as 30s or 4h; 0 waits for as long as it takes")
	var words []string
	for _, name := range phaseNames() {
		words = append(words, "phase="+name)
	}
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(append(words, "delete"), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *waitOptions) run(ctx context.Context, arg string) error {
	if o.timeout < 0 {
		return usagef("--timeout %s: must be 0 or more", o.timeout)
	}
	if o.until == "delete" {
		return o.gone(ctx, arg)
	}
	words, found := strings.CutPrefix(o.until, "phase=")
	if !found || words == "" {
		return usagef("--for %s: must be phase=PHASE or delete; the phases are %s", o.until, strings.Join(phaseNames(), ", "))
	}
	wanted, err := parsePhases(words)
	if err != nil {
		return err
	}
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	return o.await(ctx, job, wanted, o.timeout)
}

// await waits until a job has come to one of some phases, tells of its progress meanwhile, and at the end what became of
// it. A timeout of 0 is none.
func (f *Factory) await(ctx context.Context, job Job, wanted []mpi.Phase, timeout time.Duration) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	p := f.newProgress()
	job, err := f.seen(limited, job, p, func(status v1alpha1.JobReportStatus) bool {
		return slices.ContainsFunc(wanted, func(phase mpi.Phase) bool { return hasBeen(status, phase) }) || status.CompletionTime != nil
	})
	p.end()
	switch {
	case ctx.Err() != nil:
		return f.detached(job)
	case limited.Err() != nil:
		return exitf(ExitTimeout, "%s is not %s after %s: %s; it goes on, and %s describe %s says more", job, either(wanted), timeout, stage(job), f.name, job.Name)
	case err != nil:
		return err
	}
	return f.ended(job, wanted)
}

// seen calls a function with what a job's record says whenever that changes, until it is done, and returns the job as it
// was seen last.
func (f *Factory) seen(ctx context.Context, job Job, p *progress, done func(v1alpha1.JobReportStatus) bool) (Job, error) {
	changes := make(chan *v1alpha1.JobReport)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	labels := client.MatchingLabels(mpi.Job{Name: job.Name, Kind: job.Kind}.ReportLabels())
	go func() {
		failed <- f.watchReports(ctx, job.Namespace, labels, func(report *v1alpha1.JobReport) (bool, error) {
			if report.Spec.JobRef.UID == job.UID {
				select {
				case changes <- report:
				case <-ctx.Done():
				}
			}
			return false, nil
		})
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for job.Report == nil || !done(job.Report.Status) {
		p.tell(job)
		select {
		case job.Report = <-changes:
		case err := <-failed:
			return job, err
		case <-tick.C:
		}
	}
	return job, nil
}

// hasBeen tells whether a job is in a phase or has been in it.
func hasBeen(status v1alpha1.JobReportStatus, phase mpi.Phase) bool {
	return mpi.Phase(status.Phase) == phase || slices.ContainsFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return mpi.Phase(t.Phase) == phase })
}

// ended says what became of a job that was waited for.
func (f *Factory) ended(job Job, wanted []mpi.Phase) error {
	reached := slices.ContainsFunc(wanted, func(phase mpi.Phase) bool { return hasBeen(job.Report.Status, phase) })
	switch {
	case reached || job.Phase() == mpi.PhaseSucceeded:
		say(f.Out, "%s: %s", job, f.paint(phaseColour(job.Phase()), headline(job, f.Now())))
		if !reached {
			return exitf(ExitError, "%s has ended without having been %s", job, either(wanted))
		}
		return nil
	default:
		s := &story{Factory: f, to: f.ErrOut}
		s.line("%s: %s", job, f.paintOn(f.ErrOut, red, headline(job, f.Now())))
		s.findings(job.Report.Status)
		s.line("")
		s.line("%s describe %s -n %s says more, and %s logs %s shows what it wrote.", f.name, job.Name, job.Namespace, f.name, job.Name)
		return silently(ExitJobFailed)
	}
}

func either(phases []mpi.Phase) string {
	words := make([]string, len(phases))
	for i, phase := range phases {
		words[i] = string(phase)
	}
	return strings.Join(words, " or ")
}

// detached says how to come back to a job that the user has left alone.
func (f *Factory) detached(job Job) error {
	say(f.ErrOut, "detached: %s goes on; come back with %s wait %s -n %s", job, f.name, job.Name, job.Namespace)
	return silently(ExitDetached)
}

// gone waits until there is no such job.
func (o *waitOptions) gone(ctx context.Context, arg string) error {
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	if job.Object == nil {
		say(o.Out, "%s is gone", job)
		return nil
	}
	return o.awaitDeletion(ctx, []Job{job}, o.timeout)
}

// awaitDeletion waits until none of some jobs is there.
func (f *Factory) awaitDeletion(ctx context.Context, jobs []Job, timeout time.Duration) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	for _, job := range jobs {
		kind := job.Object.GroupVersionKind()
		for {
			there, err := isThere(limited, c, kind, job)
			switch {
			case ctx.Err() != nil:
				return f.detached(job)
			case limited.Err() != nil:
				return exitf(ExitTimeout, "%s is still there after %s%s", job, timeout, heldBy(job))
			case err != nil:
				return err
			}
			if !there {
				break
			}
			select {
			case <-limited.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
		say(f.Out, "%s is gone", job)
	}
	return nil
}

// isThere tells whether this very job exists; another of the same name is not it.
func isThere(ctx context.Context, c client.Client, kind schema.GroupVersionKind, job Job) (bool, error) {
	object, err := getJob(ctx, c, kind, job.Namespace, job.Name)
	if err != nil && passing(err) && !apierrors.IsTimeout(err) {
		return true, nil
	}
	return err == nil && object != nil && object.GetUID() == job.UID, err
}

// heldBy names what keeps a job from going.
func heldBy(job Job) string {
	if finalizers := job.Object.GetFinalizers(); len(finalizers) > 0 {
		return fmt.Sprintf(": it is held by %s, whose controller has to let it go", strings.Join(finalizers, ", "))
	}
	return ""
}
