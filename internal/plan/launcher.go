package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// launcher returns the launcher's Job to create, or the change that suspends or resumes the existing one or lets it start once
// more. It returns nil if nothing changes. Whether it may start, also by launcherCreationPolicy, is decided in
// jobstate/launcher.go.
func launcher(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, settings Settings) Object {
	if seen.Launcher == nil {
		// A suspended launcher has no pod, so that creating it starts nothing.
		if out.LauncherMayStart || out.PodsMayStart && job.Lifecycle.Suspended {
			return newLauncher(job, seen, settings)
		}
		return nil
	}
	if seen.Launcher.DeletionTimestamp != nil {
		return nil
	}
	suspended := ptr.Deref(seen.Launcher.Spec.Suspend, false)
	evicted := seen.Gang != nil && seen.Gang.Evict && !jobstate.HasFinished(seen.Launcher)
	suspend := job.Lifecycle.Suspended || evicted || suspended && !out.LauncherMayStart
	switch {
	case launcherOutdated(job, seen, settings), jobstate.IsLauncherReplaced(job, seen):
		return nil
	case suspend == suspended:
		return forgive(job, seen)
	case suspend:
		return suspendLauncher(job, seen)
	}
	change := newLauncher(job, seen, settings)
	change.UID, change.Spec.Suspend = seen.Launcher.UID, new(false)
	return change
}

// suspendLauncher returns the change that deletes the launcher's pods.
func suspendLauncher(job mpi.Job, seen jobstate.Observed) Object {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.LauncherName(), UID: seen.Launcher.UID},
		Spec:       batchv1.JobSpec{Suspend: new(true)},
	}
}

// forgive returns the change by which an attempt that Kubernetes ended does not count, or nil.
func forgive(job mpi.Job, seen jobstate.Observed) Object {
	disrupted, limit, changed := jobstate.Forgive(job, seen)
	if !changed {
		return nil
	}
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.LauncherName(), UID: seen.Launcher.UID,
			Annotations: map[string]string{mpi.AnnotationDisrupted: disrupted},
		},
		Spec: batchv1.JobSpec{BackoffLimit: &limit},
	}
}

// stopLauncher returns the change that deletes the pods of a launcher whose job failed before its batch Job did.
func stopLauncher(job mpi.Job, seen jobstate.Observed) Object {
	if seen.Launcher == nil || jobstate.HasFinished(seen.Launcher) || jobstate.LauncherHasFinished(job, seen) || ptr.Deref(seen.Launcher.Spec.Suspend, false) {
		return nil
	}
	return suspendLauncher(job, seen)
}

// deletedLauncher returns the launcher's Job if it must be recreated. One that is replaced is deleted when the record of its attempts is
// written: it is the only other place that has them.
func deletedLauncher(job mpi.Job, seen jobstate.Observed, settings Settings) []Ref {
	replaced := jobstate.IsLauncherReplaced(job, seen) && jobstate.IsRecorded(job, seen) && seen.Launcher.DeletionTimestamp == nil
	if !replaced && !launcherOutdated(job, seen, settings) {
		return nil
	}
	return []Ref{{Kind: "Job", Namespace: job.Namespace, Name: job.LauncherName(), UID: seen.Launcher.UID}}
}

// launcherOutdated reports whether a suspended launcher must be recreated, because an immutable field of its batch
// Job changed, or because mpi-operator created it: its template starts ranks by the image's ssh.
func launcherOutdated(job mpi.Job, seen jobstate.Observed, settings Settings) bool {
	if seen.Launcher == nil || !ptr.Deref(seen.Launcher.Spec.Suspend, false) || seen.Launcher.DeletionTimestamp != nil {
		return false
	}
	return isForeign(seen.Launcher) || seen.Launcher.Annotations[mpi.AnnotationTemplate] != fixedPart(launcherTemplate(job, settings))
}

// startedBySSHD reports whether pods of the job run, or are about to, that mpi-operator created: they reach each other by the image's ssh,
// so that the job's other pods must do so, too.
func startedBySSHD(job mpi.Job, seen jobstate.Observed) bool {
	if isForeign(seen.Launcher) && !ptr.Deref(seen.Launcher.Spec.Suspend, false) {
		return true
	}
	return !job.Workers.HasCommand() && slices.ContainsFunc(seen.Workers, func(worker jobstate.Worker) bool {
		return worker.Pod.DeletionTimestamp == nil && RunsSSHD(worker.Pod.Spec)
	})
}

