package controller

import (
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestEncryptionIsRequiredOfResumedJobs: whatever a job was when it was created, it gets no pods that communicate in plain text. A job
// whose pods communicate goes on if the encryption ends.
func TestEncryptionIsRequiredOfResumedJobs(t *testing.T) {
	job := mpitest.Job(2)
	stopped := launcherOf(job)
	stopped.Spec.Suspend = new(true)
	leaving := mpitest.Worker(job, 0, corev1.PodRunning, mpitest.Leaving).Pod
	leaving.Finalizers = []string{"example.com/wait"}
	onHosts := func(o *kubeflow.MPIJob) {
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.HostNetwork = true
	}
	launcher := []client.Object{serviceOf(job), launcherOf(job), mpitest.LauncherPod(job, 0, corev1.PodRunning)}
	const nothing = "nothing on this cluster is known to do so"
	for name, test := range map[string]struct {
		objects   []client.Object
		change    func(*kubeflow.MPIJob)
		encrypted bool
		phase     v1alpha1.Phase
		says      string
		pods      int
	}{
		"resumed":                            {objects: []client.Object{serviceOf(job), stopped}, encrypted: true, phase: v1alpha1.PhasePending, pods: 2},
		"changed and resumed":                {objects: []client.Object{serviceOf(job), stopped}, encrypted: true, change: onHosts, phase: v1alpha1.PhasePending, says: "template.spec.hostNetwork: Forbidden"},
		"changed and resumed at once":        {objects: []client.Object{serviceOf(job), stopped, leaving}, encrypted: true, change: onHosts, phase: v1alpha1.PhaseInitializing, says: "template.spec.hostNetwork: Forbidden"},
		"resumed after the encryption ended": {objects: []client.Object{serviceOf(job), stopped}, phase: v1alpha1.PhasePending, says: nothing},
		"grown from one pod":                 {objects: launcher, phase: v1alpha1.PhaseInitializing, says: nothing},
		"grown from one pod, encrypted":      {objects: launcher, encrypted: true, phase: v1alpha1.PhaseInitializing, pods: 2},
		"running when the encryption ends":   {objects: append(workersOf(job), launcher[1:]...), phase: v1alpha1.PhaseRunning},
		"a worker is lost after it ended":    {objects: append(workersOf(job)[:2], launcher[1:]...), phase: v1alpha1.PhaseInitializing, pods: 1},
	} {
		t.Run(name, func(t *testing.T) {
			object := mpitest.MPIJob("ns", 2)
			object.APIVersion, object.Kind, object.UID = "kubeflow.org/v2beta1", "MPIJob", "uid-pi"
			if test.change != nil {
				test.change(object)
			}
			objects := append([]client.Object{object}, test.objects...)
			if test.encrypted {
				objects = append(objects, mpitest.Encrypted()...)
			}
			r := gatherer(t, mpijob.Kind{}, objects...)
			r.settings = plan.Settings{RequireEncryption: true}
			g, d := gatherAndDecide(t, r, keyOf("ns", "pi"))
			if d.out.Phase != test.phase || !strings.Contains(d.out.Message, test.says) {
				t.Errorf("it is %s of %s: %s", d.out.Phase, d.out.Reason, d.out.Message)
			}
			if len(d.plan.Pods) != test.pods {
				t.Errorf("the plan creates %d pods, want %d: %+v", len(d.plan.Pods), test.pods, d.plan.Pods)
			}
			if refused := d.out.Reason == codes.ValidationError; refused != (test.says != "") || refused && (len(d.plan.Base) > 0 || requeueAfter(g, d, acted{}) != cluster.EncryptionInterval) {
				t.Errorf("its reason is %s, the plan applies %+v, and it is looked at again in %s", d.out.Reason, d.plan.Base, requeueAfter(g, d, acted{}))
			}
		})
	}
}
