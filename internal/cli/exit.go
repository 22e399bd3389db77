package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"opendatahub.io/mpijob/internal/jobs"
)

// Exit codes. Scripts rely on them: docs/cli.md.
const (
	ExitDone      = 0
	ExitError     = 1
	ExitUsage     = 2
	ExitJobFailed = 3
	ExitTimeout   = 4
	ExitNotFound  = 5
	ExitDetached  = 130
)

// exitError is an error with an exit code. A nil error ends the program without a message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitf returns an error with an exit code.
func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// usagef returns an error about the command line.
func usagef(format string, args ...any) error { return exitf(ExitUsage, format, args...) }

// silently returns an error that ends the program without a message.
func silently(code int) error { return &exitError{code: code} }

// exit prints an error in one line and returns the exit code. Errors that were joined have a line each, and the first one's code.
func (f *Factory) exit(ctx context.Context, err error) int {
	if err == nil {
		return ExitDone
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		code := f.exit(ctx, joined.Unwrap()[0])
		for _, other := range joined.Unwrap()[1:] {
			f.exit(ctx, other)
		}
		return code
	}
	known, ours := errors.AsType[*exitError](err)
	switch {
	case ours && known.err == nil:
		return known.code
	case !ours && ctx.Err() != nil:
		fmt.Fprintln(f.ErrOut, "interrupted")
		return ExitDetached
	}
	text := strings.Join(strings.Fields(f.describeError(err)), " ")
	if lines := reasonsOf(err); len(lines) > 0 {
		text += ":\n" + strings.Join(lines, "\n")
	}
	fmt.Fprintln(f.ErrOut, paintOn(f.ErrOut, red, "error:"), text)
	return exitCode(err)
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	if known, ours := errors.AsType[*exitError](err); ours {
		return known.code
	}
	_, invalid := errors.AsType[*jobs.InvalidError](err)
	_, ambiguous := errors.AsType[*jobs.AmbiguousError](err)
	_, missing := errors.AsType[*jobs.NotFoundError](err)
	_, deleted := errors.AsType[*jobs.DeletedError](err)
	_, masked := errors.AsType[*jobs.MaskedError](err)
	switch {
	case invalid, ambiguous, masked:
		return ExitUsage
	case missing, deleted, apierrors.IsNotFound(err):
		return ExitNotFound
	}
	return ExitError
}
