package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type eventsOptions struct {
	*Factory
	warnings, watch bool
}

func newEvents(f *Factory) *cobra.Command {
	o := &eventsOptions{Factory: f}
	c := &cobra.Command{
		Use:   "events NAME",
		Short: "List the events of a job and of everything that belongs to it",
		Long: `List the events of a job, its pods, its launcher's Job and whatever else was made for it, the oldest first. Kubernetes keeps
events for an hour; the timeline in describe stays.`,
		Example: `{{name}} events pi

# Only what went wrong, and what does from now on
{{name}} events pi --warnings --watch`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&o.warnings, "warnings", false, "Leave out what is only told, not warned of")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "After listing, go on with new events")
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
	if err := pages(ctx, c, &list, job.Namespace, nil, func() { events = append(events, list.Items...) }); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	version := list.ResourceVersion
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return !o.wanted(job, e) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b).Time) })
	if len(events) == 0 && !o.watch {
		say(o.ErrOut, "no events of %s; Kubernetes keeps them for an hour, %s describe %s has a timeline that stays", job, o.name, job.Name)
		return nil
	}
	t := table{header: []string{"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, e := range events {
		t.rows = append(t.rows, o.row(e))
	}
	if err := t.write(o.Factory, o.Out, "", true); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, c, job, version, t.widths())
}

// follow prints events as they come, until the API server ends the watch or the user does.
func (o *eventsOptions) follow(ctx context.Context, c client.WithWatch, job Job, version string, widths []int) error {
	watcher, err := c.Watch(ctx, &corev1.EventList{}, client.InNamespace(job.Namespace), fromVersion(version))
	if err != nil {
		return fmt.Errorf("watch events: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		e, is := event.Object.(*corev1.Event)
		if !is || event.Type == watch.Deleted || !o.wanted(job, *e) {
			continue
		}
		if err := writeRows(o.Factory, o.Out, "", widths, [][]cell{o.row(*e)}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return silently(ExitDetached)
	}
	return exitf(ExitError, "the API server has ended the watch: call it again")
}

func (o *eventsOptions) row(e corev1.Event) []cell {
	times := ""
	if e.Count > 1 {
		times = fmt.Sprintf(" (%d times)", e.Count)
	}
	object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	row := plain(since(lastSeen(e), o.Now()), e.Type, e.Reason, object, e.Message+times)
	if e.Type == corev1.EventTypeWarning {
		row[1].colour = yellow
	}
	return row
}

// lastSeen is when an event happened last: events have their time in one of several fields.
func lastSeen(e corev1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.Time(e.Series.LastObservedTime)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time(e.EventTime)
	}
	return e.CreationTimestamp
}

// parts are the ends of the names of what is made for a job, after the job's name: of MPIJobs and of TrainJobs.
var parts = regexp.MustCompile(`^-(launcher|worker-\d+|node|config|ssh|mpi-hostfile|mpi-ssh-auth)(-[a-z0-9-]+)?$`)

// wanted tells whether an event is about this very job or something that was made for it.
func (o *eventsOptions) wanted(job Job, e corev1.Event) bool {
	object := e.InvolvedObject
	if o.warnings && e.Type != corev1.EventTypeWarning {
		return false
	}
	if job.Object != nil {
		made := job.Object.GetCreationTimestamp()
		if seen := lastSeen(e); seen.Before(&made) {
			return false // of an earlier job of the same name
		}
	}
	if object.Name == job.Name {
		_, isJob := kindOf(object.Kind)
		return !isJob || object.Kind == job.Kind && cmp.Or(object.UID, job.UID) == job.UID
	}
	if object.Kind == "Workload" {
		return strings.HasPrefix(object.Name, strings.ToLower(job.Kind)+"-"+job.Name+"-")
	}
	rest, begins := strings.CutPrefix(object.Name, job.Name)
	return begins && parts.MatchString(rest)
}
