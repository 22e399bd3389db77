package cluster

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/logs"
)

// NewReadOnly returns a Cluster that observes jobs in saved objects. It cannot write.
func NewReadOnly(from client.Reader, clock clock.PassiveClock) *Cluster {
	return New(reading{from: from}, from, nil, clock)
}

// reading is a client without writes.
type reading struct {
	client.Client
	from client.Reader
}

func (r reading) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return r.from.Get(ctx, key, into, options...)
}

func (r reading) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return r.from.List(ctx, into, options...)
}

// AsCached changes an object to what the operator's caches keep of it.
func AsCached(masker logs.Masker, object client.Object) {
	switch object := object.(type) {
	case *corev1.Pod:
		_, _ = masked(masker, trimPod)(object) // it fails for no pod
	case *batchv1.Job:
		_, _ = trimLauncher(object)
	}
}

// PodsByJob is the index of pods by the job of an operator's own label, and ByLabel those of AddLabelIndexes.
const PodsByJob = podsByJob
