package mpi

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostRestarts limits AnnotationMaxRestarts. JobSet starts a failed job again without a delay.
const mostRestarts = 100

// ParseMaxRestarts reads AnnotationMaxRestarts. It returns nil if the annotation is missing or invalid.
func ParseMaxRestarts(annotations map[string]string) (*int32, field.ErrorList) {
	return parseCount(annotations, AnnotationMaxRestarts, mostRestarts,
		fmt.Sprintf("must be an integer from 0 to %d: how often the whole job is started again after a failure", mostRestarts))
}

// parseCount reads an annotation with an integer from 0 to most. It returns nil if the annotation is missing, and an error with
// the detail if it is invalid.
func parseCount(annotations map[string]string, name string, most int64, detail string) (*int32, field.ErrorList) {
	text, set := annotations[name]
	if !set {
		return nil, nil
	}
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 || count > most {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(name), text, detail)}
	}
	return new(int32(count)), nil
}
