package mpi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpi"
)

func TestParseConnections(t *testing.T) {
	const at = "metadata.annotations[opendatahub.io/connections]: Invalid value: "
	const label = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	tests := map[string]struct {
		text string
		want []string
		errs []string
	}{
		"none":                      {},
		"blank":                     {text: " , "},
		"one":                       {text: "data", want: []string{"data"}},
		"several, in their order":   {text: "results, data ,", want: []string{"results", "data"}},
		"with the job's namespace":  {text: "ns/data,results", want: []string{"data", "results"}},
		"one named twice":           {text: "data,ns/data", want: []string{"data"}},
		"one of another namespace":  {text: "other/data", errs: []string{at + `"other/data": is in another namespace than the job: pods can only read Secrets of their own namespace, ns; create the connection there`}},
		"no name of a Secret":       {text: "My data", errs: []string{at + `"My data": must be the name of a Secret: ` + label + "; separate several names by commas"}},
		"a wrong one beside a good": {text: "data,other/x", want: []string{"data"}, errs: []string{at + `"other/x": is in another namespace than the job: pods can only read Secrets of their own namespace, ns; create the connection there`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := mpi.ParseConnections("ns", map[string]string{mpi.AnnotationConnections: test.text})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names: %s", diff)
			}
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			if diff := cmp.Diff(test.errs, texts); diff != "" {
				t.Errorf("errors: %s", diff)
			}
		})
	}
}

func TestValidateConnections(t *testing.T) {
	s3 := func(name string) mpi.Connection {
		return mpi.Connection{Name: name, Keys: []string{"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_S3_BUCKET", "AWS_S3_ENDPOINT", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}}
	}
	const path = "metadata.annotations[opendatahub.io/connections]: "
	const instead = ", and a rank can only get one of each: remove one of these connections, and set its keys as variables with other names (env: valueFrom: secretKeyRef)"
	tests := map[string]struct {
		found          []mpi.Connection
		others         []string
		errs, warnings []string
	}{
		"none":            {},
		"different ones":  {found: []mpi.Connection{s3("data"), {Name: "model", Keys: []string{"URI"}}}},
		"one that is not": {found: []mpi.Connection{{Name: "data", Missing: true}}, warnings: []string{path + `Secret "data" does not exist in namespace ns; the pods do not start until it is created`}},
		"one that is not, and others are": {
			found: []mpi.Connection{{Name: "data", Missing: true}}, others: []string{"a", "b"},
			warnings: []string{path + `Secret "data" does not exist in namespace ns; the pods do not start until it is created. Data connections of the namespace: a, b`},
		},
		"two of S3": {found: []mpi.Connection{s3("data"), s3("results")}, errs: []string{
			path + `Invalid value: "data,results": both set AWS_ACCESS_KEY_ID, AWS_DEFAULT_REGION, AWS_S3_BUCKET, AWS_S3_ENDPOINT, AWS_SECRET_ACCESS_KEY and 1 more` + instead,
		}},
		"three, and one is not": {
			found:    []mpi.Connection{{Name: "a", Keys: []string{"URI"}}, {Name: "b", Keys: []string{"URI"}}, {Name: "c", Missing: true}, {Name: "d", Keys: []string{"URI"}}},
			errs:     []string{path + `Invalid value: "a,b": both set URI` + instead, path + `Invalid value: "a,d": both set URI` + instead},
			warnings: []string{path + `Secret "c" does not exist in namespace ns; the pods do not start until it is created`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			errs, warnings := mpi.ValidateConnections("ns", test.found, test.others)
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			if diff := cmp.Diff(test.errs, texts); diff != "" {
				t.Errorf("errors: %s", diff)
			}
			if diff := cmp.Diff(test.warnings, warnings); diff != "" {
				t.Errorf("warnings: %s", diff)
			}
		})
	}
}

// TestTooManyConnections: admission reads each of them from the API server, and has to answer in seconds.
func TestTooManyConnections(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("data-%d", i)
	}
	got, errs := mpi.ParseConnections("ns", map[string]string{mpi.AnnotationConnections: strings.Join(names, ",")})
	if len(got) != mpi.MaxConnections || len(errs) != 1 || errs[0].Error() != "metadata.annotations[opendatahub.io/connections]: Too many: 100000: must have at most 32 items" {
		t.Errorf("%d connections, %v", len(got), errs)
	}
}
