package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// Preflight asks the API server, without making anything, whether it would take a launcher and a worker of a
// job. The errors are what no pod can be, at the fields where the job's user wrote it. The warnings are what the
// API server refuses now but may take later: quota, Pod Security, another admission webhook. Where it cannot be
// asked, there are neither.
//
// The job may be one that mpi.Validate finds fault with, so that users are told everything at once.
func (c *Cluster) Preflight(ctx context.Context, job mpi.Job, settings plan.Settings) (field.ErrorList, []string) {
	checks := probes(job, settings)
	errs, warnings := make([]field.ErrorList, len(checks)), make([]string, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			err := c.client.Create(ctx, check.object, client.DryRunAll, unawaited)
			status, answered := errors.AsType[*apierrors.StatusError](err)
			switch {
			case !answered:
			case apierrors.IsInvalid(err):
				errs[i] = translate(status.Status().Details, check.inside, check.template)
			case apierrors.IsForbidden(err):
				warnings[i] = check.template.String() + ": as things are, the API server would refuse the pod: " + status.Status().Message
			}
		})
	}
	all.Wait()
	return slices.Concat(errs...), slices.DeleteFunc(warnings, func(warning string) bool { return warning == "" })
}

// probe is an object to ask about.
type probe struct {
	object plan.Object
	// inside is where the pod template stands in the object, template where the user wrote it.
	inside   string
	template *field.Path
}

// probes are the launcher and the first worker of a job in which all but the templates is good.
func probes(job mpi.Job, settings plan.Settings) []probe {
	workers := min(max(job.Workers.Count, 0), 1)
	if len(job.Launcher.Template.Spec.Containers) == 0 || workers > 0 && len(job.Workers.Template.Spec.Containers) == 0 {
		return nil
	}
	sound := mpi.New()
	sound.APIVersion, sound.Kind, sound.Namespace, sound.Name, sound.UID = job.APIVersion, job.Kind, job.Namespace, job.Name, job.UID
	if len(validation.IsDNS1035Label(job.LauncherName())) > 0 {
		sound.Name = "preflight"
	}
	sound.SSHMountPath = "/" + mpi.SSHVolume + "-preflight"
	sound.Launcher.Template, sound.Launcher.RestartPolicy = job.Launcher.Template, job.Launcher.RestartPolicy
	sound.Workers = mpi.Workers{Count: workers, Template: job.Workers.Template, RestartPolicy: job.Workers.RestartPolicy}

	pods := plan.For(sound, mpi.Observed{}, mpi.Judge(sound, mpi.Observed{}), settings).Pods
	all := []probe{{object: pods[0], inside: "spec.template.", template: job.Fields.LauncherTemplate}}
	for _, pod := range pods[1:] {
		all = append(all, probe{object: pod, template: job.Fields.WorkerTemplate})
	}
	return all
}

// translate turns what the API server finds wrong in an object into errors in the user's template.
func translate(details *metav1.StatusDetails, inside string, template *field.Path) field.ErrorList {
	if details == nil {
		return nil
	}
	var errs field.ErrorList
	for _, cause := range details.Causes {
		kind := field.ErrorType(cause.Type)
		errs = append(errs, &field.Error{
			Type: kind, BadValue: field.OmitValueType{},
			Field:  template.String() + "." + strings.TrimPrefix(cause.Field, inside),
			Detail: strings.TrimPrefix(cause.Message, kind.String()+": "),
		})
	}
	return errs
}
