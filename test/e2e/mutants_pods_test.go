package e2e

import (
	"fmt"
	"math/rand/v2"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Mistakes in pods: their images, references, volumes, places and life.

func breakImage(m *mutant, r *rand.Rand) {
	image := pick(r, "registry.invalid/team/"+pick(r, "train", "solver")+":1", "odh/never-built-"+fmt.Sprint(r.IntN(99))+":dev", "quay.io/Team/Train:1", "quay.io/team/train:")
	policy := pick(r, "", corev1.PullIfNotPresent)
	m.both(func(pod *corev1.PodSpec) { pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = image, policy })
	m.what = "image " + image
	m.waits(codes.ImagePullFailed, image)
	if image == "quay.io/Team/Train:1" || image == "quay.io/team/train:" {
		m.waits(codes.InvalidImageName, image)
		m.advises("Correct the name")
	}
}

func breakReference(m *mutant, r *rand.Rand) {
	name := pick(r, "settings", "hub-token", "s3-credentials")
	named := corev1.LocalObjectReference{Name: name}
	var change func(c *corev1.Container)
	m.waits(codes.MissingReference, name)
	m.advises("Create it")
	choice := r.IntN(5)
	if m.trainJob && choice < 2 {
		// A TrainJob has no envFrom.
		choice = 2 + r.IntN(3)
	}
	switch choice {
	case 0:
		change = func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named}}}
		}
		m.what = "envFrom of the missing Secret " + name
	case 1:
		change = func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named}}}
		}
		m.what = "envFrom of the missing ConfigMap " + name
	case 2:
		change = func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named, Key: "token"}}}}
		}
		m.what = "a variable of the missing Secret " + name
	default:
		m.objects = append(m.objects, configMap("", name, "epochs", "3"))
		change = func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "LR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named, Key: "rate"}}}}
		}
		m.waits(codes.MissingReference, name, "rate")
		m.advises("See which keys")
		m.what = "missing key rate of the ConfigMap " + name
	}
	m.both(func(pod *corev1.PodSpec) { change(&pod.Containers[0]) })
}

func breakVolume(m *mutant, r *rand.Rand) {
	name := pick(r, "datasets", "scratch", "results")
	source := corev1.VolumeSource{}
	switch r.IntN(4) {
	case 0:
		source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		m.waits(codes.VolumeClaimPending, name)
		m.advises("Create the claim")
		m.what = "a claim that does not exist: " + name
	case 1:
		m.objects = append(m.objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new("fast-ssd"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		m.waits(codes.VolumeClaimPending, name, "fast-ssd")
		m.advises("storage class")
		m.what = "a claim whose storage class fast-ssd does not exist: " + name
	case 2:
		source.Secret = &corev1.SecretVolumeSource{SecretName: name}
		m.waits(codes.MissingReference, name)
		m.advises("Create it")
		m.what = "a volume of a Secret that does not exist: " + name
	default:
		m.objects = append(m.objects, configMap("", name, "a.yaml", "x"))
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: []corev1.KeyToPath{{Key: "b.yaml", Path: "b.yaml"}}}
		m.waits(codes.MissingReference, name, "b.yaml")
		m.advises("See which keys")
		m.what = "a volume of a key that a ConfigMap does not have: " + name
	}
	m.mount(source, "/data")
}

func breakPlace(m *mutant, r *rand.Rand) {
	if r.IntN(2) == 0 {
		value := pick(r, "a100", "h100", "mi300x")
		m.both(func(pod *corev1.PodSpec) { pod.NodeSelector = map[string]string{"example.com/gpu-model": value} })
		m.what = "node selector " + value
		m.waits(codes.NoMatchingNode, "example.com/gpu-model="+value)
		m.advises("example.com/gpu-model")
		return
	}
	m.both(func(pod *corev1.PodSpec) {
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"eu-west-9z"}}},
		}}}}}
	})
	m.what = "node affinity to a zone"
	m.waits(codes.NoMatchingNode, "topology.kubernetes.io/zone")
	m.advises("affinity", "topology.kubernetes.io/zone")
}

