package admission

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestTooLarge: a number that a field cannot hold is refused at the user's own field.
func TestTooLarge(t *testing.T) {
	for name, test := range map[string]struct{ job, want string }{
		"largest": {job: `{spec: {slotsPerWorker: 2147483647, mpiReplicaSpecs: {Worker: {replicas: 2147483647}}}}`},
		"replicas": {
			job:  `{spec: {mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 3000000000}}}}`,
			want: `spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 3000000000: use 2147483647 or less`,
		},
		"several, beyond int64 too": {
			job: `{spec: {slotsPerWorker: 1e30, runPolicy: {backoffLimit: 2147483648}}}`,
			want: `[spec.slotsPerWorker: Invalid value: 1e+30: use 2147483647 or less, ` +
				`spec.runPolicy.backoffLimit: Invalid value: 2147483648: use 2147483647 or less]`,
		},
		"a TrainJob's nodes":                 {job: `{spec: {trainer: {numNodes: 9999999999}}}`, want: `spec.trainer.numNodes: Invalid value: 9999999999: use 2147483647 or less`},
		"not a number, which others refuse":  {job: `{spec: {slotsPerWorker: many, mpiReplicaSpecs: [], runPolicy: null}}`},
		"a number of seconds that is larger": {job: `{spec: {runPolicy: {activeDeadlineSeconds: 3000000000}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(test.job))
			job := &unstructured.Unstructured{}
			if err := errors.Join(err, json.Unmarshal(data, &job.Object)); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := tooLarge(job).ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
