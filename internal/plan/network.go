package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
)

// service is the headless Service behind the pods' host names, nil if it is there as it should be. It
// publishes pods that are not ready: a launcher looks its workers up while they start.
func service(job mpi.Job, seen mpi.Observed) Object {
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
