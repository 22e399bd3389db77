package jobs

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestOwnPlace forges the labels of a job's pods.
func TestOwnPlace(t *testing.T) {
	t.Parallel()
	controlledBy := func(kind, name, uid string) []metav1.OwnerReference {
		group := map[string]string{"MPIJob": "kubeflow.org/v2beta1", "TrainJob": "trainer.kubeflow.org/v1alpha1", "Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "ReplicaSet": "apps/v1"}[kind]
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
	}
	batch := func(name string, owners []metav1.OwnerReference) client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), OwnerReferences: owners}}
	}
	jobSet := func(owners []metav1.OwnerReference) client.Object {
		set := object(t, `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: pi, uid: set-uid}}`)
		set.SetOwnerReferences(owners)
		return set
	}
	mine, notController := controlledBy("MPIJob", "pi", "pi-uid"), controlledBy("MPIJob", "pi", "pi-uid")
	notController[0].Controller = nil
	for name, test := range map[string]struct {
		job, role string
		owners    []metav1.OwnerReference
		objects   []client.Object
		// refused is the kind that the user may not read.
		refused string
		want    bool
	}{
		"a worker":                             {role: "worker", owners: mine, want: true},
		"labels alone":                         {role: "worker"},
		"a launcher with labels alone":         {role: "launcher"},
		"an owner that is no controller":       {role: "worker", owners: notController},
		"an earlier job of the name":           {role: "worker", owners: controlledBy("MPIJob", "pi", "earlier")},
		"a Deployment's":                       {role: "worker", owners: controlledBy("ReplicaSet", "pi-worker", "x")},
		"a launcher":                           {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), objects: []client.Object{batch("pi-launcher", mine)}, want: true},
		"the pod of a Job of someone":          {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), objects: []client.Object{batch("pi-launcher", nil)}},
		"the pod of a Job of another job":      {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), objects: []client.Object{batch("pi-launcher", controlledBy("MPIJob", "tune", "tune-uid"))}},
		"a launcher whose Job is deleted":      {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), want: true},
		"a launcher whose Job cannot be read":  {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), refused: "Job", want: true},
		"another Job that cannot be read":      {role: "launcher", owners: controlledBy("Job", "tune-launcher", "tune-launcher-uid"), refused: "Job"},
		"a node of a TrainJob":                 {job: trainJobText, owners: controlledBy("Job", "pi-node-0", "pi-node-0-uid"), objects: []client.Object{batch("pi-node-0", controlledBy("JobSet", "pi", "set-uid")), jobSet(controlledBy("TrainJob", "pi", "pi-uid"))}, want: true},
		"a TrainJob whose JobSet is forbidden": {job: trainJobText, owners: controlledBy("Job", "pi-node-0", "pi-node-0-uid"), objects: []client.Object{batch("pi-node-0", controlledBy("JobSet", "pi", "set-uid"))}, refused: "JobSet", want: true},
		"a JobSet of someone":                  {job: trainJobText, owners: controlledBy("Job", "pi-node-0", "pi-node-0-uid"), objects: []client.Object{batch("pi-node-0", controlledBy("JobSet", "pi", "set-uid")), jobSet(nil)}},
		"a Job beside the JobSet":              {job: trainJobText, owners: controlledBy("Job", "pi-node-0", "pi-node-0-uid"), objects: []client.Object{batch("pi-node-0", nil)}},
		"Jobs in a circle":                     {role: "launcher", owners: controlledBy("Job", "pi-launcher", "pi-launcher-uid"), objects: []client.Object{batch("pi-launcher", controlledBy("Job", "pi-launcher", "pi-launcher-uid"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.job == "" {
				test.job = mpiJobText
			}
			job := FromObject(object(t, test.job))
			c, s := newServer(t, test.objects...)
			reads := 0
			s.refuse = func(_, kind string) error {
				if reads++; kind == test.refused {
					return forbidden(kind)
				}
				return nil
			}
			labels := job.PodLabels()
			labels[mpi.LabelRole] = test.role
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi-worker-0", Labels: labels, OwnerReferences: test.owners, CreationTimestamp: metav1.Time{Time: now}}}
			own := c.OwnPlace(t.Context(), job)
			_, got := own(pod)
			first := reads
			if _, again := own(pod); got != test.want || again != got {
				t.Errorf("the pod is the job's: %v, then %v; want %v", got, again, test.want)
			}
			if most := len(test.owners) * 2; first > most || reads != first {
				t.Errorf("%d reads, then %d", first, reads-first)
			}
		})
	}
}
