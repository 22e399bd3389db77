package trainjob

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// identityPrefixes begin the labels by which NetworkPolicies and controllers know the job of a pod, and identityLabels are the
// other ones. JobSet and the Job controller set them when they create Jobs; but when JobSet resumes a Job, those of its pod
// template replace them.
var (
	identityPrefixes = []string{"jobset.sigs.k8s.io/", "batch.kubernetes.io/", mpi.Group + "/"}
	identityLabels   = []string{mpi.LabelOperator, mpi.LabelJob, mpi.LabelRole, mpi.LabelIndex, "job-name", "controller-uid"}
)

func isIdentity(label string) bool {
	return slices.Contains(identityLabels, label) ||
		slices.ContainsFunc(identityPrefixes, func(prefix string) bool { return strings.HasPrefix(label, prefix) })
}

// checkPodLabels refuses labels by which the pods of a TrainJob would be taken for those of another job.
func checkPodLabels(job TrainJob) field.ErrorList {
	var errs field.ErrorList
	check := func(at *field.Path, patch PodPatch) {
		for _, label := range slices.Sorted(maps.Keys(patch.Metadata.Labels)) {
			if isIdentity(label) {
				errs = append(errs, field.Forbidden(at.Child("metadata", "labels").Key(label),
					"is set by controllers: NetworkPolicies select the pods of a job by such labels; use another name"))
			}
		}
	}
	for i, patch := range job.Spec.RuntimePatches {
		for j, of := range patch.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs {
			check(replicatedJobAt(i, j).Child("template", "spec", "template"), of.Template.Spec.Template)
		}
	}
	for i, override := range job.Spec.PodTemplateOverrides {
		check(spec.Child("podTemplateOverrides").Index(i), override.PodPatch)
	}
	return errs
}

// dropIdentity removes the labels of pods of a job from a pod template. JobSet adds the right ones.
func (p jobPart) dropIdentity() {
	maps.DeleteFunc(at(p.pod, "metadata", "labels"), func(label string, _ any) bool { return isIdentity(label) })
}

// keepIdentity is dropIdentity for a JobSet that is changed: while it is not suspended, its pod templates stay as they were,
// since JobSet would refuse the change.
func (p jobPart) keepIdentity(was jobPart, isSuspended bool) {
	p.dropIdentity()
	if isSuspended {
		return
	}
	for label := range at(was.pod, "metadata", "labels") {
		if isIdentity(label) {
			copyField(p.pod, was.pod, "metadata", "labels", label)
		}
	}
}
