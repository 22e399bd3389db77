package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/roles"
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
	switch {
	case invalid, ambiguous:
		return ExitUsage
	case missing, deleted, apierrors.IsNotFound(err):
		return ExitNotFound
	}
	return ExitError
}

// reasonsOf returns the lines below the error about a job that is not valid.
func reasonsOf(err error) []string {
	rejected, is := errors.AsType[*jobs.RejectedError](err)
	if !is {
		return nil
	}
	lines := make([]string, len(rejected.Reasons))
	for i, reason := range rejected.Reasons {
		lines[i] = "  - " + oneLine(reason)
	}
	return lines
}

// describeError returns the text of an error with the user's next step.
func (f *Factory) describeError(err error) string {
	if text := f.describeJobError(err); text != "" {
		return text
	}
	switch {
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured; log in (for example with oc login), or set $KUBECONFIG or --kubeconfig"
	case clientcmd.IsContextNotFound(err) || missingContext.MatchString(err.Error()):
		return fmt.Sprintf("context %q not found in the kubeconfig%s", *f.flags.Context, didYouMean(*f.flags.Context, f.contexts()))
	case jobs.IsNotInstalled(err):
		return "the cluster does not have this kind of object: " + err.Error() + "; run " + f.name + " doctor"
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster%s rejected your credentials (401 Unauthorized); log in again, for example with oc login", f.where())
	case apierrors.IsForbidden(err), denied.MatchString(err.Error()): // a refused connection to a pod has no status
		return f.forbidden(err)
	}
	if _, isFile := errors.AsType[*fs.PathError](err); isFile {
		return err.Error()
	}
	if jobs.IsUnreachable(err) {
		return fmt.Sprintf("cannot reach the cluster%s: %v; check that it is running, and that kubectl config current-context is the right one", f.where(), innermost(err))
	}
	return err.Error()
}

// describeJobError returns the text of an error of package jobs with the user's next step; empty for others.
func (f *Factory) describeJobError(err error) string {
	if invalid, is := errors.AsType[*jobs.InvalidError](err); is {
		texts := make([]string, len(invalid.Fields))
		for i, field := range invalid.Fields {
			texts[i] = field.Text(flagName(field.Field))
		}
		return strings.Join(texts, "; ")
	}
	if missing, is := errors.AsType[*jobs.NotFoundError](err); is {
		return missing.Error() + f.nextStep(missing)
	}
	if deleted, is := errors.AsType[*jobs.DeletedError](err); is {
		return fmt.Sprintf("%v; run %s describe %s to see the report", deleted, f.name, deleted.Job.Name)
	}
	if exists, is := errors.AsType[*jobs.ExistsError](err); is {
		return exists.Error() + "; use another name, or delete it first"
	}
	if rejected, is := errors.AsType[*jobs.RejectedError](err); is {
		return rejected.Name + " is not valid"
	}
	if noMetrics, is := errors.AsType[*jobs.NoMetricsError](err); is {
		return noMetrics.Error() + "; ask a cluster administrator to install one"
	}
	if queue, is := errors.AsType[*jobs.QueueForbiddenError](err); is {
		return f.forbidden(queue.Err) + "; the job was not changed, because Kueue restarts a job that is only suspended by its own field"
	}
	return ""
}

// nextStep returns what to do about a missing object without similar names.
func (f *Factory) nextStep(missing *jobs.NotFoundError) string {
	switch {
	case len(missing.Similar) > 0:
		return ""
	case missing.What == "runtime" && len(missing.Names) == 0:
		return "; the cluster has no runtimes; use --image to create an MPIJob, which needs none"
	case missing.What == "runtime":
		return "; existing runtimes: " + strings.Join(missing.Names, ", ")
	case missing.What == "template":
		return "; run " + f.name + " templates list to list templates"
	}
	return fmt.Sprintf("; run %s list -n %s to list jobs", f.name, missing.Namespace)
}

// flagName returns the flag for a field of a request, or NAME for a job's name.
func flagName(field string) string {
	switch field {
	case "":
		return ""
	case "name":
		return "NAME"
	}
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "--" + b.String()
}

// innermost returns the error that others wrap.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// where returns the address of the API server, if one is configured.
func (f *Factory) where() string {
	config, err := f.flags.ToRESTConfig()
	if err != nil || config.Host == "" {
		return ""
	}
	return " at " + config.Host
}

// missingContext matches the error of a kubeconfig without the context that --context names, which has no type.
var missingContext = regexp.MustCompile(`^context ".*" does not exist$`)

// denied matches the API server's message about a right that RBAC does not grant.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// forbidden returns which right is missing. Refusals by a quota or a webhook explain themselves.
func (f *Factory) forbidden(err error) string {
	parts := denied.FindStringSubmatch(err.Error())
	if parts == nil {
		return err.Error()
	}
	user, right, namespace := parts[1], roles.Right{Verb: parts[2], Resource: parts[3], Group: parts[4]}, parts[5]
	place := "in the cluster"
	if namespace != "" {
		place = "in namespace " + namespace
	}
	return fmt.Sprintf("user %s is not allowed to %s %s; ask a cluster administrator for %s", user, right, place, roleWith(right))
}

// roleWith names the smallest role for users that grants a right, or Kueue's role for changes of its objects.
func roleWith(right roles.Right) string {
	if _, found := roles.SmallestWith(right); !found && right.Group == kueue.WorkloadKind.Group {
		return "Kueue's role kueue-workload-editor-role"
	}
	return roles.With(right)
}

// didYouMean returns "; did you mean A or B?" for a name that does not exist, or nothing.
func didYouMean(name string, names []string) string {
	return phrase.DidYouMean(phrase.Similar(name, names))
}