// breakSize: pods request more than any node has.
func breakSize(m *mutant, r *rand.Rand) {
	name, amount := corev1.ResourceMemory, "3Ti"
	switch r.IntN(4) {
	case 0:
		name, amount = corev1.ResourceCPU, "500"
	case 1:
		name, amount = "nvidia.com/gpu", "1"
	case 2:
		name, amount = corev1.ResourceEphemeralStorage, "900Ti"
	}
	m.both(func(pod *corev1.PodSpec) {
		size := pod.Containers[0].Resources
		size.Requests[name], size.Limits[name] = resource.MustParse(amount), resource.MustParse(amount)
	})
	m.what = fmt.Sprintf("%s of %s", amount, name)
	says := map[corev1.ResourceName]string{corev1.ResourceMemory: "memory", corev1.ResourceCPU: "500", corev1.ResourceEphemeralStorage: "ephemeral-storage"}[name]
	if says == "" {
		says = string(name)
	}
	m.waits(codes.InsufficientResources, says)
	m.truth.Codes = append(m.truth.Codes, codes.GangNeverFits)
}

// breakNode: pods that no two nodes can hold, or that name a node that does not exist.
func breakNode(m *mutant, r *rand.Rand) {
	if r.IntN(2) == 0 && !m.trainJob {
		name := pick(r, "gpu-node-17", "worker-9.example.com")
		m.workers(func(pod *corev1.PodSpec) { pod.NodeName = name })
		m.what = "the workers' nodeName is " + name
		m.waits(codes.NodeMissing, name)
		m.advises("Remove nodeName")
		m.truth.curable = true
		return
	}
	label := mpi.LabelRole
	if m.trainJob {
		label = trainjob.LabelJobSet
	}
	workers := m.job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]
	workers.Replicas = new(int32(4))
	workers.Template.Spec.TopologySpreadConstraints = nil
	workers.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}}},
	}}}}
	m.what = "anti-affinity of more pods than nodes"
	m.waits(codes.NoMatchingNode, "anti-affinity")
	// It is the launcher that has no room beside the workers, or the workers beside it.
	m.truth.Codes = append(m.truth.Codes, codes.GangNeverFits, codes.Unschedulable)
	m.advises("anti-affinity")
}

func breakName(m *mutant, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		m.bothInRuntime(func(pod *corev1.PodSpec) { pod.SchedulerName = "volcano" })
		m.what = "scheduler volcano"
		m.waits(codes.NoScheduler, "volcano")
		m.advises("Remove schedulerName", "schedulerName")
		m.truth.curable = !m.trainJob
	case 1:
		m.bothInRuntime(func(pod *corev1.PodSpec) { pod.PriorityClassName = "research-high" })
		m.what = "priority class research-high"
		m.waits(codes.ObjectRefused, "research-high")
		m.truth.Codes = append(m.truth.Codes, codes.MissingReference)
	case 2:
		m.both(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "trainer" })
		m.what = "service account trainer"
		m.waits(codes.ObjectRefused, "trainer")
		m.advises("Create it")
	default:
		m.bothInRuntime(func(pod *corev1.PodSpec) { pod.RuntimeClassName = new("nvidia") })
		m.what = "runtime class nvidia"
		m.waits(codes.ObjectRefused, "nvidia")
		m.truth.Codes = append(m.truth.Codes, codes.MissingReference, codes.ContainerCreateFailed)
	}
}

func breakHook(m *mutant, r *rand.Rand) {
	command := []string{"sh", "-c", "echo cannot reach the cache >&2; exit " + fmt.Sprint(1+r.IntN(9))}
	m.workers(func(pod *corev1.PodSpec) {
		pod.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
	})
	m.what = "a postStart hook that fails"
	m.waits(codes.HookFailed.Code, "postStart")
	m.advises("Correct the hook")
}

func breakProbe(m *mutant, r *rand.Rand) {
	probe := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, ProbeHandler: pick(r,
		corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/alive"}}},
		corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}})}
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.workers(func(pod *corev1.PodSpec) { pod.Containers[0].LivenessProbe = probe })
	m.what = "a liveness probe of the workers that never succeeds"
	m.waits(codes.ProbeFailed, "iveness")
	m.advises("Remove the probe")
}

