package cli

import (
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
	"opendatahub.io/mpijob/internal/offline"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/roles"
)

// reasonsOf returns the lines below the error about a job that is not valid.
func reasonsOf(err error) []string {
	if files, is := errors.AsType[*offline.InputError](err); is {
		lines := make([]string, len(files.Problems))
		for i, problem := range files.Problems {
			lines[i] = "  - " + oneLine(problem)
		}
		return lines
	}
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
	if files, is := errors.AsType[*offline.InputError](err); is {
		return phrase.Count(len(files.Problems), "problem") + " in the files"
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
		return fmt.Sprintf("%v; run %s to see the report", deleted, f.hint("describe", deleted.Job.Namespace, deleted.Job.Name))
	}
	if masked, is := errors.AsType[*jobs.MaskedError](err); is {
		return masked.Error() + "; set them again: " + maskedFlags(masked)
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
	return ""
}

// maskedFlags returns the flags of clone that set masked fields.
func maskedFlags(masked *jobs.MaskedError) string {
	var flags []string
	for _, change := range masked.Changes() {
		if name, is := strings.CutPrefix(change, "env."); is {
			flags = append(flags, "--env "+name+"=VALUE")
		} else if change == "command" {
			flags = append(flags, "--command COMMAND")
		} else {
			flags = append(flags, "--set "+phrase.QuoteWord(change+"=VALUE"))
		}
	}
	return strings.Join(flags, " ")
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
	inAcronym := false // as in maxGPUs, which is --max-gpus
	for _, r := range field {
		if unicode.IsUpper(r) && !inAcronym {
			b.WriteByte('-')
		}
		inAcronym = unicode.IsUpper(r)
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
