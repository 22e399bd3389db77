// Package migrate converts jobs of other APIs, and describes what happens to every field: MPIJobs to TrainJobs, MPIJobs of
// earlier versions to kubeflow.org/v2beta1, and training jobs of SageMaker to either. The package is pure.
//
// The conversion takes fields out of the old object. Fields that are left at the end have no place in the new object and
// are reported: no field is lost silently.
package migrate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// Effect is what happens to a field of a job.
type Effect string

// The effects, in the order in which they are printed.
const (
	// Moved: the value is unchanged, in another field.
	Moved Effect = "moved"
	// Changed: the new job behaves differently.
	Changed Effect = "changed"
	// Lost: the new job has no such field.
	Lost Effect = "lost"
	// Todo: the user has to do something.
	Todo Effect = "todo"
)

// Change is what became of one part of a job.
type Change struct {
	Effect Effect `json:"effect"`
	// From is the field that it was written in, To the one that it is in now; either may be empty.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Text describes the change, and what to do. It is empty if From and To are enough.
	Text string `json:"text,omitempty"`
}

// Result is a converted job.
type Result struct {
	// Object is the job in its new form, as JSON is decoded.
	Object map[string]any
	// Changes describes what happened to the old object, by effect and then in the order of its fields.
	Changes []Change
}

// Options are what the old job does not contain.
type Options struct {
	// Name is the name of the new job; empty: the old job's name.
	Name string
	// Runtime is the runtime of a TrainJob; if empty, the one of this project for the job's MPI.
	Runtime trainjob.RuntimeRef
	// Overrides writes changes of the runtime to podTemplateOverrides, the field of Trainer v2.1, instead of
	// runtimePatches.
	Overrides bool
	// Used is the runtime of a new TrainJob, whose limits are checked; nil if it is unknown.
	Used *trainjob.Runtime
	// Connection names the data connection for a SageMaker job's bucket; empty: the bucket's own name.
	Connection string
	// Instance is the size of a SageMaker instance whose type is not in the built-in list.
	Instance *Instance
}

// Of is the kind of an object that can be converted.
type Of string

// The kinds of objects that can be converted.
const (
	// OfMPIJob is an MPIJob of kubeflow.org/v2beta1.
	OfMPIJob Of = "MPIJob"
	// OfOldMPIJob is an MPIJob of an earlier version.
	OfOldMPIJob Of = "old MPIJob"
	// OfSageMaker is a request for a SageMaker training job, or the description of one.
	OfSageMaker Of = "SageMaker training job"
)

// Recognize returns what an object is, or an error if it cannot be converted.
func Recognize(object map[string]any) (Of, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	switch {
	case object["AlgorithmSpecification"] != nil || object["ResourceConfig"] != nil || object["TrainingJobName"] != nil:
		return OfSageMaker, nil
	case kind == trainjob.Kind:
		return "", fmt.Errorf("it is already a %s", kind)
	case kind != "MPIJob" || group != "kubeflow.org":
		return "", fmt.Errorf("apiVersion %q, kind %q is neither an MPIJob nor a SageMaker training job", apiVersion, kind)
	case version == "v2beta1":
		return OfMPIJob, nil
	case slices.Contains(oldVersions, version):
		return OfOldMPIJob, nil
	}
	return "", fmt.Errorf("the version %q of MPIJobs is not supported; use v2beta1, %s", version, strings.Join(oldVersions, ", "))
}

// conversion is one job being converted.
type conversion struct {
	// left is the part of the old job that was not read yet.
	left    tree
	changes []Change
	errs    field.ErrorList
}

func (c *conversion) tell(effect Effect, from, to, text string, args ...any) {
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	c.changes = append(c.changes, Change{Effect: effect, From: from, To: to, Text: text})
}

func (c *conversion) moved(from, to string)              { c.tell(Moved, from, to, "") }
func (c *conversion) fail(err *field.Error)              { c.errs = append(c.errs, err) }
func (c *conversion) take(path ...string) (any, bool)    { return take(c.left, path...) }
func (c *conversion) drop(paths ...string)               { drop(c.left, paths...) }
func (c *conversion) text(path ...string) (string, bool) { return taken[string](c, path...) }

