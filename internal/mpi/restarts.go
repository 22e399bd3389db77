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
	text, set := annotations[AnnotationMaxRestarts]
	if !set {
		return nil, nil
	}
	restarts, err := strconv.ParseInt(text, 10, 32)
	if err != nil || restarts < 0 || restarts > mostRestarts {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationMaxRestarts), text,
			fmt.Sprintf("must be an integer from 0 to %d: how often the whole job is started again after a failure", mostRestarts))}
	}
	return new(int32(restarts)), nil
}