// RunsSSHD reports whether a worker runs the command that workers have without the agent, here and under mpi-operator.
func RunsSSHD(pod corev1.PodSpec) bool {
	return len(pod.Containers) > 0 && slices.Equal(pod.Containers[0].Command, sshd)
}

// isForeign reports whether mpi-operator created a job's launcher, before the cluster switched to this operator.
func isForeign(launcher *batchv1.Job) bool {
	if launcher == nil {
		return false
	}
	_, ours := launcher.Annotations[mpi.AnnotationTemplate]
	return !ours
}

// fixedPart returns a digest of the immutable part of a batch Job's pod template. The rest can change while the Job
// is suspended (KEP-2926): labels, annotations and scheduling fields, but not affinity between pods.
func fixedPart(template corev1.PodTemplateSpec) string {
	template.Labels, template.Annotations = nil, nil
	spec := &template.Spec
	affinity := spec.Affinity
	spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.SchedulingGates = nil, nil, nil, nil
	if affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		spec.Affinity = &corev1.Affinity{PodAffinity: affinity.PodAffinity, PodAntiAffinity: affinity.PodAntiAffinity}
	}
	data, err := json.Marshal(template)
	if err != nil {
		// A template that was decoded from JSON can be encoded.
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// newLauncher returns the batch Job of the launcher's pod. It does not have the job's TTL: the operator deletes the
// whole job.
func newLauncher(job mpi.Job, seen jobstate.Observed, settings Settings) *batchv1.Job {
	object := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta(job, job.LauncherName(), ""),
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: jobstate.RemainingDeadline(job, seen),
			BackoffLimit:          jobstate.RemainingRetries(job, seen),
			// Two launchers at once would start the job's ranks twice. The Job therefore waits until the old pod has
			// terminated (github.com/kubernetes/kubernetes/issues/115844).
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template:             launcherTemplate(job, settings),
		},
	}
	// Only preferred: the template is used for all attempts, and another attempt may need another node.
	pinned(&object.Spec.Template.Spec, seen, job.LauncherName(), false)
	object.Annotations = map[string]string{mpi.AnnotationTemplate: fixedPart(object.Spec.Template)}
	if earlier := jobstate.EarlierAttempts(seen); earlier > 0 {
		object.Annotations[mpi.AnnotationEarlierAttempts] = strconv.Itoa(int(earlier))
	}
	if len(job.RDMA.Removed) > 0 {
		object.Labels[mpi.LabelWithoutRDMA] = "true"
	}
	if job.Lifecycle.Suspended {
		object.Spec.Suspend = new(true)
	}
	return object
}

func launcherTemplate(job mpi.Job, settings Settings) corev1.PodTemplateSpec {
	template := *job.Launcher.Template.DeepCopy()
	isolatePod(&template)
	template.Labels = withLabels(template.Labels, job.PodLabels(mpi.RoleLauncher))
	if job.Launcher.RunsRanks {
		template.Labels[mpi.LabelIndex] = "0"
	}
	setHost(job, &template.Spec, job.LauncherName())
	template.Spec.RestartPolicy = job.Launcher.RestartPolicy
	template.Spec.Affinity = job.WithTopologyAffinity(template.Spec.Affinity, template.Annotations)

	main := &template.Spec.Containers[0]
	addEnv(main, corev1.EnvVar{Name: mpi.EnvRole, Value: string(mpi.RoleLauncher)})
	addEnv(main, implementation.For(job.Implementation).LauncherEnv(job)...)
	if !job.Launcher.RunsRanks {
		// Without this variable, the NVIDIA runtime gives a container all GPUs of the node.
		addEnv(main, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES"}, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES"})
	}
	addConnections(job, main)
	mountKeys(job, &template.Spec)
	mountConfig(job, &template.Spec)
	if job.UsesAgent() {
		launchThrough(main)
		template.Annotations = withMain(template.Annotations, template.Spec)
		addAgent(job, &template.Spec, settings)
	}
	return template
}

// mountConfig mounts the hostfile and discover_hosts.sh in the launcher.
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
