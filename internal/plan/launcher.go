package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/flavor"
	"opendatahub.io/mpijob/internal/mpi"
)

// launcher is the launcher's Job to create, or the change that suspends or resumes the one there is; nil if
// nothing is to be done.
func launcher(job mpi.Job, seen mpi.Observed, out mpi.Outcome) Object {
	if seen.Launcher == nil {
		// A suspended launcher has no pod: making it starts nothing.
		if out.LauncherMayStart || out.PodsMayStart && job.Lifecycle.Suspended {
			return newLauncher(job)
		}
		return nil
	}
	suspended := ptr.Deref(seen.Launcher.Spec.Suspend, false)
	suspend := job.Lifecycle.Suspended || suspended && !out.LauncherMayStart
	if suspend == suspended {
		return nil
	}
	change := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": suspend}}}
	change.SetAPIVersion("batch/v1")
	change.SetKind("Job")
	change.SetNamespace(job.Namespace)
	change.SetName(job.LauncherName())
	change.SetUID(seen.Launcher.UID)
	return change
}

// newLauncher is the batch Job that runs the launcher's pod. The job's own TTL is not passed on: the operator
// removes the whole job, not the launcher from under it.
func newLauncher(job mpi.Job) *batchv1.Job {
	object := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta(job, job.LauncherName(), ""),
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: job.Lifecycle.Deadline,
			BackoffLimit:          job.Lifecycle.BackoffLimit,
			// Two launchers at once would start the job's ranks twice: a new pod only when the old one has ended
			// (github.com/kubernetes/kubernetes/issues/115844).
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template:             launcherTemplate(job),
		},
	}
	if job.Lifecycle.Suspended {
		object.Spec.Suspend = new(true)
	}
	return object
}

func launcherTemplate(job mpi.Job) corev1.PodTemplateSpec {
	template := *job.Launcher.Template.DeepCopy()
	template.Labels = withLabels(template.Labels, job.PodLabels(mpi.RoleLauncher))
	if job.Launcher.RunsRanks {
		template.Labels[mpi.LabelIndex] = "0"
	}
	setHost(job, &template.Spec, job.LauncherName())
	template.Spec.RestartPolicy = job.Launcher.RestartPolicy

	main := &template.Spec.Containers[0]
	addEnv(main, corev1.EnvVar{Name: mpi.EnvRole, Value: string(mpi.RoleLauncher)})
	addEnv(main, flavor.For(job.Implementation).LauncherEnv(job)...)
	if !job.Launcher.RunsRanks {
		// The NVIDIA runtime shows every GPU of the node to a container that does not say which it wants.
		addEnv(main, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES"}, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES"})
	}
	mountKeys(job, &template.Spec)
	mountConfig(job, &template.Spec)
	return template
}

// mountConfig gives the launcher the hostfile and discover_hosts.sh.
func mountConfig(job mpi.Job, pod *corev1.PodSpec) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: mpi.ConfigVolume,
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: job.ConfigName()},
			Items: []corev1.KeyToPath{
				{Key: mpi.HostfileKey, Path: mpi.HostfileKey, Mode: ptr.To[int32](0o444)},
				{Key: mpi.DiscoverHostsKey, Path: mpi.DiscoverHostsKey, Mode: ptr.To[int32](0o555)},
			},
		}},
	})
	main := &pod.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: mpi.ConfigVolume, MountPath: mpi.ConfigMountPath})
}
