package operator_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// dice picks values, good ones mostly.
type dice struct{ *rand.Rand }

func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// seldom calls a change one time in n.
func (d dice) seldom(n int, change func()) {
	if d.IntN(n) == 0 {
		change()
	}
}

// or picks a good value, and one time in thirty a bad one.
func or[T any](d dice, good, bad []T) T {
	if d.IntN(30) == 0 {
		return pick(d, bad...)
	}
	return pick(d, good...)
}

type (
	names  = []string
	counts = []int32
)

func (d dice) resources() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for range d.IntN(3) {
		name := corev1.ResourceName(or(d, names{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "nvidia.com/mig-1g.5gb"}, names{"gpu", "hugepages-2Mi", "requests.cpu", "a/b/c", "kubernetes.io/x"}))
		quantity := resource.MustParse(or(d, names{"1", "2", "4"}, names{"0", "500m", "-1", "1Gi", "4Mi"}))
		r.Limits[name] = quantity
		d.seldom(2, func() { r.Requests[name] = quantity })
		d.seldom(30, func() { r.Requests[name] = resource.MustParse("3") })
		d.seldom(30, func() { delete(r.Limits, name) })
	}
	return r
}

func (d dice) template(t *corev1.PodTemplateSpec) {
	d.seldom(4, func() {
		t.Labels = map[string]string{or(d, names{"team", "a/b", "training.kubeflow.org/job-name"}, names{"a b", "", "/"}): or(d, names{"x", ""}, names{"-", "a b"})}
	})
	d.seldom(4, func() {
		t.Annotations = map[string]string{or(d, names{"note", "a/b"}, names{"a b", ""}): "anything at all"}
	})
	container := &t.Spec.Containers[0]
	container.Name = or(d, names{"worker", "main", "a-1"}, names{"W", "", "-"})
	container.Image = or(d, names{"registry/x:1", "UPPER"}, names{"", " ", " x"})
	container.Resources = d.resources()
	d.seldom(3, func() {
		container.Env = []corev1.EnvVar{{Name: or(d, names{"OMPI_MCA_plm_rsh_args", "X", "a-b", "K_MPI_JOB_ROLE"}, names{"", "a=b"}), Value: "v"}}
	})
	d.seldom(4, func() {
		name := or(d, names{"data", "scratch"}, names{"ssh-auth", "mpi-job-config", "A", ""})
		t.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		container.VolumeMounts = []corev1.VolumeMount{{Name: or(d, names{name}, names{"other"}), MountPath: or(d, names{"/data", "/scratch"}, names{"/etc/mpi", "/root/.ssh", "/keys", "", "/a:b"})}}
		d.seldom(20, func() { t.Spec.Volumes = append(t.Spec.Volumes, t.Spec.Volumes[0]) })
	})
	d.seldom(6, func() { t.Spec.HostNetwork = true })
	d.seldom(6, func() {
		t.Spec.DNSConfig = &corev1.PodDNSConfig{}
		for i := range or(d, counts{1, 30, 31}, counts{32, 40}) {
			t.Spec.DNSConfig.Searches = append(t.Spec.DNSConfig.Searches, fmt.Sprintf("d%d.example", i))
		}
	})
	d.seldom(6, func() { t.Spec.RestartPolicy = pick(d, corev1.RestartPolicyAlways, corev1.RestartPolicyNever) })
	d.seldom(10, func() {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: or(d, names{"sidecar"}, names{container.Name}), Image: "i"})
	})
	d.seldom(10, func() {
		t.Spec.InitContainers = []corev1.Container{{Name: or(d, names{"init"}, names{container.Name}), Image: "i"}}
	})
	d.seldom(10, func() { t.Spec.Hostname, t.Spec.Subdomain = "mine", "also" })
}

