package jobs

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// RemedyChanges returns the changes of the job that apply a remedy. It returns false if the remedy is only a text, or its
// changes do not fit this job, or change nothing in it. No changes and true mean that the job has to be run again as it is.
func RemedyChanges(job Job, remedy v1alpha1.Remedy) ([]Change, bool) {
	if !remedy.Rerun {
		return nil, false
	}
	written, err := job.Written()
	if err != nil {
		return nil, false
	}
	var changes []Change
	for _, change := range remedy.Changes {
		changes = append(changes, Change{Field: change.Field, Value: change.Value})
	}
	before := written.DeepCopy()
	if replacesRuntimeResources(written, changes) || Apply(written, changes...) != nil {
		return nil, false
	}
	if len(changes) > 0 && equality.Semantic.DeepEqual(before, written) {
		return nil, false
	}
	return changes, true
}

// replacesRuntimeResources reports whether changes would give a TrainJob resources of its own. These replace all of its
// runtime's, so that the job would lose its GPUs.
func replacesRuntimeResources(job *unstructured.Unstructured, changes []Change) bool {
	if job.GetKind() != trainjob.Kind {
		return false
	}
	_, own, _ := unstructured.NestedMap(job.Object, "spec", "trainer", "resourcesPerNode")
	return !own && slices.ContainsFunc(changes, func(change Change) bool { return strings.HasPrefix(change.Field, "spec.trainer.resourcesPerNode") })
}
