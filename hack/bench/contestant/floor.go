package contestant

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/process"
)

// floor creates the objects that an operator would create for a job, all at once: no MPIJob, no watch, no
// status, no events. What it takes is the API server's time; no operator can be faster.
type floor struct{}

// Name implements Contestant.
func (floor) Name() string { return FloorName }

// parallel is how many requests of the floor are under way at once. More do not make it faster.
const parallel = 64

// Start implements Contestant.
func (floor) Start(ctx context.Context, server *apiserver.Server, _ string) (Runner, error) {
	account, err := server.Account("bench", FloorName)
	if err != nil {
		return nil, fmt.Errorf("start floor: %w", err)
	}
	if err := server.Allow(ctx, account.User); err != nil {
		return nil, fmt.Errorf("start floor: %w", err)
	}
	account.Config.QPS = -1
	account.Config.ContentType = runtime.ContentTypeProtobuf
	account.Config.AcceptContentTypes = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(account.Config)
	if err != nil {
		return nil, fmt.Errorf("start floor: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &floorRunner{clients: clients, user: account.User, ctx: ctx, cancel: cancel, slots: make(chan struct{}, parallel), failed: make(chan error, 1)}
	return r, nil
}

type floorRunner struct {
	clients kubernetes.Interface
	user    string
	ctx     context.Context //nolint:containedctx // the life of what Submit leaves behind
	cancel  context.CancelFunc
	slots   chan struct{}
	failed  chan error
	under   sync.WaitGroup
}

func (r *floorRunner) Submit(_ context.Context, job *kubeflow.MPIJob) error {
	r.under.Go(func() {
		for _, create := range r.objects(job) {
			select {
			case <-r.ctx.Done():
				return
			case r.slots <- struct{}{}:
			}
			r.under.Go(func() {
				defer func() { <-r.slots }()
				if err := create(); err != nil && r.ctx.Err() == nil {
					select {
					case r.failed <- fmt.Errorf("create an object of %s: %w", job.Name, err):
					default: // one is enough
					}
				}
			})
		}
	})
	return nil
}

func (r *floorRunner) Failed() <-chan error { return r.failed }

func (r *floorRunner) User() string { return r.user }

func (r *floorRunner) Usage() (process.Usage, bool, error) { return process.Usage{}, false, nil }

func (r *floorRunner) Rest() time.Duration { return 0 }

func (r *floorRunner) RunsJobs() bool { return false }

func (r *floorRunner) Stop() error {
	r.cancel()
	r.under.Wait()
	return nil
}

// objects are the creations of all objects of a job, each as large as an operator's.
func (r *floorRunner) objects(job *kubeflow.MPIJob) []func() error {
	core, options := r.clients.CoreV1(), metav1.CreateOptions{}
	workers := int(ptr.Deref(job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas, 0))
	all := []func() error{
		func() error {
			_, err := core.Services(job.Namespace).Create(r.ctx, service(job), options)
			return err
		},
		func() error {
			_, err := core.ConfigMaps(job.Namespace).Create(r.ctx, config(job, workers), options)
			return err
		},
		func() error {
			_, err := core.Secrets(job.Namespace).Create(r.ctx, secret(job), options)
			return err
		},
		func() error {
			_, err := r.clients.BatchV1().Jobs(job.Namespace).Create(r.ctx, launcher(job), options)
			return err
		},
	}
	for index := range workers {
		all = append(all, func() error {
			_, err := core.Pods(job.Namespace).Create(r.ctx, worker(job, index), options)
			return err
		})
	}
	return all
}

func meta(job *kubeflow.MPIJob, name, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: job.Namespace,
		Labels: map[string]string{kubeflow.OperatorNameLabel: kubeflow.OperatorName, kubeflow.JobNameLabel: job.Name, kubeflow.JobRoleLabel: role},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: kubeflow.Kind, Name: job.Name, UID: "00000000-0000-0000-0000-000000000000",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

func service(job *kubeflow.MPIJob) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(job, job.Name, ""),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{kubeflow.OperatorNameLabel: kubeflow.OperatorName, kubeflow.JobNameLabel: job.Name},
		},
	}
}

func config(job *kubeflow.MPIJob, workers int) *corev1.ConfigMap {
	var hosts strings.Builder
	for index := range workers {
		fmt.Fprintf(&hosts, "%s.%s.%s.svc slots=1\n", workerName(job, index), job.Name, job.Namespace)
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(job, job.Name+"-config", ""),
		Data:       map[string]string{"hostfile": hosts.String(), "discover_hosts.sh": "#!/bin/sh\n"},
	}
}

// secret is as large as a pair of P-521 keys; making keys is the operators' work.
func secret(job *kubeflow.MPIJob) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(job, secretName(job), ""),
		Type:       corev1.SecretTypeSSHAuth,
		Data:       map[string][]byte{corev1.SSHAuthPrivateKey: []byte(strings.Repeat("k", 365)), "ssh-publickey": []byte(strings.Repeat("k", 254))},
	}
}

func launcher(job *kubeflow.MPIJob) *batchv1.Job {
	template := *job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.DeepCopy()
	object := meta(job, job.Name+"-launcher", "launcher")
	template.Labels = object.Labels
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	dress(job, &template.Spec, object.Name)
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: "mpi-job-config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: job.Name + "-config"}},
	}})
	main := &template.Spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "mpi-job-config", MountPath: "/etc/mpi"})
	for _, name := range []string{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"} {
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: "value"})
	}
	return &batchv1.Job{ObjectMeta: object, Spec: batchv1.JobSpec{Template: template, PodReplacementPolicy: ptr.To(batchv1.Failed)}}
}

func worker(job *kubeflow.MPIJob, index int) *corev1.Pod {
	template := job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: meta(job, workerName(job, index), "worker"), Spec: template.Spec}
	pod.Labels[kubeflow.ReplicaIndexLabel] = strconv.Itoa(index)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{job.Name + "." + job.Namespace + ".svc.cluster.local"}}
	pod.Spec.Containers[0].Command = []string{"/usr/sbin/sshd", "-De"}
	dress(job, &pod.Spec, pod.Name)
	return pod
}

// dress gives a pod the host name and the keys that every pod of a job has.
func dress(job *kubeflow.MPIJob, spec *corev1.PodSpec, name string) {
	spec.Hostname, spec.Subdomain = name, job.Name
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "ssh-auth", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secretName(job), DefaultMode: ptr.To[int32](0o600), Items: []corev1.KeyToPath{
			{Key: corev1.SSHAuthPrivateKey, Path: "id_rsa"}, {Key: "ssh-publickey", Path: "id_rsa.pub"}, {Key: "ssh-publickey", Path: "authorized_keys"},
		}},
	}})
	main := &spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "ssh-auth", MountPath: "/root/.ssh"})
	main.Env = append(main.Env, corev1.EnvVar{Name: "K_MPI_JOB_ROLE", Value: "worker"})
}

func workerName(job *kubeflow.MPIJob, index int) string {
	return job.Name + "-worker-" + strconv.Itoa(index)
}

func secretName(job *kubeflow.MPIJob) string { return job.Name + "-ssh" }
