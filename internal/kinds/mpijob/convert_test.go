package mpijob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestConvertDefaults(t *testing.T) {
	object := mpitest.MPIJob("ns", 2)
	object.UID = "uid-pi"
	job, errs := Kind{}.Convert(object)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if errs := mpi.Validate(job); len(errs) > 0 {
		t.Errorf("a job of defaults is refused: %v", errs)
	}
	job.Fields = mpi.Fields{}
	if diff := cmp.Diff(mpitest.Job(2), job); diff != "" {
		t.Errorf("defaults differ from the core's (-want +got):\n%s", diff)
	}
}

func TestConvertEverything(t *testing.T) {
	object := mpitest.MPIJob("ns", 3, func(o *kubeflow.MPIJob) {
		o.DeletionTimestamp = &metav1.Time{Time: mpitest.Now}
		o.Annotations = map[string]string{mpi.AnnotationSilence: "90s"}
		o.Spec.SlotsPerWorker, o.Spec.RunLauncherAsWorker = new(int32(0)), new(true)
		o.Spec.SSHAuthMountPath, o.Spec.MPIImplementation = "/keys", kubeflow.MPIImplementationMPICH
		o.Spec.LauncherCreationPolicy = kubeflow.LauncherCreationPolicyWaitForWorkersReady
		o.Spec.RunPolicy = kubeflow.RunPolicy{
			CleanPodPolicy: new(kubeflow.CleanPodPolicyAll), TTLSecondsAfterFinished: new(int32(60)), ActiveDeadlineSeconds: new(int64(5)),
			BackoffLimit: new(int32(1)), Suspend: new(true), ManagedBy: new(kubeflow.MultiKueueController),
		}
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].RestartPolicy = kubeflow.RestartPolicyOnFailure
		o.Status.Conditions = []kubeflow.JobCondition{{Type: kubeflow.JobFailed, Status: corev1.ConditionTrue, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(mpitest.Now)}}
	})
	job, errs := Kind{}.Convert(object)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if job.SlotsPerWorker != 0 || !job.Launcher.RunsRanks || job.SSHMountPath != "/keys" || job.Implementation != mpi.MPICH || !job.Launcher.AfterWorkers ||
		job.Launcher.RestartPolicy != corev1.RestartPolicyNever || job.Workers.RestartPolicy != corev1.RestartPolicyOnFailure || job.ManagedBy != kubeflow.MultiKueueController {
		t.Errorf("not all was taken over: %+v", job)
	}
	life := mpi.Lifecycle{Suspended: true, Deleting: true, CleanPods: mpi.CleanAll, TTL: new(time.Minute), Deadline: new(int64(5)), BackoffLimit: new(int32(1)), SilentAfter: 90 * time.Second}
	if diff := cmp.Diff(life, job.Lifecycle); diff != "" {
		t.Errorf("lifecycle differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&mpi.Finish{Reason: "R", Message: "m", At: mpitest.Now}, job.Recorded.Finish); diff != "" {
		t.Errorf("past differs (-want +got):\n%s", diff)
	}
}

// TestConvertPriority: the job's priority class is that of all its pods, unless they have their own.
func TestConvertPriority(t *testing.T) {
	object := mpitest.MPIJob("ns", 1, func(o *kubeflow.MPIJob) {
		o.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{PriorityClass: "high"}
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.PriorityClassName = "low"
	})
	job, errs := Kind{}.Convert(object)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if launcher, worker := job.PriorityClass(mpi.RoleLauncher), job.PriorityClass(mpi.RoleWorker); launcher != "high" || worker != "low" {
		t.Errorf("the launcher has %q, the workers %q", launcher, worker)
	}
	if object.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.PriorityClassName != "" {
		t.Error("the object was changed")
	}
}

// TestConvertRemovedRDMA: a job is without the requests that were removed when it was in a queue, also when it has left the queue, and
// has those that it requests again.
func TestConvertRemovedRDMA(t *testing.T) {
	const device = corev1.ResourceName("rdma/hca")
	for name, test := range map[string]struct {
		queue, rdma string
		again       bool
		want        []corev1.ResourceName
	}{
		"in a queue":           {queue: "team", want: []corev1.ResourceName{device}},
		"it has left a queue":  {want: []corev1.ResourceName{device}},
		"it requests it again": {again: true},
		"it insists":           {rdma: mpi.RDMARequired},
	} {
		t.Run(name, func(t *testing.T) {
			job, _ := Kind{}.Convert(mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) {
				o.Labels = map[string]string{mpi.LabelQueue: test.queue}
				o.Annotations = map[string]string{mpi.AnnotationRemovedRDMA: `[{"op":"add","path":"/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/resources/limits/rdma~1hca","value":1}]`}
				if test.rdma != "" {
					o.Annotations[mpi.AnnotationRDMA] = test.rdma
				}
				if test.again {
					o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{device: resource.MustParse("1")}
				}
			}))
			if diff := cmp.Diff(test.want, job.RDMA.Removed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*kubeflow.MPIJob)
		want   []string
	}{
		"unknown words, all at once": {func(o *kubeflow.MPIJob) {
			o.Spec.MPIImplementation, o.Spec.LauncherCreationPolicy = "LAM", "Sometimes"
			o.Spec.RunPolicy.CleanPodPolicy, o.Spec.RunPolicy.ManagedBy = new(kubeflow.CleanPodPolicy("Some")), new("me")
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].RestartPolicy = kubeflow.RestartPolicyExitCode
			o.Spec.MPIReplicaSpecs["Master"] = &kubeflow.ReplicaSpec{}
		}, []string{
			`spec.mpiImplementation: Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH"`,
			`spec.runPolicy.cleanPodPolicy: Unsupported value: "Some": supported values: "None", "Running", "All"`,
			`spec.runPolicy.managedBy: Unsupported value: "me": supported values: "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"`,
			`spec.launcherCreationPolicy: Unsupported value: "Sometimes": supported values: "AtStartup", "WaitForWorkersReady"`,
			`spec.mpiReplicaSpecs: Unsupported value: "Master": supported values: "Launcher", "Worker"`,
			`spec.mpiReplicaSpecs[Worker].restartPolicy: Unsupported value: "ExitCode": supported values: "Never", "OnFailure"`,
		}},
		"a silence that is none": {func(o *kubeflow.MPIJob) { o.Annotations = map[string]string{mpi.AnnotationSilence: "soon"} }, []string{
			`metadata.annotations[mpi.opendatahub.io/silent-after]: Invalid value: "soon": must be a duration of at least 10s, such as 90s or 1h30m: how long the program may print nothing before the report warns`,
		}},
		"no launcher": {func(o *kubeflow.MPIJob) { delete(o.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeLauncher) }, []string{
			"spec.mpiReplicaSpecs[Launcher]: Required value: must define the pod that runs mpirun",
		}},
		"two launchers": {func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Replicas = new(int32(2))
		}, []string{
			"spec.mpiReplicaSpecs[Launcher].replicas: Invalid value: 2: must be 1: a job has one launcher",
		}},
		"no workers of a kind": {func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(0))
		}, []string{
			"spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be 1 or more; omit Worker for a job with only a launcher",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := Kind{}.Convert(mpitest.MPIJob("ns", 1, test.change))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
}
