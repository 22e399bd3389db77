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
		TTL: spec.Child("ttl"), Deadline: spec.Child("deadline"), BackoffLimit: spec.Child("backoff"),
	}
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
		"a name too long":     {workers: 11, change: func(j *mpi.Job) { j.Name = strings.Repeat("a", 54) }, want: []string{`metadata.name: Invalid value: "` + strings.Repeat("a", 54) + `": a pod of this job would be named "` + strings.Repeat("a", 54) + `-worker-10", which is no valid host name: must be no more than 63 characters; use a name of at most 53 characters, this one has 54`}},
		"a name with a dot":   {workers: 1, change: func(j *mpi.Job) { j.Name = "a.b" }, want: []string{`metadata.name: Invalid value: "a.b": a pod of this job would be named "a.b-launcher", which is no valid host name: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		"a name with a digit": {workers: 1, change: func(j *mpi.Job) { j.Name = "1a" }, want: []string{`metadata.name: Invalid value: "1a": a pod of this job would be named "1a-launcher", which is no valid host name: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		"too few of everything": {workers: -1, change: func(j *mpi.Job) {
			j.SlotsPerWorker, j.Lifecycle.TTL, j.Lifecycle.Deadline, j.Lifecycle.BackoffLimit = -2, new(-3*time.Second), new(int64(-4)), new(int32(-5))
		}, want: []string{
			"spec.slots: Invalid value: -2: must be 0 or more: it is how many ranks each worker takes",
			"spec.workers: Invalid value: -1: must be 1 or more",
			"spec.ttl: Invalid value: -3: must be greater than or equal to 0",
			"spec.deadline: Invalid value: -4: must be greater than or equal to 0",
			"spec.backoff: Invalid value: -5: must be greater than or equal to 0",
		}},
		"more workers than a ConfigMap lists": {workers: 100_000, want: []string{"spec.workers: Invalid value: 100000: must be at most 5190: the list of hosts is kept in a ConfigMap, which holds 1 MiB"}},
		"more ranks than MPI counts":          {workers: 2, change: func(j *mpi.Job) { j.SlotsPerWorker = 1 << 30 }, want: []string{"spec.slots: Invalid value: 1073741824: 2 workers with so many slots each make 2147483648 ranks; MPI counts ranks in 31 bits, at most 2147483647"}},
		"a relative SSH path":                 {workers: 1, change: func(j *mpi.Job) { j.SSHMountPath = "keys" }, want: []string{`spec.ssh: Invalid value: "keys": must be an absolute path, such as /root/.ssh`}},
		"no container":                        {workers: 1, change: func(j *mpi.Job) { j.Launcher.Template.Spec.Containers = nil }, want: []string{"spec.launcher.spec.containers: Required value: must define at least one container"}},
		"containers that no pod can have": {workers: 1, change: func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "i"}, {Name: "a", Image: " "}, {Name: "B", Image: "i"}}
		}, want: []string{
			`spec.worker.spec.containers[1].name: Duplicate value: "a"`,
			"spec.worker.spec.containers[1].image: Required value: must name the image to run",
			`spec.worker.spec.containers[2].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		}},
		"the operator's own volumes": {workers: 1, change: func(j *mpi.Job) {
			pod := &j.Launcher.Template.Spec
			pod.Volumes = []corev1.Volume{{Name: "data"}, {Name: "ssh-auth"}}
			pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/etc/mpi/"}}
		}, want: []string{
			`spec.launcher.spec.volumes[1].name: Invalid value: "ssh-auth": is the name of a volume that the operator adds; choose another`,
			`spec.launcher.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/etc/mpi/": is where the operator mounts what the job needs; choose another`,
		}},
		"resources out of range": {
			workers: 1, change: resources(
				list("cpu", "2", "memory", "-1Gi", "nvidia.com/gpu", "1", "amd.com/gpu", "1", "gpu", "1"),
				list("cpu", "1", "nvidia.com/gpu", "2", "intel.com/gpu", "500m")),
			want: []string{
				`spec.worker.spec.containers[0].resources.limits[intel.com/gpu]: Invalid value: "500m": must be a whole number: devices are not divided`,
				`spec.worker.spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": is no resource that a container can ask for: use cpu, memory, ephemeral-storage, hugepages-<size>, or a device such as nvidia.com/gpu`,
				`spec.worker.spec.containers[0].resources.requests[memory]: Invalid value: "-1Gi": must be 0 or more`,
				`spec.worker.spec.containers[0].resources.limits[amd.com/gpu]: Required value: must be 1 too: a device is requested and limited by the same number`,
				`spec.worker.spec.containers[0].resources.requests[cpu]: Invalid value: "2": must be at most its limit, 1`,
				`spec.worker.spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "1": must equal its limit, 2: devices are not shared`,
			},
		},
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
