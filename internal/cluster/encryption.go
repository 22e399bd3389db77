package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/encryption"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// EncryptionInterval is how often it is looked up what encrypts the traffic between pods, while jobs start or require it. After a failure it is
// looked up again after encryptionRetry. encryptionTimeout is how long it takes at most.
const (
	EncryptionInterval = time.Minute
	encryptionRetry    = 5 * time.Second
	encryptionTimeout  = 10 * time.Second
)

// CheckEncryption returns why a job may not run: its namespace or the operator requires that the traffic between its pods is encrypted,
// and nothing does so, or the pods communicate past what does. It returns nil for a job without traffic between pods.
func (c *Cluster) CheckEncryption(ctx context.Context, job mpi.Job, settings plan.Settings) (errs field.ErrorList) {
	if job.Pods() < 2 {
		return nil
	}
	source := "the operator's flag --require-encryption"
	if !settings.RequireEncryption {
		annotations, err := c.NamespaceAnnotations(ctx, job.Namespace)
		if err == nil && !mpi.RequiresEncryption(annotations) {
			return nil
		}
		source = "the annotation " + mpi.AnnotationRequireEncryption + " of namespace " + job.Namespace
	}
	required := source + " requires that the traffic between pods is encrypted"
	if by, err := c.EncryptedBy(ctx); len(by) == 0 {
		why := "nothing on this cluster is known to do so"
		if err != nil {
			why = fmt.Sprintf("it could not be found out whether anything does so (%v)", err)
		}
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
			"%s, and %s; ask a cluster administrator to enable it in the cluster's network (docs/security.md), or use another namespace", required, why)))
	}
	for _, plaintext := range job.Plaintexts() {
		errs = append(errs, field.Forbidden(plaintext.Field, fmt.Sprintf("%s, and no network plug-in encrypts %s; %s", required, plaintext.What, plaintext.Remedy)))
	}
	return errs
}

// CheckEncryptionChange is CheckEncryption for a job that is changed: it returns what the change adds, and what was wrong before. That
// must not prevent a queue from resuming the job.
func (c *Cluster) CheckEncryptionChange(ctx context.Context, before, after mpi.Job, settings plan.Settings) (added, kept field.ErrorList) {
	if before.Recorded.Finish != nil {
		return nil, nil
	}
	errs := c.CheckEncryption(ctx, after, settings)
	if len(errs) == 0 {
		return nil, nil
	}
	return mpi.SplitNew(c.CheckEncryption(ctx, before, settings), errs)
}

// EncryptedBy returns what encrypts the traffic between pods, at most EncryptionInterval old; empty for nothing that is known.
func (c *Cluster) EncryptedBy(ctx context.Context) ([]string, error) {
	return c.encryption.get(ctx, c.clock, encryptionTimeout, EncryptionInterval, encryptionRetry, func(ctx context.Context) ([]string, error) {
		return encryption.Find(ctx, c.live)
	})
}
