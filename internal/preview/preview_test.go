package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/podspec"
)

var settings = plan.Settings{NetworkPolicies: true, AgentImage: "agent", Delivery: plan.InitContainer}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// lines returns a line for each object, then the notes and the totals.
func lines(p Preview, objects []Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, strings.Join([]string{o.Kind, o.Name, "by " + o.Creator, o.Purpose}, " | "))
	}
	for _, note := range p.Notes {
		all = append(all, "note: "+note)
	}
	pods, requests := p.Total()
	return append(all, fmt.Sprintf("%d pods, %s", pods, podspec.Text(requests)))
}

// mpiJobText is an MPIJob with a number of workers and more fields of its specification.
const mpiJobText = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi, namespace: ns}
spec:
  slotsPerWorker: 2
  %s
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, pi], resources: {requests: {cpu: 100m}}}]}}}
    Worker: {replicas: %d, template: {spec: {containers: [{name: w, image: mine, resources: {limits: {cpu: 500m, memory: 1Gi}}}]}}}
`

func TestMPIJob(t *testing.T) {
	t.Parallel()
	base := []string{
		"Service | pi | by the operator | host names of the pods", "ConfigMap | pi-config | by the operator | hostfile with %d slots", "Secret | pi-ssh | by the operator | SSH keys of the job",
		"NetworkPolicy | pi | by the operator | isolates the job", "Job | pi-launcher | by the operator | launcher: cpu 100m",
	}
	with := func(slots int, more ...string) []string {
		all := append([]string{}, base...)
		all[1] = fmt.Sprintf(all[1], slots)
		return append(all, more...)
	}
	for name, test := range map[string]struct {
		spec    string
		workers int
		want    []string
	}{
		"two workers": {workers: 2, want: with(4,
			"Pod | pi-worker-0 | by the operator | worker, 2 slots: cpu 500m, memory 1Gi", "Pod | pi-worker-1 | by the operator | worker, 2 slots: cpu 500m, memory 1Gi", "3 pods, cpu 1100m, memory 2Gi")},
		"many workers are one line": {workers: 12, want: with(24, "Pod | pi-worker-0 to -11 | by the operator | 12 workers, 2 slots: cpu 500m, memory 1Gi", "13 pods, cpu 6100m, memory 12Gi")},
		"what the objects do not show": {
			spec: "launcherCreationPolicy: WaitForWorkersReady\n  runPolicy: {suspend: true}", workers: 1,
			want: with(2, "Pod | pi-worker-0 | by the operator | worker, 2 slots: cpu 500m, memory 1Gi",
				"note: the job is suspended; its pods are created when it is resumed", "note: the launcher is created when all workers are ready (launcherCreationPolicy)", "2 pods, cpu 600m, memory 1Gi"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, errs := MPIJob(&unstructured.Unstructured{Object: parse(t, fmt.Sprintf(mpiJobText, test.spec, test.workers))}, settings)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(test.want, lines(p, p.Fold())); diff != "" {
				t.Errorf("preview (-want +got)\n%s", diff)
			}
			known, err := p.Known()
			if err != nil || len(known) != len(p.Objects) {
				t.Fatalf("%d of %d objects are known, %v", len(known), len(p.Objects), err)
			}
			for _, object := range known {
				if object.GetKind() == "" || object.GetNamespace() != "ns" || object.GetOwnerReferences() != nil || object.Object["status"] != nil {
					t.Errorf("it is printed as %v", object.Object)
				}
				if data, _, _ := unstructured.NestedMap(object.Object, "data"); object.GetKind() == "Secret" && len(data) != 0 || object.GetKind() == "ConfigMap" && len(data) == 0 {
					t.Errorf("%s has the data %v", object.GetKind(), data)
				}
			}
		})
	}
}

func TestMPIJobErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"every error":    {fmt.Sprintf(mpiJobText, "mpiImplementation: LAM\n  runPolicy: {backoffLimit: -1}", 0), []string{"spec.mpiImplementation", "spec.runPolicy.backoffLimit"}},
		"unknown fields": {fmt.Sprintf(mpiJobText, "slots: 3", 1), []string{"cannot be read: strict decoding error: unknown field \"spec.slots\""}},
	} {
		_, errs := MPIJob(&unstructured.Unstructured{Object: parse(t, test.text)}, settings)
		text := errs.ToAggregate()
		for _, want := range test.want {
			if text == nil || !strings.Contains(text.Error(), want) {
				t.Errorf("%s: %v, want %s", name, text, want)
			}
		}
	}
}

const runtimeText = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI, mpi.opendatahub.io/max-workers: "4"}}
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 2, sshAuthMountPath: /keys}}
  template:
    metadata: {annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}}
    spec:
      replicatedJobs:
      - {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: mine, resources: {requests: {cpu: 1}}}]}}}}}
      - {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: mine}]}}}}}
`

