package cluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

// preflightFor is how long the API server is asked about a job before it is made: users wait for the answer, and the
// webhook's own time is 5 s.
const preflightFor = 4 * time.Second

// Preflight is what the API server says of a job before anything of it is made. What it was not asked, or did not answer,
// is not there.
type Preflight struct {
	// Errs are what no pod can be, at the fields where the job's user wrote it.
	Errs field.ErrorList
	// Refused is what the namespace or the cluster as they are set up never take: sizes beyond a LimitRange, a priority
	// class that there is not.
	Refused field.ErrorList
	// Warnings are what is refused now but may be taken later: Pod Security, another admission webhook.
	Warnings []string
	// Short is what quotas lack for the job as a whole.
	Short []mpi.Shortage
}

// Preflight asks the API server, without making anything, whether it would take a launcher and a worker of an MPIJob, and
// adds up whether quotas have room for all of them.
//
// The job may be one that mpi.Validate finds fault with, so that users are told everything at once.
func (c *Cluster) Preflight(ctx context.Context, job mpi.Job, settings plan.Settings) Preflight {
	probes, objects := probesOf(job, settings)
	return c.preflight(ctx, job, probes, objects)
}

// PreflightTrainJob is Preflight for a TrainJob. Its pods get more from Kubeflow Trainer than is known here, so that
// nothing is said of what is wrong with them otherwise.
func (c *Cluster) PreflightTrainJob(ctx context.Context, job mpi.Job, isolated bool) Preflight {
	at := job.Fields.WorkerTemplate
	probes := []probe{
		newProbe(mpi.RoleLauncher, 1, *job.Launcher.Template.DeepCopy(), at),
		newProbe(mpi.RoleWorker, job.WorkersAtOnce(), *job.Workers.Template.DeepCopy(), at),
	}
	for i := range probes {
		probes[i].containers, probes[i].class = at.Child("resourcesPerNode"), job.Fields.Launch.Child("name")
		if spec := &probes[i].template.Spec; spec.RestartPolicy == "" {
			spec.RestartPolicy = corev1.RestartPolicyNever
		}
	}
	// JobSet makes the Service and a Job for each role, Trainer the others (trainer/v2/pkg/runtime/framework/plugins).
	objects := map[string]int64{"jobsets.jobset.x-k8s.io": 1, "jobs.batch": 2, "services": 1, "configmaps": 1, "secrets": 1}
	if isolated {
		objects["networkpolicies.networking.k8s.io"] = 1
	}
	found := c.preflight(ctx, job, probes, objects)
	found.Errs, found.Warnings = nil, nil
	return found
}

func (c *Cluster) preflight(ctx context.Context, job mpi.Job, probes []probe, objects map[string]int64) Preflight {
	ctx, cancel := context.WithTimeout(ctx, preflightFor)
	defer cancel()
	answers := make([]Preflight, len(probes))
	taken := make([]*corev1.Pod, len(probes))
	var quotas []mpi.Quota
	var ranges []corev1.LimitRange
	var quotasErr, rangesErr error
	var all sync.WaitGroup
	for i, probe := range probes {
		all.Go(func() { answers[i], taken[i] = c.try(ctx, job, probe) })
	}
	all.Go(func() { quotas, quotasErr = Quotas(ctx, c.live, job.Namespace) })
	all.Go(func() { ranges, rangesErr = limitRanges(ctx, c.live, job.Namespace) })
	all.Wait()

	var found Preflight
	if quotasErr == nil && rangesErr == nil && len(quotas) > 0 && len(probes) > 0 {
		pods := make([]quota.Pods, len(probes))
		for i, probe := range probes {
			pods[i] = quota.Pods{Role: probe.role, Count: probe.count, Pod: taken[i]}
			if taken[i] == nil {
				pods[i].Pod = quota.WithDefaults(probe.template, ranges)
			}
		}
		found.Short = quota.Shortages(pods, objects, quotas)
		if slices.ContainsFunc(found.Short, func(s mpi.Shortage) bool { return !s.Never() }) {
			found.Short = quota.Shortages(pods, objects, quota.Without(quotas, c.leaving(ctx, job)))
		}
	}
	for _, answer := range answers {
		found.Errs = append(found.Errs, answer.Errs...)
		found.Refused = append(found.Refused, answer.Refused...)
		found.Warnings = append(found.Warnings, answer.Warnings...)
	}
	found.Warnings = slices.DeleteFunc(found.Warnings, func(text string) bool {
		// The sum has it with the figures of the whole job.
		return slices.ContainsFunc(found.Short, func(s mpi.Shortage) bool { return strings.Contains(text, "exceeded quota: "+s.Quota+",") })
	})
	return found
}

// leaving are the pods of a namespace that will be gone in a moment and still use its quotas: those that are being
// deleted, and those of an earlier job of a new one's name, which has to wait for them in any case. With very many pods
// not all are looked at.
func (c *Cluster) leaving(ctx context.Context, job mpi.Job) []*corev1.Pod {
	var list corev1.PodList
	if err := c.live.List(ctx, &list, client.InNamespace(job.Namespace), client.Limit(page)); err != nil {
		return nil
	}
	own := labels.SelectorFromSet(job.Selector())
	var leaving []*corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp != nil || own.Matches(labels.Set(pod.Labels)) {
			leaving = append(leaving, pod)
		}
	}
	return leaving
}

