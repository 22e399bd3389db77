package jobs

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// readMetadata reads labels and the topology. Labels of Kueue are read as settings of their own, or not at all.
func (s *Spec) readMetadata(job *unstructured.Unstructured) {
	for name, value := range job.GetLabels() {
		if strings.HasPrefix(name, "kueue.x-k8s.io/") {
			continue
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[name] = value
	}
	required, preferred := job.GetAnnotations()[mpi.AnnotationRequiredTopology], job.GetAnnotations()[mpi.AnnotationPreferredTopology]
	switch {
	case required == "":
		s.Topology, s.TopologyPreferred = preferred, preferred != ""
	case preferred == "":
		s.Topology = required
	}
}

// readPods reads what launcher and workers of an MPIJob have in common, and the size of the launcher. What they do not have in
// common, or is in a form that Build does not write, is not read.
func (s *Spec) readPods(launcher, worker *kubeflow.ReplicaSpec) {
	if launcher == nil || len(launcher.Template.Spec.Containers) == 0 {
		return
	}
	ofLauncher, ofWorkers := s.withPod(launcher.Template.Spec), s.withPod(worker.Template.Spec)
	if maps := [2]map[string]string{ofLauncher.NodeSelector, ofWorkers.NodeSelector}; reflect.DeepEqual(maps[0], maps[1]) {
		s.NodeSelector = maps[0]
	}
	if reflect.DeepEqual(ofLauncher.Tolerations, ofWorkers.Tolerations) {
		s.Tolerations = ofWorkers.Tolerations
	}
	if slices.Equal(ofLauncher.ImagePullSecrets, ofWorkers.ImagePullSecrets) {
		s.ImagePullSecrets = ofWorkers.ImagePullSecrets
	}
	if ofLauncher.ServiceAccount == ofWorkers.ServiceAccount {
		s.ServiceAccount = ofWorkers.ServiceAccount
	}
	if ofLauncher.WorkDir == ofWorkers.WorkDir {
		s.WorkDir = ofWorkers.WorkDir
	}
	if reflect.DeepEqual(ofLauncher.GracePeriod, ofWorkers.GracePeriod) {
		s.GracePeriod = ofWorkers.GracePeriod
	}
	if reflect.DeepEqual(ofLauncher.Volumes, ofWorkers.Volumes) && reflect.DeepEqual(ofLauncher.Output, ofWorkers.Output) {
		s.Volumes, s.Output, s.Env = ofWorkers.Volumes, ofWorkers.Output, ofWorkers.Env
	}
	s.readLauncher(launcher.Template.Spec.Containers[0].Resources)
}

// readLauncher reads the size of the launcher.
func (s *Spec) readLauncher(resources corev1.ResourceRequirements) {
	var size Spec
	if cpu := resources.Requests[corev1.ResourceCPU]; cpu.String() != "100m" {
		size.LauncherCPU = cpu.String()
	}
	if memory := resources.Requests[corev1.ResourceMemory]; memory.Equal(resources.Limits[corev1.ResourceMemory]) {
		size.LauncherMemory = memory.String()
	}
	if len(resources.Requests) == 2 && apiequality.Semantic.DeepEqual(size.launcherResources(), resources) {
		s.LauncherCPU, s.LauncherMemory = size.LauncherCPU, size.LauncherMemory
	}
}

// withPod returns the specification with the fields of a pod.
func (s *Spec) withPod(pod corev1.PodSpec) Spec {
	with := *s
	with.NodeSelector, with.ServiceAccount = pod.NodeSelector, pod.ServiceAccountName
	if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil }) {
		with.Tolerations = pod.Tolerations
	}
	for _, secret := range pod.ImagePullSecrets {
		with.ImagePullSecrets = append(with.ImagePullSecrets, secret.Name)
	}
	if pod.TerminationGracePeriodSeconds != nil {
		with.GracePeriod = new(time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second)
	}
	if len(pod.Containers) > 0 {
		with.WorkDir = pod.Containers[0].WorkingDir
		with.readVolumes(pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	return with
}

// readVolumes reads the volumes of a pod, if they are exactly as Build writes them.
func (s *Spec) readVolumes(volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	with := *s
	output := slices.IndexFunc(s.Env, func(v corev1.EnvVar) bool { return v.Name == outputVariable })
	for i, mount := range mounts {
		at := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 {
			return
		}
		volume, known := volumeOf(volumes[at])
		if !known {
			return
		}
		volume.Path, volume.SubPath, volume.ReadOnly = mount.MountPath, mount.SubPath, mount.ReadOnly
		if i == len(mounts)-1 && output >= 0 && s.Env[output].Value == volume.Path && volume.Source == VolumeClaim && volume.SubPath != "" {
			with.Output, with.Env = &volume, slices.Delete(slices.Clone(s.Env), output, output+1)
			break
		}
		with.Volumes = append(with.Volumes, volume)
	}
	wantVolumes, wantMounts := with.volumes()
	if apiequality.Semantic.DeepEqual(wantVolumes, volumes) && apiequality.Semantic.DeepEqual(wantMounts, mounts) {
		*s = with
	}
}

// volumeOf returns the source of a pod's volume; false for one that no specification has.
func volumeOf(volume corev1.Volume) (Volume, bool) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return Volume{Source: VolumeClaim, Name: volume.PersistentVolumeClaim.ClaimName}, true
	case volume.ConfigMap != nil:
		return Volume{Source: VolumeConfigMap, Name: volume.ConfigMap.Name}, true
	case volume.Secret != nil:
		return Volume{Source: VolumeSecret, Name: volume.Secret.SecretName}, true
	case volume.EmptyDir != nil && volume.EmptyDir.SizeLimit != nil:
		source := VolumeScratch
		if volume.EmptyDir.Medium == corev1.StorageMediumMemory {
			source = VolumeMemory
		}
		return Volume{Source: source, Size: volume.EmptyDir.SizeLimit.String()}, true
	}
	return Volume{}, false
}

