package mpijob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestChange(t *testing.T) {
	suspend := func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) }
	newImage := func(o *kubeflow.MPIJob) {
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Image = "other"
	}
	both := func(a, b func(*kubeflow.MPIJob)) func(*kubeflow.MPIJob) {
		return func(o *kubeflow.MPIJob) { a(o); b(o) }
	}
	over := func(o *kubeflow.MPIJob) {
		o.Status.Conditions = []kubeflow.JobCondition{{Type: kubeflow.JobFailed, Status: corev1.ConditionTrue}}
	}
	created := func(o *kubeflow.MPIJob) {
		o.Status.Conditions = []kubeflow.JobCondition{{Type: kubeflow.JobCreated, Status: corev1.ConditionTrue}}
	}
	silence := func(value string) func(*kubeflow.MPIJob) {
		return func(o *kubeflow.MPIJob) { o.Annotations = map[string]string{mpi.AnnotationSilence: value} }
	}
	slots := func(n int32) func(*kubeflow.MPIJob) {
		return func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = &n }
	}
	nothing := func(*kubeflow.MPIJob) {}
	tests := map[string]struct {
		before, after func(*kubeflow.MPIJob)
		want          []string
	}{
		"nothing":              {nothing, nothing, nil},
		"defaults written out": {nothing, func(o *kubeflow.MPIJob) { kubeflow.SetDefaults_MPIJob(o); o.Spec.RunPolicy.Suspend = new(false) }, nil},
		"more workers": {nothing, func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(9))
		}, nil},
		"what is left of it": {nothing, func(o *kubeflow.MPIJob) {
			o.Spec.RunPolicy.TTLSecondsAfterFinished, o.Spec.RunPolicy.CleanPodPolicy = new(int32(1)), new(kubeflow.CleanPodPolicyAll)
		}, nil},
		"suspension":               {nothing, suspend, nil},
		"an image":                 {nothing, newImage, []string{"spec.mpiReplicaSpecs[Worker].template: Forbidden: " + fixed}},
		"an image of a suspended":  {suspend, both(suspend, newImage), nil},
		"an image with suspension": {nothing, both(suspend, newImage), nil},
		"an image with resumption": {suspend, newImage, nil},
		"a connection": {nothing, func(o *kubeflow.MPIJob) { o.Annotations = map[string]string{mpi.AnnotationConnections: "data"} }, []string{
			"metadata.annotations[opendatahub.io/connections]: Forbidden: " + fixed,
		}},
		"the launch mode": {nothing, func(o *kubeflow.MPIJob) { o.Annotations = map[string]string{mpi.AnnotationLaunch: "sshd"} }, []string{
			"metadata.annotations[mpi.opendatahub.io/launch]: Forbidden: " + fixed,
		}},
		"a connection of a suspended": {suspend, both(suspend, func(o *kubeflow.MPIJob) { o.Annotations = map[string]string{mpi.AnnotationConnections: "data"} }), nil},
		"an image, once it is over":   {over, newImage, []string{"spec.mpiReplicaSpecs[Worker].template: Forbidden: " + mpi.FinishedIsFixed("pi")}},
		"workers and a connection, once it is over": {over, func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(9))
			o.Annotations = map[string]string{mpi.AnnotationConnections: "data"}
		}, []string{
			"spec.mpiReplicaSpecs[Worker].replicas: Forbidden: " + mpi.FinishedIsFixed("pi"), "metadata.annotations[opendatahub.io/connections]: Forbidden: " + mpi.FinishedIsFixed("pi"),
		}},
		"what is left of it, once it is over": {over, func(o *kubeflow.MPIJob) {
			o.Spec.RunPolicy.TTLSecondsAfterFinished, o.Spec.RunPolicy.CleanPodPolicy = new(int32(1)), new(kubeflow.CleanPodPolicyAll)
			o.Spec.RunPolicy.Suspend = new(true)
		}, nil},
		"an image of one that was wrong": {func(o *kubeflow.MPIJob) { o.Spec.MPIImplementation = "LAM" }, newImage, nil},
		"the manager of a suspended": {suspend, both(suspend, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.ManagedBy = new(kubeflow.MultiKueueController) }), []string{
			`spec.runPolicy.managedBy: Invalid value: "kueue.x-k8s.io/multikueue": field is immutable`,
		}},
		"an image of a started one that has become wrong": {both(created, silence("x y")), both(both(created, silence("x y")), newImage), []string{
			"spec.mpiReplicaSpecs[Worker].template: Forbidden: " + fixed,
		}},
		"the correction of a started one": {both(created, slots(-1)), both(created, slots(2)), nil},
		"another correction of a started one": {both(created, slots(-1)), both(both(created, slots(2)), newImage), []string{
			"spec.mpiReplicaSpecs[Worker].template: Forbidden: " + fixed,
		}},
		"the slots of one that has not started": {slots(-1), slots(2), nil},
		"everything": {nothing, func(o *kubeflow.MPIJob) {
			o.Spec.SlotsPerWorker, o.Spec.RunLauncherAsWorker, o.Spec.SSHAuthMountPath = new(int32(2)), new(true), "/keys"
			o.Spec.LauncherCreationPolicy, o.Spec.MPIImplementation = kubeflow.LauncherCreationPolicyWaitForWorkersReady, kubeflow.MPIImplementationIntel
			o.Spec.RunPolicy.ActiveDeadlineSeconds, o.Spec.RunPolicy.BackoffLimit = new(int64(1)), new(int32(1))
			o.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{Queue: "q"}
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
			delete(o.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker)
		}, []string{
			"spec.slotsPerWorker: Forbidden: " + fixed, "spec.runLauncherAsWorker: Forbidden: " + fixed, "spec.sshAuthMountPath: Forbidden: " + fixed,
			"spec.launcherCreationPolicy: Forbidden: " + fixed, "spec.mpiImplementation: Forbidden: " + fixed,
			"spec.runPolicy.activeDeadlineSeconds: Forbidden: " + fixed, "spec.runPolicy.backoffLimit: Forbidden: " + fixed, "spec.runPolicy.schedulingPolicy: Forbidden: " + fixed,
			"spec.mpiReplicaSpecs[Launcher].restartPolicy: Forbidden: " + fixed, "spec.mpiReplicaSpecs[Worker]: Forbidden: " + fixed,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range (Kind{}).Change(mpitest.MPIJob("ns", 2, test.before), mpitest.MPIJob("ns", 2, test.after)) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	job, _ := Kind{}.Convert(mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) {
		o.Spec.SlotsPerWorker = new(int32(0))
		o.Spec.RunPolicy.SchedulingPolicy, o.Spec.LauncherCreationPolicy = &kubeflow.SchedulingPolicy{Queue: "q"}, kubeflow.LauncherCreationPolicyWaitForWorkersReady
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}))
	want := []string{
		`spec.mpiReplicaSpecs[Launcher].template.spec.restartPolicy: "Always" has no effect; set restartPolicy next to replicas`,
		"spec.slotsPerWorker: with 0 slots mpirun cannot start ranks; use 1 or more",
		"spec.runPolicy.schedulingPolicy: the launcher is not one of the 2 pods that are scheduled together, because it is created when all workers are ready",
	}
	if diff := cmp.Diff(want, mpi.Warnings(job)); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}

	host, _ := Kind{}.Convert(mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) {
		worker := &o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec
		worker.HostPID, worker.HostNetwork = true, true
	}))
	want = []string{
		"spec.mpiReplicaSpecs[Worker].template.spec.hostPID: the job can see and signal the processes of other pods on its nodes; MPI does not need it: remove it",
		"spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: two workers on one node cannot both use port 2222; spread the workers over nodes with podAntiAffinity, or remove hostNetwork",
	}
	if diff := cmp.Diff(want, mpi.Warnings(host)); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}

	shared, _ := Kind{}.Convert(mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) {
		o.Spec.SlotsPerWorker = new(int32(4))
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	}))
	want = []string{"spec.slotsPerWorker: 4 ranks per worker with 2 GPUs; most MPI programs for GPUs need one rank per GPU"}
	if diff := cmp.Diff(want, mpi.Warnings(shared)); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}
