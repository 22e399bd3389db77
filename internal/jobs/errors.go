package jobs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"opendatahub.io/mpijob/internal/phrase"
)

// FieldError is a field of a request that is not allowed.
type FieldError struct {
	// Field is the field's name in JSON, such as workers; empty if the error is about the request as a whole.
	Field string
	// Value is the value as the user wrote it; may be empty.
	Value string
	// Reason says what is wrong and what to use instead, such as "is not allowed; use 1 or more".
	Reason string
}

func (e FieldError) Error() string { return e.Text(e.Field) }

// Text returns the error for an interface that calls the field by another name, such as --workers.
func (e FieldError) Text(field string) string {
	switch {
	case field == "":
		return strings.TrimSpace(e.Value + " " + e.Reason)
	case e.Value == "":
		return field + ": " + e.Reason
	}
	return field + ": " + e.Value + " " + e.Reason
}

// InvalidError is a request that is wrong in one or more fields.
type InvalidError struct{ Fields []FieldError }

func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Fields))
	for i, field := range e.Fields {
		texts[i] = field.Error()
	}
	return strings.Join(texts, "; ")
}

// Invalid returns an error about fields.
func Invalid(fields ...FieldError) error { return &InvalidError{Fields: fields} }

// NotFoundError is a job, template or runtime that does not exist.
type NotFoundError struct {
	// What is the kind of thing, such as job, MPIJob or template.
	What            string
	Namespace, Name string
	// Similar are existing names like the missing one, at most three.
	Similar []string
	// Names are all existing names.
	Names []string
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s %q not found", e.What, e.Name)
	if e.Namespace != "" {
		text += " in namespace " + e.Namespace
	}
	return text + phrase.DidYouMean(e.Similar)
}

// AmbiguousError is a name that objects of several kinds have.
type AmbiguousError struct {
	// What are the objects: jobs or runtimes.
	What, Name string
	// References tell the objects apart, such as mpijob/pi.
	References []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("several %s are named %q; use %s", e.What, e.Name, strings.Join(e.References, " or "))
}

// DeletedError is a request that needs the fields of a deleted job, which its report does not contain, or the job itself.
type DeletedError struct {
	Job Job
	// Reason is why the report does not contain the fields; empty for a report of an earlier version of the operator.
	Reason string
}

func (e *DeletedError) Error() string {
	specification := e.Job.Status().Specification
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s is deleted; its report does not contain the job's fields: %s", e.Job, e.Reason)
	case specification != nil && specification.Manifest != "":
		return fmt.Sprintf("%s is deleted", e.Job)
	}
	return fmt.Sprintf("%s is deleted; its report does not contain the job's fields", e.Job)
}

// EndedError is a request to end a job that has ended.
type EndedError struct{ Job Job }

func (e *EndedError) Error() string { return e.Job.String() + " has ended" }

// ExistsError is a name that is taken.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return e.Name + " already exists" }

// RejectedError is a job that the API server or a check does not accept.
type RejectedError struct {
	Name string
	// Reasons are sorted, each with its field.
	Reasons []string
}

func (e *RejectedError) Error() string {
	return e.Name + " is not valid: " + strings.Join(e.Reasons, "; ")
}

// NoMetricsError is a request for the current usage of pods in a cluster without a metrics server.
type NoMetricsError struct{}

func (e *NoMetricsError) Error() string { return "the cluster has no metrics server (metrics.k8s.io)" }

// NoTrainerError is a request for runtimes in a cluster without Kubeflow Trainer.
type NoTrainerError struct{}

func (e *NoTrainerError) Error() string {
	return "the cluster has no Kubeflow Trainer, so it has no runtimes and TrainJobs; MPIJobs do not need it"
}

// NoOperatorError is a request for an object that only a cluster with the operator has.
type NoOperatorError struct{ Kind string }

func (e *NoOperatorError) Error() string {
	return "the cluster has no " + e.Kind + "s: the operator is not installed or outdated"
}

// IsNotInstalled reports whether an error means that the cluster does not have the kind of object.
func IsNotInstalled(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "could not find the requested resource")
}

// IsUnreachable reports whether an error is one of the connection to the API server, also of one that ended within a response.
func IsUnreachable(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	_, isStream := errors.AsType[http2.StreamError](err)
	return isURL || isNet || isStream || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsHTTP2ConnectionLost(err)
}

// IsTransient reports whether a request may succeed when it is repeated.
func IsTransient(err error) bool {
	return IsUnreachable(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
