package mpi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func named(job *mpi.Job) {
	spec := field.NewPath("spec")
	job.Fields = mpi.Fields{
		Name: field.NewPath("metadata", "name"), Slots: spec.Child("slots"), SSHMountPath: spec.Child("ssh"),
		LauncherTemplate: spec.Child("launcher"), WorkerCount: spec.Child("workers"), WorkerTemplate: spec.Child("worker"),
		Gang: spec.Child("gang"), GangTimeout: spec.Child("gang", "scheduleTimeoutSeconds"), TTL: spec.Child("ttl"), Deadline: spec.Child("deadline"), BackoffLimit: spec.Child("backoff"),
	}
}

func keysAt(path string) func(*mpi.Job) {
	return func(j *mpi.Job) { j.SSHMountPath = path }
}

func resources(requests, limits corev1.ResourceList) func(*mpi.Job) {
	return func(j *mpi.Job) {
		j.Workers.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		workers int32
		change  func(*mpi.Job)
		want    []string
	}{
		"a good job":          {workers: 4},
		"a launcher alone":    {workers: 0},
		"a thousand workers":  {workers: 1000},
		"GPUs":                {workers: 1, change: resources(list("nvidia.com/gpu", "2"), list("nvidia.com/gpu", "2"))},
		"a limit alone":       {workers: 1, change: resources(nil, list("nvidia.com/gpu", "1", "cpu", "500m"))},
		"the longest name":    {workers: 10, change: func(j *mpi.Job) { j.Name = strings.Repeat("a", 54) }},
		"a name too long":     {workers: 11, change: func(j *mpi.Job) { j.Name = strings.Repeat("a", 54) }, want: []string{`metadata.name: Invalid value: "` + strings.Repeat("a", 54) + `": a pod of this job would be named "` + strings.Repeat("a", 54) + `-worker-10", which is not a valid host name: must be no more than 63 characters; use a name of at most 53 characters instead of 54`}},
		"a name with a dot":   {workers: 1, change: func(j *mpi.Job) { j.Name = "a.b" }, want: []string{`metadata.name: Invalid value: "a.b": a pod of this job would be named "a.b-launcher", which is not a valid host name: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		"a name with a digit": {workers: 1, change: func(j *mpi.Job) { j.Name = "1a" }, want: []string{`metadata.name: Invalid value: "1a": a pod of this job would be named "1a-launcher", which is not a valid host name: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		"too few of everything": {workers: -1, change: func(j *mpi.Job) {
			j.SlotsPerWorker, j.Lifecycle.TTL, j.Lifecycle.Deadline, j.Lifecycle.BackoffLimit = -2, new(-3*time.Second), new(int64(-4)), new(int32(-5))
		}, want: []string{
			"spec.slots: Invalid value: -2: must be 0 or more: it is the number of ranks per worker",
			"spec.workers: Invalid value: -1: must be 1 or more",
			"spec.ttl: Invalid value: -3: must be greater than or equal to 0",
			"spec.deadline: Invalid value: -4: must be greater than or equal to 0",
			"spec.backoff: Invalid value: -5: must be greater than or equal to 0",
		}},
		// The SDK's MOST_WORKERS.
		"as many workers as a ConfigMap lists with the shortest names": {workers: 5405, change: func(j *mpi.Job) { j.Name, j.Namespace = "a", "n" }},
		"one more":                            {workers: 5406, change: func(j *mpi.Job) { j.Name, j.Namespace = "a", "n" }, want: []string{"spec.workers: Invalid value: 5406: must be at most 5405: the hostfile is stored in a ConfigMap, which is limited to 1 MiB"}},
		"more workers than a ConfigMap lists": {workers: 100_000, want: []string{"spec.workers: Invalid value: 100000: must be at most 5190: the hostfile is stored in a ConfigMap, which is limited to 1 MiB"}},
		"more ranks than MPI counts":          {workers: 2, change: func(j *mpi.Job) { j.SlotsPerWorker = 1 << 30 }, want: []string{"spec.slots: Invalid value: 1073741824: 2 workers with this number of slots have 2147483648 ranks; MPI supports at most 2147483647 ranks"}},
		"a relative SSH path":                 {workers: 1, change: func(j *mpi.Job) { j.SSHMountPath = "keys" }, want: []string{`spec.ssh: Invalid value: "keys": must be an absolute path, such as /root/.ssh`}},
		"no container":                        {workers: 1, change: func(j *mpi.Job) { j.Launcher.Template.Spec.Containers = nil }, want: []string{"spec.launcher.spec.containers: Required value: must define at least one container"}},
		"containers that no pod can have": {workers: 1, change: func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "i"}, {Name: "a", Image: " "}, {Name: "B", Image: "i"}}
		}, want: []string{
			`spec.worker.spec.containers[1].name: Duplicate value: "a"`,
			"spec.worker.spec.containers[1].image: Required value: must be the image to run",
			`spec.worker.spec.containers[2].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		}},
		"the operator's own volumes": {workers: 1, change: func(j *mpi.Job) {
			pod := &j.Launcher.Template.Spec
			pod.Volumes = []corev1.Volume{{Name: "data"}, {Name: "ssh-auth"}}
			pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/etc/mpi/"}}
		}, want: []string{
			`spec.launcher.spec.volumes[1].name: Invalid value: "ssh-auth": is the name of a volume that the operator adds; choose another name`,
			`spec.launcher.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/etc/mpi/": is a mount path that the operator uses; choose another path`,
		}},
		"a volume where the keys are": {workers: 1, change: func(j *mpi.Job) {
			keysAt("/home/mpiuser/.ssh")(j)
			j.Workers.Template.Spec.Volumes = []corev1.Volume{{Name: "own"}}
			j.Workers.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/home/mpiuser/.ssh/"}}
		}, want: []string{
			`spec.worker.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/home/mpiuser/.ssh/": is the path of spec.ssh, where the operator mounts a key that it makes for each job; remove this volume, or choose another path`,
		}},
		"resources out of range": {
			workers: 1, change: resources(
				list("cpu", "2", "memory", "-1Gi", "nvidia.com/gpu", "1", "amd.com/gpu", "1", "gpu", "1"),
				list("cpu", "1", "nvidia.com/gpu", "2", "intel.com/gpu", "500m")),
			want: []string{
				`spec.worker.spec.containers[0].resources.limits[intel.com/gpu]: Invalid value: "500m": must be a whole number: devices cannot be divided`,
				`spec.worker.spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a resource that a container can request: cpu, memory, ephemeral-storage, hugepages-<size>, or a device such as nvidia.com/gpu`,
				`spec.worker.spec.containers[0].resources.requests[memory]: Invalid value: "-1Gi": must be 0 or more`,
				`spec.worker.spec.containers[0].resources.limits[amd.com/gpu]: Required value: must be 1, equal to its request: the request and the limit of a device must be equal`,
				`spec.worker.spec.containers[0].resources.requests[cpu]: Invalid value: "2": must be at most its limit, 1`,
				`spec.worker.spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "1": must be 2, equal to its limit: devices are not shared`,
			},
		},
		"labels of the Job controller": {workers: 1, change: func(j *mpi.Job) { j.Launcher.Template.Labels = map[string]string{"controller-uid": "x"} }, want: []string{
			`spec.launcher.metadata.labels[controller-uid]: Invalid value: "x": is set by Kubernetes on the launcher's pod; remove this label`,
		}},
		"keys in the agent's folder":       {workers: 1, change: keysAt("/opt/mpi-agent"), want: []string{`spec.ssh: Invalid value: "/opt/mpi-agent": conflicts with /opt/mpi-agent, which the operator mounts; choose another path, such as /root/.ssh`}},
		"keys over the agent's key":        {workers: 1, change: keysAt("/etc/mpi-agent/"), want: []string{`spec.ssh: Invalid value: "/etc/mpi-agent/": conflicts with /etc/mpi-agent, which the operator mounts; choose another path, such as /root/.ssh`}},
		"keys over the whole image":        {workers: 1, change: keysAt("/"), want: []string{`spec.ssh: Invalid value: "/": conflicts with /opt/mpi-agent, which the operator mounts; choose another path, such as /root/.ssh`}},
		"keys over /etc":                   {workers: 1, change: keysAt("/etc"), want: []string{`spec.ssh: Invalid value: "/etc": conflicts with /etc/mpi-agent, which the operator mounts; choose another path, such as /root/.ssh`}},
		"keys in /proc":                    {workers: 1, change: keysAt("/proc/1"), want: []string{`spec.ssh: Invalid value: "/proc/1": is a folder of the kernel; choose another path, such as /root/.ssh`}},
		"a path of 5,000 bytes":            {workers: 1, change: keysAt("/" + strings.Repeat("a", 4999)), want: []string{`spec.ssh: Invalid value: "/` + strings.Repeat("a", 196) + `…": must be at most 512 bytes long, not 5000; the default is /root/.ssh`}},
		"keys in the agent's folder, sshd": {workers: 1, change: func(j *mpi.Job) { j.Launch, j.SSHMountPath = mpi.LaunchSSHD, "/opt/mpi-agent" }},
		"a deadline in the far future":     {workers: 1, change: func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(10_000_000_000)) }, want: []string{"spec.deadline: Invalid value: 10000000000: must be at most 2147483647 seconds (68 years); omit it for no deadline"}},
		"memory in thousandths of bytes": {workers: 1, change: resources(nil, list("memory", "512m")), want: []string{
			`spec.worker.spec.containers[0].resources.limits[memory]: Invalid value: "512m": must be at least 1Mi, since no container starts with less. The unit m means thousandths of a byte, and Mi means mebibytes`,
		}},
		"memory without a limit":   {workers: 1, change: resources(nil, list("memory", "0"))},
		"more CPUs than there are": {workers: 1, change: resources(list("cpu", "1e18"), nil), want: []string{`spec.worker.spec.containers[0].resources.requests[cpu]: Invalid value: "1e18": must be at most 1Pi (2^50), more than any node has`}},
		"the agent's container and volume": {workers: 1, change: func(j *mpi.Job) {
			j.Workers.Template.Spec.InitContainers = []corev1.Container{{Name: "mpi-agent", Image: "i"}}
			j.Workers.Template.Spec.Volumes = []corev1.Volume{{Name: "mpi-agent-key"}}
			j.Launcher.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/opt/mpi-agent"}}
		}, want: []string{
			`spec.launcher.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/opt/mpi-agent": is a mount path that the operator uses; choose another path`,
			`spec.worker.spec.volumes[0].name: Invalid value: "mpi-agent-key": is the name of a volume that the operator adds; choose another name`,
			`spec.worker.spec.initContainers[0].name: Invalid value: "mpi-agent": is the name of a container that the operator adds; choose another name`,
		}},
		"resources of a gang": {workers: 1, change: func(j *mpi.Job) { j.Gang.MinResources = list("cpu", "-1", "memory", "1e40") }, want: []string{
			`spec.gang.minResources[cpu]: Invalid value: "-1": must be from 0 to 1Pi (2^50); omit minResources to let the scheduler compute it`,
			`spec.gang.minResources[memory]: Invalid value: "10e39": must be from 0 to 1Pi (2^50); omit minResources to let the scheduler compute it`,
		}},
		"a NUL in a command": {workers: 1, change: func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "a\x00b"}
			j.Workers.Template.Spec.InitContainers = []corev1.Container{{Name: "a", Image: "i", Args: []string{"\x00"}}}
		}, want: []string{
			`spec.launcher.spec.containers[0].command[1]: Invalid value: must not contain a NUL character (\x00); remove it`,
			`spec.worker.spec.initContainers[0].args[0]: Invalid value: must not contain a NUL character (\x00); remove it`,
		}},
		"labels": {workers: 1, change: func(j *mpi.Job) { j.Workers.Template.Labels = map[string]string{"a b": "c"} }, want: []string{
			`spec.worker.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(test.workers, named)
			if test.change != nil {
				test.change(&job)
			}
			var got []string
			for _, err := range mpi.Validate(job) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	job := mpitest.Job(12, func(j *mpi.Job) { j.SlotsPerWorker, j.Launcher.RunsRanks = 8, true })
	hosts := job.Hosts("cluster.local")
	if first := (mpi.Host{Name: "pi-launcher.pi.ns.svc.cluster.local", Slots: 8}); hosts[0] != first {
		t.Errorf("the first host is %+v, want the launcher, %+v", hosts[0], first)
	}
	for place, want := range map[int]string{1: "pi-worker-0", 3: "pi-worker-2", 11: "pi-worker-10"} {
		if got, _, _ := strings.Cut(hosts[place].Name, "."); got != want {
			t.Errorf("host %d is %s, want %s: hosts are in the order of their numbers", place, got, want)
		}
	}
	if got := job.Hosts("")[1].Name; got != "pi-worker-0.pi.ns.svc" {
		t.Errorf("without a cluster domain the host is %s", got)
	}
	if got := job.Ranks(); got != 13*8 {
		t.Errorf("%d ranks, want 104", got)
	}
}

func TestSharesCores(t *testing.T) {
	tests := map[string]struct {
		slots            int32
		requests, limits corev1.ResourceList
		want             bool
	}{
		"a CPU for each slot":          {slots: 4, requests: list("cpu", "4")},
		"fewer CPUs than slots":        {slots: 4, requests: list("cpu", "3500m"), want: true},
		"nothing requested":            {slots: 1, want: true},
		"a limit that is the request":  {slots: 2, limits: list("cpu", "2")},
		"a request below a wide limit": {slots: 2, requests: list("cpu", "100m"), limits: list("cpu", "64"), want: true},
		"no slots":                     {slots: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, resources(test.requests, test.limits), func(j *mpi.Job) { j.SlotsPerWorker = test.slots })
			if got := job.SharesCores(); got != test.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}
