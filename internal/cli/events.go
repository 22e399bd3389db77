package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobs"
)

type eventsOptions struct {
	*Factory
	warnings, watch bool
	output          *output
}

func newEvents(f *Factory) *cobra.Command {
	o := &eventsOptions{Factory: f}
	c := &cobra.Command{
		Use:   "events NAME",
		Short: "List the events of a job and its objects",
		Long: `List the events of a job, its pods and its other objects, oldest first. Kubernetes deletes events after an hour; the
timeline in describe stays.`,
		Example: `# List all events
{{name}} pi

# List warnings, and print new ones
{{name}} pi --warnings --watch

# Print the events as JSON
{{name}} pi -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&o.warnings, "warnings", false, "Only list warnings")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "After listing, print new events")
	o.output = addOutput(c, "wide")
	return c
}

func (o *eventsOptions) run(ctx context.Context, arg string) error {
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	c, err := o.Client()
	if err != nil {
		return err
	}
	var list corev1.EventList
	var events []corev1.Event
	if err := jobs.EachPage(ctx, c, &list, job.Namespace, nil, func() { events = append(events, list.Items...) }); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	version := list.ResourceVersion
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return !o.wanted(job, &e) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return jobs.LastSeen(&a).Compare(jobs.LastSeen(&b).Time) })
	p := &eventsPrinter{to: o.Out, output: o.output, now: o.Now}
	switch {
	case o.output.objects():
		err = p.printObjects(events)
	case len(events) == 0 && !o.watch:
		what := "events"
		if o.warnings {
			what = "warnings"
		}
		say(o.ErrOut, "no %s of %s; Kubernetes deletes events after an hour; run %s to see the timeline", what, job, o.hint("describe", job.Namespace, job.Name))
		return nil
	default:
		err = p.printTable(events)
	}
	if err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, c, job, version, p.printNew)
}

// follow calls a function with new events until the user interrupts. The API server closes a watch every few minutes.
func (o *eventsOptions) follow(ctx context.Context, c client.WithWatch, job jobs.Job, version string, each func(*corev1.Event) error) error {
	for ctx.Err() == nil {
		var err error
		if version, err = o.followOnce(ctx, c, job, version, each); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return silently(ExitDetached)
}

// followOnce watches until the API server closes the watch, and returns the resource version to continue from.
func (o *eventsOptions) followOnce(ctx context.Context, c client.WithWatch, job jobs.Job, version string, each func(*corev1.Event) error) (string, error) {
	watcher, err := c.Watch(ctx, &corev1.EventList{}, client.InNamespace(job.Namespace), jobs.FromResourceVersion(version))
	if err != nil {
		return version, fmt.Errorf("watch events: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return version, fmt.Errorf("watch events: %w", apierrors.FromObject(event.Object))
		}
		e, is := event.Object.(*corev1.Event)
		if !is {
			continue
		}
		version = e.ResourceVersion
		if event.Type == watch.Deleted || !o.wanted(job, e) {
			continue
		}
		if err := each(e); err != nil {
			return version, err
		}
	}
	return version, nil
}

// wanted reports whether an event is to be printed.
func (o *eventsOptions) wanted(job jobs.Job, e *corev1.Event) bool {
	return (!o.warnings || e.Type == corev1.EventTypeWarning) && job.HasEvent(e)
}
