package mpi

import (
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TraceParent is a span that a job is a part of. The zero value is none.
type TraceParent struct {
	// TraceID and SpanID are in hexadecimal.
	TraceID, SpanID string
	// Sampled is whether the spans of the trace are recorded.
	Sampled bool
}

// traceParent is version 00 of the header (https://www.w3.org/TR/trace-context/#traceparent-header).
var traceParent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$`)

// ParseTraceParent reads AnnotationTraceParent. It returns the zero value if the annotation is missing or invalid.
func ParseTraceParent(annotations map[string]string) (TraceParent, field.ErrorList) {
	text, set := annotations[AnnotationTraceParent]
	if !set {
		return TraceParent{}, nil
	}
	parts := traceParent.FindStringSubmatch(text)
	if parts == nil || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return TraceParent{}, field.ErrorList{field.Invalid(annotationPath(AnnotationTraceParent), text,
			"must be a traceparent of W3C Trace Context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}
	}
	flags, err := hex.DecodeString(parts[3])
	return TraceParent{TraceID: parts[1], SpanID: parts[2], Sampled: err == nil && flags[0]&1 == 1}, nil
}
