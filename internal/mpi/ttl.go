package mpi

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ParseTTL reads AnnotationTTL. It returns nil if the annotation is missing or invalid.
func ParseTTL(annotations map[string]string) (*time.Duration, field.ErrorList) {
	text, set := annotations[AnnotationTTL]
	if !set {
		return nil, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 0 {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationTTL), text,
			fmt.Sprintf("must be an integer from 0 to %d: how many seconds after its end the job is deleted", math.MaxInt32))}
	}
	return new(time.Duration(seconds) * time.Second), nil
}
