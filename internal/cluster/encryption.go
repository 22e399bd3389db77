package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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

// encryptionState is what encrypts the traffic between pods, as it was last looked up.
type encryptionState struct {
	mu    sync.Mutex
	last  encryptionResult
	until time.Time
	// lookups has callers that come at the same time wait for the same answer.
	lookups singleflight.Group
}

// encryptionResult is what a look has found.
type encryptionResult struct {
	by  []string
	err error
}

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
	if last, known := c.encryption.known(c.clock.Now()); known {
		return last.by, last.err
	}
	found := c.encryption.lookups.DoChan("", func() (any, error) {
		// Others wait for the answer, too: it does not end with this request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), encryptionTimeout)
		defer cancel()
		by, err := encryption.Find(ctx, c.live)
		result := encryptionResult{by, err}
		c.encryption.keep(c.clock.Now(), result)
		return result, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case answer := <-found:
		result, _ := answer.Val.(encryptionResult)
		return result.by, result.err
	}
}

// known returns what was found last; false if it must be looked up again.
func (s *encryptionState) known(now time.Time) (encryptionResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, now.Before(s.until)
}

// keep keeps what was found.
func (s *encryptionState) keep(now time.Time, found encryptionResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.until = found, now.Add(EncryptionInterval)
	if found.err != nil {
		s.until = now.Add(encryptionRetry)
	}
}
