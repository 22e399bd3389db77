package mpi

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ParseTTL reads AnnotationTTL. It returns nil if the annotation is missing or invalid.
func ParseTTL(annotations map[string]string) (*time.Duration, field.ErrorList) {
	seconds, errs := parseCount(annotations, AnnotationTTL, math.MaxInt32,
		fmt.Sprintf("must be an integer from 0 to %d: how many seconds after its end the job is deleted", math.MaxInt32))
	if seconds == nil {
		return nil, errs
	}
	return new(time.Duration(*seconds) * time.Second), nil
}