func TestTrainJob(t *testing.T) {
	t.Parallel()
	decode := func(nodes, more string) trainjob.TrainJob {
		job, errs := DecodeTrainJob(&unstructured.Unstructured{Object: parse(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune, namespace: ns}, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: `+nodes+`}`+more+`}}`)})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return job
	}
	other := parse(t, `{kind: Pod, metadata: {name: mpi}}`)
	used, err := FindRuntime(decode("3", ""), []map[string]any{other, parse(t, runtimeText)})
	if err != nil || used == nil {
		t.Fatal(used, err)
	}
	p, errs := TrainJob(decode("3", ", suspend: true"), *used, settings)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []string{
		"JobSet | tune | by Trainer | runtime mpi", "Secret | tune-mpi-ssh-auth | by Trainer | SSH keys of the job", "ConfigMap | tune-mpi-hostfile | by Trainer | hostfile with 6 slots",
		"Service | tune | by JobSet | host names of the pods", "Pod | tune-launcher-0-0 | by JobSet | launcher: no requests", "Pod | tune-node-0-0 to -2 | by JobSet | 3 workers, 2 slots: cpu 1",
		"NetworkPolicy | tune.trainjob | by the operator | isolates the job", "note: the job is suspended; its pods are created when it is resumed", "4 pods, cpu 3",
	}
	if diff := cmp.Diff(want, lines(p, p.Fold())); diff != "" {
		t.Errorf("preview (-want +got)\n%s", diff)
	}
	known, err := p.Known()
	if err != nil || len(known) != 5 {
		t.Errorf("%d objects are known in full, want 4 pods and the NetworkPolicy: %v", len(known), err)
	}
	if _, errs := TrainJob(decode("9", ""), *used, settings); len(errs) != 1 || !strings.Contains(errs[0].Error(), "spec.trainer.numNodes") {
		t.Errorf("more nodes than the runtime allows: %v", errs)
	}
	if _, errs := DecodeTrainJob(&unstructured.Unstructured{Object: parse(t, "{spec: {trainer: {numNodes: many}}}")}); len(errs) != 1 {
		t.Errorf("a TrainJob that cannot be read: %v", errs)
	}
	if found, err := FindRuntime(decode("1", ""), []map[string]any{other}); found != nil || err != nil {
		t.Errorf("a runtime that is not there: %v, %v", found, err)
	}
	if _, err := FindRuntime(decode("1", ""), []map[string]any{parse(t, "{kind: TrainingRuntime, metadata: {name: mpi}, spec: {mlPolicy: {numNodes: many}}}")}); err == nil {
		t.Error("a runtime that cannot be read is no error")
	}
}

// TestQueuedWithoutRequests: a note names the pods of a job of either kind in a queue that request nothing.
func TestQueuedWithoutRequests(t *testing.T) {
	t.Parallel()
	const note = "pods request nothing (launcher): if Kueue selects the nodes in queue team (topology-aware scheduling), and no LimitRange of the namespace has a default, the job is refused or waits forever"
	const queued = "metadata: {labels: {kueue.x-k8s.io/queue-name: team}, "
	mpiJob := strings.Replace(fmt.Sprintf(mpiJobText, "", 1), ", resources: {requests: {cpu: 100m}}", "", 1)
	trainJob := "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune, namespace: ns}, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 2}}}"
	for name, test := range map[string]struct {
		text  string
		notes int
	}{
		"MPIJob":   {mpiJob, 1},
		"TrainJob": {trainJob, 1},
		"an MPIJob whose pods all request something": {fmt.Sprintf(mpiJobText, "", 1), 0},
	} {
		for _, inQueue := range []bool{false, true} {
			text, want := test.text, 0
			if inQueue {
				text, want = strings.Replace(text, "metadata: {", queued, 1), test.notes
			}
			object := &unstructured.Unstructured{Object: parse(t, text)}
			p, errs := MPIJob(object, settings)
			if object.GetKind() == "TrainJob" {
				var job trainjob.TrainJob
				var used *trainjob.Runtime
				if job, errs = DecodeTrainJob(object); len(errs) == 0 {
					var err error
					if used, err = FindRuntime(job, []map[string]any{parse(t, runtimeText)}); err != nil || used == nil {
						t.Fatal(used, err)
					}
					p, errs = TrainJob(job, *used, settings)
				}
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := strings.Count(strings.Join(p.Notes, "\n"), note); got != want || want == 0 && len(p.Notes) > 0 {
				t.Errorf("%s, in a queue %t: the notes are %q", name, inQueue, p.Notes)
			}
		}
	}
}
