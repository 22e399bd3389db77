package controller

import (
	"context"
	"slices"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

func readersOf(t *testing.T, objects ...client.Object) kinds.Readers {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kubeflow.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return kinds.Readers{Cached: reader, Live: reader}
}

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// forgetful records the jobs that it is to forget.
type forgetful struct{ forgotten []mpi.ID }

func (*forgetful) State(mpi.Job, jobstate.Observed) *jobstate.GangState { return nil }

func (*forgetful) IsUsable() bool { return true }

func (*forgetful) Enqueue(context.Context, mpi.Job, jobstate.Observed, *v1alpha1.SchedulingStatus, bool) *jobstate.GangState {
	return nil
}

func (f *forgetful) Forget(job mpi.ID) { f.forgotten = append(f.forgotten, job) }

// TestForget: a deleted job leaves the gang scheduler's queue, in which a job of its name and another kind stays.
func TestForget(t *testing.T) {
	for _, kind := range []kinds.Kind{mpijob.Kind{}, trainjob.NewKind()} {
		t.Run(kind.Name(), func(t *testing.T) {
			queue := &forgetful{}
			r := &reconciler{kind: kind, gangs: &Gangs{embedded: queue}, queues: &queues{without: &jobTimes{}, unfit: &jobTimes{}}, quotas: &quotas{}}
			if err := r.forget(t.Context(), keyOf("ns", "pi")); err != nil {
				t.Fatal(err)
			}
			if want := []mpi.ID{{Kind: kind.Name(), Namespace: "ns", Name: "pi"}}; !slices.Equal(queue.forgotten, want) {
				t.Errorf("the scheduler forgot %v, want %v", queue.forgotten, want)
			}
		})
	}
}
