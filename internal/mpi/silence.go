package mpi

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AnnotationSilence says, on a job, after what silence of its program its report says so, as a Go duration such as 1h30m.
const AnnotationSilence = Group + "/silent-after"

const (
	// silentAfter is the default: longer than most steps of a training take.
	silentAfter = 15 * time.Minute
	// shortestSilence keeps the operator from reading logs all the time.
	shortestSilence = 10 * time.Second
)

// Silence reads AnnotationSilence, or is the default where a job has none or a wrong one.
func Silence(annotations map[string]string) (time.Duration, field.ErrorList) {
	text, set := annotations[AnnotationSilence]
	if !set {
		return silentAfter, nil
	}
	silence, err := time.ParseDuration(text)
	if err != nil || silence < shortestSilence {
		return silentAfter, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationSilence), text,
			fmt.Sprintf("must be how long the program may say nothing until its report says so, such as 90s or 1h30m, at least %s", shortestSilence))}
	}
	return silence, nil
}
