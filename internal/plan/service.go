package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// service returns the headless Service for the pods' host names, or nil if it is up to date. It publishes addresses
// of pods that are not ready: a launcher looks up its workers while they start.
func service(job mpi.Job, seen jobstate.Observed) Object {
	var uid types.UID
	if have := seen.Service; have != nil {
		if have.Spec.PublishNotReadyAddresses && maps.Equal(have.Spec.Selector, job.Selector()) {
			return nil
		}
		uid = have.UID
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta(job, job.ServiceName(), uid),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 job.Selector(),
			PublishNotReadyAddresses: true,
		},
	}
}
