package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"opendatahub.io/mpijob/internal/jobs"
)

// Problem is the body of a response that is an error.
type Problem struct {
	// Code identifies the kind of error: Invalid, Rejected, NotFound, Ambiguous, Deleted, Ended, Exists, Forbidden, Unauthorized,
	// Unavailable, Busy (the user has too many requests at once), NotInstalled or Internal.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Fields are the errors of fields of the request.
	Fields []FieldProblem `json:"fields,omitempty"`
	// Reasons are why the API server or a check does not accept a job.
	Reasons []string `json:"reasons,omitempty"`
	// Similar are existing names like one that was not found.
	Similar []string `json:"similar,omitempty"`
}

// FieldProblem is an error of a field.
type FieldProblem struct {
	Field  string `json:"field"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
	// Line is the line of the field in the request's YAML, the first of which is 1; 0 if it is unknown.
	Line int `json:"line,omitempty"`
}

// errUnauthorized is a login that has expired.
var errUnauthorized = errors.New("log in again: the login has expired")

// errMediaType is a request whose body is no JSON.
var errMediaType = errors.New("the body must be application/json")

// forbiddenError is a request that the user has no right to.
type forbiddenError struct{ message string }

func (e *forbiddenError) Error() string { return e.message }

func writeProblem(w http.ResponseWriter, status int, problem Problem) { writeJSON(w, status, problem) }

// writeError writes an error as a problem, and logs it if it is the server's.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, problem := problemOf(err)
	if _, is := errors.AsType[*busyError](err); is {
		w.Header().Set("Retry-After", retryAfter)
	}
	// The error of a request that its page has given up is not the server's.
	if status == http.StatusInternalServerError && r.Context().Err() == nil {
		slog.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	writeProblem(w, status, problem)
}

// problemOf returns the HTTP status and the problem of an error.
func problemOf(err error) (int, Problem) {
	if invalid, is := errors.AsType[*jobs.InvalidError](err); is {
		problem := Problem{Code: "Invalid", Message: invalid.Error()}
		for _, field := range invalid.Fields {
			problem.Fields = append(problem.Fields, FieldProblem{Field: field.Field, Value: field.Value, Reason: field.Reason})
		}
		return http.StatusUnprocessableEntity, problem
	}
	if masked, is := errors.AsType[*jobs.MaskedError](err); is {
		problem := Problem{Code: "Masked", Message: masked.Error() + "; set them again"}
		for _, change := range masked.Changes() {
			problem.Fields = append(problem.Fields, FieldProblem{Field: change, Reason: "is masked in the report; set it again"})
		}
		return http.StatusUnprocessableEntity, problem
	}
	if rejected, is := errors.AsType[*jobs.RejectedError](err); is {
		return http.StatusUnprocessableEntity, Problem{Code: "Rejected", Message: rejected.Error(), Reasons: rejected.Reasons}
	}
	if busy, is := errors.AsType[*busyError](err); is {
		code := "Unavailable"
		if busy.status == http.StatusTooManyRequests {
			code = "Busy"
		}
		return busy.status, Problem{Code: code, Message: busy.message}
	}
	if forbidden, is := errors.AsType[*forbiddenError](err); is {
		return http.StatusForbidden, Problem{Code: "Forbidden", Message: forbidden.message}
	}
	if errors.Is(err, errMediaType) {
		return http.StatusUnsupportedMediaType, Problem{Code: "Invalid", Message: err.Error()}
	}
	if bad, is := errors.AsType[*badNameError](err); is {
		return http.StatusNotFound, Problem{Code: "NotFound", Message: bad.Error()}
	}
	if missing, is := errors.AsType[*jobs.NotFoundError](err); is {
		return http.StatusNotFound, Problem{Code: "NotFound", Message: missing.Error(), Similar: missing.Similar}
	}
	if _, is := errors.AsType[*jobs.EndedError](err); is {
		return http.StatusConflict, Problem{Code: "Ended", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.AmbiguousError](err); is {
		return http.StatusConflict, Problem{Code: "Ambiguous", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.DeletedError](err); is {
		return http.StatusGone, Problem{Code: "Deleted", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.ExistsError](err); is {
		return http.StatusConflict, Problem{Code: "Exists", Message: err.Error()}
	}
	return apiProblem(err)
}

// apiProblem returns the status and the problem of an error of the API server.
func apiProblem(err error) (int, Problem) {
	switch {
	case errors.Is(err, errUnauthorized), apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, Problem{Code: "Unauthorized", Message: errUnauthorized.Error()}
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, Problem{Code: "Forbidden", Message: err.Error()}
	case jobs.IsNotInstalled(err):
		return http.StatusNotFound, Problem{Code: "NotInstalled", Message: err.Error()}
	case apierrors.IsNotFound(err):
		return http.StatusNotFound, Problem{Code: "NotFound", Message: err.Error()}
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return http.StatusConflict, Problem{Code: "Exists", Message: err.Error()}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return http.StatusUnprocessableEntity, Problem{Code: "Rejected", Message: err.Error(), Reasons: []string{err.Error()}}
	case refusedName.MatchString(err.Error()):
		return http.StatusUnprocessableEntity, Problem{Code: "Invalid", Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded), jobs.IsTransient(err):
		return http.StatusServiceUnavailable, Problem{Code: "Unavailable", Message: "the API server does not answer; try again in a few seconds"}
	}
	return http.StatusInternalServerError, Problem{Code: "Internal", Message: err.Error()}
}

// invalid returns the problem of an error; nil for none.
func invalid(err error) *Problem {
	if err == nil {
		return nil
	}
	_, problem := problemOf(err)
	return &problem
}
