package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

func newSuspend(f *Factory) *cobra.Command {
	o := &changeOptions{Factory: f, verb: "suspend", past: "suspended"}
	o.task = o.suspend
	return o.command(&cobra.Command{
		Use:   "suspend (NAME... | -l LABELS | --all)",
		Short: "Stop jobs so that they can be resumed",
		Long: `Stop jobs: their pods are removed, the jobs stay. A program that writes checkpoints goes on from there when resumed.

A job in a queue is kept out of it by its Workload, since Kueue starts a job again that is merely suspended: that takes the
right to patch Workloads.`,
		Example: `{{name}} suspend pi
{{name}} suspend -l team=a --yes`,
	})
}

func newResume(f *Factory) *cobra.Command {
	o := &changeOptions{Factory: f, verb: "resume", past: "resumed"}
	o.task = o.resume
	return o.command(&cobra.Command{
		Use:   "resume (NAME... | -l LABELS | --all)",
		Short: "Start suspended jobs again",
		Long:  `Start suspended jobs again. A job in a queue waits there for its turn.`,
		Example: `{{name}} resume pi
{{name}} resume -l team=a --yes`,
	})
}

// suspend stops a job: by its Workload where it has one, since Kueue starts again at once what is only suspended.
func (o *changeOptions) suspend(ctx context.Context, c client.Client, job Job) (task, error) {
	if finished(job) {
		return task{nothing: "has ended: there is nothing to suspend"}, nil
	}
	const follows = "only its own field suspends it, and Kueue starts it again as soon as it has room for it"
	workload, err := o.workload(ctx, c, job, follows)
	switch {
	case err != nil:
		return task{}, err
	case workload == nil && suspended(job):
		return task{nothing: "is suspended already"}, nil
	case workload == nil:
		return task{do: setSuspend(c, job, true)}, nil
	}
	switch workload.Standing() {
	case gang.Stopped:
		return task{nothing: "is suspended already"}, nil
	case gang.GivenUp:
		return task{nothing: fmt.Sprintf("is out of its queue already, which has given it up: see %s explain %s", o.name, job.Name)}, nil
	}
	return task{do: func(ctx context.Context, dryRun bool) error {
		err := setActive(ctx, c, job, workload, false, dryRun)
		if apierrors.IsForbidden(err) {
			return exitf(ExitError, "%s; it was left as it is, since Kueue starts a job at once again that only its own field suspends", o.words(err))
		}
		return err
	}}, nil
}

// resume lets a job run again, or wait in its queue, which then starts it.
func (o *changeOptions) resume(ctx context.Context, c client.Client, job Job) (task, error) {
	if finished(job) {
		return task{nothing: fmt.Sprintf("has ended: run it again with %s clone %s", o.name, job.Name)}, nil
	}
	workload, err := o.workload(ctx, c, job, "the queue resumes it when there is room, unless somebody keeps it out")
	switch {
	case err != nil:
		return task{}, err
	case workload == nil && !suspended(job):
		return task{nothing: "is not suspended"}, nil
	case workload == nil:
		return task{do: setSuspend(c, job, false)}, nil
	}
	queue := gang.FromKueue(job.Object.GetLabels()[mpi.LabelQueue], workload, nil)
	switch workload.Standing() {
	case gang.Active:
		if !suspended(job) {
			return task{nothing: "is not suspended"}, nil
		}
		return task{nothing: fmt.Sprintf("waits in the queue %s: nobody has suspended it", queue.Name)}, nil
	case gang.Resting:
		return task{nothing: fmt.Sprintf("waits in the queue %s: nobody has suspended it. %s", queue.Name, queue.Message)}, nil
	case gang.GivenUp:
		// Kueue 0.19 puts it out again at once.
		return task{nothing: fmt.Sprintf("is not suspended: the queue %s has given it up and does not let it in again; see %s explain %s", queue.Name, o.name, job.Name)}, nil
	}
	return task{
		do:   func(ctx context.Context, dryRun bool) error { return setActive(ctx, c, job, workload, true, dryRun) },
		then: fmt.Sprintf(": it waits in the queue %s for its turn", queue.Name),
	}, nil
}

