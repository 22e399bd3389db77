package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestRemedyChanges(t *testing.T) {
	t.Parallel()
	const memory = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits.memory"
	for name, test := range map[string]struct {
		remedy v1alpha1.Remedy
		want   []Change
		none   bool
	}{
		"run again": {remedy: v1alpha1.Remedy{Text: "Start the job again.", Rerun: true}},
		"changes, in order": {
			remedy: v1alpha1.Remedy{Rerun: true, Changes: []v1alpha1.FieldChange{{Field: memory, Value: "12Gi"}, {Field: "env.A", Value: "1"}}},
			want:   []Change{{memory, "12Gi"}, {"env.A", "1"}},
		},
		"a variable that the job does not set": {remedy: v1alpha1.Remedy{Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "env.NONE"}}}, none: true},
		"a text":                               {remedy: v1alpha1.Remedy{Text: "Start the job again.", Action: "spec.slotsPerWorker: 4"}, none: true},
		"a field that this job does not have":  {remedy: v1alpha1.Remedy{Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "spec.mpiReplicaSpecs.Worker.template.spec.containers[7].tty", Value: "true"}}}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := FromObject(parsed(t, mpiJobText))
			before := job.Object.DeepCopy()
			got, ok := RemedyChanges(job, test.remedy)
			if ok == test.none {
				t.Fatalf("can be applied: %t", ok)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, job.Object); diff != "" {
				t.Errorf("the job itself was changed: %s", diff)
			}
		})
	}
	resources := v1alpha1.Remedy{Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "spec.trainer.resourcesPerNode.limits.memory", Value: "12Gi"}}}
	train := FromObject(parsed(t, trainJobText))
	if _, ok := RemedyChanges(train, resources); ok {
		t.Error("the resources of the runtime are replaced")
	}
	if err := Apply(train.Object, Change{"memory", "8Gi"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := RemedyChanges(train, resources); !ok {
		t.Error("the job's own resources cannot be changed")
	}
	if _, ok := RemedyChanges(Job{Name: "gone"}, v1alpha1.Remedy{Rerun: true}); ok {
		t.Error("a deleted job can be run again")
	}
}
