package dashboard

import (
	"context"
	"strconv"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

// ActionResult is what an action did.
type ActionResult struct {
	Result  string `json:"result"`
	Message string `json:"message"`
}

// CancelRequest ends a job that has not ended.
type CancelRequest struct {
	// UID protects a new job of the same name; empty for any.
	UID string `json:"uid,omitempty"`
	// GraceSeconds is how long the programs may take to end after SIGTERM; null for what their pods define.
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
}

// suspend and resume stop a job and start it again.
func (s *Server) suspend(c *call) (any, error) { return c.setSuspended(c.jobs.Suspend) }
func (s *Server) resume(c *call) (any, error)  { return c.setSuspended(c.jobs.Resume) }

func (c *call) setSuspended(do func(context.Context, jobs.Job, jobs.DryRun) (jobs.SuspendReport, error)) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	report, err := do(c.ctx, job, jobs.DryRunNone)
	if err != nil {
		return nil, err
	}
	return ActionResult{string(report.Result), suspendText(job, report)}, nil
}

// suspendText says what suspending or resuming a job did.
func suspendText(job jobs.Job, report jobs.SuspendReport) string {
	text := map[jobs.SuspendResult]string{
		jobs.Suspended: "is suspended: its pods are deleted until it is resumed", jobs.Resumed: "is resumed", jobs.AlreadySuspended: "was suspended already",
		jobs.NotSuspended: "was not suspended", jobs.AlreadyEnded: "has ended already", jobs.WaitsInQueue: "is not suspended; it waits in its queue",
		jobs.QueueGaveUp: "was given up by its queue, which would give it up again",
	}[report.Result]
	if report.QueueMessage != "" {
		text += ": " + report.QueueMessage
	}
	if report.Result == jobs.Resumed && report.Queue != "" {
		text += " and waits in queue " + report.Queue + " until it is admitted"
	}
	return job.String() + " " + text + "."
}

// cancel ends a job that has not ended: it is deleted with its pods, and its report stays.
func (s *Server) cancel(c *call) (any, error) {
	request, err := body[CancelRequest](c)
	if err != nil {
		return nil, err
	}
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if request.UID != "" && request.UID != string(job.UID) {
		return nil, &jobs.NotFoundError{What: "job with this UID", Namespace: job.Namespace, Name: job.Name}
	}
	var grace *time.Duration
	if request.GraceSeconds != nil {
		if *request.GraceSeconds < 0 || *request.GraceSeconds > 86400 {
			return nil, jobs.Invalid(jobs.FieldError{Field: "graceSeconds", Value: strconv.FormatInt(*request.GraceSeconds, 10), Reason: "is not allowed; use 0 to 86400 seconds"})
		}
		grace = new(time.Duration(*request.GraceSeconds) * time.Second)
	}
	if err := c.jobs.Cancel(c.ctx, job, grace, jobs.DryRunNone); err != nil {
		return nil, err
	}
	return ActionResult{"Cancelled", job.String() + " is cancelled: its programs are asked to end. Its report is kept."}, nil
}

// remove deletes a job with its pods. Its report stays.
func (s *Server) remove(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if uid := c.URL.Query().Get("uid"); uid != "" && uid != string(job.UID) {
		return nil, &jobs.NotFoundError{What: "job with this UID", Namespace: job.Namespace, Name: job.Name}
	}
	if err := c.jobs.Delete(c.ctx, job, jobs.DryRunNone); err != nil {
		return nil, err
	}
	return ActionResult{"Deleted", job.String() + " is deleted with its pods. Its report is kept."}, nil
}
