package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestEventsOfJobSets: what JobSet could not create is evidence, if the JobSet is the job's own.
func TestEventsOfJobSets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		external bool
		owner    types.UID
		of       types.UID
		want     bool
	}{
		"its JobSet":                          {true, "uid-pi", "uid-set", true},
		"an earlier JobSet of the name":       {true, "uid-pi", "uid-old", false},
		"the JobSet of an earlier job":        {true, "uid-old", "uid-set", false},
		"a job without a JobSet, an MPIJob's": {false, "uid-pi", "uid-set", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpitest.Job(1, func(j *mpi.Job) { j.External, j.Kind = test.external, mpi.KindTrainJob })
			jobSet := &unstructured.Unstructured{}
			jobSet.SetAPIVersion("jobset.x-k8s.io/v1alpha2")
			jobSet.SetKind("JobSet")
			jobSet.SetNamespace(job.Namespace)
			jobSet.SetName(job.Name)
			jobSet.SetUID("uid-set")
			jobSet.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: mpi.KindTrainJob, Name: job.Name, UID: test.owner, Controller: new(true)}})
			event := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pi.1"}, Type: corev1.EventTypeWarning, Reason: "JobCreationFailed", Message: "no",
				InvolvedObject: corev1.ObjectReference{Kind: "JobSet", Namespace: job.Namespace, Name: job.Name, UID: test.of},
			}
			about := func(field func(*corev1.Event) string) client.IndexerFunc {
				return func(object client.Object) []string { return []string{field(object.(*corev1.Event))} }
			}
			live := mpitest.FakeAPI().WithObjects(jobSet, event).
				WithIndex(&corev1.Event{}, "involvedObject.kind", about(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
				WithIndex(&corev1.Event{}, "involvedObject.name", about(func(e *corev1.Event) string { return e.InvolvedObject.Name })).Build()
			evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, jobstate.Observed{}, nil)
			if got := slices.ContainsFunc(evidence.Events, func(e jobstate.Event) bool { return e.Kind == "JobSet" && e.Warning && e.Message == "no" }); got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, evidence.Events)
			}
		})
	}
}