// workload is what Kueue has made of a job; nil where it has made nothing, or cannot be asked, which is said of a job that
// names a queue, with what follows of it.
func (o *changeOptions) workload(ctx context.Context, c client.Client, job Job, follows string) (*gang.Workload, error) {
	if job.Object.GetLabels()[mpi.LabelQueue] == "" {
		return nil, nil
	}
	workload, err := workloadOf(ctx, c, job)
	switch {
	case isNoSuchAPI(err):
		o.noteOfQueue(job, fmt.Sprintf("there is no Kueue here that knows Workloads of %s, and its own field decides", gang.WorkloadKind.GroupVersion()))
	case apierrors.IsForbidden(err):
		o.noteOfQueue(job, o.words(err)+"; without it "+follows)
	case err == nil && workload == nil:
		o.noteOfQueue(job, "Kueue has not taken it up yet: "+follows)
	default:
		return workload, err
	}
	return nil, nil
}

func (o *changeOptions) noteOfQueue(job Job, what string) {
	say(o.ErrOut, "note: %s is in the queue %s: %s", job, job.Object.GetLabels()[mpi.LabelQueue], what)
}

// workloadOf reads the Workload of this very job; nil where there is none.
func workloadOf(ctx context.Context, c client.Client, job Job) (*gang.Workload, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gang.WorkloadKind.GroupVersion().WithKind(gang.WorkloadKind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{gang.LabelJobUID: string(job.UID)}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner == nil || owner.UID != job.UID {
			continue
		}
		workload := &gang.Workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, workload); err != nil {
			return nil, fmt.Errorf("read Workload %s: %w", list.Items[i].GetName(), err)
		}
		return workload, nil
	}
	return nil, nil
}

// setActive writes nothing but whether a job's Workload is active. One that has changed meanwhile is read again.
func setActive(ctx context.Context, c client.Client, job Job, workload *gang.Workload, to, dryRun bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if workload == nil {
			var err error
			if workload, err = workloadOf(ctx, c, job); err != nil {
				return err
			}
			if workload == nil {
				return fmt.Errorf("its Workload is gone: try again")
			}
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gang.WorkloadKind)
		object.SetNamespace(workload.Namespace)
		object.SetName(workload.Name)
		change := workload.Switch(to)
		workload = nil
		return merge(ctx, c, object, change, dryRun)
	})
}

// suspendField is where a kind's users say that a job is suspended.
func suspendField(kind string) []string {
	if kind == trainjob.Kind {
		return []string{"spec", "suspend"}
	}
	return []string{"spec", "runPolicy", "suspend"}
}

func suspended(job Job) bool {
	is, _, _ := unstructured.NestedBool(job.Object.Object, suspendField(job.Kind)...)
	return is
}

// finished tells by its own conditions whether a job of either kind is over.
func finished(job Job) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["status"] == "True" {
			switch c["type"] {
			case "Succeeded", "Failed", "Complete":
				return true
			}
		}
	}
	return false
}

// setSuspend writes nothing but that one field, of this very job.
func setSuspend(c client.Client, job Job, to bool) func(context.Context, bool) error {
	return func(ctx context.Context, dryRun bool) error {
		change := map[string]any{"metadata": map[string]any{"uid": string(job.UID)}}
		if err := unstructured.SetNestedField(change, to, suspendField(job.Kind)...); err != nil {
			return err
		}
		return merge(ctx, c, job.Object.DeepCopy(), change, dryRun)
	}
}

// merge changes an object by a merge patch.
func merge(ctx context.Context, c client.Client, object client.Object, change map[string]any, dryRun bool) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var options []client.PatchOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, data), options...)
}