// readPatch reads what a TrainJob changes in the pods of its runtime, if all of it is as Build writes it.
func (s *Spec) readPatch(job *unstructured.Unstructured) error {
	var templates []map[string]any
	patches, _, _ := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	overrides, _, _ := unstructured.NestedSlice(job.Object, "spec", "podTemplateOverrides")
	if len(patches) == 1 {
		patch, _ := patches[0].(map[string]any)
		jobs, _, _ := unstructured.NestedSlice(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
		for _, each := range jobs {
			fields, _ := each.(map[string]any)
			template, _, _ := unstructured.NestedMap(fields, "template", "spec", "template")
			templates = append(templates, template)
		}
	}
	for _, each := range overrides {
		override, _ := each.(map[string]any)
		delete(override, "targetJobs")
		templates = append(templates, override)
	}
	if len(templates) == 0 {
		return nil
	}
	// The pods that run the program have all changes, and can be any of the runtime's.
	changed := templates[max(0, slices.IndexFunc(templates, func(template map[string]any) bool {
		_, changesContainers, _ := unstructured.NestedSlice(template, "spec", "containers")
		return changesContainers
	}))]
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(changed, &template); err != nil {
		return err
	}
	with := s.withPod(template.Spec)
	if containers := template.Spec.Containers; len(containers) == 1 && containers[0].Name == trainjob.Container && containers[0].SecurityContext != nil {
		with.RunAsUser = containers[0].SecurityContext.RunAsUser
	}
	want := with.podPatch()
	for _, each := range templates {
		isSame, err := isJSON(each, want.all, want.place)
		if err != nil || !isSame {
			return err
		}
	}
	*s = with
	return nil
}

// isJSON reports whether a value is the same in JSON as one of others.
func isJSON(value map[string]any, others ...map[string]any) (bool, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	for _, other := range others {
		if same, err := json.Marshal(other); err != nil || bytes.Equal(same, text) {
			return err == nil, err
		}
	}
	return false, nil
}