func (d dice) job(namespace string) *kubeflow.MPIJob {
	return mpitest.MPIJob(namespace, or(d, counts{1, 2, 3}, counts{0, -1}), func(o *kubeflow.MPIJob) {
		o.Name = or(d, names{"a", "pi-2", strings.Repeat("x", 53), strings.Repeat("x", 54)}, names{strings.Repeat("x", 55), "9", "a.b", "A", ""})
		d.seldom(3, func() { o.Spec.SlotsPerWorker = new(or(d, counts{0, 1, 8}, counts{-1, 1 << 30})) })
		d.seldom(3, func() {
			o.Spec.SSHAuthMountPath = or(d, names{"/keys", "/home/mpiuser/.ssh", "/"}, names{"keys", "/a:b", "/etc/mpi"})
		})
		d.seldom(3, func() {
			o.Spec.MPIImplementation = pick(d, kubeflow.MPIImplementationIntel, kubeflow.MPIImplementationMPICH)
		})
		d.seldom(3, func() { o.Spec.RunLauncherAsWorker = new(true) })
		d.seldom(4, func() {
			o.Spec.RunPolicy.ActiveDeadlineSeconds = new(or(d, []int64{1, 1 << 30}, []int64{0, -1, 1 << 40}))
		})
		d.seldom(4, func() { o.Spec.RunPolicy.BackoffLimit = new(or(d, counts{0, 1}, counts{-1})) })
		d.seldom(4, func() { o.Spec.RunPolicy.TTLSecondsAfterFinished = new(or(d, counts{0, 1}, counts{-1})) })
		d.seldom(4, func() { o.Spec.RunPolicy.Suspend = new(true) })
		for _, kind := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
			role := o.Spec.MPIReplicaSpecs[kind]
			role.RestartPolicy = or(d, []kubeflow.RestartPolicy{"", kubeflow.RestartPolicyNever, kubeflow.RestartPolicyOnFailure}, []kubeflow.RestartPolicy{kubeflow.RestartPolicyAlways})
			d.template(&role.Template)
		}
		d.seldom(8, func() { delete(o.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker) })
	})
}

// TestAPIServerTakesEveryPlan: for whatever is valid, the API server takes every object that is planned.
func TestAPIServerTakesEveryPlan(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	owner := mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.ManagedBy = new(kubeflow.MultiKueueController) })
	create(t, owner)
	const tries = 600
	egress := names{"", "2049,514/udp", "192.0.2.0/24,[2001:db8::/32]:9000-9010", "192.0.2.7:1-65535/sctp,2001:db8::7,namespace/models", "10.0.0.1/8,0,namespace/A:1,[::]1"}
	asks, settings := cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{ClusterDomain: "cluster.local", NetworkPolicies: true, OperatorNamespace: "mpijob-system"}
	valid := 0
	for seed := range uint64(tries) {
		object := dice{rand.New(rand.NewPCG(seed, 0))}.job(namespace)
		object.UID = owner.UID
		job, errs := mpijob.Kind{}.Convert(object)
		if errs = append(errs, mpi.Validate(job)...); len(errs) > 0 {
			continue
		}
		if found := asks.Preflight(t.Context(), job, settings).Errs; len(found) > 0 {
			for _, err := range found {
				if !strings.HasPrefix(err.Field, "spec.mpiReplicaSpecs[") {
					t.Errorf("seed %d: an error names a field that the user has not written: %v", seed, err)
				}
			}
			continue
		}
		valid++
		seen := jobstate.Observed{AllowEgress: pick(dice{rand.New(rand.NewPCG(seed, 1))}, egress...)}
		p := plan.For(job, seen, jobstate.Judge(job, seen), settings)
		for _, wanted := range append(p.Base, p.Pods...) {
			// The API server adds to what it is given; two jobs may not have one name.
			candidate := wanted.DeepCopyObject().(client.Object)
			if secret, is := candidate.(*corev1.Secret); is {
				secret.Data[corev1.SSHAuthPrivateKey] = []byte("generated when it is written")
			}
			err := api.Create(t.Context(), candidate, client.DryRunAll)
			if err == nil || apierrors.IsAlreadyExists(err) {
				continue
			}
			text, _ := yaml.Marshal(wanted)
			t.Errorf("seed %d: the API server refuses what was planned for a valid job: %v\n%s", seed, err, text)
		}
	}
	t.Logf("%d of %d jobs are valid", valid, tries)
	if valid < tries/4 {
		t.Error("too few to tell anything: let the dice be kinder")
	}
}
