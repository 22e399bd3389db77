package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// SuspendResult is the result of suspending or resuming a job.
type SuspendResult string

// The results.
const (
	// Suspended and Resumed: the job was changed.
	Suspended SuspendResult = "Suspended"
	Resumed   SuspendResult = "Resumed"
	// AlreadySuspended and NotSuspended: there was nothing to do.
	AlreadySuspended SuspendResult = "AlreadySuspended"
	NotSuspended     SuspendResult = "NotSuspended"
	// AlreadyEnded: the job is over.
	AlreadyEnded SuspendResult = "AlreadyEnded"
	// WaitsInQueue: the job is not suspended; it waits for quota.
	WaitsInQueue SuspendResult = "WaitsInQueue"
	// QueueGaveUp: the queue has deactivated the job's Workload, and deactivates it again if it is activated.
	QueueGaveUp SuspendResult = "QueueGaveUp"
)

// QueueNote says why the Workload of a job in a queue is not used.
type QueueNote string

// The notes.
const (
	// NoKueue: the cluster does not have Kueue's Workloads.
	NoKueue QueueNote = "NoKueue"
	// WorkloadsForbidden: the user may not read Workloads.
	WorkloadsForbidden QueueNote = "WorkloadsForbidden"
	// NoWorkload: Kueue has not created a Workload for the job yet.
	NoWorkload QueueNote = "NoWorkload"
)

// SuspendReport is what Suspend and Resume did.
type SuspendReport struct {
	Result SuspendResult
	// Queue is the job's queue, and QueueMessage why the job waits there; both may be empty.
	Queue, QueueMessage string
	// InQueue is set if the job was suspended or resumed in its queue only, and not by its field suspend.
	InQueue bool
	// Note is set if the job is in a queue and its Workload cannot be used; Err is the reason if reading it is forbidden.
	Note QueueNote
	Err  error
}

// Suspend stops a job and keeps it. A job in a queue is suspended by mpi.AnnotationSuspendInQueue, because Kueue starts a job again
// that is suspended by its field suspend only: the operator deactivates the Workload, which users may not change. If the Workload is
// unknown, the field is set, too.
func (c *Client) Suspend(ctx context.Context, job Job, dryRun DryRun) (SuspendReport, error) {
	return c.setSuspended(ctx, job, true, dryRun)
}

// Resume lets a suspended job run. A job in a queue waits there until it is admitted.
func (c *Client) Resume(ctx context.Context, job Job, dryRun DryRun) (SuspendReport, error) {
	return c.setSuspended(ctx, job, false, dryRun)
}

// setSuspended suspends or resumes a job, unless there is nothing to do.
func (c *Client) setSuspended(ctx context.Context, job Job, suspend bool, dryRun DryRun) (SuspendReport, error) {
	if job.Ended() || job.HasFinalCondition() {
		return SuspendReport{Result: AlreadyEnded}, nil
	}
	workload, report, err := c.workloadFor(ctx, job)
	if err != nil {
		return report, err
	}
	if suspend {
		report.Result = suspendResult(job, workload)
	} else {
		report.Result = resumeResult(job, workload)
		if workload != nil {
			queue := kueue.FromKueue(job.Object.GetLabels()[mpi.LabelQueue], workload)
			report.Queue = queue.Name
			if workload.Standing() == kueue.Resting {
				report.QueueMessage = queue.Message
			}
		}
	}
	switch {
	case report.Result != Suspended && report.Result != Resumed:
		return report, nil
	case workload == nil:
		return report, c.setSuspend(ctx, job, suspend, dryRun)
	}
	report.InQueue = true
	if !suspend && !isSuspendedInQueue(job) || isForMultiKueue(job) {
		// Another user has deactivated the Workload itself, or the operator leaves the job to another cluster.
		return report, c.setActive(ctx, job, workload, !suspend, dryRun)
	}
	patch := map[string]any{"metadata": map[string]any{"uid": string(job.UID), "annotations": suspensionInQueue(suspend)}}
	return report, c.mergePatch(ctx, job.Object.DeepCopy(), patch, dryRun)
}

// isSuspendedInQueue reports whether the job has a valid mpi.AnnotationSuspendInQueue.
func isSuspendedInQueue(job Job) bool {
	suspended, _ := mpi.ParseSuspendInQueue(job.Object.GetAnnotations())
	return suspended
}

// isForMultiKueue reports whether Kueue sends the job to another cluster: the operator of this one does nothing for it.
func isForMultiKueue(job Job) bool {
	_, manager := managerOf(job)
	return manager == kubeflow.MultiKueueController
}

// managerOf returns the field in which a job names the controller that runs it, and its value; empty: that of this cluster.
func managerOf(job Job) (field, manager string) {
	path := []string{"spec", "managedBy"}
	if job.Kind == mpi.KindMPIJob {
		path = []string{"spec", "runPolicy", "managedBy"}
	}
	if job.Object != nil {
		manager, _, _ = unstructured.NestedString(job.Object.Object, path...)
	}
	return strings.Join(path, "."), manager
}

