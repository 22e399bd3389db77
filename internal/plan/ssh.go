package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

// secret holds the job's SSH keys, nil if it is there. It is made once and never changed: ranks may be
// connecting with it. It is not marked immutable all the same: a kubelet never asks again for an immutable Secret
// while any pod on its node refers to it, and would give a new job's pods the keys of an earlier job of the same
// name whose pods are still ending.
func secret(job mpi.Job, seen mpi.Observed) Object {
	if seen.Secret != nil || seen.Keys == nil {
		return nil
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(job, job.SecretName(), ""),
		Type:       corev1.SecretTypeSSHAuth,
		Data: map[string][]byte{
			corev1.SSHAuthPrivateKey: seen.Keys.Private,
			mpi.SSHPublicKey:         seen.Keys.Public,
		},
	}
}

// mountKeys gives the first container of a pod the job's keys. OpenSSH as root refuses a key that others may
// read, so under root's own folder the files are root's alone; elsewhere any user of the pod may read them.
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
