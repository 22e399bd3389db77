package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestProblemOfAClaim: the warning about a claim that is not bound is evidence, if it is about this claim.
func TestProblemOfAClaim(t *testing.T) {
	t.Parallel()
	const absent = `storageclass.storage.k8s.io "fast" not found`
	for name, test := range map[string]struct {
		phase corev1.PersistentVolumeClaimPhase
		of    types.UID
		want  string
	}{
		"it is not bound":     {corev1.ClaimPending, "uid-data", absent},
		"it is bound":         {corev1.ClaimBound, "uid-data", ""},
		"of an earlier claim": {corev1.ClaimPending, "uid-old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpitest.Job(1, func(j *mpi.Job) {
				j.Workers.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}}}
			})
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "data", UID: "uid-data"},
				Status:     corev1.PersistentVolumeClaimStatus{Phase: test.phase},
			}
			event := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "data.1"}, Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: absent,
				InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: job.Namespace, Name: "data", UID: test.of},
			}
			about := func(field func(*corev1.Event) string) client.IndexerFunc {
				return func(object client.Object) []string { return []string{field(object.(*corev1.Event))} }
			}
			live := mpitest.FakeAPI().WithObjects(claim, event).
				WithIndex(&corev1.Event{}, "involvedObject.kind", about(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
				WithIndex(&corev1.Event{}, "involvedObject.name", about(func(e *corev1.Event) string { return e.InvolvedObject.Name })).Build()
			seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodPending)}
			evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, seen, nil)
			if len(evidence.Claims) != 1 || evidence.Claims[0].Problem != test.want {
				t.Errorf("%+v, want the problem %q", evidence.Claims, test.want)
			}
		})
	}
}

// TestClaimOfAPatchedPod: a TrainJob mounts claims by patches of its runtime, which only its pods show.
func TestClaimOfAPatchedPod(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1, func(j *mpi.Job) { j.External = true })
	seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodPending)}
	whole := seen.Workers[0].Pod.DeepCopy()
	whole.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	live := mpitest.FakeAPI().WithObjects(whole).Build()
	evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, seen, nil)
	if len(evidence.Claims) != 1 || evidence.Claims[0].Name != "data" || !evidence.Claims[0].Missing {
		t.Errorf("the claims are %+v", evidence.Claims)
	}
}

// TestClaimOfAnInitializer: the claims of an initializer that has not started are read.
func TestClaimOfAnInitializer(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1, func(j *mpi.Job) { j.External = true })
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pi-dataset-initializer-0-0-abcde"},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	live := mpitest.FakeAPI().WithObjects(whole).Build()
	seen := jobstate.Observed{Initializers: []*corev1.Pod{{ObjectMeta: whole.ObjectMeta, Status: whole.Status}}}
	evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, seen, nil)
	if len(evidence.Claims) != 1 || evidence.Claims[0].Name != "data" || !evidence.Claims[0].Missing {
		t.Errorf("the claims are %+v", evidence.Claims)
	}
}
