package cluster_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// TestCachedPods: cached pods have the host that they are, and those of initializers what decides whether they start.
func TestCachedPods(t *testing.T) {
	t.Parallel()
	pod := func(name string) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mpi.LabelJobSetJob: name}},
			Spec: corev1.PodSpec{
				Hostname: "pi-" + name + "-0-0", SchedulerName: "volcano", Volumes: []corev1.Volume{{Name: "data"}},
				Containers: []corev1.Container{{Name: name, Image: "registry/train", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}}}},
			},
		}
		cluster.AsCached(logs.Masker{}, pod)
		return pod
	}
	if spec := pod("node").Spec; spec.Hostname != "pi-node-0-0" || len(spec.Containers) > 0 || len(spec.Volumes) > 0 {
		t.Errorf("a worker has %+v", spec)
	}
	spec := pod("dataset-initializer").Spec
	if spec.Hostname == "" || spec.SchedulerName != "volcano" || len(spec.Volumes) != 1 || len(spec.Containers) != 1 || spec.Containers[0].Image != "registry/train" {
		t.Errorf("an initializer has %+v", spec)
	}
	if len(spec.Containers) > 0 && len(spec.Containers[0].Env) > 0 {
		t.Errorf("an initializer's environment is cached: %+v", spec.Containers[0].Env)
	}
}

// TestCachedPodsHaveTheirMainContainerFirst: kubelets sort statuses by name, so that a sidecar may be the first.
func TestCachedPodsHaveTheirMainContainerFirst(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mpi"}, {Name: "agent"}, {Name: "proxy"}, {Name: "logs"}}}}
	for _, name := range []string{"agent", "logs", "mpi", "proxy"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name})
	}
	// A cache may transform an object again.
	for range 2 {
		cluster.AsCached(logs.Masker{}, pod)
		var names []string
		for _, c := range pod.Status.ContainerStatuses {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != "mpi agent logs proxy" {
			t.Errorf("the statuses are those of %s", got)
		}
	}
}

// TestCachedPodsHaveWhatTheyHold: the requests of a cached pod are those by which kube-scheduler placed it, and pods with the same requests
// share them.
func TestCachedPodsHaveWhatTheyHold(t *testing.T) {
	t.Parallel()
	resources := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	container := func(pairs ...string) corev1.Container {
		return corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: resources(pairs...)}}
	}
	second := func(c corev1.Container) corev1.Container {
		c.Name = "second"
		return c
	}
	sidecar := second(container("cpu", "500m"))
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	profiled := container("cpu", "1", "nvidia.com/gpu", "1")
	profiled.Env = []corev1.EnvVar{{Name: agentapi.EnvProfile, Value: "on"}}
	for name, test := range map[string]struct {
		spec   corev1.PodSpec
		labels map[string]string
		want   string
	}{
		"nothing":         {corev1.PodSpec{Containers: []corev1.Container{container()}}, nil, "no requests"},
		"all containers":  {corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1", "nvidia.com/gpu", "2"), second(container("cpu", "1", "memory", "1Gi"))}}, nil, "cpu 2, memory 1Gi, nvidia.com/gpu 2"},
		"sidecar":         {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("cpu", "1")}}, nil, "cpu 1500m"},
		"init container":  {corev1.PodSpec{InitContainers: []corev1.Container{second(container("cpu", "4"))}, Containers: []corev1.Container{container("cpu", "1", "memory", "1Gi")}}, nil, "cpu 4, memory 1Gi"},
		"overhead":        {corev1.PodSpec{Overhead: resources("cpu", "250m"), Containers: []corev1.Container{container("cpu", "1")}}, nil, "cpu 1250m"},
		"of the pod":      {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "3")}, Containers: []corev1.Container{container("cpu", "1", "nvidia.com/gpu", "1")}}, nil, "cpu 3, nvidia.com/gpu 1"},
		"with a profile":  {corev1.PodSpec{Containers: []corev1.Container{profiled, second(container("nvidia.com/gpu", "1"))}}, nil, "cpu 1, nvidia.com/gpu 2"},
		"of initializers": {corev1.PodSpec{Overhead: resources("cpu", "1"), Containers: []corev1.Container{container("cpu", "1", "nvidia.com/gpu", "1")}}, map[string]string{mpi.LabelJobSetJob: "dataset-initializer"}, "cpu 2, nvidia.com/gpu 1"},
	} {
		var same []*corev1.Pod
		for range 2 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}, Spec: *test.spec.DeepCopy()}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: test.spec.Containers[0].Resources.Requests}}
			for _, seen := range []string{"as the API server has it", "as it is cached", "as it is cached again"} {
				if got := podspec.Text(podspec.Held(pod)); got != test.want {
					t.Errorf("%s, %s: it holds %s, want %s", name, seen, got, test.want)
				}
				cluster.AsCached(logs.Masker{}, pod)
			}
			same = append(same, pod)
		}
		if same[0].Spec.Resources != same[1].Spec.Resources {
			t.Errorf("%s: two pods have a list each", name)
		}
	}
}
