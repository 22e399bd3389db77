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

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

// preflightTimeout limits the preflight requests: users wait for the response, and the webhook times out after 5 s.
const preflightTimeout = 4 * time.Second

// Preflight is the API server's response to a job before it is created. Requests that failed leave fields empty.
type Preflight struct {
	// Errs are invalid fields of pods, at the paths of the user's fields.
	Errs field.ErrorList
	// Refused are violations of the namespace's or cluster's limits: sizes outside of a LimitRange, an unknown
	// priority class.
	Refused field.ErrorList
	// Warnings are refusals that may be temporary: Pod Security, another admission webhook.
	Warnings []string
	// Short are the quotas that the whole job exceeds.
	Short []quota.Shortage
	// TooLarge are the pods that no node of the cluster can hold, even if nothing else runs. Unmatched are warnings about
	// pods that none of today's nodes can run, or not all of them at once.
	TooLarge  field.ErrorList
	Unmatched []string
}

// Preflight asks the API server, by dry run, whether it accepts a launcher and a worker of an MPIJob, and checks
// whether quotas have room for all pods.
//
// The job may be invalid according to mpi.Validate, so that users see all errors at once.
func (c *Cluster) Preflight(ctx context.Context, job mpi.Job, settings plan.Settings) Preflight {
	probes, objects := probesOf(job, settings)
	return c.preflight(ctx, job, probes, objects)
}

// FieldOf returns the user's field that sets a field of the launcher's or a worker's pod; "" if the user does not set it.
type FieldOf func(role mpi.Role, path string) string

