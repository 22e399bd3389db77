package admission

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// numbers are the fields of jobs of type int32. "*" is any key.
var numbers = [][]string{
	{"spec", "slotsPerWorker"},
	{"spec", "mpiReplicaSpecs", "*", "replicas"},
	{"spec", "runPolicy", "backoffLimit"},
	{"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{"spec", "runPolicy", "schedulingPolicy", "minAvailable"},
	{"spec", "runPolicy", "schedulingPolicy", "scheduleTimeoutSeconds"},
	{"spec", "trainer", "numNodes"},
}

// tooLarge returns the numbers of a job that its fields cannot hold. The API server would refuse the job without naming them:
// it validates the schema after these webhooks.
func tooLarge(job *unstructured.Unstructured) (errs field.ErrorList) {
	for _, path := range numbers {
		errs = append(errs, tooLargeAt(nil, job.Object, path)...)
	}
	return errs
}

// tooLargeAt checks the number at a path below a value. at is the path of the value itself.
func tooLargeAt(at *field.Path, value any, path []string) (errs field.ErrorList) {
	if len(path) == 0 {
		if isLarge(value) {
			errs = append(errs, field.Invalid(at, value, fmt.Sprintf("use %d or less", math.MaxInt32)))
		}
		return errs
	}
	tree, _ := value.(map[string]any)
	if path[0] != "*" {
		if next, has := tree[path[0]]; has {
			return tooLargeAt(at.Child(path[0]), next, path[1:])
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		errs = append(errs, tooLargeAt(at.Key(key), tree[key], path[1:])...)
	}
	return errs
}

// isLarge reports whether a value is a number beyond int32. JSON numbers beyond int64 are floating-point numbers.
func isLarge(value any) bool {
	switch number := value.(type) {
	case int64:
		return number > math.MaxInt32
	case float64:
		return number > math.MaxInt32
	}
	return false
}
