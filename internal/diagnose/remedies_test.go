package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestAdaptRemedy: a remedy can be applied if the users of the job's kind can set all of its fields.
func TestAdaptRemedy(t *testing.T) {
	t.Parallel()
	changes := func(fields ...string) (all []v1alpha1.FieldChange) {
		for _, field := range fields {
			all = append(all, v1alpha1.FieldChange{Field: field, Value: "1"})
		}
		return all
	}
	for name, test := range map[string]struct {
		kind         string
		remedy, want v1alpha1.Remedy
	}{
		"a field of an MPIJob": {
			"MPIJob",
			v1alpha1.Remedy{Action: "spec.a: 1", Rerun: true, Changes: changes("spec.a", "env.B", "metadata.labels[c]")},
			v1alpha1.Remedy{Action: "spec.a: 1", Rerun: true, Changes: changes("spec.a", "env.B", "metadata.labels[c]")},
		},
		"no field": {"MPIJob", v1alpha1.Remedy{Text: "Try.", Rerun: true, Changes: changes("slots of a worker")}, v1alpha1.Remedy{Text: "Try."}},
		"a field elsewhere": {
			"TrainJob",
			v1alpha1.Remedy{Action: "spec.trainer.spec.containers[0].resources.limits.memory", Rerun: true, Changes: changes("spec.trainer.spec.containers[0].resources.limits.memory")},
			v1alpha1.Remedy{Action: "spec.trainer.resourcesPerNode.limits.memory", Rerun: true, Changes: changes("spec.trainer.resourcesPerNode.limits.memory")},
		},
		"a field of the runtime": {
			"TrainJob", v1alpha1.Remedy{Rerun: true, Changes: changes("env.A", "spec.trainer.metadata.labels[b]")}, v1alpha1.Remedy{},
		},
		"a field of MPIJobs": {"TrainJob", v1alpha1.Remedy{Rerun: true, Changes: changes("spec.launcherCreationPolicy")}, v1alpha1.Remedy{}},
		"an annotation of MPIJobs": {
			"TrainJob", v1alpha1.Remedy{Action: "x", Rerun: true, Changes: changes("metadata.annotations[mpi.opendatahub.io/launch]")}, v1alpha1.Remedy{Action: "x"},
		},
		"run again":              {"TrainJob", v1alpha1.Remedy{Rerun: true}, v1alpha1.Remedy{Rerun: true}},
		"run again after a step": {"MPIJob", v1alpha1.Remedy{Action: "see it", Rerun: true}, v1alpha1.Remedy{Action: "see it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &input{&facts.Facts{Job: mpi.Job{Kind: test.kind}}}
			p.adaptRemedy(&test.remedy)
			if diff := cmp.Diff(test.want, test.remedy); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAgentNeedsNoCommand: a remedy that lets the agent start the ranks removes the workers' own command.
func TestAgentNeedsNoCommand(t *testing.T) {
	t.Parallel()
	p := &input{&facts.Facts{Job: mpi.Job{Kind: "MPIJob"}}}
	p.Job.Fields.WorkerTemplate = field.NewPath("spec", "mpiReplicaSpecs").Key("Worker").Child("template")
	p.Job.Workers.Template.Spec.Containers = []corev1.Container{{Command: []string{"/usr/sbin/sshd", "-De"}}}
	remedy := v1alpha1.Remedy{Rerun: true, Changes: []v1alpha1.FieldChange{{Field: "metadata.annotations[mpi.opendatahub.io/launch]", Value: "agent"}}}
	p.adaptRemedy(&remedy)
	const container = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0]."
	want := []v1alpha1.FieldChange{{Field: "metadata.annotations[mpi.opendatahub.io/launch]", Value: "agent"}, {Field: container + "command", Value: "null"}, {Field: container + "args", Value: "null"}}
	if diff := cmp.Diff(want, remedy.Changes); diff != "" {
		t.Error(diff)
	}
}
