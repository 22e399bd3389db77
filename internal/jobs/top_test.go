package jobs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// worker returns a pod of a job in namespace ns that requests 2 cores, 1 GiB and a GPU.
func worker(job, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: Job{Kind: "MPIJob", Name: job}.PodLabels()},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "w", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// loadText returns the figures of a load in millicores and bytes, with the requests behind the slashes.
func loadText(l Load) string {
	if !l.Measured {
		return fmt.Sprintf("unmeasured/%d %d GPU", l.CPURequest.MilliValue(), l.GPUs)
	}
	return fmt.Sprintf("%d/%d %d/%d %d GPU", l.CPU.MilliValue(), l.CPURequest.MilliValue(), l.Memory.Value(), l.MemoryRequest.Value(), l.GPUs)
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	reported := func(name string, pods ...string) *v1alpha1.JobReport {
		status := v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning}
		for i, pod := range pods {
			status.Pods = append(status.Pods, v1alpha1.PodStatus{Name: pod, Ranks: fmt.Sprint(i), Node: "node"})
		}
		return reportFor("MPIJob", name, name+"-uid", status)
	}
	metrics := func(job, name, cpu, memory string) client.Object {
		return object(t, fmt.Sprintf(`{apiVersion: metrics.k8s.io/v1beta1, kind: PodMetrics, metadata: {name: %s, labels: {training.kubeflow.org/operator-name: mpi-operator, training.kubeflow.org/job-name: %s}},
  containers: [{name: a, usage: {cpu: %s, memory: %s}}, {name: b, usage: {cpu: 10m}}]}`, name, job, cpu, memory))
	}
	c, s := newServer(t,
		object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: big}}"), object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: idle}}"),
		object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: small}}"),
		reported("big", "big-0", "big-1", "big-2"), reported("idle", "idle-0"), reported("small", "small-0"),
		worker("big", "big-0", corev1.PodRunning), worker("big", "big-1", corev1.PodRunning), worker("big", "big-2", corev1.PodPending),
		worker("idle", "idle-0", corev1.PodSucceeded), worker("small", "small-0", corev1.PodRunning),
		metrics("big", "big-0", "500m", "512k"), metrics("big", "big-1", "1500m", "256k"), metrics("idle", "idle-0", "1", "1"),
	)
	list, err := c.List(t.Context(), Selection{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string][]string{
		"name":   {"big-0 0 510/2000 512000/1073741824 1 GPU", "big-1 1 1510/2000 256000/1073741824 1 GPU"},
		"cpu":    {"big-1 1 1510/2000 256000/1073741824 1 GPU", "big-0 0 510/2000 512000/1073741824 1 GPU"},
		"memory": {"big-0 0 510/2000 512000/1073741824 1 GPU", "big-1 1 1510/2000 256000/1073741824 1 GPU"},
	} {
		loads, err := c.MeasurePods(t.Context(), list.Jobs[0], by)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range loads {
			got = append(got, l.Pod+" "+l.Ranks+" "+loadText(l.Load))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pods by %s (-want +got)\n%s", by, diff)
		}
	}
	usage, err := c.PodUsage(t.Context(), list.Jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	if pod := usage["big-1"]; len(usage) != 2 || pod.CPU.MilliValue() != 1510 || pod.Memory.Value() != 256000 {
		t.Errorf("usage of pods is %+v", usage)
	}
	loads, err := c.MeasureJobs(t.Context(), "ns", list.Jobs, "name")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range loads {
		got = append(got, fmt.Sprintf("%s %d pods %s", l.Job.Name, l.Pods, loadText(l.Load)))
	}
	if diff := cmp.Diff([]string{"big 2 pods 2020/4000 768000/2147483648 2 GPU", "small 1 pods unmeasured/2000 1 GPU"}, got); diff != "" {
		t.Errorf("jobs (-want +got)\n%s", diff)
	}

	for name, test := range map[string]struct {
		err       error
		noMetrics bool
	}{
		"no metrics server":      {missing("PodMetrics"), true},
		"a server that is down":  {errors.New("the server is currently unable to handle the request (get pods.metrics.k8s.io)"), true},
		"no right to read usage": {forbidden("pods.metrics.k8s.io"), false},
	} {
		s.refuse = func(_, kind string) error {
			if kind == "PodMetricsList" {
				return test.err
			}
			return nil
		}
		_, err := c.MeasurePods(t.Context(), list.Jobs[0], "")
		if _, is := errors.AsType[*NoMetricsError](err); err == nil || is != test.noMetrics {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.refuse = func(_, kind string) error {
		if kind == "PodList" {
			return forbidden("pods")
		}
		return nil
	}
	if _, err := c.MeasureJobs(t.Context(), "ns", list.Jobs, ""); err == nil {
		t.Error("pods that the user may not list are no error")
	}
}
