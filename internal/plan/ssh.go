package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// secret returns the Secret for the job's SSH keys, or nil if it exists. The keys are empty: they are generated when the
// Secret is written, so that a plan contains no secrets. The Secret never changes, because ranks may be
// connecting with it. It is not marked immutable: a kubelet caches an immutable Secret while any pod on its node uses
// it, and would give the pods of a new job the keys of an earlier job of the same name whose pods are still
// terminating.
func secret(job mpi.Job, seen jobstate.Observed) Object {
	if seen.Secret != nil {
		return nil
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(job, job.KeysName(), ""),
		Type:       corev1.SecretTypeSSHAuth,
		Data:       map[string][]byte{corev1.SSHAuthPrivateKey: nil, mpi.SSHPublicKey: nil},
	}
}

// ReplacesKeys reports whether the pods of a job that another controller runs use SSH keys of the operator.
func ReplacesKeys(job mpi.Job, settings Settings) bool {
	return job.External && !job.Launcher.None && settings.ReplacesKeys
}

// mountKeys mounts the job's keys in the first container of a pod. OpenSSH rejects a key of root that others can
// read, so that files in root's home are only readable by root; elsewhere any user of the pod can read them.
func mountKeys(job mpi.Job, pod *corev1.PodSpec) {
	var mode *int32
	if job.SSHMountPath == mpi.DefaultSSHPath {
		mode = ptr.To[int32](0o600)
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: mpi.SSHVolume,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  job.SecretName(),
			DefaultMode: mode,
			Items: []corev1.KeyToPath{
				{Key: corev1.SSHAuthPrivateKey, Path: mpi.SSHPrivateKeyFile},
				{Key: mpi.SSHPublicKey, Path: mpi.SSHPrivateKeyFile + ".pub"},
				{Key: mpi.SSHPublicKey, Path: "authorized_keys"},
			},
		}},
	})
	main := &pod.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: mpi.SSHVolume, MountPath: job.SSHMountPath})
}
