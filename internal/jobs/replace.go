package jobs

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NotCreatedError is a job that was to replace another, and could not be created after that was deleted.
type NotCreatedError struct {
	// Job is the new job.
	Job *unstructured.Unstructured
	Err error
}

func (e *NotCreatedError) Error() string {
	return fmt.Sprintf("the old job is deleted, but the new one could not be created: %v", e.Err)
}
func (e *NotCreatedError) Unwrap() error { return e.Err }

// Replace deletes a job, waits until it is gone, and creates another under its name. The API server validates the new job
// before the old one is deleted; so does DryRunServer. It fails with NotCreatedError if the old job is deleted and the new one
// is not created.
func (c *Client) Replace(ctx context.Context, old Job, job *unstructured.Unstructured, grace *time.Duration, dryRun DryRun) error {
	if dryRun == DryRunClient {
		return nil
	}
	trial := job.DeepCopy()
	name, err := c.nextName(ctx, old.Namespace, old.Name)
	if err != nil {
		return err
	}
	trial.SetName(name)
	if err := c.Create(ctx, trial, DryRunServer); err != nil || dryRun == DryRunServer {
		return err
	}
	if err := c.DeleteWithGrace(ctx, old, grace, DryRunNone); err != nil {
		return err
	}
	if err := c.AwaitDeletion(ctx, old); err != nil {
		return &NotCreatedError{Job: job, Err: err}
	}
	if err := c.Create(ctx, job, DryRunNone); err != nil {
		return &NotCreatedError{Job: job, Err: err}
	}
	return nil
}
