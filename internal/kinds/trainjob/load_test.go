package trainjob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestSnapshotAllowsNoEgress: a user who writes the ConfigMap in which Trainer keeps a job's runtime cannot allow
// destinations with it. Only the runtime itself can.
func TestSnapshotAllowsNoEgress(t *testing.T) {
	job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "uid"}}
	job.Spec.RuntimeRef.Name = "mpi"
	forged := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-runtime-snapshot", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: job.Name, UID: job.UID, Controller: new(true)},
		}},
		Data: map[string]string{"runtime": "metadata: {name: mpi, annotations: {" + mpi.AnnotationAllowEgress + ": 0.0.0.0/0, other: kept}}"},
	}
	runtime := func(allow string) client.Object {
		of := &unstructured.Unstructured{}
		of.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind))
		of.SetName("mpi")
		if allow != "" {
			of.SetAnnotations(map[string]string{mpi.AnnotationAllowEgress: allow})
		}
		return of
	}
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"the runtime allows nothing": {[]client.Object{forged, runtime("")}, ""},
		"the runtime allows a port":  {[]client.Object{forged, runtime("2049")}, "2049"},
		"the runtime is gone":        {[]client.Object{forged}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := mpitest.FakeAPI().WithObjects(test.objects...).Build()
			used, err := trainjob.RuntimeOf(t.Context(), api, job)
			if err != nil || used == nil {
				t.Fatalf("%v, %v", used, err)
			}
			if got := used.Annotations[mpi.AnnotationAllowEgress]; got != test.want || used.Annotations["other"] != "kept" {
				t.Errorf("the annotations are %v, want egress to %q", used.Annotations, test.want)
			}
		})
	}
}

// TestSnapshotHidesNoMPI: a job whose runtime has MPI is one of MPI, whatever the ConfigMap contains that its user can write. A
// later change of the runtime does not apply to the job otherwise.
func TestSnapshotHidesNoMPI(t *testing.T) {
	job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "uid"}}
	job.Spec.RuntimeRef.Name = "mpi"
	const ofMPI = "{mlPolicy: {mpi: {}}}"
	tests := map[string]struct {
		snapshot, live string
		isMPI          bool
	}{
		"forged, without MPI":            {snapshot: "{}", live: ofMPI, isMPI: true},
		"forged, without our annotation": {snapshot: ofMPI, live: ofMPI, isMPI: true},
		"changed since":                  {snapshot: "ours", live: "{mlPolicy: {torch: {}}}", isMPI: true},
		"deleted since":                  {snapshot: "ours", isMPI: true},
		"none of MPI":                    {snapshot: "{}", live: "{}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := "{metadata: {name: mpi}, spec: " + test.snapshot + "}"
			if test.snapshot == "ours" {
				text = "{metadata: {name: mpi, annotations: {" + mpi.AnnotationImplementation + ": OpenMPI}}, spec: " + ofMPI + "}"
			}
			objects := []client.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-runtime-snapshot", OwnerReferences: []metav1.OwnerReference{
					{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: job.Name, UID: job.UID, Controller: new(true)},
				}},
				Data: map[string]string{"runtime": text},
			}}
			if test.live != "" {
				live := &unstructured.Unstructured{Object: tree(t, "{spec: "+test.live+"}")}
				live.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind))
				live.SetName("mpi")
				live.SetAnnotations(map[string]string{mpi.AnnotationImplementation: "OpenMPI"})
				objects = append(objects, live)
			}
			used, err := trainjob.RuntimeOf(t.Context(), mpitest.FakeAPI().WithObjects(objects...).Build(), job)
			if err != nil || used == nil {
				t.Fatalf("%v, %v", used, err)
			}
			converted := trainjob.Convert(job, *used)
			if converted.Launcher.None == test.isMPI || test.isMPI && used.Annotations[mpi.AnnotationImplementation] == "" {
				t.Errorf("it is %+v", used)
			}
		})
	}
}

// TestRuntimeThatCannotExist: a name that no object can have is not asked for. Trainer or the API server refuse the job.
func TestRuntimeThatCannotExist(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "..", "a/b"} {
		var job trainjob.TrainJob
		job.Spec.RuntimeRef.Name = name
		if found, err := trainjob.LoadRuntime(t.Context(), nil, job); err != nil || found != nil {
			t.Errorf("runtime %q: found %v, error %v", name, found, err)
		}
	}
}
