package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestLimitsAreKept: jobs of both kinds with more workers or GPUs than the annotations of their namespace allow are refused with the
// figures. Jobs of the allowed size succeed.
func TestLimitsAreKept(t *testing.T) {
	needTrainer(t)
	parallel(t, 4)
	name := newNamespace(t)
	runtimeIn(t, name, "mpi-openmpi")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := `{"metadata":{"annotations":{"` + mpi.AnnotationMaxWorkers + `":"2","` + mpi.AnnotationMaxGPUs + `":"0"}}}`
	if err := api.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	gpus := openMPI(name, 1, "true")
	worker(gpus).Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1")
	for _, job := range []struct {
		object client.Object
		figure string
	}{
		{openMPI(name, 3, "true"), "at most 2"},
		{gpus, "at most 0"},
		{trainJob(t, name, "{numNodes: 3, command: ['true']}"), "at most 2"},
		{trainJob(t, name, "{numNodes: 2, command: ['true'], resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}"), "at most 0"},
	} {
		refused(t, job.object, apierrors.IsInvalid, job.figure)
	}
	allowed := []client.Object{openMPI(name, 2, "mpirun", "-n", "2", "ranks"), trainJob(t, name, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")}
	for _, job := range allowed {
		createTrainJob(t, job)
	}
	eventually(t, "jobs of the allowed size succeed", time.Minute, func() error { return allSucceeded(t, allowed...) })
}
