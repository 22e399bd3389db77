package trainjob

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// CheckLimitAnnotations returns the errors of the annotations that limit jobs, of a runtime or a Namespace.
func CheckLimitAnnotations(of map[string]string) (errs field.ErrorList) {
	for _, name := range []string{mpi.AnnotationMaxWorkers, mpi.AnnotationMaxGPUs} {
		if _, _, err := limit(of, name); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := requiredLabels(of); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// checkMinimum checks the annotation with the least number of nodes.
func checkMinimum(r Runtime) field.ErrorList {
	least, limited, err := limit(r.Annotations, mpi.AnnotationMinWorkers)
	if err != nil {
		return field.ErrorList{err}
	}
	if most, bounded, _ := limit(r.Annotations, mpi.AnnotationMaxWorkers); limited && bounded && least > most {
		return field.ErrorList{field.Invalid(annotations.Key(mpi.AnnotationMinWorkers), r.Annotations[mpi.AnnotationMinWorkers],
			fmt.Sprintf("must be at most %d, which is %s: no job could use the runtime", most, mpi.AnnotationMaxWorkers))}
	}
	return nil
}

// MinWorkers returns the least number of nodes of the jobs of a runtime; 0 for no minimum.
func (r Runtime) MinWorkers() int64 {
	least, _, _ := limit(r.Annotations, mpi.AnnotationMinWorkers)
	return least
}

// wholeNumber is what the API server accepts as a limit, too (config/webhook/limits.yaml).
var wholeNumber = regexp.MustCompile(`^[0-9]{1,9}$`)

// limit reads a number from an annotation; false where there is none.
func limit(of map[string]string, name string) (int64, bool, *field.Error) {
	text, set := of[name]
	if !set {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || !wholeNumber.MatchString(text) {
		return 0, false, field.Invalid(annotations.Key(name), text, "must be a whole number, 0 or more")
	}
	return n, true, nil
}

// requiredLabels reads the labels that nodes must have from an annotation. Of two values of a label it returns the last one, with an
// error.
func requiredLabels(of map[string]string) (map[string]string, *field.Error) {
	text := of[mpi.AnnotationNodeLabels]
	labels := map[string]string{}
	var contradiction *field.Error
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		if !found || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return nil, field.Invalid(annotations.Key(mpi.AnnotationNodeLabels), text, fmt.Sprintf("%q must be a label with its value, such as key=value", part))
		}
		if other, set := labels[key]; set && other != value {
			contradiction = field.Invalid(annotations.Key(mpi.AnnotationNodeLabels), text,
				fmt.Sprintf("requires both %s=%s and %s=%s, and a node has one value of a label; remove one of them", key, other, key, value))
		}
		labels[key] = value
	}
	return labels, contradiction
}

// CheckLimits returns where a TrainJob does not keep the limits of its runtime: nodes, GPUs, and the labels of nodes.
func CheckLimits(job TrainJob, used Runtime) field.ErrorList {
	errs := unusable(job, append(checkMinimum(used), CheckLimitAnnotations(used.Annotations)...))
	switch n := nodes(job, used); {
	case !used.IsMPI():
	case n < 0:
		errs = append(errs, field.Invalid(nodesPath, n, "must be 1 or more"))
	case n > maxNodes:
		errs = append(errs, field.Invalid(nodesPath, n, fmt.Sprintf("must be at most %d: Kubernetes creates no more pods for it", maxNodes)))
	}
	if most, limited, _ := limit(used.Annotations, mpi.AnnotationMaxWorkers); limited {
		if n := nodes(job, used); int64(n) > most {
			errs = append(errs, field.Invalid(nodesPath, n, fmt.Sprintf("must be at most %d with the runtime %s", most, used.Name)))
		}
	}
	if n, least := nodes(job, used), used.MinWorkers(); n >= 0 && int64(n) < least {
		errs = append(errs, field.Invalid(nodesPath, n, fmt.Sprintf("must be at least %d with the runtime %s", least, used.Name)))
	}
	pods := podsOf(job, used)
	if most, limited, _ := limit(used.Annotations, mpi.AnnotationMaxGPUs); limited {
		if n, _ := mostGPUs(pods); n > most {
			errs = append(errs, field.Invalid(sizePath, fmt.Sprintf("%d GPUs", n), fmt.Sprintf("must be at most %d GPUs or other accelerators with the runtime %s", most, used.Name)))
		}
	}
	required, _ := requiredLabels(used.Annotations)
	pods = slices.DeleteFunc(pods, func(p podGroup) bool { return !used.limitsNodesOf(p.job) })
	return append(errs, checkNodeLabels(job, pods, required, "the runtime "+used.Name+" requires")...)
}

// limitsNodesOf reports whether the labels of nodes that the runtime requires apply to the pods of one of its jobs.
func (r Runtime) limitsNodesOf(job string) bool {
	if r.IsMPI() {
		return job == launcherName || job == nodeName
	}
	return !slices.Contains(initializers, job)
}

// RequiredNodes returns the overrides by which the pods of a TrainJob request nodes with the labels that its runtime and its namespace
// require; none for pods that do so already.
func RequiredNodes(job TrainJob, used Runtime, limits Limits) []PodTemplateOverride {
	byRuntime, _ := requiredLabels(used.Annotations)
	byNamespace, _ := requiredLabels(limits.annotations())
	var all []PodTemplateOverride
	for _, group := range podsOf(job, used) {
		labels := map[string]string{}
		maps.Copy(labels, byNamespace)
		if used.limitsNodesOf(group.job) {
			maps.Copy(labels, byRuntime)
		}
		maps.DeleteFunc(labels, func(key, value string) bool {
			have, set := group.selector[key]
			return set && have == value
		})
		if len(labels) > 0 {
			override := PodTemplateOverride{TargetJobs: []TargetJob{{Name: group.job}}}
			override.Spec.NodeSelector = labels
			all = append(all, override)
		}
	}
	return all
}

// Limits are the annotations that limit the jobs of a namespace: those of its Namespace, and for those that it does not have the defaults of
// the cluster, which are the annotations of the operator's Namespace (config/webhook/limits.yaml).
type Limits struct {
	Namespace, Defaults map[string]string
	// DefaultsFrom is the name of the operator's Namespace.
	DefaultsFrom string
}

// LoadLimits reads the limits of the jobs of a namespace. annotations returns those of a Namespace. operatorNamespace is "" if the operator
// runs outside of the cluster.
func LoadLimits(ctx context.Context, annotations func(ctx context.Context, namespace string) (map[string]string, error), namespace, operatorNamespace string) (Limits, error) {
	own, err := annotations(ctx, namespace)
	if err != nil || operatorNamespace == "" {
		return Limits{Namespace: own}, err
	}
	defaults, err := annotations(ctx, operatorNamespace)
	return Limits{Namespace: own, Defaults: defaults, DefaultsFrom: operatorNamespace}, err
}

// limitAnnotations are those that Limits have.
var limitAnnotations = []string{mpi.AnnotationMaxWorkers, mpi.AnnotationMaxGPUs, mpi.AnnotationNodeLabels}

// Get returns the value of an annotation, and whether it is a default; false if there is none.
func (l Limits) Get(name string) (value string, isDefault, set bool) {
	if value, set := l.Namespace[name]; set {
		return value, false, true
	}
	value, set = l.Defaults[name]
	return value, set, set
}

// annotations returns the annotations that apply.
func (l Limits) annotations() map[string]string {
	apply := map[string]string{}
	for _, name := range limitAnnotations {
		if value, _, set := l.Get(name); set {
			apply[name] = value
		}
	}
	return apply
}

// Check returns the errors of the annotations that apply.
func (l Limits) Check() field.ErrorList { return CheckLimitAnnotations(l.annotations()) }

// CheckNamespaceLimits returns where a TrainJob does not keep the limits of its namespace, whatever its runtime is.
// The API server compares MPIJobs and JobSets with them (config/webhook/limits.yaml), but not what the runtime and its patches request.
func CheckNamespaceLimits(job TrainJob, used Runtime, limits Limits) field.ErrorList {
	return append(checkNamespaceCounts(job, used, limits), checkNamespaceLabels(job, used, limits)...)
}

// CheckNamespaceChange is CheckNamespaceLimits for a TrainJob that is changed. A job that was created before a limit can be suspended and
// resumed: numbers are only compared if the change is about what they count, and the labels of nodes unless the job is suspended.
func CheckNamespaceChange(before, after TrainJob, used Runtime, limits Limits) (errs field.ErrorList) {
	if before.Generation == after.Generation {
		return nil
	}
	if !slices.Equal(counted(before, used), counted(after, used)) {
		errs = checkNamespaceCounts(after, used, limits)
	}
	if !isSuspended(after) {
		errs = append(errs, checkNamespaceLabels(after, used, limits)...)
	}
	return errs
}

// counted returns what limits count: the nodes, and the pods and accelerators of each of the runtime's jobs.
func counted(job TrainJob, used Runtime) []int64 {
	counts := []int64{int64(nodes(job, used))}
	for _, group := range podsOf(job, used) {
		counts = append(counts, group.count, podspec.PodAccelerators(group.spec))
	}
	return counts
}

// limitError is the error of an annotation, of the job's Namespace or the operator's, that cannot be read.
func limitError(job TrainJob, limits Limits, name string, err *field.Error) *field.Error {
	text := fmt.Sprintf("the namespace %s has an invalid limit, ask its administrator to correct it: %s", job.Namespace, err)
	if _, isDefault, _ := limits.Get(name); isDefault {
		text = fmt.Sprintf("the namespace %s has an invalid limit for all namespaces, ask the cluster's administrator to correct it: %s", limits.DefaultsFrom, err)
	}
	return field.Forbidden(field.NewPath("metadata", "namespace"), text)
}

// source names what an annotation that applies to a job is the limit of, and who may change it.
func (l Limits) source(namespace, name string) string {
	if _, isDefault, _ := l.Get(name); isDefault {
		return fmt.Sprintf("the limit of the cluster; ask its administrator for more (annotation %s of the namespace %s, or of %s for all)", name, namespace, l.DefaultsFrom)
	}
	return fmt.Sprintf("the limit of the namespace %s; ask its administrator for more (annotation %s)", namespace, name)
}

// checkNamespaceCounts is the part of CheckNamespaceLimits about numbers.
func checkNamespaceCounts(job TrainJob, used Runtime, limits Limits) (errs field.ErrorList) {
	most := map[string]int64{}
	for _, name := range []string{mpi.AnnotationMaxWorkers, mpi.AnnotationMaxGPUs} {
		switch n, limited, err := limit(limits.annotations(), name); {
		case err != nil:
			errs = append(errs, limitError(job, limits, name, err))
		case limited:
			most[name] = n
		}
	}
	pods := podsOf(job, used)
	ask := func(name string) string { return limits.source(job.Namespace, name) }
	if most, limited := most[mpi.AnnotationMaxWorkers]; limited {
		if n, asked := countNodes(job, used, pods), int64(nodes(job, used)); n > most {
			detail := fmt.Sprintf("must be at most %d, %s", most, ask(mpi.AnnotationMaxWorkers))
			if job.trainer().NumNodes == nil {
				detail += fmt.Sprintf("; set it, since the runtime %s has %d nodes", used.Name, asked)
			}
			if n > asked {
				detail += fmt.Sprintf("; with other jobs of the runtime %s there are %d nodes", used.Name, n)
			}
			errs = append(errs, field.Invalid(nodesPath, asked, detail))
		}
	}
	if most, limited := most[mpi.AnnotationMaxGPUs]; limited {
		if n, of := mostGPUs(pods); n > most {
			errs = append(errs, field.Invalid(sizePath, fmt.Sprintf("%d GPUs", n),
				fmt.Sprintf("a pod of the job %q of the runtime %s must request at most %d GPUs or other accelerators, %s", of, used.Name, most, ask(mpi.AnnotationMaxGPUs))))
		}
	}
	return errs
}

// checkNamespaceLabels is the part of CheckNamespaceLimits about the labels of nodes.
func checkNamespaceLabels(job TrainJob, used Runtime, limits Limits) (errs field.ErrorList) {
	required, err := requiredLabels(limits.annotations())
	if err != nil {
		errs = append(errs, limitError(job, limits, mpi.AnnotationNodeLabels, err))
	}
	by := fmt.Sprintf("the namespace %s requires (annotation %s)", job.Namespace, mpi.AnnotationNodeLabels)
	if _, isDefault, _ := limits.Get(mpi.AnnotationNodeLabels); isDefault {
		by = fmt.Sprintf("the cluster requires (annotation %s of the namespace %s)", mpi.AnnotationNodeLabels, limits.DefaultsFrom)
	}
	return append(errs, checkNodeLabels(job, podsOf(job, used), required, by)...)
}

// podGroup are the pods of one of the runtime's jobs, with what a TrainJob changes in them.
type podGroup struct {
	job      string
	count    int64
	spec     corev1.PodSpec
	selector map[string]string
}

// order is the order of errors about the pods of a job, after those of other jobs.
var order = []string{launcherName, nodeName}

// podsOf returns the pods that a TrainJob has with a runtime.
func podsOf(from TrainJob, used Runtime) []podGroup {
	var all []podGroup
	for i := range used.Spec.Template.Spec.ReplicatedJobs {
		of := &used.Spec.Template.Spec.ReplicatedJobs[i]
		sized := of.isTrainer()
		count := of.count()
		switch {
		case used.IsMPI() && of.Name == launcherName:
			sized = true
		case used.IsMPI() && of.Name == nodeName:
			sized, count = used.mpiPolicy().RunLauncherAsNode, int64(workers(from, used))
		case of.isTrainer():
			count = int64(nodes(from, used))
		}
		all = append(all, podGroup{of.Name, count, template(from, of, sized).Spec, from.nodeSelector(of)})
	}
	slices.SortStableFunc(all, func(a, b podGroup) int { return cmp.Compare(slices.Index(order, a.job), slices.Index(order, b.job)) })
	return all
}

// initializers are the jobs of a runtime that prepare data and models (trainer/v2/pkg/constants), and helpers those that have one pod
// besides those that compute.
var (
	initializers = []string{"dataset-initializer", "model-initializer"}
	helpers      = append([]string{launcherName}, initializers...)
)

// countNodes returns how many pods of a job compute: those of which there is one for another purpose do not count.
func countNodes(from TrainJob, used Runtime, pods []podGroup) (count int64) {
	for _, group := range pods {
		if slices.Contains(helpers, group.job) {
			group.count--
		}
		count += max(group.count, 0)
	}
	return max(count, int64(nodes(from, used)))
}

// mostGPUs returns the most GPUs and other accelerators that a pod requests, and the job of this pod.
func mostGPUs(pods []podGroup) (most int64, job string) {
	for _, group := range pods {
		if n := podspec.PodAccelerators(group.spec); n > most {
			most, job = n, group.job
		}
	}
	return most, job
}

// checkNodeLabels: whatever a TrainJob changes, its pods ask for nodes with these labels.
func checkNodeLabels(job TrainJob, pods []podGroup, required map[string]string, by string) (errs field.ErrorList) {
	for _, group := range pods {
		for _, key := range slices.Sorted(maps.Keys(required)) {
			if have, set := group.selector[key]; !set || have != required[key] {
				errs = append(errs, field.Invalid(patchesPath(job), have,
					fmt.Sprintf("the nodeSelector of the job %q must have %s: %s, which %s", group.job, key, required[key], by)))
			}
		}
	}
	return errs
}

// CheckLostLabels returns which labels of nodes that a change of a JobSet loses (LostNodeLabels) an MPI runtime requires.
func CheckLostLabels(lost map[string]string, used Runtime) field.ErrorList {
	if !used.IsMPI() {
		return nil
	}
	required, _ := requiredLabels(used.Annotations)
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(required)) {
		if value, is := lost[key]; is && value == required[key] {
			errs = append(errs, field.Forbidden(spec.Child("replicatedJobs"), fmt.Sprintf("the nodeSelector of launcher and workers must keep %s: %s, which the runtime %s requires", key, value, used.Name)))
		}
	}
	return errs
}
