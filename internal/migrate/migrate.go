// Package migrate turns jobs of other APIs into ours, and says in words what becomes of every part of them: MPIJobs into
// TrainJobs, MPIJobs of earlier versions into kubeflow.org/v2beta1, and training jobs of SageMaker into either. All of it
// is pure.
//
// An object is read by taking its fields out. What nobody took in the end has no place in the new one, and is told: no
// field is lost without a word.
package migrate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// Effect is what becomes of a part of a job.
type Effect string

// The effects, in the order in which they are told.
const (
	// Moved: the same, at another place.
	Moved Effect = "moved"
	// Changed: it works in another way.
	Changed Effect = "changed"
	// Lost: it has no place in the new job.
	Lost Effect = "lost"
	// Todo: somebody has to see to it.
	Todo Effect = "todo"
)

// Change is what became of one part of a job.
type Change struct {
	Effect Effect `json:"effect"`
	// From is the field that it was written in, To the one that it is in now; either may be empty.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Text says it in words, and what to do. It is empty where From and To say all.
	Text string `json:"text,omitempty"`
}

// Result is a converted job.
type Result struct {
	// Object is the job in its new form, as JSON is decoded.
	Object map[string]any
	// Changes are what became of the old one, by effect and then in the order of its fields.
	Changes []Change
}

// Options are what the old job does not say.
type Options struct {
	// Name is the new job's; empty: the old one's.
	Name string
	// Runtime is the runtime of a TrainJob; empty: the one of ours for the job's MPI.
	Runtime trainjob.RuntimeRef
	// Overrides has changes of the runtime written as podTemplateOverrides, as Trainer v2.1 has them, and not as
	// runtimePatches.
	Overrides bool
	// Used is the runtime where it is known: it may tell more of what is wrong.
	Used *trainjob.Runtime
	// Connection names the data connection for a SageMaker job's bucket; empty: the bucket's own name.
	Connection string
	// Instance is the size of a SageMaker instance whose type is not known here.
	Instance *Instance
}

// Of says which kind of thing an object is that was read from a file: the conversions begin with it.
type Of string

// The kinds of things that can be converted.
const (
	// OfMPIJob is an MPIJob of kubeflow.org/v2beta1.
	OfMPIJob Of = "MPIJob"
	// OfOldMPIJob is an MPIJob of an earlier version.
	OfOldMPIJob Of = "old MPIJob"
	// OfSageMaker is a request for, or the description of, a training job of SageMaker.
	OfSageMaker Of = "SageMaker training job"
)

// Recognize tells what an object is, or why nothing can be done with it.
func Recognize(object map[string]any) (Of, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	switch {
	case object["AlgorithmSpecification"] != nil || object["ResourceConfig"] != nil || object["TrainingJobName"] != nil:
		return OfSageMaker, nil
	case kind == trainjob.Kind:
		return "", fmt.Errorf("it is a %s already", kind)
	case kind != "MPIJob" || group != "kubeflow.org":
		return "", fmt.Errorf("it is neither an MPIJob nor a training job of SageMaker, but apiVersion %q, kind %q", apiVersion, kind)
	case version == "v2beta1":
		return OfMPIJob, nil
	case slices.Contains(oldVersions, version):
		return OfOldMPIJob, nil
	}
	return "", fmt.Errorf("MPIJobs of version %q are not known; those of v2beta1, %s are", version, strings.Join(oldVersions, ", "))
}

// conversion is one job being converted.
type conversion struct {
	// left is what was not read yet of the old job.
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

// taken reads a field of a type; what is there in another type is an error.
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

// result is the new job with what is left of the old one told as lost.
func (c *conversion) result(object tree, why func(path string) string) Result {
	for _, path := range leaves(c.left, "") {
		c.tell(Lost, path, "", why(path))
	}
	order := []Effect{Moved, Changed, Lost, Todo}
	slices.SortStableFunc(c.changes, func(a, b Change) int { return slices.Index(order, a.Effect) - slices.Index(order, b.Effect) })
	return Result{Object: object, Changes: c.changes}
}

// titles are what stands above the changes of an effect.
var titles = map[Effect]string{
	Moved: "The same, at another place:", Changed: "Works in another way:", Lost: "Has no place in the new job:", Todo: "Left to do:",
}

// Explain says changes in words, a line each. Fields of which the same is to be said share one.
func Explain(changes []Change) string {
	var b strings.Builder
	var last Effect
	for i := 0; i < len(changes); {
		first := changes[i]
		if first.Effect != last {
			fmt.Fprintln(&b, titles[first.Effect])
			last = first.Effect
		}
		var where []string
		for ; i < len(changes) && alike(first, changes[i], len(where)); i++ {
			if at := changes[i].where(); at != "" {
				where = append(where, at)
			}
		}
		parts := slices.DeleteFunc([]string{strings.Join(where, ", "), first.Text}, func(part string) bool { return part == "" })
		fmt.Fprintf(&b, "  %s\n", strings.Join(parts, ": "))
	}
	return b.String()
}

// alike tells whether a change is the first of a line, or says the same as the line's first one does.
func alike(first, next Change, before int) bool {
	return before == 0 || next.Effect == first.Effect && next.Text == first.Text && next.Text != "" && first.To == "" && next.To == ""
}

// where is the field before and after. The templates of an MPIJob are named by their roles alone.
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