// runElsewhere returns why the operator reports nothing on a job that another controller runs; empty: it does report.
func (j Job) runElsewhere() string {
	field, manager := managerOf(j)
	if manager != kubeflow.MultiKueueController {
		return ""
	}
	return fmt.Sprintf("No report: %s is %s, so that Kueue runs the job on another cluster. Without MultiKueue it never starts; create it again without this field", field, manager)
}

// suspensionInQueue returns the annotations of a merge patch by which a job is suspended or resumed in its queue.
func suspensionInQueue(suspend bool) map[string]any {
	if suspend {
		return map[string]any{mpi.AnnotationSuspendInQueue: "true"}
	}
	return map[string]any{mpi.AnnotationSuspendInQueue: nil}
}

// isQueued reports whether mpi.AnnotationSuspendInQueue suspends a job as soon as it has a Workload.
func isQueued(job Job) bool {
	return job.Object.GetLabels()[mpi.LabelQueue] != "" && !isForMultiKueue(job)
}

// suspendResult decides what suspending a job does; the Workload is nil if the job's own field is used.
func suspendResult(job Job, workload *kueue.Workload) SuspendResult {
	switch {
	case workload == nil && job.Suspended() && (isSuspendedInQueue(job) || !isQueued(job)):
		return AlreadySuspended
	case workload == nil:
		return Suspended
	case isSuspendedInQueue(job):
		return AlreadySuspended
	}
	switch workload.Standing() {
	case kueue.Stopped:
		return AlreadySuspended
	case kueue.GivenUp:
		return QueueGaveUp
	}
	return Suspended
}

// resumeResult decides what resuming a job does; the Workload is nil if the job's own field is used.
func resumeResult(job Job, workload *kueue.Workload) SuspendResult {
	switch {
	case workload == nil && !job.Suspended() && !isSuspendedInQueue(job):
		return NotSuspended
	case workload == nil, isSuspendedInQueue(job):
		return Resumed
	}
	switch workload.Standing() {
	case kueue.Active:
		if !job.Suspended() {
			return NotSuspended
		}
		return WaitsInQueue
	case kueue.Resting:
		return WaitsInQueue
	case kueue.GivenUp: // Kueue 0.19 deactivates it again at once
		return QueueGaveUp
	}
	return Resumed
}

// workloadFor returns the job's Workload, or nil and a note why the job's own field has to be used.
func (c *Client) workloadFor(ctx context.Context, job Job) (*kueue.Workload, SuspendReport, error) {
	report := SuspendReport{Queue: job.Object.GetLabels()[mpi.LabelQueue]}
	if report.Queue == "" {
		return nil, report, nil
	}
	workload, err := c.readWorkload(ctx, job)
	switch {
	case IsNotInstalled(err):
		report.Note = NoKueue
	case apierrors.IsForbidden(err):
		report.Note, report.Err = WorkloadsForbidden, err
	case err == nil && workload == nil:
		report.Note = NoWorkload
	default:
		return workload, report, err
	}
	return nil, report, nil
}

// readWorkload reads the Workload whose controller is the job; nil if there is none.
func (c *Client) readWorkload(ctx context.Context, job Job) (*kueue.Workload, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind(kueue.WorkloadKind.Kind + "List"))
	if err := c.api.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{kueue.LabelJobUID: string(job.UID)}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner == nil || owner.UID != job.UID {
			continue
		}
		workload := &kueue.Workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, workload); err != nil {
			return nil, fmt.Errorf("read Workload %s: %w", list.Items[i].GetName(), err)
		}
		return workload, nil
	}
	return nil, nil
}

// setActive patches whether a Workload is active. After a conflict it reads the Workload again.
func (c *Client) setActive(ctx context.Context, job Job, workload *kueue.Workload, active bool, dryRun DryRun) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if workload == nil {
			var err error
			if workload, err = c.readWorkload(ctx, job); err != nil {
				return err
			}
			if workload == nil {
				return errors.New("the job's Workload was deleted meanwhile; try again")
			}
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kueue.WorkloadKind)
		object.SetNamespace(workload.Namespace)
		object.SetName(workload.Name)
		patch := workload.Switch(active)
		workload = nil
		return c.mergePatch(ctx, object, patch, dryRun)
	})
}

// setSuspend patches the job's own field, and whether it stays suspended in its queue, with its UID: a new job of the same name is not
// changed.
func (c *Client) setSuspend(ctx context.Context, job Job, suspend bool, dryRun DryRun) error {
	metadata := map[string]any{"uid": string(job.UID)}
	if has := isSuspendedInQueue(job); suspend && !has && isQueued(job) || !suspend && has {
		metadata["annotations"] = suspensionInQueue(suspend)
	}
	patch := map[string]any{"metadata": metadata}
	if err := unstructured.SetNestedField(patch, suspend, editorFor(job.Kind).SuspendPath()...); err != nil {
		return err
	}
	return c.mergePatch(ctx, job.Object.DeepCopy(), patch, dryRun)
}

func (c *Client) mergePatch(ctx context.Context, object client.Object, patch map[string]any, dryRun DryRun) error {
	if dryRun == DryRunClient {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	var options []client.PatchOption
	if dryRun == DryRunServer {
		options = append(options, client.DryRunAll)
	}
	return c.api.Patch(ctx, object, client.RawPatch(types.MergePatchType, data), options...)
}