// PreflightTrainJob is Preflight for a TrainJob. What its runtime makes invalid is a warning: Kubeflow Trainer adds more to its pods
// than is known here.
func (c *Cluster) PreflightTrainJob(ctx context.Context, job mpi.Job, isolated bool, fieldOf FieldOf) Preflight {
	at := job.Fields.WorkerTemplate
	probes := []probe{
		newProbe(mpi.RoleLauncher, 1, *job.Launcher.Template.DeepCopy(), at),
		newProbe(mpi.RoleWorker, job.MinWorkers(), *job.Workers.Template.DeepCopy(), at),
	}
	for i := range probes {
		probe := &probes[i]
		probe.containers, probe.class, probe.isPerNode = at.Child("resourcesPerNode"), job.Fields.Launch.Child("name"), true
		probe.fieldOf = func(path string) string { return fieldOf(probe.role, path) }
		if probe.template.Spec.RestartPolicy == "" {
			probe.template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
		for _, name := range trainerVolumes {
			if !slices.ContainsFunc(probe.template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
				probe.template.Spec.Volumes = append(probe.template.Spec.Volumes, corev1.Volume{Name: name})
			}
		}
	}
	// JobSet creates the Service and a Job for each role, Trainer the other objects
	// (trainer/v2/pkg/runtime/framework/plugins).
	objects := map[string]int64{"jobsets.jobset.x-k8s.io": 1, "jobs.batch": 2, "services": 1, "configmaps": 1, "secrets": 1}
	if isolated {
		objects["networkpolicies.networking.k8s.io"] = 1
	}
	return c.preflight(ctx, job, probes, objects)
}

// trainerVolumes are the volumes that Trainer adds to the pods of MPI jobs, which containers may mount (trainer/v2/pkg/constants).
var trainerVolumes = []string{"mpi-ssh-auth", "mpi-hostfile"}

func (c *Cluster) preflight(ctx context.Context, job mpi.Job, probes []probe, objects map[string]int64) Preflight {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	answers := make([]Preflight, len(probes))
	taken := make([]*corev1.Pod, len(probes))
	var quotas []quota.Quota
	var ranges []corev1.LimitRange
	var nodes []corev1.Node
	var quotasErr, rangesErr error
	var all sync.WaitGroup
	for i, probe := range probes {
		all.Go(func() { answers[i], taken[i] = c.dryRun(ctx, job, probe) })
	}
	all.Go(func() { quotas, quotasErr = c.quotas(ctx, c.live, job.Namespace) })
	all.Go(func() { ranges, rangesErr = limitRanges(ctx, c.live, job.Namespace) })
	all.Go(func() { nodes = c.nodes(ctx, nodesTimeout) })
	all.Wait()

	var found Preflight
	pods := make([]quota.Pods, len(probes))
	for i, probe := range probes {
		nameDefaultLimits(slices.Concat(answers[i].Errs, answers[i].Refused), probe.template, ranges)
		pods[i] = quota.Pods{Role: probe.role, Count: probe.count, Pod: taken[i]}
		if taken[i] == nil {
			pods[i].Pod = quota.WithDefaults(probe.template, ranges)
		}
		tooLarge, unmatched := probe.oversized(pods[i].Pod, nodes, job.RDMA)
		if tooLarge != nil {
			found.TooLarge = append(found.TooLarge, tooLarge)
		}
		if unmatched != "" && !slices.Contains(found.Unmatched, unmatched) {
			found.Unmatched = append(found.Unmatched, unmatched)
		}
	}
	if len(found.TooLarge)+len(found.Unmatched) == 0 && len(probes) > 0 {
		if text := crowded(job, pods, nodes); text != "" {
			found.Unmatched = append(found.Unmatched, text)
		}
	}
	if quotasErr == nil && rangesErr == nil && len(quotas) > 0 && len(probes) > 0 {
		found.Short = quota.Shortages(pods, objects, quotas)
		if slices.ContainsFunc(found.Short, func(s quota.Shortage) bool { return !s.Never() }) {
			found.Short = quota.Shortages(pods, objects, quota.Without(quotas, c.leaving(ctx, job)))
		}
	}
	for _, answer := range answers {
		found.add(answer)
	}
	found.Warnings = slices.DeleteFunc(found.Warnings, func(text string) bool {
		// The shortage of the whole job includes it.
		return slices.ContainsFunc(found.Short, func(s quota.Shortage) bool {
			return strings.Contains(text, "exceeded quota: "+quota.ObjectName(s.Quota)+",")
		})
	})
	return found
}

// add adds what the API server answered about a pod. A field of a TrainJob may be in both of its pods.
func (p *Preflight) add(answer Preflight) {
	p.Errs, p.Refused = appendNew(p.Errs, answer.Errs), appendNew(p.Refused, answer.Refused)
	for _, text := range answer.Warnings {
		if !slices.Contains(p.Warnings, text) {
			p.Warnings = append(p.Warnings, text)
		}
	}
}

// appendNew adds errors that are not in a list.
func appendNew(errs, others field.ErrorList) field.ErrorList {
	for _, err := range others {
		if !slices.ContainsFunc(errs, func(have *field.Error) bool { return have.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	return errs
}

// leaving returns the pods of a namespace that will soon be deleted but still count in its quotas: terminating pods,
// and those of an earlier job of the same name, which the new job waits for. In large namespaces, not all pods are
// checked.
func (c *Cluster) leaving(ctx context.Context, job mpi.Job) []*corev1.Pod {
	var list corev1.PodList
	if err := c.live.List(ctx, &list, client.InNamespace(job.Namespace), client.Limit(pageSize)); err != nil {
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

// probe is a pod for a dry run.
type probe struct {
	role     mpi.Role
	count    int64
	template corev1.PodTemplateSpec
	// at is the path of the user's template, containers that of the containers' sizes, and class that of the priority
	// class.
	at, containers, class *field.Path
	// isPerNode is whether containers is the path of a list of resources, not of containers.
	isPerNode bool
	// fieldOf returns the user's field that sets a field of the pod, or ""; nil if the user wrote the template.
	fieldOf func(path string) string
}

// dryRun creates a pod as a dry run. It returns the pod with the API server's defaults, or nil if it was refused.
func (c *Cluster) dryRun(ctx context.Context, job mpi.Job, of probe) (Preflight, *corev1.Pod) {
	pod, err := c.tryPod(ctx, job, of.template)
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return Preflight{}, pod
	case !answered:
	case apierrors.IsInvalid(err):
		errs, warnings := of.podErrors(job, status.Status().Details)
		return Preflight{Errs: errs, Warnings: warnings}, nil
	case apierrors.IsForbidden(err):
		if refused := of.permanentRefusal(job, status.Status().Message, func() string { return c.existingPriorityClasses(ctx) }); refused != nil {
			return Preflight{Refused: field.ErrorList{refused}}, nil
		}
		return Preflight{Warnings: []string{of.at.String() + ": the API server currently refuses the pod: " + preflightPod.ReplaceAllString(status.Status().Message, "")}}, nil
	}
	return Preflight{}, nil
}

// preflightPod is the name of the pod of the dry run in a refusal. No user knows it.
var preflightPod = regexp.MustCompile(`^pods "preflight-[^"]*" is forbidden: `)

// tryPod creates a pod of a template as a dry run, and returns it with the API server's defaults.
func (c *Cluster) tryPod(ctx context.Context, job mpi.Job, template corev1.PodTemplateSpec) (*corev1.Pod, error) {
	pod, err := c.tryPodOnce(ctx, job, template)
	node := template.Spec.NodeName
	if node == "" || !isGated(err) || len(template.Spec.SchedulingGates) > 0 {
		return pod, err
	}
	// In a namespace with a default queue, Kueue gates pods that belong to no job in a queue, as this one, and gated pods may not name
	// a node. It does not gate the pods of the job.
	apart := *template.DeepCopy()
	apart.Spec.NodeName = ""
	if pod, err = c.tryPodOnce(ctx, job, apart); err == nil {
		pod.Spec.NodeName = node
	}
	return pod, err
}

// isGated reports whether the API server refused a pod because it names a node and has scheduling gates
// (k8s.io/kubernetes/pkg/apis/core/validation).
func isGated(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	if !answered || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "spec.nodeName" && strings.Contains(cause.Message, "schedulingGates")
	})
}

func (c *Cluster) tryPodOnce(ctx context.Context, job mpi.Job, template corev1.PodTemplateSpec) (*corev1.Pod, error) {
	copied := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	pod.Namespace = job.Namespace
	if pod.Name == "" {
		pod.GenerateName = "preflight-"
	}
	if err := c.client.Create(ctx, pod, client.DryRunAll, withoutReadYourWrites); err != nil {
		return nil, err //nolint:wrapcheck // callers look at the API server's status
	}
	return pod, nil
}

// Messages of the API server's admission about problems that waiting does not solve
// (k8s.io/kubernetes/plugin/pkg/admission/{priority,limitranger},
// k8s.io/apiserver/pkg/admission/plugin/resourcequota).
var (
	unknownClass = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	outOfRange   = regexp.MustCompile(`(?:(?:minimum|maximum) \S+ usage|\S+ max limit to request ratio) per (?:Container|Pod) is .*`)
	unsized      = regexp.MustCompile(`failed quota: (\S+): must specify (.*)`)
	priority     = regexp.MustCompile(`the integer value of priority \((-?\d+)\) must not be provided in pod spec`)
)

// permanentRefusal returns the error for a permanent refusal; nil if it may be temporary. existingClasses returns a clause about the
// priority classes that exist.
func (p probe) permanentRefusal(job mpi.Job, message string, existingClasses func() string) *field.Error {
	if given := priority.FindStringSubmatch(message); given != nil {
		return field.Invalid(p.at.Child("spec", "priority"), given[1], "is computed from the priority class; remove it and set priorityClassName")
	}
	switch class, size, quota := unknownClass.FindStringSubmatch(message), outOfRange.FindString(message), unsized.FindStringSubmatch(message); {
	case class != nil:
		at := p.class
		if job.Gang.PriorityClass == class[1] {
			at = job.Fields.Gang.Child("priorityClass")
		}
		return field.Invalid(at, class[1], "priority class does not exist; "+existingClasses())
	case size != "":
		return field.Forbidden(p.containers, fmt.Sprintf(someRange+" %s does not allow pods of this size: %s; set sizes that it allows (kubectl -n %s describe limitrange)",
			job.Namespace, strings.Trim(size, "[]"), job.Namespace))
	case quota != nil:
		return field.Required(p.containers, fmt.Sprintf("the quota %s of the namespace %s only accepts pods in which every container sets its requests or limits; missing: %s",
			quota[1], job.Namespace, quota[2]))
	}
	return nil
}

// probesOf returns the launcher and the first worker of a job whose other fields are valid, and the counts of its
// other objects.
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

	seen := jobstate.Observed{}
	planned := plan.For(sound, seen, jobstate.Judge(sound, seen), settings)
	var kinds []schema.GroupVersionKind
	for _, object := range slices.Concat(planned.Base, planned.Pods) {
		if _, pod := object.(*corev1.Pod); !pod {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind())
		}
	}
	launcher, worker := plan.Templates(sound, settings)
	probes := []probe{newProbe(mpi.RoleLauncher, 1, launcher, job.Fields.LauncherTemplate)}
	if workers > 0 {
		probes = append(probes, newProbe(mpi.RoleWorker, job.MinWorkers(), worker, job.Fields.WorkerTemplate))
	}
	return probes, quota.Objects(kinds...)
}

func newProbe(role mpi.Role, count int32, template corev1.PodTemplateSpec, at *field.Path) probe {
	return probe{
		role: role, count: int64(count), template: template, at: at,
		containers: at.Child("spec", "containers"), class: at.Child("spec", "priorityClassName"),
	}
}

// podErrors converts the API server's errors about a pod to errors in the user's fields. Those about other fields, and of policies that
// see more of a pod than its user wrote, are warnings.
func (p probe) podErrors(job mpi.Job, details *metav1.StatusDetails) (errs field.ErrorList, warnings []string) {
	if details == nil {
		return nil, nil
	}
	for _, cause := range details.Causes {
		kind, at := field.ErrorType(cause.Type), p.at.String()+"."+cause.Field
		if cause.Field == "" {
			// A ValidatingAdmissionPolicy refused it.
			kind, at = field.ErrorTypeForbidden, p.at.String()
		}
		if p.fieldOf != nil {
			if at = p.fieldOf(cause.Field); at == "" {
				warnings = append(warnings, fmt.Sprintf("%s: the API server refuses the pods of the runtime %s with this job, so that it may not start: %s",
					job.Fields.Launch.Child("name"), job.Runtime, strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")))
				continue
			}
		}
		errs = append(errs, &field.Error{
			Type: kind, BadValue: field.OmitValueType{},
			Field:  at,
			Detail: strings.TrimPrefix(cause.Message, kind.String()+": "),
		})
	}
	return errs, warnings
}
