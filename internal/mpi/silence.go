package mpi

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// defaultSilence is longer than most training steps take.
	defaultSilence = 15 * time.Minute
	// minSilence limits how often the operator reads logs.
	minSilence = 10 * time.Second
)

// ParseSilence reads AnnotationSilence. It returns the default if the annotation is missing or invalid.
func ParseSilence(annotations map[string]string) (time.Duration, field.ErrorList) {
	text, set := annotations[AnnotationSilence]
	if !set {
		return defaultSilence, nil
	}
	silence, err := time.ParseDuration(text)
	if err != nil || silence < minSilence {
		return defaultSilence, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationSilence), text,
			fmt.Sprintf("must be a duration of at least %s, such as 90s or 1h30m: how long the program may print nothing before the report warns", minSilence))}
	}
	return silence, nil
}
