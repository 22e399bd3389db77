package mpi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/phrase"
)

// Annotation is the definition of an annotation of this project.
type Annotation struct {
	Name string
	// On are the kinds of objects on which it has an effect.
	On []string
	// SetBy is what sets it; empty if users do.
	SetBy string
	// Values describes the allowed values, and Default what applies without the annotation.
	Values, Default string
	// Description is a sentence.
	Description string
	// definesPods is whether pods are created by it. Without a valid value, no pods are created that could differ from
	// those that exist.
	definesPods bool
	// instead is what to do on a kind of job on which it has no effect, by the kind.
	instead map[string]string
	// check returns the errors of a job's annotation. It is nil for annotations of other objects, and if the check of
	// another annotation includes this one.
	check func(namespace string, annotations map[string]string) field.ErrorList
}

// Kinds of objects besides jobs on which annotations are set.
const (
	onRuntime        = "TrainingRuntime"
	onClusterRuntime = "ClusterTrainingRuntime"
	onNamespace      = "Namespace"
)

// What sets the annotations that users do not set.
const (
	setByOperator  = "the operator"
	setByAdmission = "the operator's webhook, which ignores what users write"
)

// errorsOf makes a check of a function that reads an annotation.
func errorsOf[T any](parse func(annotations map[string]string) (T, field.ErrorList)) func(string, map[string]string) field.ErrorList {
	return func(_ string, annotations map[string]string) field.ErrorList {
		_, errs := parse(annotations)
		return errs
	}
}

// Annotations returns the definitions of all annotations of this project, in the order in which the reference lists them.
// Callers share them and must not change them.
var Annotations = sync.OnceValue(annotations)

