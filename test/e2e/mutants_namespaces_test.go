package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/codes"
)

// Mistakes in what a job expects of its network, its namespace and its volumes' files.

// breakNetwork: a program connects to what it cannot reach, or the launcher gets wrong hosts and interfaces.
func breakNetwork(m *mutant, r *rand.Rand) {
	port := pick(r, 80, 5432, 6379, 8080)
	switch r.IntN(5) {
	case 0:
		// The job's own NetworkPolicy drops the packets.
		address := fmt.Sprintf("10.77.%d.7:%d", r.IntN(200), port)
		host, _, _ := strings.Cut(address, ":")
		m.python(r, "import socket", fmt.Sprintf("socket.create_connection(('%s', %d))", host, port))
		m.waits(codes.NoAnswer, address)
		m.truth.Rank = nil
		m.advises("NetworkPolicy")
		m.truth.after = time.Minute
	case 1:
		m.python(r, "import socket", fmt.Sprintf("socket.create_connection(('127.0.0.1', %d))", port))
		m.expects(codes.ApplicationFailed, "onnection refused")
	case 2:
		name := pick(r, "features", "postgres", "tracking") + ".data.svc"
		m.python(r, "import urllib.request", fmt.Sprintf("urllib.request.urlopen('http://%s:%d/')", name, port))
		m.expects(codes.ApplicationFailed, "ame or service not known")
		m.advises("name")
	case 3:
		host := pick(r, "node17", "worker-0", "gpu-a")
		m.use(pick(r, "openmpi", "openmpi5"))
		launcher(m.job).Command = slices.Insert(launcher(m.job).Command, 1, "--host", host+":4")
		m.what = "mpirun has the host " + host
		m.expects(codes.LaunchRefused, host)
		// Open MPI 5 tries to connect to it.
		m.truth.Codes = append(m.truth.Codes, codes.UnknownHost)
		m.advises("Remove --host", "--host")
	default:
		name := pick(r, "eth3", "ib1", "bond0")
		m.use(pick(r, "openmpi", "openmpi5"))
		launcher(m.job).Command = slices.Insert(launcher(m.job).Command, 1, "--mca", "btl_tcp_if_include", name)
		m.what = "mpirun selects the interface " + name
		m.expects(codes.NoTransport, name)
		m.advises("btl_tcp_if_include")
	}
}

// breakDNS: pods do not ask the cluster's name server.
func breakDNS(m *mutant, r *rand.Rand) {
	policy, config := corev1.DNSDefault, (*corev1.PodDNSConfig)(nil)
	if r.IntN(2) == 0 {
		policy, config = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.9"}}
	}
	m.bothInRuntime(func(pod *corev1.PodSpec) { pod.DNSPolicy, pod.DNSConfig = policy, config })
	m.what = "dnsPolicy " + string(policy)
	m.expects(codes.NameUnresolved)
	m.truth.Codes = append(m.truth.Codes, codes.LauncherNameUnresolved, codes.WorkerUnreachable)
	if m.open {
		// The ssh of this image prints only that it waits.
		m.truth.Codes = append(m.truth.Codes, codes.DaemonUnroutable)
	}
	m.advises("dnsPolicy")
	m.truth.after = 2 * time.Minute
}

// breakQuota: the quota of the namespace is smaller than the job.
func breakQuota(m *mutant, r *rand.Rand) {
	switch r.IntN(3) {
	case 0:
		m.quota = "pods=1"
		m.waits(codes.QuotaTooSmall, "pods", "1")
	case 1:
		m.quota = "requests.memory=100Mi"
		m.waits(codes.QuotaTooSmall, "requests.memory", "100Mi")
	default:
		m.quota = "requests.nvidia.com/gpu=0"
		m.both(func(pod *corev1.PodSpec) {
			size := pod.Containers[0].Resources
			size.Requests["nvidia.com/gpu"], size.Limits["nvidia.com/gpu"] = resource.MustParse("1"), resource.MustParse("1")
		})
		m.waits(codes.QuotaTooSmall, "nvidia.com/gpu")
	}
	m.truth.Codes = append(m.truth.Codes, codes.QuotaExceeded)
	m.what = "the quota of the namespace is " + m.quota
}

// breakLimitRange: the namespace's LimitRange does not allow the size of the pods.
func breakLimitRange(m *mutant, r *rand.Rand) {
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
	if r.IntN(2) == 0 {
		item.Max = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}
		m.what = "a LimitRange allows at most 100Mi of memory"
		m.waits(codes.ObjectRefused, "LimitRange", "100Mi", "memory")
	} else {
		item.Min = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")}
		m.what = "a LimitRange requires 16 CPUs"
		m.waits(codes.ObjectRefused, "LimitRange", "16", "cpu")
	}
	// A LimitRange limits the containers that the job gets for the agent, too.
	m.objects = append(m.objects, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "sizes"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
}

// breakFileMode: a file of a volume that the pod's user may not read or write.
func breakFileMode(m *mutant, r *rand.Rand) {
	switch r.IntN(3) {
	case 0:
		m.objects = append(m.objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{"token": "x"}})
		m.python(r, "print(len(open('/secrets/token').read()))")
		m.mount(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token", DefaultMode: new(int32(0o400))}}, "/secrets")
		m.what += "; a Secret with defaultMode 0400, no fsGroup"
		m.expects(codes.ApplicationFailed, "ermission", "/secrets/token")
		m.advises("fsGroup", "defaultMode")
	case 1:
		m.objects = append(m.objects, configMap("", "settings", "train.yaml", "epochs: 3"))
		m.python(r, "open('/settings/out.txt', 'w')")
		m.mount(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}, "/settings")
		m.what += "; a ConfigMap is written to"
		m.expects(codes.ApplicationFailed, "ead-only", "/settings/out.txt")
		m.advises("read-only", "cannot be written", "emptyDir")
	default:
		m.objects = append(m.objects, configMap("", "program", "run.sh", "#!/bin/sh\nexec ranks\n"))
		m.mount(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "program"}}}, "/app")
		launcher(m.job).Command = mpiCommand(m.sample, "/app/run.sh")
		m.what = "a script of a ConfigMap without defaultMode"
		m.expects(codes.ProgramMissing, "/app/run.sh")
		m.truth.Codes = append(m.truth.Codes, codes.ApplicationFailed)
		m.advises("executable", "by its interpreter", "defaultMode")
	}
}

// breakDisk: a rank writes more than its volume may hold.
func breakDisk(m *mutant, r *rand.Rand) {
	m.python(r, "open('/scratch/part-%d' % rank, 'wb').write(bytes(120 << 20))", "time.sleep(120)")
	m.mount(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(50<<20, resource.BinarySI)}}, "/scratch")
	m.what += "; an emptyDir of 50Mi"
	m.expects(codes.Evicted, "sizeLimit")
	m.truth.Rank = nil
	m.advises("sizeLimit")
	// The kubelet looks every minute or less often.
	m.truth.after = time.Minute
}
