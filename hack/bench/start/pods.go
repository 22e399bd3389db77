package start

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/cluster"
)

// keyPath is where the image expects the keys.
const keyPath = "/home/mpiuser/.ssh"

// runPods runs the pods of a job without an operator: a Secret and a Service, then launcher and workers at once, as bare
// pods. Workers run the image's sshd.
func (f *field) runPods(ctx context.Context, job *kubeflow.MPIJob) (took times, err error) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name, Labels: map[string]string{"bench": job.Name}}
	}
	secret := &corev1.Secret{
		ObjectMeta: meta(job.Name), Type: corev1.SecretTypeSSHAuth,
		StringData: map[string]string{corev1.SSHAuthPrivateKey: f.key.Private, "ssh-publickey": f.key.Public},
	}
	service := &corev1.Service{
		ObjectMeta: meta(job.Name),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"bench": job.Name}, PublishNotReadyAddresses: true},
	}
	workers := int(*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas)
	launcher := &corev1.Pod{ObjectMeta: meta(job.Name + "-launcher"), Spec: job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec}
	pods := []*corev1.Pod{launcher}
	var hosts []string
	for i := range workers {
		pod := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("%s-worker-%d", job.Name, i)), Spec: *job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.DeepCopy()}
		pod.Spec.Containers[0].Command = []string{"sshd-user"}
		pods, hosts = append(pods, pod), append(hosts, fmt.Sprintf("%s.%s.%s.svc", pod.Name, job.Name, cluster.Namespace))
	}
	launcher.Spec.Containers[0].Command = []string{"mpirun", "-n", fmt.Sprint(workers), "-H", strings.Join(hosts, ","), "hostname"}
	launcher.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "true"}}
	for _, pod := range pods {
		pod.Spec.RestartPolicy, pod.Spec.Hostname, pod.Spec.Subdomain = corev1.RestartPolicyNever, pod.Name, job.Name
		pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secret.Name,
			Items:      []corev1.KeyToPath{{Key: corev1.SSHAuthPrivateKey, Path: "id_rsa"}, {Key: "ssh-publickey", Path: "id_rsa.pub"}, {Key: "ssh-publickey", Path: "authorized_keys"}},
		}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: keyPath}}
	}
	start := time.Now()
	for _, object := range []client.Object{secret, service} {
		if err := f.Client.Create(ctx, object); err != nil {
			return took, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	var creating errgroup.Group
	for _, pod := range pods {
		creating.Go(func() error { return f.Client.Create(ctx, pod) })
	}
	if err := creating.Wait(); err != nil {
		return took, fmt.Errorf("create pods of %s: %w", job.Name, err)
	}
	ended, err := f.await(ctx, &corev1.PodList{}, launcher.Name, func(object runtime.Object) (bool, error) {
		pod, is := object.(*corev1.Pod)
		if is && pod.Status.Phase == corev1.PodFailed {
			return false, fmt.Errorf("pod %s failed", pod.Name)
		}
		return is && pod.Status.Phase == corev1.PodSucceeded, nil
	})
	if err != nil {
		return took, err
	}
	if took, err = f.timesOf(ctx, launcher.Name, launcherName, job.Name+"-worker-", start, ended); err != nil {
		return took, err
	}
	for _, object := range []client.Object{secret, service} {
		err = errors.Join(err, f.Client.Delete(ctx, object))
	}
	err = errors.Join(err, f.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(cluster.Namespace), client.MatchingLabels{"bench": job.Name}, client.GracePeriodSeconds(0)))
	if err != nil {
		return took, fmt.Errorf("delete the pods of %s: %w", job.Name, err)
	}
	return took, f.UntilEmpty(ctx)
}