func annotations() []Annotation {
	jobs := []string{KindMPIJob, KindTrainJob}
	runtimes := []string{onClusterRuntime, onRuntime}
	return []Annotation{
		{
			Name: AnnotationLaunch, On: []string{KindMPIJob}, definesPods: true, check: checkLaunch,
			Values: "`agent` or `sshd`", Default: "`agent`; with a command in the worker's template, that command",
			Description: "Selects what starts ranks on the workers: the operator's agent or the image's OpenSSH server.",
			instead:     map[string]string{KindTrainJob: "its runtime decides what starts ranks"},
		},
		{
			Name: AnnotationConnections, On: jobs, definesPods: true,
			Values: fmt.Sprintf("names of Secrets in the job's namespace, separated by commas, at most %d", MaxConnections), Default: "none",
			Description: "Adds the keys of data connections to the environment of every rank.",
			check: func(namespace string, annotations map[string]string) field.ErrorList {
				_, errs := ParseConnections(namespace, annotations)
				return errs
			},
		},
		{
			Name: AnnotationRDMA, On: jobs, check: errorsOf(ParseRDMA),
			Values: "`optional` or `required`", Default: "`optional`",
			Description: "Selects whether the job runs over TCP if no node offers the RDMA that its pods request, or waits for such nodes.",
		},
		{
			Name: AnnotationRequiredTopology, On: jobs, check: errorsOf(ParseTopology),
			Values: "the key of a node label", Default: "any nodes",
			Description: "Requires nodes with the same value of a label, such as one zone, for all pods of the job.",
		},
		{
			Name: AnnotationPreferredTopology, On: jobs,
			Values: "the key of a node label", Default: "any nodes",
			Description: "Prefers nodes with the same value of a label, such as one zone, for all pods of the job.",
		},
		{
			Name: AnnotationWaitForQuota, On: jobs, check: errorsOf(ParseWaitForQuota),
			Values: "`true` or `false`", Default: "`false`",
			Description: "Lets a job wait that the namespace's quotas have no room for now, instead of rejecting it.",
		},
		{
			Name: AnnotationSuspendInQueue, On: jobs, check: errorsOf(ParseSuspendInQueue),
			Values: "`true` or `false`", Default: "`false`",
			Description: "Suspends a job that is in a Kueue queue; `kubectl odh mpijob create --suspend` and `suspend` set it, `resume` removes it.",
		},
		{
			Name: AnnotationRequeues, On: []string{KindMPIJob}, check: errorsOf(ParseRequeues),
			Values: fmt.Sprintf("an integer from 0 to %d", math.MaxInt32), Default: fmt.Sprintf("`%d`", RequeueLimit),
			Description: "Sets how often a job is requeued if not all of its pods can be placed in time, before it fails.",
			instead:     map[string]string{KindTrainJob: "a TrainJob waits until all of its pods can be placed"},
		},
		{
			Name: AnnotationScheduleTimeout, On: append([]string{KindTrainJob}, runtimes...), check: errorsOf(ParseScheduleTimeout),
			Values: fmt.Sprintf("an integer from 1 to %d", math.MaxInt32), Default: "that of the runtime, or `600`",
			Description: "Sets after how many seconds an attempt to [place all pods of a TrainJob together](gangs.md#limit-the-waiting-time) ends.",
			instead:     map[string]string{KindMPIJob: "set spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"},
		},
		{
			Name: AnnotationPriorityClass, On: []string{KindTrainJob}, definesPods: true, check: errorsOf(ParsePriorityClass),
			Values: "the name of a PriorityClass", Default: "that of the runtime, or of the cluster",
			Description: "Sets the [priority class](quotas.md#priorities) of all pods of a TrainJob. It cannot be changed after the job was created. In a queue, Kueue orders jobs by the label `kueue.x-k8s.io/priority-class` instead.",
			instead:     map[string]string{KindMPIJob: "set spec.runPolicy.schedulingPolicy.priorityClass"},
		},
		{
			Name: AnnotationSilence, On: jobs, check: errorsOf(ParseSilence),
			Values: fmt.Sprintf("a duration of at least %s, such as 90s or 1h30m", minSilence), Default: "`15m`",
			Description: "Sets how long the program may print nothing before the job's report warns.",
		},
		{
			Name: AnnotationLinks, On: jobs, check: errorsOf(ParseJobLinks),
			Values: fmt.Sprintf("`TITLE=URL`, at most %d of them, separated by blanks", MaxLinks), Default: "those of the administrator, and MLflow if the job's variables name it",
			Description: "Adds [links](metrics.md#link-jobs-to-mlflow-and-tensorboard) to the job's report, such as one to TensorBoard. The URLs may have placeholders such as `{name}`.",
		},
		{
			Name: AnnotationProfile, On: jobs, definesPods: true, check: errorsOf(ParseProfile),
			Values: "`true` or `false`", Default: "`false`",
			Description: "Counts and times the calls of MPI in each rank, for the job's [communication profile](metrics.md#where-the-time-goes). It must be there before the pods are created.",
		},
		{
			Name: AnnotationTraceParent, On: jobs, check: errorsOf(ParseTraceParent),
			Values: "a [traceparent](https://www.w3.org/TR/trace-context/#traceparent-header) of W3C Trace Context", Default: "the job has a trace of its own",
			Description: "Makes the job's spans part of another [trace](admin/tracing.md). Only the value at the creation has an effect.",
		},
		{
			Name: AnnotationMaxRestarts, On: []string{KindTrainJob}, check: errorsOf(ParseMaxRestarts),
			Values: fmt.Sprintf("an integer from 0 to %d", mostRestarts), Default: "the runtime decides; 0 with the operator's",
			Description: "Sets how often the whole job, launcher and workers, is started again after its program failed. [Disruptions](trainjob.md#runtimes) do not count.",
			instead:     map[string]string{KindMPIJob: "set spec.runPolicy.backoffLimit, by which the launcher is restarted"},
		},
		{
			Name: AnnotationTTL, On: []string{KindTrainJob}, check: errorsOf(ParseTTL),
			Values: fmt.Sprintf("an integer from 0 to %d", math.MaxInt32), Default: "the job is kept",
			Description: "Sets how many seconds after its end the job is deleted.",
			instead:     map[string]string{KindMPIJob: "set spec.runPolicy.ttlSecondsAfterFinished"},
		},
		{
			Name: AnnotationImplementation, On: runtimes,
			Values: "`OpenMPI`, `Intel` or `MPICH`", Default: "the runtime is not one of the operator",
			Description: "Names the MPI library in the runtime's image, and has the operator complete the JobSets of its TrainJobs.",
			instead:     map[string]string{KindMPIJob: "set spec.mpiImplementation"},
		},
		{
			Name: AnnotationMaxWorkers, On: append([]string{onNamespace}, runtimes...),
			Values: "an integer, 0 or more", Default: "no limit; on a Namespace that of the operator's Namespace",
			Description: "Limits the number of nodes of a TrainJob, with any runtime, and on a Namespace of pods with ranks of an MPIJob.",
		},
		{
			Name: AnnotationMinWorkers, On: runtimes,
			Values: "an integer, 0 or more, and not more than `max-workers`", Default: "no minimum",
			Description: "Requires at least this number of nodes of a TrainJob, with any runtime.",
		},
		{
			Name: AnnotationMaxGPUs, On: append([]string{onNamespace}, runtimes...),
			Values: "an integer, 0 or more", Default: "no limit; on a Namespace that of the operator's Namespace",
			Description: "Limits the number of GPUs and other accelerators that a TrainJob requests per node, with any runtime, and on a Namespace a job of either kind per pod.",
		},
		{
			Name: AnnotationNodeLabels, On: append([]string{onNamespace}, runtimes...),
			Values: "labels as key=value, separated by commas, one value for each key", Default: "none; on a Namespace those of the operator's Namespace",
			Description: "Requires these labels in the node selectors of launcher and workers, with a runtime without MPI of all pods but initializers, and on a Namespace of all pods, whatever a job changes.",
		},
		{
			Name: AnnotationAllowEgress, On: append([]string{onNamespace}, runtimes...),
			Values: "[destinations](isolation.md#allow-more-connections), separated by commas", Default: "none",
			Description: "Lists destinations that the pods of jobs may connect to besides their own job.",
		},
		{
			Name: AnnotationRequireEncryption, On: []string{onNamespace}, Values: "`true` or `false`", Default: "`false`",
			Description: "Refuses jobs of more than one pod unless the cluster's network [encrypts the traffic between pods](security.md#encryption-in-transit).",
		},
		{Name: AnnotationCreator, SetBy: setByAdmission, On: jobs, Values: "a user name", Description: "Holds the user who created the job."},
		{
			Name: AnnotationSuspendSetBy, SetBy: setByAdmission, On: jobs, Values: "a generation and a user name",
			Description: "Holds the user who last suspended or resumed the job.",
		},
		{
			Name: AnnotationChangedBy, SetBy: setByAdmission, On: jobs, Values: "a generation and a user name",
			Description: "Holds the user who last changed any other field of the job's specification.",
		},
		{
			Name: AnnotationQueueSuspendSetBy, SetBy: setByAdmission, On: jobs, Values: "`true` or `false`, and a user name",
			Description: "Holds the user who last suspended the job in its queue (`true`) or resumed it there (`false`).",
		},
		{
			Name: AnnotationRemovedRDMA, SetBy: "the operator's webhook", On: jobs, Values: "a JSON Patch",
			Description: "Holds the requests for RDMA that were [removed from a job in a queue](networking.md#run-over-tcp-if-no-node-offers-rdma).",
		},
		{
			Name: AnnotationGate, SetBy: setByOperator, On: []string{"JobSet"}, Values: "`suspended`, `closed` or `open`",
			Description: "Holds back the pods of a TrainJob until all of them fit.",
		},
		{
			Name: AnnotationAdmitted, SetBy: setByOperator, On: []string{"NetworkPolicy"}, Values: "a time and a signature",
			Description: "States that all pods of a TrainJob had room when its NetworkPolicy was created: its JobSet is then [created without being suspended](decisions/0062-gates-that-are-created-open.md).",
		},
		{
			Name: AnnotationTemplate, SetBy: setByOperator, On: []string{"Job"}, Values: "a digest",
			Description: "Identifies the pod template of a launcher.",
		},
		{
			Name: AnnotationDisrupted, SetBy: setByOperator, On: []string{"ConfigMap", "Job"}, Values: "numbers, separated by commas",
			Description: "Lists the attempts of a launcher that Kubernetes ended because it removed pods. On a Job: those for which its `backoffLimit` was raised.",
		},
		{
			Name: AnnotationEarlierAttempts, SetBy: setByOperator, On: []string{"ConfigMap", "Job"}, Values: "a number",
			Description: "Counts the attempts of a launcher's Jobs that [were replaced](decisions/0065-replace-launchers-that-were-drained.md).",
		},
		{
			Name: AnnotationActiveSince, SetBy: setByOperator, On: []string{"ConfigMap"}, Values: "a time",
			Description: "Is the time from which the deadline of a job counts whose launcher's Job was replaced.",
		},
		{
			Name: AnnotationActiveBefore, SetBy: setByOperator, On: []string{"ConfigMap"}, Values: "a number of seconds",
			Description: "Is how long a job whose launcher's Job was replaced had been active when it was suspended or evicted: the deadline continues from there.",
		},
		{
			Name: AnnotationEndpoints, SetBy: setByOperator, On: []string{"NetworkPolicy"}, Values: "destinations by the names of Secrets",
			Description: "Lists the destinations that are allowed for data connections.",
		},
		{
			Name: AnnotationGangTimeouts, SetBy: setByOperator, On: []string{"Workload"}, Values: "a number and a time",
			Description: "Counts how often not all pods of a job could be placed in time after Kueue had admitted it.",
		},
	}
}

