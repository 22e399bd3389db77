package mpi_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/mpi"
)

func TestParseTraceParent(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for name, test := range map[string]struct {
		text    string
		want    mpi.TraceParent
		invalid bool
	}{
		"sampled":                   {text: "00-" + trace + "-" + span + "-01", want: mpi.TraceParent{TraceID: trace, SpanID: span, Sampled: true}},
		"sampled with a random ID":  {text: "00-" + trace + "-" + span + "-03", want: mpi.TraceParent{TraceID: trace, SpanID: span, Sampled: true}},
		"not sampled":               {text: "00-" + trace + "-" + span + "-00", want: mpi.TraceParent{TraceID: trace, SpanID: span}},
		"empty":                     {text: "", invalid: true},
		"no trace":                  {text: "00-00000000000000000000000000000000-" + span + "-01", invalid: true},
		"no span":                   {text: "00-" + trace + "-0000000000000000-01", invalid: true},
		"upper case":                {text: "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01", invalid: true},
		"another version":           {text: "ff-" + trace + "-" + span + "-01", invalid: true},
		"more than the header has":  {text: "00-" + trace + "-" + span + "-01-x", invalid: true},
		"a line break after it":     {text: "00-" + trace + "-" + span + "-01\n", invalid: true},
		"flags that are no numbers": {text: "00-" + trace + "-" + span + "-xx", invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := mpi.ParseTraceParent(map[string]string{mpi.AnnotationTraceParent: test.text})
			if got != test.want || (len(errs) > 0) != test.invalid {
				t.Errorf("got %+v, %v; want %+v, an error: %v", got, errs, test.want, test.invalid)
			}
		})
	}
	if got, errs := mpi.ParseTraceParent(nil); got != (mpi.TraceParent{}) || errs != nil {
		t.Errorf("without the annotation: %+v, %v", got, errs)
	}
}
