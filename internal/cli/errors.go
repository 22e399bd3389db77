package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"

	"opendatahub.io/mpijob/internal/gang"
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

// exitError is an error with the code to exit with.
type exitError struct {
	code int
	err  error
	// more are lines to print below the error.
	more []string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitf is an error that ends the program with a code.
func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// usagef is an error in how a command was called.
func usagef(format string, args ...any) error { return exitf(ExitUsage, format, args...) }

// silently ends the program with a code when all has been said already.
func silently(code int) error { return &exitError{code: code} }

// exit says an error in one line, and returns the code to exit with.
func (f *Factory) exit(ctx context.Context, err error) int {
	if err == nil {
		return ExitDone
	}
	code := ExitError
	known, ours := errors.AsType[*exitError](err)
	if ours {
		code = known.code
	}
	switch {
	case ours && known.err == nil:
		return code
	case !ours && ctx.Err() != nil:
		fmt.Fprintln(f.ErrOut, "interrupted")
		return ExitDetached
	case !ours && apierrors.IsNotFound(err):
		code = ExitNotFound
	}
	text := strings.Join(strings.Fields(f.words(err)), " ")
	if ours && len(known.more) > 0 {
		text += ":\n" + strings.Join(known.more, "\n")
	}
	fmt.Fprintln(f.ErrOut, f.paintOn(f.ErrOut, red, "error:"), text)
	return code
}

// words says an error of the API server, or of the way to it, so that a user knows what to do.
func (f *Factory) words(err error) string {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: log in (such as oc login), or name a kubeconfig in $KUBECONFIG or --kubeconfig"
	case clientcmd.IsContextNotFound(err):
		return fmt.Sprintf("the kubeconfig has no context %q%s", *f.flags.Context, meant(*f.flags.Context, f.contexts()))
	case meta.IsNoMatchError(err), isNoSuchAPI(err):
		return "this cluster does not know that kind of object: " + err.Error() + "; see " + f.name + " doctor"
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster%s does not accept your login (401 Unauthorized): it has expired or was revoked; log in again, such as oc login", f.where())
	case apierrors.IsForbidden(err):
		return f.forbidden(err)
	}
	if unreachable(err) {
		return fmt.Sprintf("the cluster%s cannot be reached: %v; is it up, and is it the one you mean (kubectl config current-context)?", f.where(), innermost(err))
	}
	return err.Error()
}

// isNoSuchAPI tells of "not found" whether it is the kind of object that the API server does not know.
func isNoSuchAPI(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "could not find the requested resource")
}

// unreachable tells whether an error is that of a connection.
func unreachable(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	return isURL || isNet
}

// innermost is the error that others wrap.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// where names the API server, where one is configured.
func (f *Factory) where() string {
	config, err := f.flags.ToRESTConfig()
	if err != nil || config.Host == "" {
		return ""
	}
	return " at " + config.Host
}

// denied are the parts of what the API server says when RBAC does not allow something.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// forbidden says which right is missing. What else is forbidden, by quota or by a webhook, is said by who forbids it.
func (f *Factory) forbidden(err error) string {
	parts := denied.FindStringSubmatch(err.Error())
	if parts == nil {
		return err.Error()
	}
	user, verb, resource, apiGroup, namespace := parts[1], parts[2], parts[3], parts[4], parts[5]
	if apiGroup != "" {
		resource += "." + apiGroup
	}
	place := "in the whole cluster"
	if namespace != "" {
		place = "in the namespace " + namespace
	}
	return fmt.Sprintf("you (%s) may not %s %s %s: the right is missing; ask whoever runs the cluster for %s", user, verb, resource, place, roleFor(verb, apiGroup))
}

// roleFor names the least of our roles (config/rbac/users.yaml), or of Kueue's for its own objects, that brings a right.
func roleFor(verb, apiGroup string) string {
	kueue := apiGroup == gang.WorkloadKind.Group
	switch verb {
	case "get", "list", "watch":
		if kueue {
			return "the role view (or Kueue's kueue-batch-user-role)"
		}
		return "the role view (or mpijob-viewer)"
	}
	if kueue {
		return "Kueue's role kueue-workload-editor-role"
	}
	return "the role edit (or mpijob-user)"
}

// meant suggests names near one that does not exist.
func meant(name string, names []string) string {
	near := nearest(name, names)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