// NamespaceAnnotations returns the names of the annotations of a Namespace that have an effect on its jobs. Callers share them and must
// not change them.
var NamespaceAnnotations = sync.OnceValue(func() (names []string) {
	for _, a := range Annotations() {
		if slices.Contains(a.On, onNamespace) {
			names = append(names, a.Name)
		}
	}
	return names
})

// annotationPath returns the field of an annotation.
func annotationPath(name string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(name)
}

// CheckAnnotations returns the errors in the annotations of a job. Annotations that have no effect on its kind are not
// checked.
func CheckAnnotations(kind, namespace string, annotations map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, a := range Annotations() {
		if a.check != nil && slices.Contains(a.On, kind) {
			errs = append(errs, a.check(namespace, annotations)...)
		}
	}
	return shortened(errs)
}

// SameAnnotations reports whether two states of a job have the same annotations among those that users set and that have an
// effect on its kind.
func SameAnnotations(kind string, before, after map[string]string) bool {
	return !slices.ContainsFunc(Annotations(), func(a Annotation) bool {
		return a.SetBy == "" && slices.Contains(a.On, kind) && isChanged(a.Name, before, after)
	})
}

// isChanged reports whether an annotation differs. One with an empty value differs from none.
func isChanged(name string, before, after map[string]string) bool {
	was, had := before[name]
	is, has := after[name]
	return had != has || was != is
}

