package trainjob

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// FieldOf returns the field of a TrainJob with an MPI runtime that sets a field of its launcher's or workers' pods, such as
// spec.trainer.env[0].name for spec.containers[0].env[2].name; "" if the runtime or Trainer decides. Fields of pods are those of the
// templates of Convert.
func FieldOf(job TrainJob, used Runtime, role mpi.Role, path string) string {
	of, sized := used.job(nodeName), used.mpiPolicy().RunLauncherAsNode
	if role == mpi.RoleLauncher {
		of, sized = used.job(launcherName), true
	}
	switch class, _ := mpi.ParsePriorityClass(job.Annotations); {
	case of == nil:
		return ""
	case class != "" && used.ours() && path == "spec.priorityClassName":
		return annotations.Key(mpi.AnnotationPriorityClass).String()
	}
	made := template(job, of, sized)
	pod := treeOf(&made)
	steps := parsePath(path)
	for _, origin := range slices.Backward(origins(job, of, sized)) {
		if found := origin.find(pod, steps); found != "" {
			return found
		}
	}
	return ""
}

// origin is a part of a TrainJob that changes pods.
type origin struct {
	// at is its path, and fields are what it sets, at the paths of a pod template.
	at     string
	fields tree
	// below is the part of these paths that at stands for.
	below []string
	// renamed are fields that have another name there.
	renamed map[string]string
}

// origins returns what changes the pods of one of the runtime's jobs: the trainer, and then patches, which replace what it sets.
func origins(job TrainJob, of *ReplicatedJob, sized bool) []origin {
	trainer := job.trainer()
	main := tree{"name": nodeName}
	set := treeOf(&struct {
		Image     *string                      `json:"image,omitempty"`
		Env       []corev1.EnvVar              `json:"env,omitempty"`
		Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	}{trainer.Image, trainer.Env, trainer.ResourcesPerNode})
	pod := of.pod()
	if have := container(&pod.Spec); !sized || have == nil || trainer.ResourcesPerNode != nil && isCompleted(*trainer.ResourcesPerNode, have.Resources) {
		delete(set, "resources")
	}
	maps.Copy(main, set)
	all := []origin{{
		at: trainerPath.String(), fields: tree{"spec": tree{"containers": []any{main}}}, below: []string{"spec", "containers", "0"},
		renamed: map[string]string{"resources": "resourcesPerNode"},
	}}
	job.eachPatch(of, func(at *field.Path, patch PodPatch) {
		all = append(all, origin{at: at.String(), fields: treeOf(&patch)})
	})
	return all
}

// isCompleted reports whether a runtime has the request for a limit that a TrainJob sets, or the limit for a request. Whether it then
// applies depends on the version of Trainer (see keptRequests).
func isCompleted(set, have corev1.ResourceRequirements) bool {
	completes := func(set, other, have corev1.ResourceList) bool {
		for name := range set {
			_, isSet := other[name]
			if _, isThere := have[name]; isThere && !isSet {
				return true
			}
		}
		return false
	}
	return completes(set.Limits, set.Requests, have.Requests) || completes(set.Requests, set.Limits, have.Limits)
}

// find returns the path of a field of the pod in the origin; "" if it does not come from there.
func (o origin) find(pod tree, steps []pathStep) string {
	found, comes := follow(o.fields, pod, steps)
	if !comes || len(found) < ownedFrom(steps) {
		return ""
	}
	full := append(found, steps[len(found):]...)[len(o.below):]
	full[0].name = cmp.Or(o.renamed[full[0].name], full[0].name)
	return o.at + joinPath(full)
}

// ownedFrom returns how many steps lead to a field on which an origin decides, such as spec.volumes or spec.containers[0].env: an origin
// that changes one field of a pod or a container does not decide on the others.
func ownedFrom(steps []pathStep) int {
	if len(steps) > 1 && (steps[1].name == "containers" || steps[1].name == "initContainers") {
		return 4
	}
	return 2
}

// follow returns the steps of a path in the pod as they are in the origin's fields, as far as these go. It returns false if they do not
// have the element of a list.
func follow(fields, pod any, steps []pathStep) ([]pathStep, bool) {
	if len(steps) == 0 {
		return nil, true
	}
	step := steps[0]
	var next, of any
	switch here := fields.(type) {
	case tree:
		var isSet bool
		if next, isSet = here[step.name]; !isSet {
			return nil, true
		}
		object, _ := pod.(tree)
		of = object[step.name]
	case []any:
		elements, _ := pod.([]any)
		n, err := strconv.Atoi(step.name)
		if err != nil || n < 0 || n >= len(elements) {
			return nil, false
		}
		i := slices.IndexFunc(here, func(one any) bool { return isSameElement(one, elements[n]) })
		if i < 0 {
			return nil, false
		}
		next, of, step.name = here[i], elements[n], strconv.Itoa(i)
	default:
		return nil, true
	}
	rest, comes := follow(next, of, steps[1:])
	return append([]pathStep{step}, rest...), comes
}

// isSameElement reports whether two elements of lists are the same to Trainer: mounts by their path, and others by their name.
func isSameElement(a, b any) bool {
	one, isOne := a.(tree)
	other, isOther := b.(tree)
	if isOne && isOther {
		for _, key := range []string{"mountPath", "name"} {
			if value, has := other[key]; has {
				return one[key] == value
			}
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// pathStep is a step of a field's path: a name, or a key or index in brackets.
type pathStep struct {
	name  string
	isKey bool
}

var pathSteps = regexp.MustCompile(`\[([^\]]*)\]|[^.\[]+`)

// parsePath reads a path as the API server writes it, such as spec.containers[0].resources.limits[nvidia.com/gpu].
func parsePath(path string) []pathStep {
	var steps []pathStep
	for _, match := range pathSteps.FindAllStringSubmatch(path, -1) {
		if strings.HasPrefix(match[0], "[") {
			steps = append(steps, pathStep{name: match[1], isKey: true})
		} else {
			steps = append(steps, pathStep{name: match[0]})
		}
	}
	return steps
}

// joinPath returns steps that follow a path.
func joinPath(steps []pathStep) string {
	var b strings.Builder
	for _, step := range steps {
		if step.isKey {
			b.WriteString("[" + step.name + "]")
		} else {
			b.WriteString("." + step.name)
		}
	}
	return b.String()
}

// treeOf returns the fields of an object.
func treeOf(object any) tree {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return tree{}
	}
	return fields
}
