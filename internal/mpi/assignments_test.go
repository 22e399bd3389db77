package mpi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestRemoveAssignments: what Kueue wrote into a job is removed, and what users wrote stays, also with names of Kueue.
func TestRemoveAssignments(t *testing.T) {
	for name, test := range map[string]struct{ job, want string }{
		"MPIJob": {
			`{"spec":{"mpiReplicaSpecs":{
"Launcher":{"template":{"metadata":{"annotations":{"kueue.x-k8s.io/workload":"w"},"labels":{"kueue.x-k8s.io/podset":"launcher"}},"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/topology"}]}}},
"Worker":{"template":{"metadata":{"annotations":{"kueue.x-k8s.io/workload":"w","kueue.x-k8s.io/podset-required-topology":"zone"},"labels":{"kueue.x-k8s.io/podset":"worker","team":"a"}},"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/topology"},{"name":"own"}]}}}}}}`,
			`{"spec":{"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{}}},
"Worker":{"template":{"metadata":{"annotations":{"kueue.x-k8s.io/podset-required-topology":"zone"},"labels":{"team":"a"}},"spec":{"schedulingGates":[{"name":"own"}]}}}}}}`,
		},
		"TrainJob": {
			`{"spec":{"runtimePatches":[{"manager":"kueue.x-k8s.io/manager"},{"manager":"me","time":"2026-01-01T00:00:00Z"}]}}`,
			`{"spec":{"runtimePatches":[{"manager":"me"}]}}`,
		},
		"TrainJob without others": {`{"spec":{"runtimePatches":[{"manager":"kueue.x-k8s.io/manager"}]}}`, `{"spec":{}}`},
		"no queue":                {`{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":1}}}}`, `{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":1}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			job := fieldsOf(t, test.job)
			mpi.RemoveAssignments(job)
			if diff := cmp.Diff(fieldsOf(t, test.want), job); diff != "" {
				t.Errorf("it is (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeepPlacement: an admitted job has the node selectors and tolerations from before.
func TestKeepPlacement(t *testing.T) {
	job := fieldsOf(t, `{"spec":{"mpiReplicaSpecs":{
"Launcher":{"template":{"spec":{"nodeSelector":{"flavor":"a"},"tolerations":[{"key":"flavor"}]}}},
"Worker":{"template":{"spec":{"nodeSelector":{"flavor":"a","disk":"ssd"},"image":"i"}}}}}}`)
	mpi.KeepPlacement(job, `{"spec":{"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{}}},"Worker":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}}}`)
	want := fieldsOf(t, `{"spec":{"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{}}},"Worker":{"template":{"spec":{"nodeSelector":{"disk":"ssd"},"image":"i"}}}}}}`)
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("it is (-want +got):\n%s", diff)
	}
}

func fieldsOf(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
