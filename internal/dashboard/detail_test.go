package dashboard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// jobOf returns the job of a manifest, in namespace lab.
func jobOf(t *testing.T, manifest string) jobs.Job {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace("lab")
	object.SetName("train")
	return jobs.FromObject(&object)
}

const (
	largeMPIJob = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {containers: [{name: launcher, image: solver, resources: {requests: {cpu: 100m, memory: 128Mi}}}]}}},
  Worker: {replicas: 16, template: {spec: {containers: [{name: worker, image: solver, resources: {requests: {cpu: 8}, limits: {memory: 32Gi, nvidia.com/gpu: 2, rdma/hca: 1}}}]}}}}}}`
	hugeMPIJob = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {containers: [{name: launcher, image: solver}]}}},
  Worker: {replicas: 2147483647, template: {spec: {containers: [{name: worker, image: solver, resources: {requests: {cpu: 1}}}]}}}}}}`
)

func TestTotalOfAJob(t *testing.T) {
	reported := jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 2}}}`)
	reported.Report = &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{
		Workers: v1alpha1.WorkersStatus{Wanted: 2},
		Run:     &v1alpha1.Run{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
	}}
	deleted := jobs.Job{Kind: "MPIJob", Report: reported.Report}
	for name, test := range map[string]struct {
		job  jobs.Job
		want string
	}{
		"all pods": {jobOf(t, largeMPIJob), "16 workers and the launcher: 128.1 CPUs, 512.1 GiB of memory, 32 GPUs, 16 rdma/hca"},
		"a TrainJob's own resources": {
			jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 4, resourcesPerNode: {requests: {cpu: 250m}, limits: {nvidia.com/gpu: 1}}}}}`),
			"4 workers: 1 CPU, 4 GPUs",
		},
		"a runtime's, from the report": {reported, "2 workers: 1 CPU, 2 GiB of memory"},
		"a deleted job's":              {deleted, "2 workers: 1 CPU, 2 GiB of memory"},
		"unknown":                      {jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}}}`), ""},
		"no requests":                  {jobOf(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: x}]}}}}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := totalText(test.job); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	// A hostile number of workers takes no time.
	if got := totalText(jobOf(t, hugeMPIJob)); strings.Contains(got, "-") {
		t.Errorf("of too many workers: %q", got)
	}
}

func TestMessageOfAPod(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ended := func(code int32, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}
	}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"healthy":          {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: true}}}, ""},
		"an image":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "Back-off pulling image x: not found")}}, "Back-off pulling image x: not found"},
		"an init step":     {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(1, "no data")}}}, ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}, "no data"},
		"success":          {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(0, "done")}}}}, ""},
		"restarted":        {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{Terminated: ended(3, "")}}}}, "The run before ended with exit code 3 (Error)."},
		"evicted":          {corev1.PodStatus{Message: "The node was low on resource: memory."}, "The node was low on resource: memory."},
		"unschedulable":    {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}}, "0/3 nodes are available"},
		"a secret in it":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended(1, "password=hunter2hunter2")}}}}, "password=****"},
		"terminal escapes": {corev1.PodStatus{Message: "\x1b[31mred"}, "[31mred"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podMessage(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := podMessage(&corev1.Pod{Status: corev1.PodStatus{Message: strings.Repeat("x", 1<<20)}}); len(got) > maxPodMessage {
		t.Errorf("a long message has %d bytes", len(got))
	}
}

func TestChartsHaveAggregates(t *testing.T) {
	line := func(name string, values ...float64) ChartLine {
		samples := []Sample{}
		for i, value := range values {
			samples = append(samples, Sample{int64(15 * i), value})
		}
		return ChartLine{name, samples}
	}
	charts := aggregate([]Chart{
		{Title: "CPU", Unit: "cores", Lines: []ChartLine{line("a", 1, 2, 3), line("b", 3, 4)}},
		{Title: "GPU utilization", Unit: "percent", Lines: []ChartLine{line("a", 50), line("b", 100)}},
		{Title: "Memory", Unit: "bytes", Lines: []ChartLine{line("a", 1)}},
	})
	want := [][]ChartLine{{line("Mean", 2, 3, 3), line("Sum", 4, 6, 3)}, {line("Mean", 75)}, {}}
	for i, chart := range charts {
		if diff := cmp.Diff(want[i], chart.Aggregates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", chart.Title, diff)
		}
	}
}

func TestOutputsOfAJob(t *testing.T) {
	const named = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Worker: {template: {spec: {
  containers: [{name: worker, image: solver, env: [{name: OUTPUT_DIR, value: /results/run}], volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: scratch, mountPath: /scratch}, {name: models, mountPath: /models}, {name: r, mountPath: /results, subPath: train}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: scratch, emptyDir: {}}, {name: models, persistentVolumeClaim: {claimName: shared-models}}, {name: r, persistentVolumeClaim: {claimName: results}}]}}}}}}`
	const connected = `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {annotations: {opendatahub.io/connections: "model, lab/other"}}, spec: {runtimeRef: {name: mpi}, trainer: {command: [sh, -c], args: ["run --out /tmp/x; aws s3 cp /tmp/x \"s3://$AWS_S3_BUCKET/runs/1\""]},
  runtimePatches: [{trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{template: {spec: {template: {spec: {containers: [{name: node, volumeMounts: [{name: r, mountPath: /results}]}], volumes: [{name: r, persistentVolumeClaim: {claimName: results}}]}}}}}]}}}}]}}`
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"the folder that the job names is first": {named, []string{
			"PersistentVolumeClaim results: Folder train/run of the claim; in the pods /results/run (named)",
			"PersistentVolumeClaim shared-models: Folder / of the claim; in the pods /models",
		}},
		"connections and the claim of a TrainJob": {connected, []string{
			"PersistentVolumeClaim results: Folder / of the claim; in the pods /results",
			"Data connection model: The command names s3://$AWS_S3_BUCKET/runs/1", "Data connection lab/other: The command names s3://$AWS_S3_BUCKET/runs/1",
		}},
		"none": {largeMPIJob, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, output := range outputsOf(jobOf(t, test.manifest)) {
				text := output.Title + ": " + output.Where
				if output.Named {
					text += " (named)"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
	outputs := outputsOf(jobOf(t, named))
	for _, want := range []string{`"claimName":"results"`, "kubectl -n lab cp train-results:/results/train/run train-results", "kubectl -n lab delete pod train-results"} {
		if !strings.Contains(outputs[0].Command, want) {
			t.Errorf("the command does not contain %s:\n%s", want, outputs[0].Command)
		}
	}
	hostile := jobOf(t, connected)
	hostile.Object.SetAnnotations(map[string]string{"opendatahub.io/connections": `x"; rm -rf ~; "`})
	if command := outputsOf(hostile)[1].Command; !strings.Contains(command, `secret 'x"; rm -rf ~; "'`) {
		t.Errorf("a hostile name is not quoted:\n%s", command)
	}
	if got := outputsOf(jobs.Job{Kind: "MPIJob"}); len(got) != 0 {
		t.Errorf("of a deleted job: %+v", got)
	}
}