// probe is a pod to ask about.
type probe struct {
	role     mpi.Role
	count    int64
	template corev1.PodTemplateSpec
	// at is where the user wrote the template, containers what says how large its containers are, and class the priority
	// class.
	at, containers, class *field.Path
}

// try creates a pod as a dry run. It returns the pod as the API server would keep it, nil where it takes none.
func (c *Cluster) try(ctx context.Context, job mpi.Job, of probe) (Preflight, *corev1.Pod) {
	copied := of.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	pod.Namespace = job.Namespace
	if pod.Name == "" {
		pod.GenerateName = "preflight-"
	}
	err := c.client.Create(ctx, pod, client.DryRunAll, unawaited)
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return Preflight{}, pod
	case !answered:
	case apierrors.IsInvalid(err):
		return Preflight{Errs: translate(status.Status().Details, of.at)}, nil
	case apierrors.IsForbidden(err):
		if refused := of.refused(job, status.Status().Message); refused != nil {
			return Preflight{Refused: field.ErrorList{refused}}, nil
		}
		return Preflight{Warnings: []string{of.at.String() + ": as things are, the API server would refuse the pod: " + status.Status().Message}}, nil
	}
	return Preflight{}, nil
}

// What the API server's admission says of pods that waiting does not help
// (k8s.io/kubernetes/plugin/pkg/admission/{priority,limitranger}, k8s.io/apiserver/pkg/admission/plugin/resourcequota).
var (
	unknownClass = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	outOfRange   = regexp.MustCompile(`(?:(?:minimum|maximum) \S+ usage|\S+ max limit to request ratio) per (?:Container|Pod) is .*`)
	unsized      = regexp.MustCompile(`failed quota: (\S+): must specify (.*)`)
)

// refused is what the API server forbids for good; nil for what may pass.
func (p probe) refused(job mpi.Job, message string) *field.Error {
	switch class, size, quota := unknownClass.FindStringSubmatch(message), outOfRange.FindString(message), unsized.FindStringSubmatch(message); {
	case class != nil:
		at := p.class
		if job.Gang.PriorityClass == class[1] {
			at = job.Fields.Gang.Child("priorityClass")
		}
		return field.Invalid(at, class[1], "the cluster has no priority class of this name: kubectl get priorityclasses lists those there are")
	case size != "":
		return field.Forbidden(p.containers, fmt.Sprintf("a LimitRange of the namespace %s does not allow pods of this size: %s; ask for what it allows (kubectl -n %s describe limitrange)",
			job.Namespace, strings.Trim(size, "[]"), job.Namespace))
	case quota != nil:
		return field.Required(p.containers, fmt.Sprintf("the quota %s of the namespace %s takes only pods in which every container says how much it asks for, which is missing: %s",
			quota[1], job.Namespace, quota[2]))
	}
	return nil
}

// probesOf are the launcher and the first worker of a job in which all but the templates is good, and what other objects
// the job will have.
func probesOf(job mpi.Job, settings plan.Settings) ([]probe, map[string]int64) {
	workers := min(max(job.Workers.Count, 0), 1)
	if len(job.Launcher.Template.Spec.Containers) == 0 || workers > 0 && len(job.Workers.Template.Spec.Containers) == 0 {
		return nil, nil
	}
	sound := mpi.New()
	sound.APIVersion, sound.Kind, sound.Namespace, sound.Name, sound.UID = job.APIVersion, job.Kind, job.Namespace, job.Name, job.UID
	if len(validation.IsDNS1035Label(job.LauncherName())) > 0 {
		sound.Name = "preflight"
	}
	sound.SSHMountPath = "/" + mpi.SSHVolume + "-preflight"
	sound.Launcher.Template, sound.Launcher.RestartPolicy = job.Launcher.Template, job.Launcher.RestartPolicy
	sound.Workers = mpi.Workers{Count: workers, Template: job.Workers.Template, RestartPolicy: job.Workers.RestartPolicy}

	seen := mpi.Observed{Keys: &mpi.Keys{}}
	planned := plan.For(sound, seen, mpi.Judge(sound, seen), settings)
	var kinds []schema.GroupVersionKind
	for _, object := range slices.Concat(planned.Base, planned.Pods) {
		if _, pod := object.(*corev1.Pod); !pod {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind())
		}
	}
	launcher, worker := plan.Templates(sound, settings)
	probes := []probe{newProbe(mpi.RoleLauncher, 1, launcher, job.Fields.LauncherTemplate)}
	if workers > 0 {
		probes = append(probes, newProbe(mpi.RoleWorker, job.WorkersAtOnce(), worker, job.Fields.WorkerTemplate))
	}
	return probes, quota.Objects(kinds...)
}

func newProbe(role mpi.Role, count int32, template corev1.PodTemplateSpec, at *field.Path) probe {
	return probe{
		role: role, count: int64(count), template: template, at: at,
		containers: at.Child("spec", "containers"), class: at.Child("spec", "priorityClassName"),
	}
}

// translate turns what the API server finds wrong in a pod into errors in the user's template.
func translate(details *metav1.StatusDetails, template *field.Path) field.ErrorList {
	if details == nil {
		return nil
	}
	var errs field.ErrorList
	for _, cause := range details.Causes {
		kind := field.ErrorType(cause.Type)
		errs = append(errs, &field.Error{
			Type: kind, BadValue: field.OmitValueType{},
			Field:  template.String() + "." + cause.Field,
			Detail: strings.TrimPrefix(cause.Message, kind.String()+": "),
		})
	}
	return errs
}
