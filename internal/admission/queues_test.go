package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestPriorityInQueue: a new job of either kind in a queue is warned if its priority class there does not exist, also if the queue does not
// exist.
func TestPriorityInQueue(t *testing.T) {
	const missing = "metadata.labels[kueue.x-k8s.io/priority-class]: WorkloadPriorityClass nosuch does not exist (those that exist: high). Kueue does not queue the job until it does"
	for name, test := range map[string]struct {
		queue, priority string
		err             error
		want            []string
	}{
		"missing":                {queue: "team", priority: "nosuch", want: []string{missing}},
		"it exists":              {queue: "team", priority: "high"},
		"none":                   {queue: "team"},
		"in no queue":            {priority: "nosuch"},
		"classes are unreadable": {queue: "team", priority: "nosuch", err: errors.New("forbidden")},
	} {
		t.Run(name, func(t *testing.T) {
			api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					classes := list.(*metav1.PartialObjectMetadataList)
					if want := (schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadPriorityClassList"}); classes.GroupVersionKind() != want {
						t.Errorf("%s are listed", classes.GroupVersionKind())
					}
					classes.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "high"}}}
					return test.err
				},
			}).Build()
			labels := map[string]string{}
			for label, value := range map[string]string{mpi.LabelQueue: test.queue, mpi.LabelQueuePriority: test.priority} {
				if value != "" {
					labels[label] = value
				}
			}
			object := mpitest.MPIJob("ns", 2)
			object.Labels = labels
			converted, _ := mpijob.Kind{}.Convert(object)
			for kind, job := range map[string]mpi.Job{
				"MPIJob": converted, "TrainJob": trainjob.Convert(trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", Labels: labels}}, trainjob.Runtime{}),
			} {
				if got := checkQueue(t.Context(), api, job); !slices.Equal(got, test.want) {
					t.Errorf("%s: %q, want %q", kind, got, test.want)
				}
			}
		})
	}
}