// SplitIgnorable splits the errors of a job into those of annotations whose default can be used instead, and the others.
func SplitIgnorable(errs field.ErrorList) (ignorable, others field.ErrorList) {
	fields := map[string]bool{}
	for _, a := range Annotations() {
		if a.SetBy == "" && !a.definesPods {
			fields[annotationPath(a.Name).String()] = true
		}
	}
	for _, err := range errs {
		if fields[err.Field] {
			ignorable = append(ignorable, err)
		} else {
			others = append(others, err)
		}
	}
	return ignorable, others
}

// WarnAnnotations returns warnings about annotations of this project that a job has, and did not have before, and that have
// no effect: they are for other objects, or do not exist. before is nil for a new job.
func WarnAnnotations(kind string, before, after map[string]string) []string {
	known := map[string]Annotation{}
	var names []string
	for _, a := range Annotations() {
		known[a.Name] = a
		if a.SetBy == "" && slices.Contains(a.On, kind) {
			names = append(names, a.Name)
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !strings.HasPrefix(name, Group+"/") || !isChanged(name, before, after) {
			continue
		}
		switch a, is := known[name]; {
		case !is:
			warnings = append(warnings, fmt.Sprintf("%s: does not exist and has no effect%s", annotationPath(name), phrase.DidYouMean(phrase.Similar(name, names))))
		case slices.Contains(a.On, kind):
		case a.instead[kind] != "":
			warnings = append(warnings, fmt.Sprintf("%s: has no effect on a job of kind %s: %s", annotationPath(name), kind, a.instead[kind]))
		case a.SetBy != "":
			warnings = append(warnings, fmt.Sprintf("%s: has no effect on a job: %s sets it on objects of kind %s", annotationPath(name), a.SetBy, strings.Join(a.On, ", ")))
		default:
			warnings = append(warnings, fmt.Sprintf("%s: has no effect on a job: it is set on objects of kind %s", annotationPath(name), strings.Join(a.On, ", ")))
		}
	}
	return warnings
}