// taken reads a field of type T; a value of another type is an error.
func taken[T any](c *conversion, path ...string) (T, bool) {
	var zero T
	value, found := c.take(path...)
	if !found || value == nil {
		return zero, false
	}
	typed, is := value.(T)
	if !is {
		c.fail(field.Invalid(at(path...), value, fmt.Sprintf("must be %s", typeName(zero))))
	}
	return typed, is
}

// number reads a whole number, which JSON and YAML decode to different types.
func (c *conversion) number(path ...string) (int64, bool) {
	value, found := c.take(path...)
	if !found || value == nil {
		return 0, false
	}
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		if n == float64(int64(n)) {
			return int64(n), true
		}
	}
	c.fail(field.Invalid(at(path...), value, "must be a whole number"))
	return 0, false
}

func typeName(zero any) string {
	switch zero.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "an object"
}

func at(path ...string) *field.Path {
	where := field.NewPath(path[0])
	for _, name := range path[1:] {
		where = where.Child(name)
	}
	return where
}

// checkLimits checks a TrainJob against the limits of its runtime; nil if that is unknown.
func (c *conversion) checkLimits(object tree, used *trainjob.Runtime) {
	if used == nil || len(c.errs) > 0 {
		return
	}
	var job trainjob.TrainJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &job); err != nil {
		c.fail(field.InternalError(field.NewPath("spec"), err))
		return
	}
	errs, warnings := trainjob.Check(job, *used)
	c.errs = append(c.errs, errs...)
	for _, warning := range warnings {
		c.tell(Todo, "", "", warning)
	}
}

// result returns the new job. The fields of the old job that were not read are reported as lost.
func (c *conversion) result(object tree, why func(path string) string) Result {
	for _, path := range leaves(c.left, "") {
		c.tell(Lost, path, "", why(path))
	}
	order := []Effect{Moved, Changed, Lost, Todo}
	slices.SortStableFunc(c.changes, func(a, b Change) int { return slices.Index(order, a.Effect) - slices.Index(order, b.Effect) })
	return Result{Object: object, Changes: c.changes}
}

// titles are the headings of the changes by effect.
var titles = map[Effect]string{
	Moved: "Moved:", Changed: "Changed:", Lost: "Not converted:", Todo: "To do:",
}

// Item begins each line of Explain that describes a change.
const Item = "  - "

// Explain describes changes as text, a line each under a heading for each effect. Fields with the same description share a
// line.
func Explain(changes []Change) string {
	var b strings.Builder
	var last Effect
	for i := 0; i < len(changes); {
		first := changes[i]
		if first.Effect != last {
			fmt.Fprintln(&b, titles[first.Effect])
			last = first.Effect
		}
		next := i + 1
		for next < len(changes) && alike(first, changes[next]) {
			next++
		}
		var where []string
		for ; i < next; i++ {
			if at := changes[i].where(); at != "" {
				where = append(where, at)
			}
		}
		parts := slices.DeleteFunc([]string{strings.Join(where, ", "), first.Text}, func(part string) bool { return part == "" })
		fmt.Fprintf(&b, "%s%s\n", Item, strings.Join(parts, ": "))
	}
	return b.String()
}

// alike reports whether two changes share a line: they have the same effect and text, and their fields went nowhere.
func alike(first, next Change) bool {
	return next.Effect == first.Effect && next.Text == first.Text && next.Text != "" && first.To == "" && next.To == ""
}

// where returns the field before and after the change. The templates of an MPIJob are shortened to their roles.
func (c Change) where() string {
	where := c.From
	switch {
	case where == "":
		where = c.To
	case c.To != "" && c.To != c.From:
		where += " -> " + c.To
	}
	return strings.NewReplacer(launcherSpec, "Launcher", workerSpec, "Worker").Replace(where)
}