func breakInit(m *mutant, r *rand.Rand) {
	code := 1 + r.IntN(100)
	image := worker(m.job).Image
	m.workers(func(pod *corev1.PodSpec) {
		pod.InitContainers = append(pod.InitContainers, corev1.Container{
			Name: "fetch-data", Image: image, SecurityContext: restricted(), Command: []string{"sh", "-c", fmt.Sprintf("echo bucket not found >&2; exit %d", code)},
		})
	})
	m.what = fmt.Sprintf("an init container exits with %d", code)
	m.waits(codes.CrashLoop, "fetch-data", fmt.Sprintf("exit code %d", code))
	m.truth.Codes = append(m.truth.Codes, codes.ApplicationFailed)
	m.advises("Read the log of the init container", "-c fetch-data")
}

// breakStart: an init container of the workers waits for something that does not exist.
func breakStart(m *mutant, r *rand.Rand) {
	name := pick(r, "wait-for-db", "download", "warm-cache")
	image := worker(m.job).Image
	m.workers(func(pod *corev1.PodSpec) {
		pod.InitContainers = append(pod.InitContainers, corev1.Container{
			Name: name, Image: image, SecurityContext: restricted(), Command: []string{"sh", "-c", "until [ -e /tmp/there ]; do sleep 5; done"},
		})
	})
	m.what = "the init container " + name + " never ends"
	m.waits(codes.SlowStart, name)
	// The launcher gives up after two minutes.
	m.truth.Codes = append(m.truth.Codes, codes.WorkerUnreachable)
	m.advises(name)
	m.truth.after = 90 * time.Second
}

func breakSidecar(m *mutant, r *rand.Rand) {
	code := 1 + r.IntN(100)
	image := worker(m.job).Image
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.workers(func(pod *corev1.PodSpec) {
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: "log-shipper", Image: image, SecurityContext: restricted(), Command: []string{"sh", "-c", fmt.Sprintf("sleep 2; echo no route to loki >&2; exit %d", code)},
		})
	})
	m.what = fmt.Sprintf("a sidecar of the workers exits with %d", code)
	m.waits(codes.SidecarFailed, "log-shipper", fmt.Sprintf("exit code %d", code))
	m.truth.Codes = append(m.truth.Codes, codes.CrashLoop)
	m.advises("-c log-shipper")
}

func breakDeadline(m *mutant, r *rand.Rand) {
	seconds := int64(12 + r.IntN(10))
	m.job.Spec.RunPolicy.ActiveDeadlineSeconds = new(seconds)
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "600")
	m.what = fmt.Sprintf("a deadline of %d s", seconds)
	m.expects(codes.DeadlineExceeded, fmt.Sprint(seconds))
	m.advises("increase the deadline")
	m.truth.after = 20 * time.Second
}

// breakPodDeadline: the workers' pods have a time limit of their own.
func breakPodDeadline(m *mutant, r *rand.Rand) {
	seconds := int64(12 + r.IntN(10))
	// A pod that has ended for its time does not tell it: the program has to run for longer. It succeeds without the limit.
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--sleep", "45")
	m.workers(func(pod *corev1.PodSpec) { pod.ActiveDeadlineSeconds = new(seconds) })
	m.what = fmt.Sprintf("activeDeadlineSeconds %d in the workers' pods", seconds)
	m.expects(codes.PodDeadlineExceeded, fmt.Sprintf("%d seconds", seconds))
	m.advises("Remove activeDeadlineSeconds")
	m.truth.curable = !m.trainJob
	m.truth.after = 20 * time.Second
}

func breakSecurity(m *mutant, r *rand.Rand) {
	word := pick(r, "privileged", "SYS_PTRACE", "runAsNonRoot")
	m.both(func(pod *corev1.PodSpec) {
		c := pod.Containers[0].SecurityContext
		switch word {
		case "privileged":
			c.Privileged, c.AllowPrivilegeEscalation = new(true), nil
		case "SYS_PTRACE":
			c.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
		default:
			c.RunAsUser, c.RunAsNonRoot = new(int64(0)), new(false)
		}
	})
	m.what = "forbidden by the namespace's Pod Security level: " + word
	// Of a capability, the remedy names which one.
	m.waits(codes.PodSecurityDenied, map[string]string{"SYS_PTRACE": "capabilities"}[word])
	m.advises("Remove SYS_PTRACE")
	if word != "SYS_PTRACE" {
		m.waits(codes.PodSecurityDenied, word)
		m.advises("Set these fields", word)
	}
}
